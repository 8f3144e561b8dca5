"""The race of a sweep: codes measured, the choice among them, and the order of the trainings."""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from scipy import stats

from nearkin._fields import counted
from nearkin._types import Record
from nearkin.contracts import Callback, VectorCodes, ignore
from nearkin.index.index import Index
from nearkin.index.searching import KeptVectors
from nearkin.metrics.graded import NDCG, graded_values
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.pipeline.methods import PRODUCT, SCALARS, CodeSize, find_method
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

    def about(self) -> Record:
        """The code and its search."""
        return {"method": self.method, "bytes": self.n_bytes, "lists": self.code.n_lists, "n_probe": self.n_probe}

    def record(self) -> Record:
        """The figures for JSON."""
        return self.about() | {
            "recall": {str(o): self.mean(o) for o in self.recall},
            "recall_low": {str(o): self.low(o) for o in self.recall},
            "queries_per_second": self.queries_per_second,
            "rescored_per_second": {str(o): rate for o, rate in self.rates.items() if o > 1},
            "seconds": self.seconds,
        }


def lower_bound(values: np.ndarray) -> float:
    """One-sided lower bound of a mean in [0, 1], at `CONFIDENCE`: t interval; Clopper-Pearson for equal values."""
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
        return self.trial.about() | {
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
    found = []
    for trial in trials:
        depths = [o for o in trial.recall if (o > 1 or not rescored) and o <= trial.depth(rescored)]
        least = next((o for o in depths if trial.low(o) >= target), None)
        if least is not None and (choice := Choice(trial, least)).rate >= rate:
            found.append(choice)
    if fastest:
        return max(found, key=lambda c: c.rate, default=None)
    return min(found, key=lambda c: (c.trial.stored, c.oversample, -c.rate), default=None)


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
        return cast("VectorCodes", quantizer.fit(self.sample))

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


@dataclass(frozen=True)
class RelevanceBench(Bench):
    """The same, but judged by people's `grades` (q, n): the "recall" of a trial is the share of NDCG@10 that it keeps.

    A query's value is 1 and its change of NDCG@10 in units of the mean by exact search, so that means are shares.
    """

    grades: sp.csr_matrix = field(kw_only=True)

    def _recall(self, index: Index) -> dict[int, np.ndarray]:
        exact, k = graded_values(self.truth.ids, self.grades)[NDCG], self.truth.ids.shape[1]
        if not exact.any():
            raise ValueError("exact search finds no relevant row among ten for any query; qrels must be of these ids")
        index.kept, values = KeptVectors([self.X]), {}
        for o in self._depths():
            found = index.search(self.Q, k, oversample=None if o == 1 else o)[1]
            values[o] = 1 + (graded_values(found, self.grades)[NDCG] - exact) / exact.mean()
        return values


def kept(found: np.ndarray, truth: np.ndarray, depths: list[int]) -> dict[int, np.ndarray]:
    """{oversample: (q,) share of `truth` (q, k) among the first oversample * k of `found` (q, c)}."""
    k, c = truth.shape[1], found.shape[1]
    places = np.full(truth.shape, c)
    for j in range(k):
        hits = found == truth[:, j : j + 1]
        places[:, j] = np.where(hits.any(axis=1), hits.argmax(axis=1), c)
    return {o: (places < min(o * k, c)).mean(axis=1) for o in depths}


METHODS = (PRODUCT, "residual", "product-residual", *SCALARS)
FINE = 1.05  # the search ends when the next shorter trained code is shorter by less than this factor
MOST_BYTES = 512  # of a learned code
_IN_LISTS = PRODUCT  # the method that is tried in inverted lists
_LONGER = (1.0, 1.1, 1.25)  # times the bytes that suffice without lists, tried in this order with lists
_ALONE, _RESCORED = False, True
_SHARES = {_ALONE: 0.65, _RESCORED: 0.8}  # of the time for each of the two answers; the rest is for lists
_NEAR = 0.7  # of the first method's size: other methods are not much shorter at the same recall
_EDGE = 1e-3  # recalls are clipped to this distance from 0 and 1


class Race:
    """Trials of methods on rows of d columns, measured by `bench`.

    `trials` are the fully trained codes, `scouts` those learned from few rows; `out_of_time`: codes were left out
    because `seconds` were over. `whole`: assumed seconds of a full training over a light one's.
    """

    def __init__(
        self,
        bench: Bench,
        target: float,
        d: int,
        seconds: float,
        rate: float = 0.0,
        callback: Callback = ignore,
        whole: float = 5.0,
    ) -> None:
        self._bench, self._target, self._d, self._rate, self._callback = bench, target, d, rate, callback
        self._start, self._seconds, self._whole = time.perf_counter(), seconds, whole
        self._forecast = {_ALONE: Forecast(), _RESCORED: Forecast()}
        self.scouts: list[Trial] = []
        self.trials: list[Trial] = []
        self.out_of_time = False

    def run(self, methods: Sequence[str]) -> None:
        """Train what the answers need, cheap codes first so that there is an answer early."""
        for method in methods:
            if method in SCALARS and self._best(_ALONE) is None:
                self._try(Code(method, self._most(method)), 1.0)
        learned = [method for method in methods if method not in SCALARS]
        for method in learned[:1]:
            size = 1  # doubled until few rows suffice
            while size <= self._longest(method) and self._scout(Code(method, size)):
                if self.scouts[-1].low() >= self._target:
                    break
                size *= 2
            # a good answer by codes alone even in little time
            expected = self._next(method, _ALONE)
            if expected is not None:
                self._try(Code(method, expected), _SHARES[_RESCORED])
        self._close_in(learned[:1], _RESCORED)  # short codes, soon trained
        self._try_others(learned)
        for rescored in (_ALONE, _RESCORED):
            self._close_in(learned, rescored)

    def race_lists(self, n_lists: int) -> None:
        """Try inverted lists: the shortest sufficient product codes, with more and more lists searched."""
        for rescored in (_ALONE, _RESCORED):
            flat = [trial for trial in self.trials if trial.method == _IN_LISTS and not trial.code.n_lists]
            best = choose(flat, self._target, rescored=rescored)  # what suffices without lists, measured or expected
            shortest = self._expected(_IN_LISTS, rescored, 0, self._most(_IN_LISTS) + 1)
            shortest = shortest if best is None else best.trial.n_bytes
            for size in [] if shortest is None else [math.ceil(factor * shortest) for factor in _LONGER]:
                if size <= self._d and (self._probe(Code(_IN_LISTS, size, n_lists), rescored) or self.out_of_time):
                    break

    def _probe(self, code: Code, rescored: bool) -> bool:
        """Judge a code with 1, 2, 3, 4, 6, 8, ... searched lists until it suffices."""
        if not self._has_time(code, 1.0):
            return False
        steps = [count for i in range(20) for count in (2**i, 3 * 2 ** (i - 1)) if count == int(count)]
        probes = [int(count) for count in steps if count <= code.n_lists // 2]
        for trial in self._bench.measure_lists(code, probes):
            self._keep(trial)
            if choose([trial], self._target, rescored=rescored) is not None:
                return True
        return False

    def _best(self, rescored: bool) -> Choice | None:
        return choose(self.trials, self._target, rescored=rescored, rate=self._rate)

    def _longest(self, first: str) -> int:
        """Most bytes with which a code of the first learned method can still be the shortest."""
        best = self._best(_ALONE)
        return self._most(first) if best is None else min(best.trial.n_bytes, self._most(first))

    def _try_others(self, methods: Sequence[str]) -> None:
        """The other methods at the sizes that the first one is expected to need; light fits would hardly be faster."""
        for method in methods[1:]:
            limit = self._longest(methods[0])
            for rescored in (_ALONE, _RESCORED):
                expected = self._expected(methods[0], rescored, 0, limit + 1) or limit
                near = [size for size in self._sizes(method) if _NEAR * expected <= size <= expected]
                if near and not any(trial.code == (method, near[-1], 0) for trial in self.trials):
                    self._try(Code(method, near[-1]), _SHARES[rescored])

    def _scout(self, code: Code) -> bool:
        """Measure a code learned from few rows; False if there was no time."""
        if time.perf_counter() - self._start > self._seconds / 2:
            self.out_of_time = True
            return False
        trial = self._bench.measure(code, light=True)
        self.scouts.append(trial)
        for rescored, forecast in self._forecast.items():
            forecast.light.setdefault(code.method, {})[code.n_bytes] = trial.low(trial.depth(rescored))
        self._report(trial, " learned from few rows")
        return True

    def _close_in(self, methods: Sequence[str], rescored: bool) -> None:
        """Train the code that is expected to be the shortest sufficient one, until none shorter is expected."""
        while not rescored or any(trial.depth(rescored) > 1 for trial in [*self.scouts, *self.trials]):
            wanted = [(size, method) for method in methods if (size := self._next(method, rescored)) is not None]
            if not wanted:
                return
            n_bytes, method = min(wanted)
            if not self._try(Code(method, n_bytes), _SHARES[rescored]):
                return

    def _next(self, method: str, rescored: bool) -> int | None:
        """The size of a method to train next; None if it is not expected to give a shorter code than the best."""
        whole = [trial for trial in self.trials if trial.method == method]
        if method != _IN_LISTS and any(trial.queries_per_second < self._rate for trial in whole):
            return None  # too slow, and longer codes are slower
        mine = {t.n_bytes: choose([t], self._target, rescored=rescored) is not None for t in whole}
        best = self._best(rescored)
        above = min([size for size, enough in mine.items() if enough], default=self._most(method) + 1)
        above = above if best is None else min(above, best.trial.n_bytes)
        below = max((size for size, enough in mine.items() if not enough and size < above), default=0)
        between = [size for size in self._sizes(method) if below < size < above]
        if not between or above <= FINE * below:
            return None
        expected = self._expected(method, rescored, below, above)
        if expected is not None:
            return expected
        return between[-1] if mine.get(above) and below not in mine else None

    def _expected(self, method: str, rescored: bool, below: int, above: int) -> int | None:
        """The smallest size of the method between the two that is expected to suffice."""
        forecast = self._forecast[rescored]
        sizes = (size for size in self._sizes(method) if below < size < above)
        return next((size for size in sizes if forecast.recall(method, size) >= self._target), None)

    def _sizes(self, method: str) -> Sequence[int]:
        return [size for size in find_method(method).sizes(self._d) if size <= MOST_BYTES or method in SCALARS]

    def _most(self, method: str) -> int:
        return max(self._sizes(method), default=0)

    def _try(self, code: Code, share: float) -> bool:
        """Train and judge a code if it will be done before `share` of the time is over."""
        if not self._has_time(code, share):
            return False
        self._keep(self._bench.measure(code))
        return True

    def _keep(self, trial: Trial) -> None:
        self.trials.append(trial)
        if not trial.code.n_lists:
            for rescored, forecast in self._forecast.items():
                recall = trial.low(trial.depth(rescored))
                forecast.whole.setdefault(trial.method, {})[trial.n_bytes] = recall
        self._report(trial, "" if trial.n_probe is None else f" in lists, {trial.n_probe} searched")

    def _report(self, trial: Trial, how: str) -> None:
        note = f"{trial.method}, {counted(trial.n_bytes, 'byte')}{how}: recall {trial.mean():.4f}"
        record = {"bytes": trial.n_bytes, "recall": trial.mean(), "note": note}
        self._callback(len(self.scouts) + len(self.trials), record)

    def _has_time(self, code: Code, share: float) -> bool:
        """Whether a full training ends in time, by the method's trained code nearest in size, else by light ones."""
        known = [(t.n_bytes, t.seconds) for t in self.trials if t.method == code.method and not t.code.n_lists]
        known += [(t.n_bytes, self._whole * t.seconds) for t in self.scouts if t.method == code.method or not known]
        size, taken = min(known, key=lambda pair: abs(math.log(pair[0] / code.n_bytes)), default=(1, 0.0))
        taken *= max(1.0, code.n_bytes / size)
        if time.perf_counter() - self._start + taken <= share * self._seconds:
            return True
        self.out_of_time = True
        return False


@dataclass
class Forecast:
    """Expected recall by size: logit(recall) over log(bytes), linear between measured sizes.

    `light` and `whole` hold {method: {bytes: recall}} of light and full trainings. The first method of `light` gives
    the shape of the curve; other methods, and full trainings, shift it by what was measured nearest.
    """

    light: dict[str, dict[int, float]] = field(default_factory=dict)
    whole: dict[str, dict[int, float]] = field(default_factory=dict)

    def recall(self, method: str, n_bytes: int) -> float:
        """The recall expected of a method at a size; 0 for a method that was not measured."""
        if method not in self.light and method not in self.whole:
            return 0.0
        value = self._shape(n_bytes)
        if method in self.whole:
            value += self._shift(self.whole[method], n_bytes)
        else:
            value += self._shift(self.light[method], n_bytes)
            value += self._shift(self.whole.get(next(iter(self.light)), {}), n_bytes)
        return 1 / (1 + math.exp(-value))

    def _shape(self, n_bytes: int) -> float:
        """The first method's curve, continued with its last slope."""
        points = next(iter((self.light or self.whole).values()))
        sizes = sorted(points)
        x, y = np.log(sizes), [_logit(points[size]) for size in sizes]
        where = math.log(n_bytes)
        if len(sizes) > 1 and where > x[-1]:
            return y[-1] + (where - x[-1]) * (y[-1] - y[-2]) / (x[-1] - x[-2])
        return float(np.interp(where, x, y))

    def _shift(self, points: dict[int, float], n_bytes: int) -> float:
        """Difference of measured recalls from the shape, at a size."""
        if not points:
            return 0.0
        sizes = sorted(points)
        above = [_logit(points[size]) - self._shape(size) for size in sizes]
        return float(np.interp(math.log(n_bytes), np.log(sizes), above))


def _logit(share: float) -> float:
    """log(p / (1 - p)), clipped to what a thousand queries can measure."""
    share = min(max(share, _EDGE), 1 - _EDGE)
    return math.log(share / (1 - share))


def lists_for(n: int) -> int:
    """About four times the square root of n rows, a power of two."""
    return 2 ** round(math.log2(4 * math.sqrt(n)))
