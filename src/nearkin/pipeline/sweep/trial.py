"""Measure one code: train it, encode the rows, search, and count the neighbours that it keeps."""

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import faiss
import numpy as np
from scipy import stats

from nearkin._check import check_instance
from nearkin._faiss import nearest_codes
from nearkin._types import Record
from nearkin.contracts import VectorCodes, ignore
from nearkin.index.index import Index
from nearkin.index.rescoring import KeptVectors
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.pipeline.evaluate.neighbours import search_in_batches
from nearkin.pipeline.methods import SCALARS, CodeSize, find_method
from nearkin.quantization.additive_estimator import AbstractAdditiveQuantizer

OVERSAMPLES = (1, 2, 4, 8, 16, 32)
CONFIDENCE = 0.975  # that the recall of queries not seen lies above `low`
_TIMED = 256  # queries whose searches are timed, at most
_REPEATS = 3  # of a timing, of which the fastest counts
_ENOUGH = 0.25  # seconds of searches at one depth, after which none is repeated
_LIGHT = {"max_points_per_centroid": 16, "max_iter": 4}  # a fit that costs an eighth and keeps .01 to .02 less
_LIGHT_SUMS = _LIGHT | {"max_points_per_centroid": 64}  # of sums of centroids, which fewer rows do not determine


class Code(NamedTuple):
    """What the command line names: a method, the bytes of a code, and inverted lists (0 for none)."""

    method: str
    n_bytes: int
    n_lists: int = 0


@dataclass(frozen=True, eq=False)
class Trial:
    """One code, judged by all queries.

    recall: {oversample: (q,) share of each query's k exact neighbours among the best oversample * k codes}. At 1 it is
        the recall of the codes alone; at others, of those candidates ranked again by exact vectors.
    rates: {oversample: queries a second}; seconds: of training, encoding and searching; n_probe: lists visited, if any.
    """

    code: Code
    recall: dict[int, np.ndarray] = field(repr=False)
    seconds: float
    rates: dict[int, float] = field(default_factory=dict)
    n_probe: int | None = None

    @property
    def method(self) -> str:
        """The code's method."""
        return self.code.method

    @property
    def n_bytes(self) -> int:
        """Bytes of a row's code."""
        return self.code.n_bytes

    @property
    def stored(self) -> int:
        """Bytes of a row in the index: its code and, in a list, its number."""
        return self.code.n_bytes + (8 if self.code.n_lists else 0)

    @property
    def queries_per_second(self) -> float:
        """Of the search by codes alone."""
        return self.rates.get(1, 0.0)

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
            "lists": self.code.n_lists,
            "n_probe": self.n_probe,
            "recall": {str(o): self.mean(o) for o in self.recall},
            "recall_low": {str(o): self.low(o) for o in self.recall},
            "queries_per_second": self.queries_per_second,
            "rescored_per_second": {str(o): rate for o, rate in self.rates.items() if o > 1},
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


@dataclass(frozen=True)
class Bench:
    """What every code is measured on.

    sample (s, d): rows to learn from; X (n, d): rows to find; Q (q, d): queries; truth: the k exact neighbours
    of each. Rows and queries are of length 1 already for "cosine".
    """

    sample: np.ndarray
    X: np.ndarray
    Q: np.ndarray
    truth: ExactNeighbours
    metric: str
    random_state: int = 0

    def measure(self, code: Code, *, light: bool = False) -> Trial:
        """Train a code without lists, index all rows, and judge; `light`: learned from few rows, and not timed."""
        start = time.perf_counter()
        index = Index.build(self.X, self._fitted(code, light), metric=self.metric)
        depths = self._depths()
        recall = self._kept(index, depths)
        seconds = time.perf_counter() - start
        return Trial(code, recall, seconds, {} if light else self._rates(index, depths))

    def measure_lists(self, code: Code, probes: Iterable[int]) -> Iterator[Trial]:
        """Train a code with lists once, and judge it for each number of lists visited, for as long as it is asked."""
        start = time.perf_counter()
        index = Index.build(self.X, self._fitted(code, False), metric=self.metric)
        seconds, depths = time.perf_counter() - start, self._depths()
        for n_probe in probes:
            index.n_probe = n_probe
            recall = self._kept(index, depths)
            yield Trial(code, recall, seconds, self._rates(index, depths), n_probe)

    def _fitted(self, code: Code, light: bool) -> VectorCodes:
        n_bytes = None if code.method in SCALARS else code.n_bytes
        size = CodeSize(n_bytes, n_coarse=code.n_lists or None)
        quantizer = find_method(code.method).make(size, self.random_state)
        if light:
            settings = _LIGHT_SUMS if isinstance(quantizer, AbstractAdditiveQuantizer) else _LIGHT
            named = quantizer.get_params()
            quantizer.set_params(**{name: value for name, value in settings.items() if name in named})
        return quantizer.fit(self.sample)

    def _depths(self) -> list[int]:
        k = self.truth.ids.shape[1]
        return [o for o in OVERSAMPLES if o * k <= len(self.X)] or [1]

    def _kept(self, index: Index, depths: list[int]) -> dict[int, np.ndarray]:
        found = self._found(index, depths[-1])
        return kept(found, self.truth.beside(found), depths)

    def _found(self, index: Index, depth: int) -> np.ndarray:
        """Numbers of the rows that each query finds by codes alone, nearest first.

        Where FAISS decodes every row for every query, rows are decoded once, and searched exactly: the same answers.
        """
        quantizer, k = index.quantizer, self.truth.ids.shape[1]
        if isinstance(quantizer, AbstractAdditiveQuantizer) and decodes(quantizer, self.metric):
            return nearest_codes(check_instance(index.faiss_index, "index", faiss.Index), self.Q, depth * k)
        return search_in_batches(index, self.Q, depth * k, None, ignore)[1]

    def _rates(self, index: Index, depths: list[int]) -> dict[int, float]:
        """Queries a second at each oversampling, the exact vectors in memory."""
        index.kept, k = KeptVectors([self.X]), self.truth.ids.shape[1]
        asked, rates = self.Q[:_TIMED], {}
        for o in depths:
            times: list[float] = []
            while len(times) < _REPEATS and sum(times) < _ENOUGH:
                start = time.perf_counter()
                index.search(asked, k, oversample=None if o == 1 else o)
                times.append(time.perf_counter() - start)
            rates[o] = len(asked) / min(times)
        return rates


def decodes(quantizer: AbstractAdditiveQuantizer, metric: str) -> bool:
    """Whether a flat search decodes every row: by L2 distance without a norm in the code."""
    return metric == "l2" and not quantizer.norm_bits and not quantizer.n_lists


def kept(found: np.ndarray, truth: np.ndarray, depths: list[int]) -> dict[int, np.ndarray]:
    """{oversample: (q,) share of `truth` (q, k) among the first oversample * k of `found` (q, c)}."""
    k, c = truth.shape[1], found.shape[1]
    places = np.full(truth.shape, c)
    for j in range(k):
        hits = found == truth[:, j : j + 1]
        places[:, j] = np.where(hits.any(axis=1), hits.argmax(axis=1), c)
    return {o: (places < min(o * k, c)).mean(axis=1) for o in depths}
