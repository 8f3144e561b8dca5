"""The whole of `nearkin sweep`: rows and queries in, the cheapest code that keeps enough neighbours out."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

import nearkin as nk
from nearkin._check import check_choice, check_integer, check_real, check_vectors
from nearkin._types import ArrayLike, Record
from nearkin.data import VectorFile
from nearkin.index.rescoring import normalised
from nearkin.pipeline.compress.compress import TRAIN_ROWS
from nearkin.pipeline.evaluate.neighbours import search_in_batches
from nearkin.pipeline.methods import find_method
from nearkin.pipeline.steps import Steps
from nearkin.pipeline.sweep.choose import Choice, choose, frontier
from nearkin.pipeline.sweep.diagnose import Diagnosis, diagnose
from nearkin.pipeline.sweep.race import FIXED, METHODS, Race
from nearkin.pipeline.sweep.trial import Trial

MAX_ROWS = 200_000  # of a larger file so many are drawn
HELD_OUT = 1_000  # rows that stand in for queries where none are given


@dataclass(frozen=True)
class Sweep:
    """What was asked, what the data are like, every trial, and the two answers."""

    target: float
    k: int
    metric: str
    n_queries: int
    queries_are_rows: bool
    rows_in_file: int
    diagnosis: Diagnosis
    trials: list[Trial]
    choice: Choice | None  # by codes alone
    with_vectors: Choice | None  # with exact vectors kept for rescoring
    out_of_time: bool
    seconds: dict[str, float] = field(default_factory=dict)

    def judged_by(self) -> str:
        """By what queries, and among how many rows."""
        rows, what = self.diagnosis.rows, "rows held out of the file" if self.queries_are_rows else "queries"
        among = f"{rows:,} rows"
        if self.rows_in_file > rows + self.n_queries * self.queries_are_rows:
            among += f" drawn from {self.rows_in_file:,} (among all of them, recall is lower)"
        return f"{self.n_queries:,} {what}, among {among}, metric {self.metric}"

    def rows(self) -> tuple[list[str], Sequence[Sequence[object]]]:
        """Every trial as a table, columns and rows, shortest code first.

        "codes" is the recall by codes alone, "x4" that of four times k candidates ranked again by exact vectors.
        """
        deepest = sorted({o for trial in self.trials for o in trial.recall if o in (4, 16)})
        columns = ["bytes", "method", "codes", "at least", *(f"x{o}" for o in deepest)]
        ordered = sorted(self.trials, key=lambda t: (t.n_bytes, t.method))
        return [*columns, "q/s", "train s"], [
            [
                t.n_bytes, t.method, round(t.mean(), 4), round(t.low(), 4),
                *(round(t.mean(o), 4) if o in t.recall else None for o in deepest),
                round(t.queries_per_second), round(t.seconds, 1),
            ]
            for t in ordered
        ]  # fmt: skip

    def answers(self, vectors: str) -> list[str]:
        """The two answers in words, each with the command that makes it."""
        lines, n, d = [], self.diagnosis.rows, self.diagnosis.dimensions
        for choice, how in ((self.choice, "by codes alone"), (self.with_vectors, "with exact vectors kept on disk")):
            if choice is None:
                lines.append(f"No code that was tried keeps {self.target:g} {how}.")
                continue
            megabytes = n * choice.vectors_bytes(d) / 1e6
            size = f"{choice.trial.n_bytes} bytes a vector" + (
                f" + {megabytes:,.1f} MB of vectors" if megabytes else ""
            )
            then = f", searched with --oversample {choice.oversample}" if choice.oversample > 1 else ""
            lines.append(
                f"Cheapest {how}: {size}{then}; recall {choice.trial.mean(choice.oversample):.4f} (at least "
                f"{choice.trial.low(choice.oversample):.4f} with 97.5 % confidence): {self.command(choice, vectors)}"
            )
        if self.out_of_time:
            lines.append("Time was over before all sizes were tried; --seconds gives it more.")
        return lines

    def command(self, choice: Choice, vectors: str) -> str:
        """What to type to make the index of a choice."""
        size = "" if choice.trial.method in FIXED else f" --bytes {choice.trial.n_bytes}"
        metric = "" if self.metric == "l2" else f" --metric {self.metric}"
        kept = " --keep-vectors" if choice.oversample > 1 else ""
        return f"nearkin compress {shlex.quote(vectors)} --method {choice.trial.method}{size}{metric}{kept} --out idx"

    def record(self, vectors: str) -> Record:
        """Everything as JSON holds it."""
        d = self.diagnosis.dimensions
        answers = {"choice": self.choice, "choice_with_vectors": self.with_vectors}
        return {
            "data": vectors,
            "target": self.target,
            "k": self.k,
            "metric": self.metric,
            "queries": self.n_queries,
            "queries_are_rows": self.queries_are_rows,
            "rows_in_file": self.rows_in_file,
            "diagnosis": self.diagnosis.record(),
            "trials": [trial.record() for trial in self.trials],
            "frontier": [[trial.method, trial.n_bytes] for trial in frontier(self.trials)],
            **{
                name: None if found is None else found.record(d) | {"command": self.command(found, vectors)}
                for name, found in answers.items()
            },
            "out_of_time": self.out_of_time,
            "seconds": self.seconds,
        }


def sweep(
    file: VectorFile,
    Q: ArrayLike | None = None,
    *,
    target: float = 0.95,
    k: int = 10,
    metric: str = "l2",
    methods: Sequence[str] = METHODS,
    seconds: float = 300.0,
    random_state: int = 0,
    steps: Steps | None = None,
) -> Sweep:
    """Find the code of fewest bytes that keeps `target` of each query's k nearest neighbours.

    `Q` (q, d) are queries; without them 1,000 rows are held out of the file and stand in. Methods and sizes are raced
    on all rows (200,000 of a larger file) until the answer is fine to a tenth, or `seconds` are over. A choice counts
    only if its recall lies above the target with 97.5 % confidence, so that queries that were not seen keep as much.
    Raises ValueError for queries of another width, a target outside (0, 1), or a method whose codes do not rank by
    `metric`.
    """
    steps = steps or Steps()
    check_real(target, "target", above=0, high=1)
    check_choice(metric, "metric", ("l2", "ip", "cosine"))
    for name in methods:
        check_choice(metric, f"metric for {name}", find_method(name).metrics)
    with steps.step("read"):
        X, Q, given = _rows_and_queries(file, Q, random_state)
        k = min(check_integer(k, "k", low=1), len(X))
        if metric == "cosine":
            X, Q = normalised(X), normalised(Q)
    with steps.step("exact search") as callback:
        truth = search_in_batches(nk.Index.build(X, metric=metric), Q, k, None, callback)[1]
    with steps.step("diagnose"):
        diagnosis = diagnose(X, Q)
    with steps.step("race") as callback:
        race = Race((_sample(file, X, random_state), X), Q, truth, target, metric, random_state, seconds, callback)
        race.run(methods)
    answers = (choose(race.trials, target), choose(race.trials, target, rescored=True))
    return Sweep(
        target,
        k,
        metric,
        len(Q),
        not given,
        len(file),
        diagnosis,
        race.trials,
        *answers,
        race.out_of_time,
        steps.seconds,
    )


def _sample(file: VectorFile, X: np.ndarray, random_state: int) -> np.ndarray:
    """The rows that `nearkin compress` would learn from."""
    return X[file.draw(TRAIN_ROWS, random_state)] if len(X) == len(file) > TRAIN_ROWS else X[:TRAIN_ROWS]


def _rows_and_queries(file: VectorFile, Q: ArrayLike | None, random_state: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Rows (n, d), queries (q, d) that are none of them, and whether they were given."""
    X = file.read() if len(file) <= MAX_ROWS else file.sample(MAX_ROWS, random_state)
    if Q is not None:
        return X, check_vectors(Q, name="queries", n_features=X.shape[1]).astype(np.float32), True
    if len(X) < 20:
        raise ValueError(f"{file.name} has {len(X)} rows, too few to hold some out as queries; give --queries")
    held = np.zeros(len(X), bool)
    held[np.random.default_rng(random_state).choice(len(X), min(HELD_OUT, len(X) // 5), replace=False)] = True
    return X[~held], X[held], False
