"""What the solvers minimize, f(x) = (1/m) sum_q F_q(x) or one function, what they return, and the loop around them.

A stochastic solver updates x term by term according to a `Rule`. The rules are records, so that a sum needs one method
for all of them and can run gradient and update in one compiled loop.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from nearkin._types import Record
from nearkin.contracts import Run


class Objective(Protocol):
    """A function of x with its gradient."""

    def value(self, x: np.ndarray) -> float:
        """f(x)."""
        ...

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """grad f(x), same shape as x."""
        ...


@dataclass(frozen=True)
class Snapshot:
    """A point with its full gradient; `memo` is what the sum computed there and reuses in the next walk."""

    x: np.ndarray
    gradient: np.ndarray
    memo: Any = None


@dataclass(frozen=True)
class Plain:
    """Per term: x -= step grad F_q(x). One walk is a pass over all terms."""

    step: float


@dataclass(frozen=True)
class RowScaled:
    """Per term and row r: accumulator[r] += |g_r|^2, x_r -= step g_r / sqrt(accumulator[r]). One walk is a pass."""

    step: float
    accumulator: np.ndarray


@dataclass(frozen=True)
class VarianceReduced:
    """Per batch I: x -= step [sum_{q in I} (grad F_q(x) - grad F_q(snapshot)) + |I| grad f(snapshot)], n_terms in all.

    Terms are taken cyclically; each walk starts where the last one stopped.
    """

    step: float
    snapshot: Snapshot
    batch_size: int
    n_terms: int


Rule: TypeAlias = Plain | RowScaled | VarianceReduced


class FiniteSum(Objective, Protocol):
    """A sum of `n_terms` = m terms."""

    @property
    def n_terms(self) -> int: ...

    def snapshot(self, x: np.ndarray) -> Snapshot:
        """A copy of x with its full gradient."""
        ...

    def largest_step(self, batch_size: int) -> float:
        """The longest step at which a batch of terms does not overshoot by itself; infinity if it is unknown."""
        ...

    def walk(self, x: np.ndarray, rule: Rule) -> None:
        """Update x in place, term after term, by the rule."""
        ...


@dataclass(frozen=True)
class Solution:
    """Where a solver stopped and why.

    `status` is "converged" (the objective no longer falls), "max_epochs", or "diverged" (it became infinite or NaN, or
    rose a thousandfold). `history` holds the callback's records, each with its "step"; without a callback those of
    every fifth epoch. `steps` is the step size of each epoch.
    """

    x: np.ndarray
    value: float
    n_epochs: int
    status: str
    history: list[Record] = field(default_factory=list[Record])
    steps: list[float] = field(default_factory=list[float])


class Solver(Protocol):
    """The method that all solvers have."""

    def minimize(self, problem: Any, x: np.ndarray, run: Run, /) -> Solution:
        """Minimize `problem` from x, which is not changed.

        A step of the run is an epoch. The callback's record has "objective", "total", "x", and if they exist
        "step_size" and "validation".
        """
        ...


class Monitor:
    """The loop's bookkeeping: evaluates the objective, reports, keeps the best validated point, decides when to stop.

    The objective is evaluated every `interval` epochs (it costs a third of an epoch), and after each one if there is a
    callback. Only the former decide when to stop, so a callback does not change the run. The run has converged when the
    objective fell by less than `tol` per epoch, relative to itself. `Run.validate` is better when smaller; with it the
    solution is the best evaluated point.
    """

    def __init__(self, value: Callable[[np.ndarray], float], run: Run, x: np.ndarray, *, interval: int = 5) -> None:
        """Evaluate the starting point x."""
        self._value, self._run, self._interval = value, run, interval
        self._best: tuple[float, np.ndarray | None] = (math.inf, None)
        self.history: list[Record] = []
        self.steps: list[float] = []
        self.status = ""
        self._first = self._last = self._current = value(x)
        self._validate(x)

    def stop(self, epoch: int, x: np.ndarray, step: float = math.nan) -> bool:
        """Record x after `epoch` epochs (1, 2, ...); True when the run is over, with `status` set."""
        self.steps.append(step)
        due = epoch % self._interval == 0 or epoch == self._run.max_iter
        if due or self._run.callback is not None:
            value = self._current = self._value(x)
            self._note(epoch, x, value, step)
            if not value <= 1e3 * abs(self._first) + 1e3:  # true for NaN as well
                self.status = "diverged"
            elif due:
                epochs = (epoch - 1) % self._interval + 1
                if abs(self._last - value) <= self._run.tol * epochs * abs(value):
                    self.status = "converged"
                self._last = value
        if epoch >= self._run.max_iter and not self.status:
            self.status = "max_epochs"
        return bool(self.status)

    def finish(self, x: np.ndarray) -> Solution:
        """The solution: the best validated point if there was validation, otherwise x."""
        best = self._best[1]
        value = self._current if self.status else self._value(x)  # without a status the solver ended the run itself
        if best is not None and self.status != "diverged":
            x, value = best, self._value(best)
        return Solution(x, value, len(self.steps), self.status or "converged", self.history, self.steps)

    def _note(self, epoch: int, x: np.ndarray, value: float, step: float) -> None:
        record: Record = {"objective": value, "total": self._run.max_iter}
        if not math.isnan(step):
            record["step_size"] = step
        score = self._validate(x)
        if score is not None:
            record["validation"] = score
        self.history.append({"step": epoch, **record})
        if self._run.callback is not None:
            self._run.callback(epoch, {**record, "x": x})

    def _validate(self, x: np.ndarray) -> float | None:
        """The validation score of x, if the run has one; the best point is kept."""
        if self._run.validate is None:
            return None
        score = self._run.validate(x)
        if score < self._best[0]:
            self._best = (score, x.copy())
        return score
