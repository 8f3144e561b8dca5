"""One code measured (trained, encoded, searched, judged by the neighbours that it keeps), and the choice of a code."""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import stats

from nearkin._types import Record
from nearkin.contracts import VectorCodes
from nearkin.index.index import Index
from nearkin.index.searching import KeptVectors
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.pipeline.methods import SCALARS, CodeSize, find_method
from nearkin.quantization.residual import AbstractAdditiveQuantizer

OVERSAMPLES = (1, 2, 4, 8, 16, 32)
MAX_OVERSAMPLE = 16  # of a choice: with more, fetching exact vectors costs more than a longer code
CONFIDENCE = 0.975  # that the recall of unseen queries lies above `low`
_TIMED = 256  # queries whose searches are timed, at most
_REPEATS = 3  # of a timing; the fastest counts
_LONG = 0.25  # seconds of searches at one depth, after which none is repeated
_LIGHT = {"max_points_per_centroid": 16, "max_iter": 4}  # a fit in an eighth of the time, .01 to .02 worse
_LIGHT_SUMS = _LIGHT | {"max_points_per_centroid": 64}  # of additive codes: fewer rows do not determine them


class Code(NamedTuple):
    """The settings of a code on the command line: method, bytes, and inverted lists (0 for none)."""

    method: str
    n_bytes: int
    n_lists: int = 0


@dataclass(frozen=True, eq=False)
class Trial:
    """One code, judged by all queries.

    recall: {oversample: (q,) share of each query's k exact neighbours among the best oversample * k codes}. 1 is the
        recall of the codes alone; the others are of candidates rescored by exact vectors.
    rates: {oversample: queries per second}; seconds: of training, encoding and searching; n_probe: lists searched.
    """

    code: Code
    recall: dict[int, np.ndarray] = field(repr=False)
    seconds: float
    rates: dict[int, float] = field(default_factory=dict)
    n_probe: int | None = None

    @property
    def method(self) -> str:
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
        """The recall that similar queries exceed with `CONFIDENCE`."""
        return lower_bound(self.recall[oversample])

    def depth(self, rescored: bool) -> int:
        """The deepest oversampling that a choice may have."""
        return max(o for o in self.recall if o <= (MAX_OVERSAMPLE if rescored else 1))

    def record(self) -> Record:
        """The figures for JSON."""
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
    """One-sided lower bound of the mean of values in [0, 1], with `CONFIDENCE`: the t interval.

    Equal values have no spread; their bound is the exact one (Clopper-Pearson) of as many successes.
    """
    n, mean, spread = len(values), float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0
    if spread == 0:
        return mean * (1 - CONFIDENCE) ** (1 / n)
    return max(0.0, mean - float(stats.t.ppf(CONFIDENCE, n - 1)) * spread / math.sqrt(n))


@dataclass(frozen=True)
class Choice:
    """A trial and its search: by codes alone (`oversample` 1) or rescored by kept vectors."""

    trial: Trial
    oversample: int = 1

    @property
    def rate(self) -> float:
        """Queries per second."""
        return self.trial.rates.get(self.oversample, 0.0)

    def vectors_bytes(self, d: int) -> int:
        """Bytes per row of the exact vectors that must be kept on disk."""
        return 4 * d if self.oversample > 1 else 0

    def record(self, d: int) -> Record:
        """The choice for JSON."""
        return {
            "method": self.trial.method,
            "bytes": self.trial.n_bytes,
            "lists": self.trial.code.n_lists,
            "n_probe": self.trial.n_probe,
            "oversample": self.oversample,
            "recall": self.trial.mean(self.oversample),
            "recall_low": self.trial.low(self.oversample),
            "kept_vectors_bytes": self.vectors_bytes(d),
            "queries_per_second": self.rate,
        }


def choose(
    trials: Sequence[Trial], target: float, *, rescored: bool = False, rate: float = 0.0, fastest: bool = False
) -> Choice | None:
    """The choice of fewest bytes per row whose recall is above `target` with confidence; None if no trial has it.

    `rescored`: by kept vectors, each trial with the least oversampling that suffices. `rate`: queries per second that a
    choice must reach. The faster of two equally short codes is chosen; `fastest`: the fastest of all.
    """
    found = [choice for trial in trials for choice in _sufficient(trial, target, rescored) if choice.rate >= rate]
    if fastest:
        return max(found, key=lambda c: c.rate, default=None)
    return min(found, key=lambda c: (c.trial.stored, c.oversample, -c.rate), default=None)


