"""The code that keeps most neighbours at a size: product, residual and scalar codes raced on held-out rows."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import faiss
import numpy as np
from sklearn.base import BaseEstimator

from nearkin._check import check_integer, check_magnitude, check_real, check_vectors
from nearkin._random import draw_seed, numpy_generator
from nearkin._types import ArrayLike, Record, Seed
from nearkin.contracts import Callback, VectorCodes, ignore
from nearkin.metrics import recall_k_at_k
from nearkin.quantization.product import ProductQuantizer
from nearkin.quantization.product_residual import ProductResidualQuantizer
from nearkin.quantization.residual import ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer

_TRAIN, _JUDGED, _QUERIES, _NEIGHBOURS = 16_384, 8_192, 500, 10
_LONGEST = 32  # codebooks of a residual code: beyond, its search takes longer than it is worth
_SPLITS = (2, 4, 8, 16, 32)


class Best(NamedTuple):
    """`quantizer`: the winner, fitted on all rows; `table`: a record for each that ran, the best first.

    A record holds "name", "bytes", "recall" (of 10 neighbours among held-out rows, by codes alone), "seconds" of
    processor time for the fit and "encode_seconds" for a thousand rows.
    """

    quantizer: VectorCodes
    table: list[Record]


def best(
    X: ArrayLike,
    n_bytes: int,
    queries: ArrayLike | None = None,
    seconds: float | None = None,
    *,
    random_state: Seed = None,
    callback: Callback | None = None,
) -> Best:
    """Race codecs, rotations and starts at `n_bytes` a row for rows X (n, d); at least 100 rows.

    `queries` (m, d) judge where rows will be searched by others than themselves. No candidate begins after `seconds`;
    product codes, the cheapest, run in any case. Candidates learn from at most 16,384 rows; the winner then from all.
    `callback(step, record)` hears of each candidate. ValueError or TypeError, before any work, for what cannot be used.

    >>> X = np.random.default_rng(0).normal(size=(800, 16)).astype(np.float32)
    >>> found = best(X, 4, random_state=0)
    >>> found.quantizer.encode(X).shape
    (800, 4)
    """
    X = check_magnitude(check_vectors(X, min_rows=100)).astype(np.float32)
    check_integer(n_bytes, "n_bytes", low=1)
    until = np.inf if seconds is None else time.perf_counter() + check_real(seconds, "seconds", low=0)
    generator = numpy_generator(random_state)
    race, seed = _Race.of(X, queries, generator), draw_seed(generator)
    made = dict(_candidates(n_bytes, X.shape[1], len(race.train), seed))
    table: list[Record] = []
    for step, (name, make) in enumerate(made.items()):
        if table and time.perf_counter() > until:
            break
        table.append(race.run(name, make()))
        (callback or ignore)(step + 1, {"total": len(made), "objective": -table[-1]["recall"], **table[-1]})
    table.sort(key=lambda record: -record["recall"])  # stable: of equals, the cheaper that ran first
    winner = made[table[0]["name"]]()
    return Best(_fitted(winner, X, race.given), table)


def _candidates(n_bytes: int, d: int, n: int, seed: int) -> Iterator[tuple[str, Callable[[], VectorCodes]]]:
    """What fits the bytes, the columns and the rows to learn from, the cheapest first."""
    K = 256 if n >= 256 else 16
    units = n_bytes if K == 256 else 2 * n_bytes  # codes of K centroids
    if units <= d:
        yield "product", lambda: ProductQuantizer(units, K, random_state=seed)
        yield "product, no rotation", lambda: ProductQuantizer(units, K, None, random_state=seed)
    for bits in (16, 8, 6, 4):
        if -(-bits * d // 8) <= n_bytes:
            yield f"scalar, {bits} bits", lambda bits=bits: ScalarQuantizer(bits)
            break
    for splits in reversed(_SPLITS):
        if units % splits == 0 and units > splits and splits <= d and units // splits <= 8:
            size = units // splits
            yield (
                f"product residual, {splits} x {size}",
                lambda splits=splits, size=size: ProductResidualQuantizer(splits, size, K, random_state=seed),
            )
    if 1 < units <= _LONGEST:
        yield "residual", lambda: ResidualQuantizer(units, K, random_state=seed)


def _fitted(quantizer: VectorCodes, X: np.ndarray, queries: np.ndarray | None) -> VectorCodes:
    if queries is not None and isinstance(quantizer, ProductQuantizer):
        return quantizer.fit(X, queries=queries)  # pyright: ignore[reportReturnType]
    return quantizer.fit(X)


@dataclass(frozen=True)
class _Race:
    """Rows to learn from and to judge by, queries and the rows (by number) that are truly nearest to them.

    Given queries are halved: one half may judge starts within a fit, the other judges the codes.
    """

    train: np.ndarray
    rows: np.ndarray
    queries: np.ndarray
    given: np.ndarray | None
    truth: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, X: np.ndarray, queries: ArrayLike | None, generator: np.random.Generator) -> "_Race":
        order, given = generator.permutation(len(X)), None
        if queries is None:
            count = min(_QUERIES, len(X) // 10)
            asked, order = X[order[:count]], order[count:]
        else:
            queries = check_vectors(queries, name="queries", n_features=X.shape[1], min_rows=2)
            queries = check_magnitude(queries, "queries").astype(np.float32)[generator.permutation(len(queries))]
            half = len(queries) // 2
            asked, given = queries[:half][: 2 * _QUERIES], queries[half:]
        held_out = min(_JUDGED, len(order) // 2)
        rows, train = X[order[:held_out]], X[order[held_out : held_out + _TRAIN]]
        return cls(train, rows, asked, given, _nearest(rows, asked))

    def run(self, name: str, quantizer: VectorCodes) -> Record:
        """Fit on the training rows, code the others, and say how many neighbours the codes keep."""
        started = time.process_time()
        fitted = _fitted(quantizer, self.train, self.given)
        learned = time.process_time()
        codes = fitted.encode(self.rows)
        encoded = time.process_time()
        recall = recall_k_at_k(_nearest(quantizer.decode(codes), self.queries), self.truth, self.truth.shape[1])
        speed = 1000 * (encoded - learned) / len(self.rows)
        size = fitted.faiss_codes(self.rows[:1]).shape[1]
        return {"name": name, "bytes": size, "recall": recall, "seconds": learned - started, "encode_seconds": speed}


def _nearest(rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    exact = faiss.IndexFlatL2(rows.shape[1])
    exact.add(np.ascontiguousarray(rows, np.float32))
    return exact.search(np.ascontiguousarray(queries), min(_NEIGHBOURS, len(rows)))[1]


class BestCode(BaseEstimator):
    """`best` as something to fit, for what makes a quantizer first and fits it later: `fit` returns the winner."""

    def __init__(self, n_bytes: int, seconds: float | None = None, random_state: Seed = None) -> None:
        self.n_bytes, self.seconds, self.random_state = n_bytes, seconds, random_state

    def fit(self, X: ArrayLike, y: object = None, *, callback: Callback | None = None) -> VectorCodes:
        """the fitted winner of the race on rows X (n, d)."""
        del y
        return best(X, self.n_bytes, None, self.seconds, random_state=self.random_state, callback=callback).quantizer
