"""`nearkin sweep`: the code of fewest bytes that reaches a recall, of those that `best` chooses at doubled sizes."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import scipy.sparse as sp

from nearkin._check import check_choice, check_integer, check_queries, check_real
from nearkin._fields import command, counted
from nearkin._guard import cached_property
from nearkin._types import Fields, Record
from nearkin.contracts import Callback
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


def sweep(
    vectors: File,
    *,
    queries: File | None = None,
    recall: float | None = None,
    k: int = 10,
    metric: str | None = None,
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
    - nearkin sweep X.parquet --queries Q.parquet --qrels qrels.tsv

    Parameters
    ----------
    vectors: The vectors, as `nearkin compress` reads them.
    queries: Queries: those of your users. [default: the users of pairs, else vectors held out]
    recall: Recall to reach, a share of each query's k nearest neighbours; with `qrels`, a share of exact search's
        NDCG@10. [default: 0.95, with `qrels` 0.99]
    k: Neighbours of each query.
    metric: The metric of the index: l2, ip (inner product) or cosine. [default: l2; ip for pairs]
    ids: Ids, one a line: those of the vectors (.npy, .txt, .csv, .parquet; file.csv:column). [default: the ids that
        the vectors have, else row numbers]
    query_ids: One id a query, for the judgements. [default: the ids that the queries have, else row numbers]
    qrels: Relevance judgements (query id, vector id, grade): a code must reach the NDCG@10 of exact search.
    out: File to write: an HTML page.
    seed: Seed of everything random: the same seed gives the same result.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    """
    check_file(out, overwrite, [vectors, queries, ids, query_ids, qrels])
    target = check_real((0.95 if qrels is None else 0.99) if recall is None else recall, "recall", above=0, high=1)
    judged = None if qrels is None else read_judgements(qrels)
    given = open_given(vectors, ids=ids)
    if queries is None and given.queries(metric or given.metric) is not None:
        queries = vectors
    asked, relevance = None if queries is None else open_queries(queries, query_ids), None
    if judged is not None:
        if asked is None:
            raise ValueError("qrels grade results of queries; type queries=FILE too")
        relevance = Relevance.of(judged, asked.ids, given.ids, len(given.file))
    steps = Steps()
    bench = Bench.of(
        given.file, None if asked is None else asked.vectors, k, metric or given.metric or "l2", seed, relevance, steps
    )
    with steps.step("compare codes") as callback:
        trials = compared(bench, target, callback)
    files = {"queries": queries, "ids": ids, "query_ids": query_ids, "qrels": qrels}
    record: Record = {
        "data": str(vectors), "measure": f"recall {bench.k}@{bench.k}" if qrels is None else f"share of {NDCG} kept",
        "judged_by": bench.judged_by(), "target": target, "k": bench.k, "metric": bench.metric,
        "queries_are_rows": bench.queries_are_rows, "rows_in_file": bench.rows_in_file, "query_shift": bench.shift,
        "seconds": steps.seconds, "queries": len(bench.Q), "trials": trials,
    }  # fmt: skip
    following = list[str]()
    for name, found in {"choice": choose(trials), "choice_with_vectors": choose(trials, rescored=True)}.items():
        commands = [] if found is None else commands_of(found, bench, str(vectors), files)
        record[name] = found and {at: found[at] for at in found if at != "seconds"} | {"command": commands[0]}
        following += commands
    notes = [*reservations(bench, trials, target), *(relevance.notes if relevance else [])]
    record |= {"notes": notes, "next": following, "threads": threads_used(), "seed": seed, "understood": given.about}
    if out is not None:
        title = f"{vectors}: how few bytes keep {target:.0%} of {bench.k} neighbours"
        page = Page(title, made_by=command("sweep", vectors)).add(record_section("Result", record))
        page.add(Section("Curves", figures(*curves(record)))).write(out)
    return record


def lower_bound(values: np.ndarray) -> float:
    """Lower bound of the mean of shares with 97.5 % confidence; those of exact search are 1."""
    return max(0.0, 1 + paired_difference(values, np.ones(len(values))).low)


def suffices(values: np.ndarray, target: float) -> bool:
    """Whether `lower_bound` reaches the target; where so few queries can show no such recall, the mean decides."""
    can_show = lower_bound(np.ones(len(values))) >= target
    return (lower_bound(values) if can_show else float(values.mean())) >= target


