"""`nearkin sweep`: find the code of fewest bytes that reaches a recall.

Codes are trained one after the other on all vectors and measured with all queries; the results choose the next size.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from scipy.interpolate import make_interp_spline
from scipy.special import logit

from nearkin._check import check_choice, check_integer, check_queries, check_real
from nearkin._fields import command, counted
from nearkin._guard import cached_property
from nearkin._types import ArrayLike, Record
from nearkin.contracts import Callback, ignore
from nearkin.data import VectorFile
from nearkin.data.formats.file_rows import array_rows
from nearkin.index.full_search import FullSearch
from nearkin.index.index import Index
from nearkin.index.kept_vectors import KeptVectors, rescore
from nearkin.index.searching import normalised
from nearkin.jobs.compress import TRAIN_ROWS
from nearkin.jobs.evaluate import Relevance, exact_neighbors
from nearkin.jobs.methods import CodeSize, choose_metric, find_method, sizes_tried
from nearkin.jobs.run import Steps
from nearkin.linalg.norms import Norms
from nearkin.metrics.neighbours import ExactNeighbours, drawn_order
from nearkin.metrics.retrieval import NDCG, graded_values
from nearkin.metrics.trial import Trial, paired_difference
from nearkin.quantization.candidates import NAMES, SCALARS, candidate
from nearkin.quantization.sized import fitted_code

METHODS = NAMES
MAX_ROWS = 200_000  # most rows; more are sampled
HELD_OUT = 1_000  # rows as queries if none are given; of a large file a fiftieth
CENTROIDS = 256  # centroids of a learned code; each needs at least one row
OVERSAMPLES = (1, 2, 4, 8, 16)  # with more, fetching exact vectors costs more than a longer code
FINE = 1.05  # the search ends when the next shorter trained code is shorter by less than this factor
_SHIFTED = 0.1  # squared distance of the mean query from the mean row, as a share of the variance, of another kind
_TIMED = 256  # queries whose searches are timed, at most
_SEARCHING = 1e-10  # seconds for each number of each row that a query is compared with, all searches of a code together
_SURE = ("int8", "float16")  # nearly lossless for any rows, without training
_ALONE, _RESCORED = False, True
_FIRST = 8  # columns a byte of the first learned code
_NEAR = 0.7  # share of the best size: other methods are not much shorter at the same recall
_EDGE = 1e-3  # recalls are clipped to this distance from 0 and 1, which a thousand queries can measure


@dataclass(frozen=True, eq=False)
class Search:
    """One way to search the codes of a method at a size on the command line, measured with all queries.

    oversample: 1 without rescoring; else candidates, as a multiple of k, that vectors kept as `kept` rescore.
    recall: (q,) share of each query's k exact neighbours that are found.
    rate: queries per second, with vectors kept as float32; seconds: of training, encoding and searching.
    """

    method: str
    n_bytes: int
    oversample: int
    recall: np.ndarray = field(repr=False)
    rate: float = 0.0
    seconds: float = 0.0
    kept: str = "float32"

    def __str__(self) -> str:
        deep = f", oversample {self.oversample}" if self.oversample > 1 else ""
        return f"{self.method}, {counted(self.n_bytes, 'byte')}{deep}"

    @property
    def mean(self) -> float:
        return float(self.recall.mean())

    @property
    def low(self) -> float:
        """The recall that similar queries exceed with 97.5 % confidence."""
        return lower_bound(self.recall)

    @property
    def options(self) -> str:
        """Options of the command for this search."""
        return f" --oversample {self.oversample}" if self.oversample > 1 else ""

    def vectors_bytes(self, d: int) -> int:
        """Bytes per vector of the vectors that must be kept on disk."""
        rows = KeptVectors.wanted(self.oversample > 1 and self.kept, d)
        return 0 if rows is None else rows.row_bytes

    def record(self, d: int) -> Record:
        return {
            "method": self.method,
            "bytes": self.n_bytes,
            "oversample": self.oversample,
            "recall": self.mean,
            "recall_low": self.low,
            "kept_vectors": self.kept if self.oversample > 1 else None,
            "kept_vectors_bytes": self.vectors_bytes(d),
            "queries_per_second": self.rate,
        }


Searches: TypeAlias = dict[int, Search]
"""The searches of one trained code by their oversampling; 1 is always there."""


def lower_bound(values: np.ndarray) -> float:
    """Lower bound of the mean of shares with 97.5 % confidence; those of exact search are 1."""
    return max(0.0, 1 + paired_difference(values, np.ones(len(values))).low)


def sure(values: np.ndarray, target: float) -> float:
    """What a choice compares with the target: `lower_bound`; the mean where so few queries can show no such recall."""
    enough = lower_bound(np.ones(len(values))) >= target
    return lower_bound(values) if enough else float(values.mean())


def choose(trials: Sequence[Searches], target: float, *, rescored: bool = False, rate: float = 0.0) -> Search | None:
    """The search of fewest bytes per vector whose recall is above `target` with confidence, of equals the one with
    least oversampling, of these the winner of a `Trial` in which simpler codes are cheaper; None if there is none.
    `rescored`: by kept vectors. `rate`: queries per second needed."""
    found = [s for t in trials for o, s in t.items() if (o > 1) == rescored and s.rate >= rate]
    found = [search for search in found if sure(search.recall, target) >= target]
    least = min(((s.n_bytes, s.oversample) for s in found), default=None)
    if least is None:
        return None
    level, trial = {s.method: s for s in found if (s.n_bytes, s.oversample) == least}, Trial[str]()
    for cost, name in enumerate(name for name in (*METHODS, *level) if name in level):
        trial.add(name, level[name].recall, cost)
    return level[trial.winner()]


def frontier(trials: Sequence[Searches]) -> list[Search]:
    """Codes that no other beats in both bytes and recall without rescoring, fewest bytes first."""
    found: list[Search] = []
    for search in sorted((trial[1] for trial in trials), key=lambda search: (search.n_bytes, -search.mean)):
        if not found or search.mean > found[-1].mean:
            found.append(search)
    return found


@dataclass(frozen=True)
class Bench:
    """The data that measure every code.

    sample (s, d): vectors to train on; X (n, d): vectors to find; Q (q, d): queries; truth: their k exact neighbours.
    Vectors and queries have norm 1 already for "cosine". With people's `grades` (q, n) the "recall" of a trial is the
    share of NDCG@10 that it keeps: of a query 1 and its change in units of the mean by exact search, so that means are
    shares.
    """

    sample: np.ndarray
    X: np.ndarray
    Q: np.ndarray
    truth: ExactNeighbours
    metric: str
    random_state: int = 0
    grades: sp.csr_matrix | None = None

    @property
    def k(self) -> int:
        return self.truth.ids.shape[1]

    def measure(self, method: str, n_bytes: int, target: float = np.inf) -> Searches:
        """Train a code, index all vectors, and measure it. Vectors are kept in the fewest bytes by which the recall is
        above `target` with confidence, as float32 if none is."""
        start = time.perf_counter()
        size = CodeSize(None if method in SCALARS else n_bytes)
        made = find_method(method).make(size, self.random_state, metric=self.metric)
        quantizer, norms = fitted_code(made, self.sample)
        index = Index.build(self.X, quantizer, metric=self.metric, norms=norms)
        depths = [o for o in OVERSAMPLES if o * self.k <= len(self.X)] or [1]
        first, found = np.empty(len(self.Q)), np.empty((len(self.Q), depths[-1] * self.k), np.int64)
        for some, scores, ids in FullSearch(index, self.Q, found.shape[1]).parts():
            first[some] = self.shares(ids, scores, some)
            found[some] = drawn_order(scores, ids, some)[:, : found.shape[1]]
        index.kept = KeptVectors([self.X])
        ranked = {o: ("float32", self.shares(found[:, : o * self.k], index.kept)) for o in depths[1:]}
        ranked[1] = "float32", first
        enough = [o for o, (_, recall) in ranked.items() if o > 1 and sure(recall, target) >= target]
        for kind in ("float16", "int8") if enough else ():
            with np.errstate(over="ignore", invalid="ignore"):  # rows too long for float16
                rows = cast(KeptVectors, KeptVectors.wanted(kind, self.X.shape[1])).with_rows(self.X)
                shorter = {o: self.shares(found[:, : o * self.k], rows) for o in enough}
            ranked |= {o: (kind, recall) for o, recall in shorter.items() if sure(recall, target) >= target}
        seconds = time.perf_counter() - start
        return {
            o: Search(method, n_bytes, o, ranked[o][1], self._rate(index, o), seconds, ranked[o][0]) for o in depths
        }

    def cost(self, method: str, n_bytes: int) -> float:
        """Predicted seconds of `measure` on two cores."""
        n, d = self.X.shape
        searching = len(self.Q) * n * d * _SEARCHING
        if method not in NAMES:  # a rotation of product codes
            method = "product"
        return candidate(method, n_bytes).seconds(len(self.sample), n, d) + searching

    def shares(
        self, candidates: np.ndarray, ranking: np.ndarray | KeptVectors, queries: np.ndarray | None = None
    ) -> np.ndarray:
        """What each of the queries (q,), all by default, keeps of exact search in its candidates (q, c), ranked by
        their scores (q, c) or by exact distances to kept vectors."""
        some = np.arange(len(self.Q)) if queries is None else queries
        if isinstance(ranking, KeptVectors):
            ranking, candidates = rescore(self.Q[some], candidates, ranking, self.k, self.metric)
        if self.grades is None:
            return self.truth.take(some).recall(candidates, ranking)
        exact = self._exact_gain
        found = graded_values(candidates, self.grades[some], ranking, self.k)[NDCG]
        return 1 + (found - exact[some]) / exact.mean()

    @cached_property
    def _exact_gain(self) -> np.ndarray:
        """NDCG@10 (q,) of exact search."""
        scores, ids = self.truth.ranked()
        gain = graded_values(ids, cast(sp.csr_matrix, self.grades), scores)[NDCG]
        if not gain.any():
            text = "exact search finds no relevant vector among ten for any query; qrels must be of these ids"
            raise ValueError(text)
        return gain

    def _rate(self, index: Index, oversample: int) -> float:
        """Queries per second, with the exact vectors in memory."""
        queries, start = self.Q[:_TIMED], time.perf_counter()
        index.search(queries, self.k, oversample=None if oversample == 1 else oversample)
        return len(queries) / (time.perf_counter() - start)


class Comparison:
    """Codes of vectors of d columns, trained one after the other and measured by `bench`, to reach the recall `target`
    at `rate` queries per second.

    `trials` are the trained codes; `out_of_time`: codes were left out because their predicted `seconds` were over.
    `norms`: vectors have different norms, for which a byte may be spent.
    """

    def __init__(
        self,
        bench: Bench,
        target: float,
        d: int,
        seconds: float,
        rate: float = 0.0,
        norms: bool = False,
        callback: Callback = ignore,
    ) -> None:
        self.bench: Bench = bench
        self.target: float = target
        self.rate: float = rate
        self._d, self._callback = d, callback
        self._sizes, self._given, self._spent = sizes_tried(d, norms=norms), seconds, 0.0
        self.trials: list[Searches] = []
        self.out_of_time = False

    def run(self, methods: Sequence[str]) -> None:
        """Measure a code that surely suffices, whatever the time; then search for shorter ones.

        The first method gives both answers before the others are tried.
        """
        for method in (name for name in _SURE if name in methods):
            if self.best(_ALONE) is None:
                self._measure(method, self._sizes[method][0])
        rounds = [(methods[:1], _ALONE, 0.5), (methods[:1], _RESCORED, 0.8)]  # the last: a share of the time
        for names, rescored, share in [*rounds, (methods, _ALONE, 1.0), (methods, _RESCORED, 1.0)]:
            for method in names:
                self._close_in(method, rescored, share)

    def best(self, rescored: bool) -> Search | None:
        """The choice among the trained codes."""
        return choose(self.trials, self.target, rescored=rescored, rate=self.rate)

    def _close_in(self, method: str, rescored: bool, share: float) -> None:
        """Train codes of a method until no shorter one is expected to suffice, or `share` of the time is used."""
        while (size := self._next(method, rescored)) is not None:
            spent = self._spent + self.bench.cost(method, size)
            if spent > share * self._given:
                self.out_of_time: bool = True
                return
            self._spent = spent
            self._measure(method, size)

    def _next(self, method: str, rescored: bool) -> int | None:
        """The size of a method to train next; None if it is not expected to give a shorter code than the best."""
        own = {trial[1].n_bytes: trial for trial in self.trials if trial[1].method == method}
        if rescored and any(len(trial) == 1 for trial in self.trials):
            return None  # too few rows to rescore
        if any(trial[1].rate < self.rate for trial in own.values()):
            return None  # too slow, and longer codes are slower
        enough = [n for n, t in own.items() if choose([t], self.target, rescored=rescored) is not None]
        best = self.best(rescored)
        above = min([*enough, math.inf if best is None else best.n_bytes])
        below = max((n for n in own if n < above), default=0)
        sizes = [n for n in self._sizes.get(method, range(1, self._d + 1)) if below < n < above]
        if not sizes or above <= FINE * below:
            return None
        if not own:
            if best is None or best.method in SCALARS:
                return min(sizes, key=lambda n: abs(n - self._d // _FIRST))
            return sizes[-1] if sizes[-1] >= _NEAR * above else None
        depth = max(self.trials[0]) if rescored else 1
        found = forecast({n: sure(t[depth].recall, self.target) for n, t in own.items()}, sizes, self.target)
        if found is not None or above in enough:
            return sizes[-1] if found is None else found
        return min(sizes, key=lambda n: abs(n - math.sqrt(below * above))) if len(own) == 1 else None

    def _measure(self, method: str, n_bytes: int) -> None:
        """Train and measure a code. Rates are those with float32, so none is narrowed where they count."""
        trial = self.bench.measure(method, n_bytes, np.inf if self.rate else self.target)
        self.trials.append(trial)
        code = trial[1]
        note = f"{code.method}, {counted(code.n_bytes, 'byte')}: recall {code.mean:.4f}"
        self._callback(len(self.trials), {"bytes": code.n_bytes, "recall": code.mean, "note": note})


def forecast(recalls: dict[int, float], sizes: Sequence[int], target: float) -> int | None:
    """The smallest of `sizes` expected to reach a recall, by the recalls {bytes: recall} of trained codes.

    logit(recall) is taken as linear in log(bytes); with one trained size the slope is 1 (.8 to 1.3 measured, 2026-11).
    """
    x, y = np.log(sorted(recalls)), _logit([recalls[size] for size in sorted(recalls)])
    if len(x) == 1:
        x, y = np.append(x, x + 1), np.append(y, y + 1)
    enough = make_interp_spline(x, y, k=1)(np.log(sizes)) >= _logit(target)  # extrapolated linearly
    return sizes[int(enough.argmax())] if enough.any() else None


def _logit(shares: ArrayLike) -> np.ndarray:
    return logit(np.clip(shares, _EDGE, 1 - _EDGE))


@dataclass(frozen=True)
class Sweep:
    """A comparison that has ended, and what the vectors and queries are taken from."""

    comparison: Comparison
    rows_in_file: int
    queries_are_rows: bool
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def bench(self) -> Bench:
        return self.comparison.bench

    @property
    def query_shift(self) -> float:
        """The squared distance of the mean query from the mean vector, as a share of the vectors' variance."""
        X, Q = self.bench.X, self.bench.Q
        variance = float(X.var(axis=0, dtype=np.float64).sum())
        apart = float(np.square(X.mean(axis=0, dtype=np.float64) - Q.mean(axis=0, dtype=np.float64)).sum())
        return apart / variance if variance else 0.0

    @property
    def measure(self) -> str:
        """The requirement of a code, in words."""
        k = self.bench.k
        return f"recall {k}@{k}" if self.bench.grades is None else f"share of {NDCG} kept"

    def chosen(self, *, rescored: bool = False) -> Search | None:
        """The cheapest code that meets the requirement, alone or `rescored` by kept vectors; None if there is none."""
        return self.comparison.best(rescored)

    def judged_by(self) -> str:
        """The queries and the vectors, in words."""
        rows, queries = len(self.bench.X), len(self.bench.Q)
        what = "vectors held out of the file" if self.queries_are_rows else "queries"
        among = counted(rows, "vector")
        if self.rows_in_file > rows + queries * self.queries_are_rows:
            among += f" drawn from {self.rows_in_file:,} (among all of them, recall is lower)"
        return f"{queries:,} {what}, among {among}, metric {self.bench.metric}"

    def rows(self) -> tuple[list[str], Sequence[Sequence[object]]]:
        """Columns and rows of the table of trained codes, shortest first.

        "codes" is the recall without rescoring, "x4" that of four times k candidates rescored.
        """
        deepest = [o for o in (4, 16) if any(o in trial for trial in self.comparison.trials)]
        ordered = sorted(self.comparison.trials, key=lambda trial: (trial[1].n_bytes, trial[1].method))
        return ["bytes", "method", "codes", "at least", *(f"x{o}" for o in deepest), "q/s", "train s"], [
            [
                t[1].n_bytes, t[1].method, round(t[1].mean, 4), round(t[1].low, 4),
                *(round(t[o].mean, 4) if o in t else None for o in deepest), round(t[1].rate), round(t[1].seconds, 1),
            ]
            for t in ordered
        ]  # fmt: skip

    def answers(
        self, vectors: str, queries: str | None = None, *, ids: str | None = None, **judged_with: str | None
    ) -> list[tuple[str, list[str]]]:
        """The choices in words, each with the commands that make and evaluate its index; all arguments are files.

        `judged_with` are the files `query_ids` and `qrels` of `nearkin evaluate`.
        """
        made: list[tuple[str, list[str]]] = []
        for rescored, how in ((False, "without rescoring"), (True, "with rescoring by vectors kept on disk")):
            found = self.chosen(rescored=rescored)
            if found is None:
                needed = f" at {self.comparison.rate:,.0f} queries per second" if self.comparison.rate else ""
                made.append((f"No code that was tried reaches {self.comparison.target:g} {how}{needed}.", []))
                continue
            commands = [self._compress_command(found, vectors, ids=ids)]
            if queries is not None:
                evaluated = command("evaluate", "idx", queries, base=vectors, k=self.bench.k, **judged_with)
                commands.append(evaluated + found.options)
            word = "Cheapest" if len(self.comparison.trials) > 1 else "The only code that was tried,"
            made.append((self._sentence(f"{word} {how}", found), commands))
        return made

    def _sentence(self, which: str, choice: Search) -> str:
        (n, d), how = self.bench.X.shape, choice.options
        kept = f" + {n * choice.vectors_bytes(d) / 1e6:,.1f} MB of vectors as {choice.kept}"
        size = f"{counted(choice.n_bytes, 'byte')} a vector" + (kept if how else "")
        return (
            f"{which}: {size}, {choice.method}{', searched with' if how else ''}{how}; "
            f"{self.measure.split()[0]} {choice.mean:.4f} (at least {choice.low:.4f} with 97.5 % confidence), "
            f"{choice.rate:,.0f} queries per second"
        )

    def _compress_command(self, choice: Search, vectors: str, ids: str | None = None) -> str:
        """The command that makes the index of a choice."""
        return command(
            "compress",
            vectors,
            method=choice.method,
            bytes=None if choice.method in SCALARS else choice.n_bytes,
            metric=None if self.bench.metric == "l2" else self.bench.metric,
            **{f"keep-vectors={choice.kept}": choice.oversample > 1 or None},
            seed=self.bench.random_state or None,
            ids=ids,
            out="idx",
        )

    def notes(self) -> list[str]:
        """Reservations about the answers."""
        text = []
        if self.query_shift > _SHIFTED:
            text.append(
                f"The queries are of another kind than the vectors: their means are {self.query_shift:.2f} of the "
                "variance apart. Measure by real queries only."
            )
        if self.queries_are_rows:
            text.append(
                "The queries are vectors held out of the file, which the index holds too; --queries FILE gives "
                "figures that `nearkin evaluate` repeats."
            )
        target, queries = self.comparison.target, len(self.bench.Q)
        if lower_bound(np.ones(queries)) < target:
            few = f"{counted(queries, 'query', 'queries')} cannot show {target:g} with 97.5 % confidence"
            text.append(f"{few}, about {math.log(0.025) / math.log(target):,.0f} can; the mean decides.")
        if self.comparison.out_of_time:
            text.append("Time was over before all codes were tried; --minutes gives it more.")
        return text

    def _trials(self, rescored: bool) -> list[Record]:
        """A record of every search, of `metrics.trial.Trial`: its cost is in bytes a vector, those kept included."""
        trial, d = Trial[Search](), self.bench.X.shape[1]
        for search in (s for t in self.comparison.trials for o, s in t.items() if (o > 1) == rescored):
            cost = search.n_bytes + search.vectors_bytes(d)
            trial.add(search, search.recall, cost, **search.record(d), seconds=search.seconds)
        chosen = self.chosen(rescored=rescored)
        return [{**row, "candidate": str(row["candidate"]), "won": row["candidate"] is chosen} for row in trial.table()]

    def record(self, vectors: str) -> Record:
        made, bench = self.comparison, self.bench
        record: Record = {
            "data": vectors, "target": made.target, "k": bench.k, "metric": bench.metric,
            "queries_are_rows": self.queries_are_rows, "rows_in_file": self.rows_in_file,
            "query_shift": self.query_shift, "out_of_time": made.out_of_time, "seconds": self.seconds,
            "wanted_per_second": made.rate, "queries": len(bench.Q),
            "trials": [*self._trials(False), *self._trials(True)],
            "frontier": [[code.method, code.n_bytes] for code in frontier(made.trials)],
        }  # fmt: skip
        for name, found in {"choice": self.chosen(), "choice_with_vectors": self.chosen(rescored=True)}.items():
            record[name] = found and found.record(self.bench.X.shape[1]) | {
                "command": self._compress_command(found, vectors)
            }
        return record


