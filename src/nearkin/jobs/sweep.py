"""`nearkin sweep`: the code of fewest bytes that reaches a recall, of those that `best` chooses at doubled sizes."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import numpy as np
import scipy.sparse as sp

from nearkin._check import check_choice, check_integer, check_queries, check_real
from nearkin._fields import command, counted
from nearkin._guard import cached_property
from nearkin._types import ArrayLike, Fields, Record
from nearkin.data import VectorFile, read_judgements
from nearkin.data.formats.file_rows import array_rows
from nearkin.index.full_search import FullSearch
from nearkin.index.index import Index
from nearkin.index.kept_vectors import KeptVectors, rescore
from nearkin.index.searching import normalised
from nearkin.jobs.arguments import File
from nearkin.jobs.evaluate import Relevance, exact_neighbors
from nearkin.jobs.inputs import open_given, open_queries
from nearkin.jobs.outputs import check_file
from nearkin.jobs.report import curves, record_section
from nearkin.jobs.run import Steps, threads_used
from nearkin.metrics.neighbours import ExactNeighbours, drawn_order
from nearkin.metrics.retrieval import NDCG, graded_values
from nearkin.metrics.trial import paired_difference
from nearkin.quantization.best import best
from nearkin.report import Page, Section
from nearkin.report.page import figures

LEAST, MOST = 4, 64  # bytes of the first code and, unless a longer one is needed, of the last
MAX_ROWS = 200_000  # most rows; more are sampled
HELD_OUT = 1_000  # rows as queries if none are given; of a large file a fiftieth
OVERSAMPLES = (1, 2, 4, 8, 16)  # with more, fetching exact vectors costs more than a longer code
_SHIFTED = 0.1  # squared distance of the mean query from the mean row, as a share of the variance, of another kind
_TIMED = 256  # queries whose searches are timed, at most


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

    @property
    def mean(self) -> float:
        return float(self.recall.mean())

    @property
    def low(self) -> float:
        """The recall that similar queries exceed with 97.5 % confidence."""
        return lower_bound(self.recall)

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
    least oversampling; None if there is none. `rescored`: by kept vectors. `rate`: queries per second needed."""
    found = [s for t in trials for o, s in t.items() if (o > 1) == rescored and s.rate >= rate]
    enough = (search for search in found if sure(search.recall, target) >= target)
    return min(enough, key=lambda search: (search.n_bytes, search.oversample), default=None)


@dataclass(frozen=True)
class Bench:
    """The data that measure every code.

    X (n, d): vectors to find; Q (q, d): queries; truth: their k exact neighbours; asked: the queries that choose codes,
    None for vectors held out. Vectors and queries have norm 1 already for "cosine". With people's `grades` (q, n) the
    "recall" of a trial is the share of NDCG@10 that it keeps: of a query 1 and its change in units of the mean by exact
    search, so that means are shares.
    """

    X: np.ndarray
    Q: np.ndarray
    truth: ExactNeighbours
    metric: str
    asked: np.ndarray | None = None
    random_state: int = 0
    grades: sp.csr_matrix | None = None

    @property
    def k(self) -> int:
        return self.truth.ids.shape[1]

    def measure(self, n_bytes: int, target: float = np.inf) -> Searches:
        """Choose and train a code, index all vectors, and measure it. Vectors are kept in the fewest bytes by which the
        recall is above `target` with confidence, as float32 if none is."""
        start = time.perf_counter()
        made = best(self.X, n_bytes, self.asked, metric=self.metric, random_state=self.random_state)
        index = Index.build(self.X, made.quantizer, metric=self.metric, norms=made.norms)
        method = made.trials[0]["candidate"] if made.trials else type(made.quantizer).__name__
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
            o: Search(method, index.bytes_per_vector, o, ranked[o][1], self._rate(index, o), seconds, ranked[o][0])
            for o in depths
        }

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


