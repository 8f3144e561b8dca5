"""The whole of `nearkin sweep`: rows and queries in, the cheapest code that keeps enough neighbours out."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nearkin._check import check_choice, check_integer, check_queries, check_real
from nearkin._types import ArrayLike, Record
from nearkin._words import counted
from nearkin.data import VectorFile
from nearkin.data.formats.file_rows import array_rows
from nearkin.index.rescoring import normalised
from nearkin.pipeline.compress.compress import TRAIN_ROWS
from nearkin.pipeline.evaluate.neighbours import exact_neighbors
from nearkin.pipeline.methods import SCALARS, find_method
from nearkin.pipeline.steps import Steps
from nearkin.pipeline.sweep.answer import Answer, Typed, worth_saying
from nearkin.pipeline.sweep.choose import Choice, choose, frontier
from nearkin.pipeline.sweep.diagnose import Diagnosis, diagnose
from nearkin.pipeline.sweep.race import METHODS, Race, lists_for
from nearkin.pipeline.sweep.trial import Bench, Trial

MAX_ROWS = 200_000  # of a larger file so many are drawn
HELD_OUT = 1_000  # rows that stand in for queries where none are given, at least; of a large file a fiftieth
LISTS_FROM = 20_000  # rows from which inverted lists are tried
CENTROIDS = 256  # of a learned code, each learned from a row at least


@dataclass(frozen=True)
class Sweep:
    """What was asked, what the data are like, every trial, and the answers.

    `trials` are the codes trained whole, `scouts` those learned from few rows, which foretold where the answer lies.
    `choice` is the cheapest by codes alone, `with_vectors` with exact vectors kept; `fastest` and
    `fastest_with_vectors` are those of most queries a second. None where nothing that was tried keeps enough.
    """

    target: float
    k: int
    metric: str
    n_queries: int
    queries_are_rows: bool
    rows_in_file: int
    diagnosis: Diagnosis
    trials: list[Trial]
    scouts: list[Trial]
    out_of_time: bool
    rate: float = 0.0
    random_state: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def choice(self) -> Choice | None:
        """The cheapest by codes alone."""
        return choose(self.trials, self.target, rate=self.rate)

    @property
    def with_vectors(self) -> Choice | None:
        """The cheapest with exact vectors kept."""
        return choose(self.trials, self.target, rescored=True, rate=self.rate)

    @property
    def fastest(self) -> Choice | None:
        """Most queries a second by codes alone."""
        return choose(self.trials, self.target, fastest=True)

    @property
    def fastest_with_vectors(self) -> Choice | None:
        """Most queries a second with exact vectors kept."""
        return choose(self.trials, self.target, rescored=True, fastest=True)

    def tried(self) -> set[tuple[str, int]]:
        """Methods and bytes of the codes that were trained whole."""
        return {(trial.method, trial.n_bytes) for trial in self.trials}

    def judged_by(self) -> str:
        """By what queries, and among how many rows."""
        rows, what = self.diagnosis.rows, "rows held out of the file" if self.queries_are_rows else "queries"
        among = counted(rows, "row")
        if self.rows_in_file > rows + self.n_queries * self.queries_are_rows:
            among += f" drawn from {self.rows_in_file:,} (among all of them, recall is lower)"
        return f"{self.n_queries:,} {what}, among {among}, metric {self.metric}"

    def rows(self) -> tuple[list[str], Sequence[Sequence[object]]]:
        """Every code that was trained as a table, columns and rows, shortest code first.

        "codes" is the recall by codes alone, "x4" that of four times k candidates ranked again by exact vectors;
        "probes" are the lists visited, of how many. Where lists were tried "x4" is left out: a terminal has no room.
        """
        in_lists = any(trial.code.n_lists for trial in self.trials)
        deepest = [o for o in ((16,) if in_lists else (4, 16)) if any(o in trial.recall for trial in self.trials)]
        columns = ["bytes", "method", *(["probes"] if in_lists else []), "codes", "at least"]
        ordered = sorted(self.trials, key=lambda t: (t.stored, t.method, t.n_probe or 0))
        return [*columns, *(f"x{o}" for o in deepest), "q/s", "train s"], [
            [
                t.n_bytes, t.method, *([_probes(t)] if in_lists else []),
                round(t.mean(), 4), round(t.low(), 4),
                *(round(t.mean(o), 4) if o in t.recall else None for o in deepest),
                round(t.queries_per_second), round(t.seconds, 1),
            ]
            for t in ordered
        ]  # fmt: skip

    def answers(self, vectors: str, queries: str | None = None) -> list[Answer]:
        """The answers in words, each with the commands that make and judge it."""
        typed = Typed(vectors, queries, self.k, self.metric, self.random_state)
        d, made = self.diagnosis.dimensions, []
        for how, cheapest, fastest in (
            ("by codes alone", self.choice, self.fastest),
            ("with exact vectors kept on disk", self.with_vectors, self.fastest_with_vectors),
        ):
            if cheapest is None:
                needed = f" at {self.rate:,.0f} queries a second" if self.rate else ""
                made.append(Answer(f"No code that was tried keeps {self.target:g} {how}{needed}.", []))
            shown = [("Cheapest" if len(self.tried()) > 1 else "The only code that was tried", cheapest)]
            if worth_saying(cheapest, fastest):
                shown.append(("Fastest", fastest))
            for word, choice in shown:
                if choice is not None:
                    megabytes = self.diagnosis.rows * choice.vectors_bytes(d) / 1e6
                    made.append(typed.said(f"{word} {how}", choice, megabytes))
        return made

    def notes(self) -> list[str]:
        """What else is to be known of the answers."""
        said = []
        if self.queries_are_rows:
            said.append(
                "The queries are rows held out of the file, which the command's index holds too; --queries FILE gives "
                "figures that `nearkin evaluate` repeats."
            )
        if self.out_of_time:
            said.append("Time was over before all codes were tried; --minutes gives it more.")
        return said

    def record(self, vectors: str, queries: str | None = None) -> Record:
        """Everything as JSON holds it."""
        d, typed = self.diagnosis.dimensions, Typed(vectors, queries, self.k, self.metric, self.random_state)
        answers = {
            "choice": self.choice,
            "choice_with_vectors": self.with_vectors,
            "fastest": self.fastest,
            "fastest_with_vectors": self.fastest_with_vectors,
        }
        return {
            "data": vectors,
            "target": self.target,
            "k": self.k,
            "metric": self.metric,
            "wanted_per_second": self.rate,
            "queries": self.n_queries,
            "queries_are_rows": self.queries_are_rows,
            "rows_in_file": self.rows_in_file,
            "diagnosis": self.diagnosis.record(),
            "trials": [trial.record() for trial in self.trials],
            "scouts": len(self.scouts),
            "foretold": [[scout.method, scout.n_bytes, scout.mean()] for scout in self.scouts],
            "frontier": [[trial.method, trial.n_bytes] for trial in frontier(self.trials)],
            **{
                name: None if found is None else found.record(d) | {"command": typed.compress(found)}
                for name, found in answers.items()
            },
            "out_of_time": self.out_of_time,
            "seconds": self.seconds,
        }


def _probes(trial: Trial) -> str | None:
    return None if trial.n_probe is None else f"{trial.n_probe}/{trial.code.n_lists}"


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
    random_state: int = 0,
    steps: Steps | None = None,
) -> Sweep:
    """Find the code of fewest bytes that keeps `target` of each query's k nearest neighbours.

    `Q` (q, d) are queries; without them rows are held out of the file and stand in. Codes learned from few rows say how
    recall grows with the bytes; whole trainings, on all rows (200,000 of a larger file), then close in on the target
    until the answer is fine to a byte or a twentieth, or `seconds` are over. From 20,000 rows on, and where a `rate`
    (queries a second) is wanted, inverted lists are tried too. A choice counts only if its recall lies above the target
    with 97.5 % confidence, so that queries that were not seen keep as much. Raises ValueError for queries of another
    width, a target outside (0, 1), or a method whose codes do not rank by `metric`.
    """
    started, steps = time.perf_counter(), steps or Steps()
    check_real(target, "target", above=0, high=1)
    check_real(rate, "rate", low=0)
    check_choice(metric, "metric", ("l2", "ip", "cosine"))
    for name in methods:
        check_choice(metric, f"metric for {name}", find_method(name).metrics)
    with steps.step("read"):
        X, Q, given = _rows_and_queries(file, Q, metric, random_state)
        k = min(check_integer(k, "k", low=1), len(X))
        rows = file if len(X) == len(file) else VectorFile(file.name, array_rows(X))
        if metric == "cosine":
            X, Q = normalised(X), normalised(Q)
    with steps.step("exact search") as callback:
        truth = exact_neighbors(rows, Q, k, metric, callback)
    with steps.step("diagnose"):
        diagnosis = diagnose(X, Q)
    with steps.step("race") as callback:
        n_lists = lists_for(len(X)) if len(X) >= LISTS_FROM or rate else 0
        sample = X[rows.draw(max(TRAIN_ROWS, 64 * n_lists), random_state)]
        bench = Bench(sample, X, Q, truth, metric, random_state)
        left = seconds - (time.perf_counter() - started)
        whole = 1.5 + 3.5 * len(sample) / TRAIN_ROWS  # measured: 2 times with 9,000 rows, 5 with 65,536
        race = Race(bench, target, X.shape[1], left, rate, callback, whole)
        race.run([name for name in methods if len(X) >= CENTROIDS or name in SCALARS])
        if n_lists and "procrustes" in methods:
            race.race_lists(n_lists)
    return Sweep(
        target,
        k,
        metric,
        len(Q),
        not given,
        len(file),
        diagnosis,
        race.trials,
        race.scouts,
        race.out_of_time,
        rate,
        random_state,
        steps.seconds,
    )


def _rows_and_queries(
    file: VectorFile, Q: ArrayLike | None, metric: str, random_state: int
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Rows (n, d), queries (q, d) that are none of them, and whether they were given."""
    file.check_finite(metric=metric)
    X = file.read() if len(file) <= MAX_ROWS else file.sample(MAX_ROWS, random_state)
    if Q is not None:
        return X, check_queries(Q, X.shape[1], metric=metric).astype(np.float32), True
    if len(X) < 20:
        raise ValueError(
            f"{file.name} has {counted(len(X), 'row')}, too few to hold some out as queries; give --queries"
        )
    held, count = np.zeros(len(X), bool), min(max(HELD_OUT, len(X) // 50), len(X) // 5)
    held[np.random.default_rng(random_state).choice(len(X), count, replace=False)] = True
    return X[~held], X[held], False
