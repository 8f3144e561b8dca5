"""Measure one code: train it, encode the rows, search, and count the neighbours that it keeps."""

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

import nearkin as nk
from nearkin._types import Record
from nearkin.contracts import Callback, ignore
from nearkin.pipeline.evaluate.neighbours import search_in_batches

OVERSAMPLES = (1, 2, 4, 8, 16, 32)
CONFIDENCE = 0.975  # that the recall of queries not seen lies above `low`


@dataclass(frozen=True)
class Trial:
    """One method at one size, judged by all queries.

    recall: {oversample: (q,) share of each query's k exact neighbours among the best oversample * k codes}. At 1 it is
        the recall of the codes alone; at others, of those candidates ranked again by exact vectors.
    n_bytes: of a row's code; seconds: of training and encoding; queries_per_second: of the search for k by codes alone.
    """

    method: str
    n_bytes: int
    recall: dict[int, np.ndarray] = field(repr=False)
    seconds: float
    queries_per_second: float

    def mean(self, oversample: int = 1) -> float:
        """Mean recall over the queries."""
        return float(self.recall[oversample].mean())

    def low(self, oversample: int = 1) -> float:
        """The recall that queries like these exceed with `CONFIDENCE`."""
        return lower_bound(self.recall[oversample])

    def record(self) -> Record:
        """The figures as JSON holds them."""
        return {
            "method": self.method,
            "bytes": self.n_bytes,
            "recall": {str(o): self.mean(o) for o in self.recall},
            "recall_low": {str(o): self.low(o) for o in self.recall},
            "queries_per_second": self.queries_per_second,
            "seconds": self.seconds,
        }


def lower_bound(values: np.ndarray) -> float:
    """One-sided lower bound of the mean of values in [0, 1], with `CONFIDENCE`.

    The t interval; where all values are equal, the exact (Clopper-Pearson) bound of as many successes, since their
    spread says nothing then.
    """
    n, mean, spread = len(values), float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0
    if spread == 0:
        return mean * (1 - CONFIDENCE) ** (1 / n)
    return max(0.0, mean - float(stats.t.ppf(CONFIDENCE, n - 1)) * spread / math.sqrt(n))


def measure(
    method: str,
    n_bytes: int,
    quantizer: Any,
    rows: tuple[np.ndarray, np.ndarray],
    Q: np.ndarray,
    truth: np.ndarray,
    *,
    metric: str,
    callback: Callback = ignore,
) -> Trial:
    """Train `quantizer` on the first of `rows`, index the second, and judge by queries Q (q, d) with `truth` (q, k).

    `truth` are the numbers of each query's exact neighbours. Rows and queries are of length 1 already for "cosine".
    """
    start, k = time.perf_counter(), truth.shape[1]
    sample, X = rows
    index = nk.Index.build(X, quantizer.fit(sample, callback=callback), metric=metric)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    search_in_batches(index, Q, k, None, ignore)
    rate = len(Q) / (time.perf_counter() - start)
    depths = [o for o in OVERSAMPLES if o * k <= len(X)] or [1]
    found = search_in_batches(index, Q, depths[-1] * k, None, ignore)[1]
    return Trial(method, n_bytes, kept(found, truth, depths), seconds, rate)


def kept(found: np.ndarray, truth: np.ndarray, depths: list[int]) -> dict[int, np.ndarray]:
    """{oversample: (q,) share of `truth` (q, k) among the first oversample * k of `found` (q, c)}."""
    k, c = truth.shape[1], found.shape[1]
    places = np.full(truth.shape, c)
    for j in range(k):
        hits = found == truth[:, j : j + 1]
        places[:, j] = np.where(hits.any(axis=1), hits.argmax(axis=1), c)
    return {o: (places < min(o * k, c)).mean(axis=1) for o in depths}
