"""Entries of queries' tables, added up for vectors by compiled loops."""

import numpy as np

from nearkin._compile import cached_njit


@cached_njit(nogil=True)
def table_sums(codes: np.ndarray, bits: int, tables: np.ndarray, rest: np.ndarray, away: float) -> np.ndarray:
    """Scores (n,) of codes (n, bytes), whose numbers of some bits follow each other, by tables (M, K) of a query."""
    scores = np.empty(len(codes), np.float32)
    for i in range(len(codes)):
        total, word, held, byte = np.float32(0), 0, 0, 0
        for m in range(len(tables)):
            if bits == 8:  # twice as quick
                total += tables[m, codes[i, m]]
                continue
            while held < bits:
                word |= np.int64(codes[i, byte]) << held
                held, byte = held + 8, byte + 1
            total += tables[m, word & ((1 << bits) - 1)]
            word, held = word >> bits, held - bits
        scores[i] = max(rest[i] + away - 2 * total, 0)
    return scores


@cached_njit(nogil=True)
def candidate_sums(
    codes: np.ndarray, bits: int, tables: np.ndarray, rest: np.ndarray, away: np.ndarray, candidates: np.ndarray
) -> np.ndarray:
    """Scores (q, c) of the candidates (q, c) of queries by their tables (q, M, K); those of -1 have any."""
    scores, count = np.empty(candidates.shape, np.float32), candidates.shape[1]
    some, some_rest = np.empty((count, codes.shape[1]), np.uint8), np.empty(count, np.float32)
    for query in range(len(candidates)):
        for place in range(count):  # NumPy's indexing by arrays would take seconds to compile
            row = max(candidates[query, place], 0)
            some_rest[place] = rest[row]
            for byte in range(codes.shape[1]):
                some[place, byte] = codes[row, byte]
        sums = table_sums(some, bits, tables[query], some_rest, away[query])
        for place in range(count):
            scores[query, place] = sums[place]
    return scores
