"""Does a query find its answer through few bytes, after maps learned from pairs?

    python -m benchmarks codecs pairs --seeds 0 --bytes 8 --sets sentences

"sentences": 40,000 glosses of WordNet and 6,082 sentences, each of which uses a word of one gloss, its answer; vectors
of one encoder, which stay as they are. 1,500 sentences, drawn by each seed, ask; the pairs of the others are learned
from. "glosses", where queries are like the rows: 6,082 glosses, drawn by each seed, ask for the nearest of the others.

Product codes are learned from 8,192 rows: of the vectors as they are (OPQ), the same searched by mapped queries, and of
rows mapped too (PairMap, `pair_map.py`). The score is the share of answers among the ten nearest rows by codes.
"""

import time
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.codecs.pair_map import learned_maps, pair_maps
from benchmarks.harness import arrays
from benchmarks.jobs import Job, command
from nearkin import ProductQuantizer
from nearkin._faiss import nearest_rows

BYTES, SEEDS, SETS = (8, 16, 32), (0, 1, 2, 3, 4), ("sentences", "glosses")
WAYS = ("OPQ", "queries mapped", "PairMap")
ASKED, LEARNED = 1_500, 8_192


def loaded(folder: Path, data: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows X (n, d), queries Q (m, d), and the numbers (m,) of their answers."""
    X, Q, answer = arrays(folder, "wordnet_minilm", "X", "Q", "answer")
    X, Q = X.astype(np.float32), Q.astype(np.float32)
    if data == "sentences":
        return X, Q, answer
    order = np.random.default_rng(seed + 1_000).permutation(len(X))
    Q, X = X[order[: len(Q)]], X[order[len(Q) :]]
    return X, Q, nearest_rows(X, Q, 1)[:, 0]


def measured(folder: Path, data: str, n_bytes: int, seed: int) -> dict[str, Any]:
    """One seed at one size: the share of answers found in each way, and what the maps took."""
    X, Q, answer = loaded(folder, data, seed)
    asked, known, rows = parts(len(Q), len(X), seed)
    start = time.process_time()
    maps = learned_maps(X, Q[known], answer[known], n_bytes, seed)
    mapping = time.process_time() - start
    alone = np.eye(X.shape[1]) if maps.ridge is None else pair_maps(Q[known], X[answer[known]], maps.ridge, 0.0)[0]
    plain, mapped = (fitted(part[rows], n_bytes, seed) for part in (X, X @ maps.rows))
    row: dict[str, Any] = {"seconds": mapping, "ridge": maps.ridge, "power": maps.power}
    for way, codes, part, queries in (
        ("OPQ", plain, X, Q[asked]),
        ("queries mapped", plain, X, Q[asked] @ alone),
        ("PairMap", mapped, X @ maps.rows, Q[asked] @ maps.queries),
    ):
        found = nearest_rows(codes.decode(codes.encode(part)), queries.astype(np.float32), 10)
        row[way] = float((found == answer[asked, None]).any(axis=1).mean())
    return row


def parts(n_queries: int, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of queries that judge, of queries whose pairs are learned from, and of rows that codes learn from."""
    generator = np.random.default_rng(seed)
    order, rows = generator.permutation(n_queries), generator.permutation(n_rows)[:LEARNED]
    return order[:ASKED], order[ASKED:], rows


def fitted(X: np.ndarray, n_bytes: int, seed: int) -> ProductQuantizer:
    return ProductQuantizer(n_bytes, random_state=seed).fit(X)


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    cells = list(product(given.sets, given.seeds, given.bytes))
    for data, seed, n_bytes in cells[: 1 if given.quick else None]:
        key = {"data": data, "bytes": n_bytes, "seed": seed}
        yield "codecs_pairs", Job(key, partial(measured, given.data, data, n_bytes, seed))


def main() -> None:
    command(__doc__, jobs, {"learned": LEARNED, "asked": ASKED}, bytes=BYTES, seeds=SEEDS, sets=SETS)