@dataclass(frozen=True)
class Sweep:
    """The codes tried, shortest first, to reach the recall `target` at `rate` queries per second, and what the vectors
    and queries are taken from."""

    bench: Bench
    trials: list[Searches]
    target: float
    rate: float
    rows_in_file: int
    queries_are_rows: bool
    seconds: dict[str, float] = field(default_factory=dict)

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
        return choose(self.trials, self.target, rescored=rescored, rate=self.rate)

    def judged_by(self) -> str:
        """The queries and the vectors, in words."""
        rows, queries = len(self.bench.X), len(self.bench.Q)
        what = "vectors held out of the file" if self.queries_are_rows else "queries"
        among = counted(rows, "vector")
        if self.rows_in_file > rows + queries * self.queries_are_rows:
            among += f" drawn from {self.rows_in_file:,} (among all of them, recall is lower)"
        return f"{queries:,} {what}, among {among}, metric {self.bench.metric}"

    def commands(self, choice: Search, vectors: str, given: Fields) -> list[str]:
        """The commands that make and evaluate the index of a choice; `given` are the files queries, ids, ..."""
        queries, metric = given["queries"], None if self.bench.metric == "l2" else self.bench.metric
        made = command(
            "compress", vectors, queries=queries if queries != vectors else None, bytes=choice.n_bytes, metric=metric,
            **{f"keep-vectors={choice.kept}": choice.oversample > 1 or None}, seed=self.bench.random_state or None,
            ids=given["ids"], out="idx",
        )  # fmt: skip
        if queries is None:
            return [made]
        judged = {name: given[name] for name in ("query_ids", "qrels")}
        deep = choice.oversample if choice.oversample > 1 else None
        return [made, command("evaluate", "idx", queries, base=vectors, k=self.bench.k, **judged, oversample=deep)]

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
                "The queries are vectors held out of the file, which the index holds too; queries=FILE gives "
                "figures that `nearkin evaluate` repeats."
            )
        for rescored, how in ((False, "without rescoring"), (True, "with rescoring by vectors kept on disk")):
            if self.chosen(rescored=rescored) is None:
                needed = f" at {self.rate:,.0f} queries per second" if self.rate else ""
                text.append(f"No code that was tried reaches {self.target:g} {how}{needed}.")
        target, queries = self.target, len(self.bench.Q)
        if lower_bound(np.ones(queries)) < target:
            few = f"{counted(queries, 'query', 'queries')} cannot show {target:g} with 97.5 % confidence"
            text.append(f"{few}, about {math.log(0.025) / math.log(target):,.0f} can; the mean decides.")
        return text

    def record(self, vectors: str, given: Fields) -> Record:
        bench, d = self.bench, self.bench.X.shape[1]
        record: Record = {
            "data": vectors, "measure": self.measure, "judged_by": self.judged_by(), "target": self.target,
            "k": bench.k, "metric": bench.metric, "queries_are_rows": self.queries_are_rows,
            "rows_in_file": self.rows_in_file, "query_shift": self.query_shift, "seconds": self.seconds,
            "wanted_per_second": self.rate, "queries": len(bench.Q),
            "trials": [s.record(d) | {"seconds": s.seconds} for t in self.trials for s in t.values()],
        }  # fmt: skip
        following = list[str]()
        for name, found in {"choice": self.chosen(), "choice_with_vectors": self.chosen(rescored=True)}.items():
            commands = [] if found is None else self.commands(found, vectors, given)
            record[name] = found and found.record(d) | {"command": commands[0]}
            following += commands
        return record | {"notes": self.notes(), "next": following}


