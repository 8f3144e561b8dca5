"""The loop that all solvers share: evaluate now and then, report, remember the best, decide when to stop."""

import math
from collections.abc import Callable

import numpy as np

from nearkin._types import Record
from nearkin.contracts import Run
from nearkin.solvers.finite_sum import Solution


class Monitor:
    """Watches one run of a solver.

    The objective is evaluated every `interval` epochs (it costs a third of an epoch), and after each one if there is a
    callback; the decision to stop looks at the former only, so that watching a run does not change it. The run has
    converged when the objective fell by less than `tol` per epoch, relative to itself. With `validate`, a function of
    x that is better when smaller, the point returned is the best one that was evaluated.
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
        """Take note of x after `epoch` epochs (1, 2, ...); True when the run is over, with `status` set."""
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
        """The score of x, where scores are asked for; the best point is kept."""
        if self._run.validate is None:
            return None
        score = self._run.validate(x)
        if score < self._best[0]:
            self._best = (score, x.copy())
        return score
