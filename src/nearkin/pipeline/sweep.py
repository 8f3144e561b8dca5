"""`nearkin sweep`: rows and queries in, the code of fewest bytes that keeps enough neighbours out."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from nearkin._check import check_choice, check_integer, check_queries, check_real
from nearkin._fields import counted
from nearkin._types import ArrayLike, Record
from nearkin.data import VectorFile
from nearkin.data.formats.file_rows import array_rows
from nearkin.index.searching import normalised
from nearkin.metrics.graded import NDCG
from nearkin.pipeline.compress import TRAIN_ROWS
from nearkin.pipeline.evaluate import exact_neighbors
from nearkin.pipeline.methods import SCALARS, find_method
from nearkin.pipeline.relevance import Relevance
from nearkin.pipeline.run import Steps
from nearkin.pipeline.sweep_race import METHODS, Bench, Choice, Race, RelevanceBench, Trial, choose, frontier

MAX_ROWS = 200_000  # of a larger file this many are drawn
HELD_OUT = 1_000  # rows as queries if none are given; of a large file a fiftieth
CENTROIDS = 256  # of a learned code; each needs a row at least
_SHIFTED = 0.1  # squared distance of the mean query from the mean row, as a share of the variance, of another kind


@dataclass(frozen=True)
class Sweep:
    """The settings, every trial, and the choices.

    `query_shift` is the squared distance of the mean query from the mean row, as a share of the rows' variance.

    With people's grades, `by_relevance`, the recall of a trial is the share of NDCG@10 that its code keeps.
    """

    target: float
    k: int
    metric: str
    n_queries: int
    queries_are_rows: bool
    rows_in_file: int
    shape: tuple[int, int]
    query_shift: float
    trials: list[Trial]
    out_of_time: bool
    rate: float = 0.0
    random_state: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    by_relevance: bool = False
    rescored: Choice | None = None

    @property
    def measure(self) -> str:
        """What a code must keep."""
        return f"share of {NDCG} kept" if self.by_relevance else f"recall {self.k}@{self.k}"

    def chosen(self, *, rescored: bool = False) -> Choice | None:
        """The cheapest code that keeps enough, alone or `rescored` by kept vectors; None if none does."""
        if rescored and self.rescored is not None:
            return self.rescored
        return choose(self.trials, self.target, rescored=rescored, rate=self.rate)

    def codes(self) -> set[tuple[str, int]]:
        return {(trial.method, trial.n_bytes) for trial in self.trials}

    def judged_by(self) -> str:
        """The queries and the rows, in words."""
        rows, what = self.shape[0], "rows held out of the file" if self.queries_are_rows else "queries"
        among = counted(rows, "row")
        if self.rows_in_file > rows + self.n_queries * self.queries_are_rows:
            among += f" drawn from {self.rows_in_file:,} (among all of them, recall is lower)"
        return f"{self.n_queries:,} {what}, among {among}, metric {self.metric}"

    def rows(self) -> tuple[list[str], Sequence[Sequence[object]]]:
        """Columns and rows of the table of trained codes, shortest first.

        "codes" is the recall by codes alone, "x4" that of four times k candidates rescored.
        """
        deepest = [o for o in (4, 16) if any(o in trial.recall for trial in self.trials)]
        ordered = sorted(self.trials, key=lambda t: (t.n_bytes, t.method))
        return ["bytes", "method", "codes", "at least", *(f"x{o}" for o in deepest), "q/s", "train s"], [
            [
                t.n_bytes, t.method, round(t.mean(), 4), round(t.low(), 4),
                *(round(t.mean(o), 4) if o in t.recall else None for o in deepest),
                round(t.queries_per_second), round(t.seconds, 1),
            ]
            for t in ordered
        ]  # fmt: skip

    def answers(
        self,
        vectors: str,
        queries: str | None = None,
        *,
        ids: str | None = None,
        query_ids: str | None = None,
        qrels: str | None = None,
    ) -> list[tuple[str, list[str]]]:
        """The choices in words, each with the commands that make and judge its index; all arguments are files."""
        more = _options({"--ids": ids}), _options({"--query-ids": query_ids, "--qrels": qrels})
        made: list[tuple[str, list[str]]] = []
        for rescored, how in ((False, "by codes alone"), (True, "with vectors kept on disk")):
            found = self.chosen(rescored=rescored)
            if found is None:
                needed = f" at {self.rate:,.0f} queries per second" if self.rate else ""
                made.append((f"No code that was tried keeps {self.target:g} {how}{needed}.", []))
            else:
                word = "Cheapest" if len(self.codes()) > 1 else "The only code that was tried,"
                made.append((self._sentence(f"{word} {how}", found), self._commands(found, vectors, queries, *more)))
        return made

    def _sentence(self, which: str, choice: Choice) -> str:
        trial, low = choice.trial, choice.low()
        kept = f" + {self.shape[0] * choice.vectors_bytes(self.shape[1]) / 1e6:,.1f} MB of vectors as {choice.kept}"
        size = f"{counted(trial.n_bytes, 'byte')} a vector" + (kept if choice.oversample > 1 else "")
        how = _search_options(choice)
        return (
            f"{which}: {size}, {trial.method}{', searched with' if how else ''}{how}; "
            f"{self.measure.split()[0]} {choice.recall.mean():.4f} (at least {low:.4f} with 97.5 % confidence), "
            f"{choice.rate:,.0f} queries per second"
        )

    def _commands(
        self, choice: Choice, vectors: str, queries: str | None, made_with: str = "", judged_with: str = ""
    ) -> list[str]:
        """The command that makes the index of a choice and, for a file of queries, the one that judges it."""
        code = choice.trial.code
        options = [
            f"--method {code.method}",
            *([] if code.method in SCALARS else [f"--bytes {code.n_bytes}"]),
            *([] if self.metric == "l2" else [f"--metric {self.metric}"]),
            *([f"--keep-vectors={choice.kept}"] if choice.oversample > 1 else []),
            *([f"--seed {self.random_state}"] if self.random_state else []),
        ]
        commands = [f"nearkin compress {shlex.quote(vectors)} {' '.join(options)}{made_with} --out idx"]
        if queries is not None:
            files = f"{shlex.quote(queries)} --base {shlex.quote(vectors)}"
            commands.append(f"nearkin evaluate idx {files} -k {self.k}{_search_options(choice)}{judged_with}")
        return commands

    def notes(self) -> list[str]:
        """Reservations about the answers."""
        text = []
        if self.query_shift > _SHIFTED:
            text.append(
                f"The queries are of another kind than the rows: their means are {self.query_shift:.2f} of the "
                "variance apart. Judge by real queries only."
            )
        if self.queries_are_rows:
            text.append(
                "The queries are rows held out of the file, which the command's index holds too; --queries FILE gives "
                "figures that `nearkin evaluate` repeats."
            )
        if self.out_of_time:
            text.append("Time was over before all codes were tried; --minutes gives it more.")
        return text

    def record(self, vectors: str, queries: str | None = None) -> Record:
        choices = {"choice": self.chosen(), "choice_with_vectors": self.chosen(rescored=True)}
        kept = ("target", "k", "metric", "queries_are_rows", "rows_in_file", "query_shift", "out_of_time", "seconds")
        return {
            "data": vectors,
            **{name: getattr(self, name) for name in kept},
            "wanted_per_second": self.rate,
            "queries": self.n_queries,
            "trials": [trial.record() for trial in self.trials],
            "frontier": [[trial.method, trial.n_bytes] for trial in frontier(self.trials)],
            **{
                name: None
                if found is None
                else {**found.record(self.shape[1]), "command": self._commands(found, vectors, None)[0]}
                for name, found in choices.items()
            },
        }


def _options(given: dict[str, str | None]) -> str:
    return "".join(f" {name} {shlex.quote(value)}" for name, value in given.items() if value is not None)


def _search_options(choice: Choice) -> str:
    return f" --oversample {choice.oversample}" if choice.oversample > 1 else ""


def sweep(
    file: VectorFile,
    Q: ArrayLike | None = None,
    *,
    target: float = 0.95,
    k: int = 10,
    metric: str = "l2",
    methods: Sequence[str] = METHODS,
    rate: float = 0.0,
    seconds: float = 300.0,
    judged: Relevance | None = None,
    random_state: int = 0,
    steps: Steps | None = None,
) -> Sweep:
    """Find the code of fewest bytes that keeps `target` of each query's k nearest neighbours.

    With `judged`, it keeps that share of the NDCG@10 that exact search has, as people graded its answers.

    Options as of `nearkin sweep`. The int8 code is measured first. Trainings on all rows (200,000 of a larger file)
    close in on the target until the size is exact to a byte or a twentieth, or `seconds` are over. ValueError for
    queries of another width, a target outside (0, 1), or a method whose codes do not rank by `metric`.
    """
    began, steps = time.perf_counter(), steps or Steps()
    check_real(target, "target", above=0, high=1)
    check_real(rate, "rate", low=0)
    check_choice(metric, "metric", ("l2", "ip", "cosine"))
    for name in methods:
        check_choice(metric, f"metric for {name}", find_method(name).metrics)
    with steps.step("read"):
        X, queries, grades = _rows_and_queries(file, Q, metric, random_state, judged)
        k = min(check_integer(k, "k", low=1), len(X))
        rows = file if len(X) == len(file) else VectorFile(file.name, array_rows(X))
        if metric == "cosine":
            X, queries = normalised(X), normalised(queries)
    with steps.step("exact search") as callback:
        truth = exact_neighbors(rows, queries, k, metric, callback)
    with steps.step("race") as callback:
        sample = X[rows.draw(TRAIN_ROWS, random_state)]
        bench = Bench(sample, X, queries, truth, metric, random_state)
        if grades is not None:
            bench = RelevanceBench(**vars(bench), grades=grades)
        race = Race(bench, target, X.shape[1], seconds - (time.perf_counter() - began), rate, callback)
        race.run([name for name in methods if len(X) >= CENTROIDS or name in SCALARS])
        rescored = choose(race.trials, target, rescored=True, rate=rate)
        if rescored is not None and not rate:  # rates are those of float32
            rescored = bench.narrowed(rescored, target)
    return Sweep(
        target, k, metric, len(queries), Q is None, len(file), X.shape, _shift(X, queries), race.trials,
        race.out_of_time, rate, random_state, steps.seconds, judged is not None, rescored,
    )  # fmt: skip


def _shift(X: np.ndarray, Q: np.ndarray) -> float:
    """Squared distance between the means of rows X (n, d) and of queries Q (q, d), as a share of the rows' variance."""
    variance = float(X.var(axis=0, dtype=np.float64).sum())
    apart = np.square(X.mean(axis=0, dtype=np.float64) - Q.mean(axis=0, dtype=np.float64)).sum()
    return float(apart) / variance if variance else 0.0


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
    if judged is not None:
        raise ValueError("qrels grade answers to queries; give --queries FILE too")
    if len(X) < 20:
        raise ValueError(f"{file.name} has {counted(len(X), 'row')}, too few to hold some out; give --queries")
    held, count = np.zeros(len(X), bool), min(max(HELD_OUT, len(X) // 50), len(X) // 5)
    held[np.random.default_rng(random_state).choice(len(X), count, replace=False)] = True
    return X[~held], X[held], None