def sweep(
    vectors: File,
    *,
    queries: File | None = None,
    recall: float | None = None,
    k: int = 10,
    metric: str | None = None,
    per_second: float = 0.0,
    ids: File | None = None,
    query_ids: File | None = None,
    qrels: File | None = None,
    out: File | None = None,
    seed: int = 0,
    overwrite: bool = False,
) -> Record:
    """Find the code of fewest bytes that reaches a recall, and print the command that makes it.

    The best codec is chosen, as by `nearkin compress`, at 4, 8, 16, 32 and 64 bytes, and at more if these are not
    sufficient. There are two choices: without rescoring, and with rescoring by vectors kept on disk, as int8, as
    float16 if int8 is not sufficient, or else as float32; and the commands that make and evaluate each.

    "recall low" is the bound of the recall with 97.5 % confidence for queries like these. A code is sufficient only if
    it is above the target; more queries narrow this bound.

    Examples:

    - nearkin sweep X.npy --queries Q.npy --recall 0.95
    - nearkin sweep data.npz:base --queries data.npz:query --recall 0.9 -k 100 --out sweep.html
    - nearkin sweep X.npy --queries Q.npy --recall 0.9 --per-second 1000
    - nearkin sweep X.parquet --queries Q.parquet --qrels qrels.tsv

    Parameters
    ----------
    vectors: The vectors, as `nearkin compress` reads them.
    queries: Queries: those of your users. [default: the users of pairs, else vectors held out]
    recall: Recall to reach, a share of each query's k nearest neighbours; with `qrels`, a share of exact search's
        NDCG@10. [default: 0.95, with `qrels` 0.99]
    k: Neighbours of each query.
    metric: The metric of the index: l2, ip (inner product) or cosine. [default: l2; ip for pairs]
    per_second: Queries per second that a search must reach on this machine. [default: any]
    ids: Ids, one a line: those of the vectors (.npy, .txt, .csv, .parquet; file.csv:column). [default: the ids that
        the vectors have, else row numbers]
    query_ids: One id a query, for the judgements. [default: the ids that the queries have, else row numbers]
    qrels: Relevance judgements (query id, vector id, grade): a code must reach the NDCG@10 of exact search.
    out: File to write: an HTML page.
    seed: Seed of everything random: the same seed gives the same result.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    """
    check_file(out, overwrite, [vectors, queries, ids, query_ids, qrels])
    judged = None if qrels is None else read_judgements(qrels)
    given = open_given(vectors, ids=ids)
    if queries is None and given.queries(metric or given.metric) is not None:
        queries = vectors
    asked, relevance = None if queries is None else open_queries(queries, query_ids), None
    if judged is not None:
        if asked is None:
            raise ValueError("qrels grade results of queries; type queries=FILE too")
        relevance = Relevance.of(judged, asked.ids, given.ids, len(given.file))
    found = sweep_file(
        given.file,
        None if asked is None else asked.vectors,
        target=(0.95 if qrels is None else 0.99) if recall is None else recall,
        k=k,
        metric=metric or given.metric or "l2",
        rate=per_second,
        judged=relevance,
        random_state=seed,
    )
    files = {"queries": queries, "ids": ids, "query_ids": query_ids, "qrels": qrels}
    record = found.record(str(vectors), files) | {"threads": threads_used(), "seed": seed, "understood": given.about}
    record["notes"] += relevance.notes if relevance else []
    if out is not None:
        title = f"{vectors}: how few bytes keep {found.target:.0%} of {found.bench.k} neighbours"
        page = Page(title, made_by=command("sweep", vectors)).add(record_section("Result", record))
        page.add(Section("Curves", figures(*curves(record)))).write(out)
    return record


def sweep_file(
    file: VectorFile,
    Q: ArrayLike | None = None,
    *,
    target: float = 0.95,
    k: int = 10,
    metric: str = "l2",
    rate: float = 0.0,
    judged: Relevance | None = None,
    random_state: int = 0,
) -> Sweep:
    """Find the code of fewest bytes that keeps `target`, in (0, 1), of the neighbours.

    `best` chooses a code of 4, 8, 16, 32 and 64 bytes, and of more, up to two a column, as long as none keeps enough
    without rescoring; each is trained on all vectors (200,000 of a larger file). Queries Q (q, d) are by default
    vectors of the file. With people's grades `judged` the target is a share of the NDCG@10 of exact search. A code must
    reach `rate` queries a second. ValueError for queries of another width, a target outside (0, 1).
    """
    steps = Steps()
    check_real(target, "target", above=0, high=1)
    check_real(rate, "rate", low=0)
    check_choice(metric, "metric", ("l2", "ip", "cosine"))
    with steps.step("read"):
        X, queries, grades = _rows_and_queries(file, Q, metric, random_state, judged)
        k = min(check_integer(k, "k", low=1), len(X))
        rows = file if len(X) == len(file) else VectorFile(file.name, array_rows(X))
        if metric == "cosine":
            X, queries = normalised(X), normalised(queries)
    with steps.step("exact search") as callback:
        truth = exact_neighbors(rows, queries, k, metric, callback)
    with steps.step("compare codes") as callback:
        bench = Bench(X, queries, truth, metric, None if Q is None else queries, random_state, grades)
        trials, n_bytes = list[Searches](), LEAST
        enough = 4 * X.shape[1]  # half of it, two bytes a column, is the last size
        while n_bytes < enough and (n_bytes <= MOST or choose(trials, target, rate=rate) is None):
            trials.append(bench.measure(n_bytes, np.inf if rate else target))  # rates are those with float32
            code = trials[-1][1]
            note = f"{code.method}, {counted(code.n_bytes, 'byte')}: recall {code.mean:.4f}"
            callback(len(trials), {"bytes": code.n_bytes, "recall": code.mean, "note": note})
            n_bytes *= 2
    return Sweep(bench, trials, target, rate, len(file), Q is None, steps.seconds)


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
        raise ValueError(f"{file.name} has {counted(len(X), 'vector')}, too few to hold some out; type queries=FILE")
    held, count = np.zeros(len(X), bool), min(max(HELD_OUT, len(X) // 50), len(X) // 5)
    held[np.random.default_rng(random_state).choice(len(X), count, replace=False)] = True
    return X[~held], X[held], None