def choose(trials: Sequence[Record], *, rescored: bool = False) -> Record | None:
    """The sufficient search of fewest bytes a vector, of equals the one with least oversampling; None if there is none.
    `rescored`: by kept vectors."""
    enough = (row for row in trials if row["sufficient"] and (row["oversample"] > 1) == rescored)
    return min(enough, key=lambda row: (row["bytes"], row["oversample"]), default=None)


def compared(bench: "Bench", target: float, callback: Callback) -> list[Record]:
    """The searches of codes of 4, 8, 16, 32 and 64 bytes, and of more, up to two a column, as long as none suffices
    without rescoring."""
    trials, n_bytes = list[Record](), LEAST
    enough = 4 * bench.X.shape[1]  # half of it, two bytes a column, is the last size
    while n_bytes < enough and (n_bytes <= MOST or choose(trials) is None):
        rows = bench.measure(n_bytes, target)
        code, trials = rows[0], trials + rows
        note = f"{code['method']}, {counted(code['bytes'], 'byte')}: recall {code['recall']:.4f}"
        callback(n_bytes.bit_length(), {"bytes": code["bytes"], "recall": code["recall"], "note": note})
        n_bytes *= 2
    return trials


@dataclass(frozen=True)
class Bench:
    """The data that measure every code.

    X (n, d): vectors to find; Q (q, d): queries, which choose codes too unless they are rows of the file; truth: their
    k exact neighbours. Vectors and queries have norm 1 already for "cosine". With people's `grades` (q, n) the "recall"
    of a trial is the share of NDCG@10 that it keeps: of a query 1 and its change in units of the mean by exact search,
    so that means are shares.
    """

    X: np.ndarray
    Q: np.ndarray
    truth: ExactNeighbours
    metric: str
    queries_are_rows: bool = False
    rows_in_file: int = 0
    random_state: int = 0
    grades: sp.csr_matrix | None = None

    @classmethod
    def of(
        cls, file: VectorFile, Q: np.ndarray | None, k: int, metric: str, seed: int, judged: Relevance | None,
        steps: Steps,
    ) -> "Bench":  # fmt: skip
        """Vectors of a file, of a large one 200,000, and queries Q (q, d), by default vectors of the file."""
        check_choice(metric, "metric", ("l2", "ip", "cosine"))
        with steps.step("read"):
            X, queries, grades = _rows_and_queries(file, Q, metric, seed, judged)
            k = min(check_integer(k, "k", low=1), len(X))
            rows = file if len(X) == len(file) else VectorFile(file.name, array_rows(X))
            if metric == "cosine":
                X, queries = normalised(X), normalised(queries)
        with steps.step("exact search") as callback:
            truth = exact_neighbors(rows, queries, k, metric, callback)
        return cls(X, queries, truth, metric, Q is None, len(file), seed, grades)

    @property
    def k(self) -> int:
        return self.truth.ids.shape[1]

    @property
    def shift(self) -> float:
        """The squared distance of the mean query from the mean vector, as a share of the vectors' variance."""
        variance = float(self.X.var(axis=0, dtype=np.float64).sum())
        apart = np.square(self.X.mean(axis=0, dtype=np.float64) - self.Q.mean(axis=0, dtype=np.float64)).sum()
        return float(apart) / variance if variance else 0.0

    def judged_by(self) -> str:
        """The queries and the vectors, in words."""
        rows, queries = len(self.X), len(self.Q)
        among = counted(rows, "vector")
        if self.rows_in_file > rows + queries * self.queries_are_rows:
            among += f" drawn from {self.rows_in_file:,} (among all of them, recall is lower)"
        what = "vectors held out of the file" if self.queries_are_rows else "queries"
        return f"{queries:,} {what}, among {among}, metric {self.metric}"

    def measure(self, n_bytes: int, target: float) -> list[Record]:
        """Choose and train a code, index all vectors, and measure its searches: the first without rescoring, the others
        rescored by vectors kept in the fewest bytes that suffice for the target, as float32 if none do."""
        start, d = time.perf_counter(), self.X.shape[1]
        asked = None if self.queries_are_rows else self.Q
        made = best(self.X, n_bytes, asked, metric=self.metric, random_state=self.random_state)
        index = Index.build(self.X, made.quantizer, metric=self.metric, norms=made.norms)
        method = made.trials[0]["candidate"] if made.trials else type(made.quantizer).__name__
        depths = [o for o in OVERSAMPLES if o * self.k <= len(self.X)] or [1]
        first, found = np.empty(len(self.Q)), np.empty((len(self.Q), depths[-1] * self.k), np.int64)
        for some, scores, ids in FullSearch(index, self.Q, found.shape[1]).parts():
            first[some] = self.shares(ids, scores, some)
            found[some] = drawn_order(scores, ids, some)[:, : found.shape[1]]
        index.kept = KeptVectors([self.X])
        ranked = {1: (None, first)} | {
            o: ("float32", self.shares(found[:, : o * self.k], index.kept)) for o in depths[1:]
        }
        enough = [o for o, (_, values) in ranked.items() if o > 1 and suffices(values, target)]
        for kind in ("float16", "int8") if enough else ():
            with np.errstate(over="ignore", invalid="ignore"):  # rows too long for float16
                rows = cast(KeptVectors, KeptVectors.wanted(kind, d)).with_rows(self.X)
                shorter = {o: self.shares(found[:, : o * self.k], rows) for o in enough}
            ranked |= {o: (kind, values) for o, values in shorter.items() if suffices(values, target)}
        seconds = time.perf_counter() - start
        return [
            {
                "method": method, "bytes": index.bytes_per_vector, "oversample": o, "recall": float(values.mean()),
                "recall_low": lower_bound(values), "sufficient": suffices(values, target), "kept_vectors": kind,
                "kept_vectors_bytes": 0 if kind is None else cast(KeptVectors, KeptVectors.wanted(kind, d)).row_bytes,
                "queries_per_second": self._rate(index, o), "seconds": seconds,
            }
            for o, (kind, values) in ranked.items()
        ]  # fmt: skip

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
            raise ValueError(
                "exact search finds no relevant vector among ten for any query; qrels must be of these ids"
            )
        return gain

    def _rate(self, index: Index, oversample: int) -> float:
        """Queries per second, with the exact vectors in memory."""
        queries, start = self.Q[:_TIMED], time.perf_counter()
        index.search(queries, self.k, oversample=None if oversample == 1 else oversample)
        return len(queries) / (time.perf_counter() - start)