def _sufficient(trial: Trial, target: float, rescored: bool) -> Iterator[Choice]:
    """The trial with the least oversampling that suffices."""
    for o in trial.recall:
        if (o > 1 or not rescored) and o <= trial.depth(rescored) and trial.low(o) >= target:
            yield Choice(trial, o)
            return


def frontier(trials: Sequence[Trial], *, by: str = "bytes") -> list[Trial]:
    """Trials that no other beats in both recall by codes alone and cost: "bytes", fewest first, or "speed", fastest."""
    cost = {trial: trial.stored if by == "bytes" else -trial.queries_per_second for trial in trials}
    best, found = -1.0, []
    for trial in sorted(trials, key=lambda trial: (cost[trial], -trial.mean())):
        if trial.mean() > best:
            best = trial.mean()
            found.append(trial)
    return found


@dataclass(frozen=True)
class Bench:
    """The data that every code is measured on.

    sample (s, d): rows to learn from; X (n, d): rows to find; Q (q, d): queries; truth: their k exact neighbours. Rows
    and queries have length 1 already for "cosine".
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
        recall = self._recall(index)
        seconds = time.perf_counter() - start
        return Trial(code, recall, seconds, {} if light else self._rates(index))

    def measure_lists(self, code: Code, probes: Iterable[int]) -> Iterator[Trial]:
        """Train a code with lists once, and judge it with each number of searched lists, as the caller asks for it."""
        start = time.perf_counter()
        index = Index.build(self.X, self._fitted(code, False), metric=self.metric)
        seconds = time.perf_counter() - start
        for n_probe in probes:
            index.n_probe = n_probe
            yield Trial(code, self._recall(index), seconds, self._rates(index), n_probe)

    def _fitted(self, code: Code, light: bool) -> VectorCodes:
        n_bytes = None if code.method in SCALARS else code.n_bytes
        quantizer = find_method(code.method).make(CodeSize(n_bytes, n_coarse=code.n_lists or None), self.random_state)
        if light:
            settings = _LIGHT_SUMS if isinstance(quantizer, AbstractAdditiveQuantizer) else _LIGHT
            known = quantizer.get_params()
            quantizer.set_params(**{name: value for name, value in settings.items() if name in known})
        return quantizer.fit(self.sample)

    def _depths(self) -> list[int]:
        k = self.truth.ids.shape[1]
        return [o for o in OVERSAMPLES if o * k <= len(self.X)] or [1]

    def _recall(self, index: Index) -> dict[int, np.ndarray]:
        """The recall of every query at each depth."""
        depths = self._depths()
        found = index.search(self.Q, depths[-1] * self.truth.ids.shape[1])[1]
        return kept(found, self.truth.beside(found), depths)

    def _rates(self, index: Index) -> dict[int, float]:
        """Queries per second at each oversampling, with the exact vectors in memory."""
        index.kept, k = KeptVectors([self.X]), self.truth.ids.shape[1]
        queries, rates = self.Q[:_TIMED], {}
        for o in self._depths():
            times: list[float] = []
            while len(times) < _REPEATS and sum(times) < _LONG:
                start = time.perf_counter()
                index.search(queries, k, oversample=None if o == 1 else o)
                times.append(time.perf_counter() - start)
            rates[o] = len(queries) / min(times)
        return rates


def kept(found: np.ndarray, truth: np.ndarray, depths: list[int]) -> dict[int, np.ndarray]:
    """{oversample: (q,) share of `truth` (q, k) among the first oversample * k of `found` (q, c)}."""
    k, c = truth.shape[1], found.shape[1]
    places = np.full(truth.shape, c)
    for j in range(k):
        hits = found == truth[:, j : j + 1]
        places[:, j] = np.where(hits.any(axis=1), hits.argmax(axis=1), c)
    return {o: (places < min(o * k, c)).mean(axis=1) for o in depths}
