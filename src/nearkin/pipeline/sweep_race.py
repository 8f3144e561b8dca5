"""The race of a sweep: codes measured, the choice among them, and which size is trained next."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from scipy import stats

from nearkin._fields import counted
from nearkin._types import Fields, Record
from nearkin.contracts import Callback, VectorCodes, ignore
from nearkin.index.index import Index
from nearkin.index.searching import KeptVectors, rescore
from nearkin.metrics.graded import NDCG, graded_values
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.pipeline.methods import PRODUCT, SCALARS, CodeSize, find_method
from nearkin.quantization.best import OutOfTime

OVERSAMPLES = (1, 2, 4, 8, 16)  # with more, fetching exact vectors costs more than a longer code
CONFIDENCE = 0.975  # that the recall of unseen queries lies above `low`
_TIMED = 256  # queries whose searches are timed, at most
_REPEATS = 3  # of a timing; the fastest counts
_LONG = 0.25  # seconds of searches at one depth, after which none is repeated


class Code(NamedTuple):
    """The settings of a code on the command line."""

    method: str
    n_bytes: int


@dataclass(frozen=True, eq=False)
class Trial:
    """One code, judged by all queries.

    recall: {oversample: (q,) share of each query's k exact neighbours among the best oversample * k codes}. 1 is the
        recall of the codes alone; the others are of candidates rescored by exact vectors.
    rates: {oversample: queries per second}; seconds: of training, encoding and searching.
    found: (q, c) numbers of the rows of the best codes, where kept vectors of other types may rank them.
    """

    code: Code
    recall: dict[int, np.ndarray] = field(repr=False)
    seconds: float
    rates: dict[int, float] = field(default_factory=dict)
    found: np.ndarray | None = field(default=None, repr=False)

    @property
    def method(self) -> str:
        return self.code.method

    @property
    def n_bytes(self) -> int:
        return self.code.n_bytes

    @property
    def queries_per_second(self) -> float:
        """Of the search by codes alone."""
        return self.rates.get(1, 0.0)

    def mean(self, oversample: int = 1) -> float:
        return float(self.recall[oversample].mean())

    def low(self, oversample: int = 1) -> float:
        """The recall that similar queries exceed with `CONFIDENCE`."""
        return lower_bound(self.recall[oversample])

    def about(self) -> Record:
        return {"method": self.method, "bytes": self.n_bytes}

    def record(self) -> Record:
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
    """A trial and its search: by codes alone (`oversample` 1) or rescored by vectors kept as `kept`, with the share of
    each query's neighbours `by_kept` (q,) where that is not float32."""

    trial: Trial
    oversample: int = 1
    kept: str = "float32"
    by_kept: np.ndarray | None = field(default=None, repr=False)

    @property
    def recall(self) -> np.ndarray:
        """Of each query, (q,)."""
        return self.trial.recall[self.oversample] if self.by_kept is None else self.by_kept

    def low(self) -> float:
        """The recall that similar queries exceed with `CONFIDENCE`."""
        return lower_bound(self.recall)

    @property
    def rate(self) -> float:
        return self.trial.rates.get(self.oversample, 0.0)

    def vectors_bytes(self, d: int) -> int:
        """Bytes per row of the vectors that must be kept on disk."""
        rows = KeptVectors.wanted(self.oversample > 1 and self.kept, d)
        return 0 if rows is None else rows.row_bytes

    def record(self, d: int) -> Record:
        return self.trial.about() | {
            "oversample": self.oversample,
            "recall": float(self.recall.mean()),
            "recall_low": self.low(),
            "kept_vectors": self.kept if self.oversample > 1 else None,
            "kept_vectors_bytes": self.vectors_bytes(d),
            "queries_per_second": self.rate,
        }


def choose(trials: Sequence[Trial], target: float, *, rescored: bool = False, rate: float = 0.0) -> Choice | None:
    """The choice of fewest bytes per row whose recall is above `target` with confidence, the faster of equals; None if
    no trial has it. `rescored`: by kept vectors, at the least oversampling. `rate`: queries per second needed."""
    found = []
    for trial in trials:
        depths = [o for o in trial.recall if (o > 1) == rescored]
        least = next((o for o in depths if trial.low(o) >= target), None)
        if least is not None and (choice := Choice(trial, least)).rate >= rate:
            found.append(choice)
    return min(found, key=lambda c: (c.trial.n_bytes, c.oversample, -c.rate), default=None)


def frontier(trials: Sequence[Trial]) -> list[Trial]:
    """Trials that no other beats in both bytes and recall by codes alone, fewest bytes first."""
    best, found = -1.0, []
    for trial in sorted(trials, key=lambda trial: (trial.n_bytes, -trial.mean())):
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

    def measure(self, code: Code, tick: Callback = ignore) -> Trial:
        """Train a code, index all rows, and judge; `tick` is called as the fit goes on."""
        start = time.perf_counter()
        n_bytes = None if code.method in SCALARS else code.n_bytes
        quantizer = find_method(code.method).make(CodeSize(n_bytes), self.random_state)
        fitted = cast("VectorCodes", quantizer.fit(self.sample, callback=tick))
        index = Index.build(self.X, fitted, metric=self.metric)
        recall, found = self._recall(index)
        return Trial(code, recall, time.perf_counter() - start, self._rates(index), found)

    def narrowed(self, choice: Choice, target: float) -> Choice:
        """The choice with vectors kept in the fewest bytes by which the recall still lies above `target` with
        confidence; unchanged without candidates."""
        k, o = self.truth.ids.shape[1], choice.oversample
        for kind in ("int8", "float16") if choice.trial.found is not None else ():
            with np.errstate(over="ignore", invalid="ignore"):  # rows too long for float16
                rows = cast(KeptVectors, KeptVectors.wanted(kind, self.X.shape[1])).with_rows(self.X)
                found = rescore(self.Q, cast(np.ndarray, choice.trial.found)[:, : o * k], rows, k, self.metric)[1]
            shorter = Choice(choice.trial, o, kind, kept(found, self.truth.matched(found), [1])[1])
            if shorter.low() >= target:
                return shorter
        return choice

    def _depths(self) -> list[int]:
        k = self.truth.ids.shape[1]
        return [o for o in OVERSAMPLES if o * k <= len(self.X)] or [1]

    def _recall(self, index: Index) -> tuple[dict[int, np.ndarray], np.ndarray | None]:
        depths = self._depths()
        found = index.search(self.Q, depths[-1] * self.truth.ids.shape[1])[1]
        return kept(found, self.truth.matched(found), depths), found

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

    def _recall(self, index: Index) -> tuple[dict[int, np.ndarray], np.ndarray | None]:
        exact, k = graded_values(self.truth.ids, self.grades)[NDCG], self.truth.ids.shape[1]
        if not exact.any():
            raise ValueError("exact search finds no relevant row among ten for any query; qrels must be of these ids")
        index.kept, values = KeptVectors([self.X]), {}
        for o in self._depths():
            found = index.search(self.Q, k, oversample=None if o == 1 else o)[1]
            values[o] = 1 + (graded_values(found, self.grades)[NDCG] - exact) / exact.mean()
        return values, None


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
_SURE = ("int8", "float16")  # keep nearly all neighbours of any rows, and need no training
_ALONE, _RESCORED = False, True
_SHARES = {_ALONE: 0.5, _RESCORED: 0.8}  # of the time, for both answers of the first method
_FIRST = 8  # columns a byte of the first learned code
_NEAR = 0.7  # of the best size: other methods are not much shorter at the same recall
_EDGE = 1e-3  # recalls are clipped to this distance from 0 and 1


class Race:
    """Codes of rows of d columns, trained one after the other and measured by `bench`.

    `trials` are the trained codes; `out_of_time`: codes were left out because `seconds` were over.
    """

    def __init__(
        self, bench: Bench, target: float, d: int, seconds: float, rate: float = 0.0, callback: Callback = ignore
    ) -> None:
        self._bench, self._target, self._d, self._rate, self._callback = bench, target, d, rate, callback
        self._start, self._seconds = time.perf_counter(), seconds
        self.trials: list[Trial] = []
        self.out_of_time = False

    def run(self, methods: Sequence[str]) -> None:
        """Measure a code that is sure to suffice, whatever the time; then look for shorter ones.

        The first method gives both answers before the others are tried.
        """
        for method in (name for name in _SURE if name in methods):
            if self._best(_ALONE) is None:
                self._keep(self._bench.measure(Code(method, self._sizes(method)[0])))
        for rescored, share in _SHARES.items():
            for method in methods[:1]:
                self._close_in(method, rescored, share)
        for rescored in _SHARES:
            for method in methods:
                self._close_in(method, rescored, 1.0)

    def _best(self, rescored: bool) -> Choice | None:
        return choose(self.trials, self._target, rescored=rescored, rate=self._rate)

    def _close_in(self, method: str, rescored: bool, share: float) -> None:
        """Train codes of a method until no shorter one is expected to suffice, or `share` of the time is over."""
        while (size := self._next(method, rescored)) is not None:
            code = Code(method, size)
            if not self._has_time(code, share):
                return
            try:
                self._keep(self._bench.measure(code, self._tick))
            except OutOfTime:
                self.out_of_time = True
                return

    def _next(self, method: str, rescored: bool) -> int | None:
        """The size of a method to train next; None if it is not expected to give a shorter code than the best."""
        own = {t.n_bytes: t for t in self.trials if t.method == method}
        if rescored and any(len(trial.recall) == 1 for trial in self.trials):
            return None  # too few rows to rescore
        if any(trial.queries_per_second < self._rate for trial in own.values()):
            return None  # too slow, and longer codes are slower
        enough = [n for n, t in own.items() if choose([t], self._target, rescored=rescored) is not None]
        best = self._best(rescored)
        above = min([*enough, MOST_BYTES + 1 if best is None else best.trial.n_bytes])
        below = max((n for n in own if n < above), default=0)
        sizes = [n for n in self._sizes(method) if below < n < above]
        if not sizes or above <= FINE * below:
            return None
        if not own:
            if best is None or best.trial.method in SCALARS:
                return min(sizes, key=lambda n: abs(n - self._d // _FIRST))
            return sizes[-1] if sizes[-1] >= _NEAR * above else None
        depth = max(self.trials[0].recall) if rescored else 1
        found = forecast({n: trial.low(depth) for n, trial in own.items()}, sizes, self._target)
        if found is not None or above in enough:
            return sizes[-1] if found is None else found
        return min(sizes, key=lambda n: abs(n - math.sqrt(below * above))) if len(own) == 1 else None

    def _sizes(self, method: str) -> Sequence[int]:
        return [size for size in find_method(method).sizes(self._d) if size <= MOST_BYTES or method in SCALARS]

    def _keep(self, trial: Trial) -> None:
        self.trials.append(trial)
        note = f"{trial.method}, {counted(trial.n_bytes, 'byte')}: recall {trial.mean():.4f}"
        self._callback(len(self.trials), {"bytes": trial.n_bytes, "recall": trial.mean(), "note": note})

    def _has_time(self, code: Code, share: float) -> bool:
        """Whether a training ends in time: at most as long as a longer code of the method took, or of any."""
        learned = [trial for trial in self.trials if trial.method not in SCALARS]
        own = [trial for trial in learned if trial.method == code.method]
        known = [(trial.n_bytes, trial.seconds) for trial in own or learned]
        size, taken = min(known, key=lambda pair: (pair[0] < code.n_bytes, abs(pair[0] - code.n_bytes)), default=(1, 0))
        taken *= max(1.0, code.n_bytes / size)
        if time.perf_counter() - self._start + taken <= share * self._seconds:
            return True
        self.out_of_time = True
        return False

    def _tick(self, step: int, record: Fields) -> None:
        if time.perf_counter() - self._start > self._seconds:
            raise OutOfTime


def forecast(recalls: dict[int, float], sizes: Sequence[int], target: float) -> int | None:
    """The smallest of `sizes` expected to reach a recall, by the recalls {bytes: recall} of trained codes.
    logit(recall) is taken as linear in log(bytes); with one trained size the slope is 1 (.8 to 1.3 measured,
    2026-11)."""
    known = sorted(recalls)
    x, y = np.log(known), np.array([_logit(recalls[size]) for size in known])
    slopes = np.diff(y) / np.diff(x) if len(known) > 1 else np.ones(1)
    far = np.log(2 * MOST_BYTES)
    x = np.array([x[0] - far, *x, x[-1] + far])
    y = np.array([y[0] - far * slopes[0], *y, y[-1] + far * slopes[-1]])
    expected = np.interp(np.log(sizes), x, y)
    return next((size for size, value in zip(sizes, expected, strict=True) if value >= _logit(target)), None)


def _logit(share: float) -> float:
    """log(p / (1 - p)), clipped to what a thousand queries can measure."""
    share = min(max(share, _EDGE), 1 - _EDGE)
    return math.log(share / (1 - share))