def sweep(
    file: VectorFile,
    Q: ArrayLike | None = None,
    *,
    target: float = 0.95,
    k: int = 10,
    metric: str = "l2",
    methods: Sequence[str] | None = None,
    rate: float = 0.0,
    seconds: float = 300.0,
    judged: Relevance | None = None,
    random_state: int = 0,
    steps: Steps | None = None,
) -> Sweep:
    """Find the code of fewest bytes that keeps `target`, in (0, 1), of the neighbours: `nearkin sweep`.

    The int8 code is measured first. Trainings on all vectors (200,000 of a larger file) close in on the target until
    the size is exact to a byte or a twentieth, or `seconds`, predicted for two cores, are over. Queries Q (q, d) are by
    default vectors of the file, `methods` all that rank by `metric`. With people's grades `judged` the target is a
    share of the NDCG@10 of exact search. A code must reach `rate` queries a second. ValueError for queries of another
    width, a target outside (0, 1), a method whose codes do not rank by `metric`.
    """
    steps = steps or Steps()
    check_real(target, "target", above=0, high=1)
    check_real(rate, "rate", low=0)
    check_choice(metric, "metric", ("l2", "ip", "cosine"))
    if methods is None:
        methods = [name for name in METHODS if metric in find_method(name).metrics]
    tried = {method.name: choose_metric(method, metric) for method in map(find_method, methods)}
    with steps.step("read"):
        X, queries, grades = _rows_and_queries(file, Q, metric, random_state, judged)
        k = min(check_integer(k, "k", low=1), len(X))
        rows = file if len(X) == len(file) else VectorFile(file.name, array_rows(X))
        if metric == "cosine":
            X, queries = normalised(X), normalised(queries)
    with steps.step("exact search") as callback:
        truth = exact_neighbors(rows, queries, k, metric, callback)
    with steps.step("compare codes") as callback:
        bench = Bench(X[rows.draw(TRAIN_ROWS, random_state)], X, queries, truth, metric, random_state, grades)
        norms = metric != "cosine" and Norms.shared(bench.sample) is None
        made = Comparison(bench, target, X.shape[1], seconds, rate, norms, callback)
        made.run([name for name in tried if len(X) >= CENTROIDS or name in SCALARS])
    return Sweep(made, len(file), Q is None, steps.seconds)


def _rows_and_queries(
    file: VectorFile, Q: ArrayLike | None, metric: str, random_state: int, judged: Relevance | None
) -> tuple[np.ndarray, np.ndarray, sp.csr_matrix | None]:
    """Rows (n, d), queries (q, d) that are none of them, and their grades; graded rows are always among the rows."""
    file.check_finite(metric=metric)
    numbers, grades = file.draw(MAX_ROWS, random_state), None
    if judged is not None:
        graded = np.unique(judged.grades.indices)
        numbers = np.union1d(numbers, graded[graded < len(file)])
        grades = judged.grades[:, np.r_[numbers, graded[graded >= len(file)]]]
    X = file.take(numbers)
    if Q is not None:
        Q = check_queries(Q, X.shape[1], metric=metric).astype(np.float32)
        return X, Q if judged is None else Q[judged.queries], grades
    if len(X) < 20:
        raise ValueError(f"{file.name} has {counted(len(X), 'vector')}, too few to hold some out; give --queries")
    held, count = np.zeros(len(X), bool), min(max(HELD_OUT, len(X) // 50), len(X) // 5)
    held[np.random.default_rng(random_state).choice(len(X), count, replace=False)] = True
    return X[~held], X[held], None