def commands_of(choice: Record, bench: Bench, vectors: str, given: Fields) -> list[str]:
    """The commands that make and evaluate the index of a choice; `given` are the files queries, ids, ..."""
    queries, metric = given["queries"], None if bench.metric == "l2" else bench.metric
    made = command(
        "compress", vectors, queries=queries if queries != vectors else None, bytes=choice["bytes"], metric=metric,
        **{f"keep-vectors={choice['kept_vectors']}": choice["oversample"] > 1 or None}, seed=bench.random_state or None,
        ids=given["ids"], out="idx",
    )  # fmt: skip
    if queries is None:
        return [made]
    judged = {name: given[name] for name in ("query_ids", "qrels")}
    deep = choice["oversample"] if choice["oversample"] > 1 else None
    return [made, command("evaluate", "idx", queries, base=vectors, k=bench.k, **judged, oversample=deep)]


def reservations(bench: Bench, trials: Sequence[Record], target: float) -> list[str]:
    """Notes that limit what the answers mean."""
    text, queries = list[str](), len(bench.Q)
    if bench.shift > _SHIFTED:
        text.append(
            f"the queries are of another kind than the vectors: their means are {bench.shift:.2f} of the variance "
            "apart. Measure by real queries only"
        )
    if bench.queries_are_rows:
        text.append(
            "the queries are vectors held out of the file, which the index holds too; queries=FILE gives figures that "
            "`nearkin evaluate` repeats"
        )
    for rescored, how in ((False, "without rescoring"), (True, "with rescoring by vectors kept on disk")):
        if choose(trials, rescored=rescored) is None:
            text.append(f"no code that was tried reaches {target:g} {how}")
    if lower_bound(np.ones(queries)) < target:
        few = f"{counted(queries, 'query', 'queries')} cannot show {target:g} with 97.5 % confidence"
        text.append(f"{few}, about {math.log(0.025) / math.log(target):,.0f} can; the mean decides")
    return text


def _rows_and_queries(
    file: VectorFile, Q: np.ndarray | None, metric: str, random_state: int, judged: Relevance | None
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
