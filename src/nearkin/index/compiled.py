"""Scores of codes by a compiled loop: sums of entries of queries' tables."""

import numpy as np

from nearkin._compile import cached_njit


@cached_njit(nogil=True)
def _sum(codes: np.ndarray, start: int, bits: int, table: np.ndarray) -> np.float32:
    """The sum of the entries of a table (M, K) that the numbers of some bits from byte `start` on name."""
    total, word, held = np.float32(0), 0, 0
    for m in range(len(table)):
        if bits == 8:  # twice as quick
            total += table[m, codes[start + m]]
            continue
        while held < bits:
            word |= np.int64(codes[start]) << held
            held, start = held + 8, start + 1
        total += table[m, word & ((1 << bits) - 1)]
        word, held = word >> bits, held - bits
    return total


@cached_njit(nogil=True)
def candidate_sums(
    codes: np.ndarray,
    lists: np.ndarray,
    size: int,
    bits: int,
    places: np.ndarray,
    tables: np.ndarray,
    rest: np.ndarray,
    visited: np.ndarray,
    away: np.ndarray,
    candidates: np.ndarray,
) -> np.ndarray:
    """Scores (q, c) of the candidates (q, c) of queries by their tables (q, M, K); those of -1 have any. List l begins
    at byte `lists[l, 0]` of the codes and at number `lists[l, 1]` of `rest`; the list and place in it of a row are in
    `places` (n, 2), or (0, 2) for one list. `away` (q, p) are the terms of the lists (q, p) that a query visits."""
    scores, near = np.empty(candidates.shape, np.float32), np.zeros(len(lists), np.float32)
    begins = np.empty(candidates.shape[1], np.int64)
    for query in range(len(candidates)):
        for i in range(visited.shape[1]):
            near[visited[query, i]] = away[query, i]
        for i in range(len(begins)):  # apart from the sums, so that the processor waits for many rows at once
            number, place = 0, max(candidates[query, i], 0)
            if len(places):
                number, place = places[place, 0], places[place, 1]
            begins[i] = lists[number, 0] + place * size
            scores[query, i] = rest[lists[number, 1] + place] + near[number]
        for i in range(len(begins)):
            scores[query, i] -= 2 * _sum(codes, begins[i], bits, tables[query])
    return scores
