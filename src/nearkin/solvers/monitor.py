"""The loop that all solvers share: evaluate now and then, report, remember the best, decide when to stop."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nearkin.solvers.finite_sum import Callback, Solution


class Monitor:
    """Watches one run of a solver.

    The objective is evaluated every `interval` epochs (it costs a third of an epoch), and after each one if there is a
    callback; the decision to stop looks at the former only, so that watching a run does not change it. The run has
    converged when the objective fell by less than `tol` per epoch, relative to itself. With `validate`, a function of
    x that is better when smaller, the point returned is the best one that was evaluated.
    """

    def __init__(
        self,
        value: Callable[[np.ndarray], float],
        *,
        max_epochs: int,
        tol: float,
        callback: Callback | None = None,
        validate: Callable[[np.ndarray], float] | None = None,
        interval: int = 5,
    ) -> None:
        self._value, self._callback, self._validate = value, callback, validate
        self._max_epochs, self._tol, self._interval = max_epochs, tol, interval
        self._first = self._last = self._current = math.nan
        self._best = (math.inf, None)
        self.history: list[dict[str, Any]] = []
        self.steps: list[float] = []
        self.status = ""

    def start(self, x: np.ndarray) -> None:
        """Evaluate the starting point, which is epoch 0."""
        self._first = self._last = self._current = self._value(x)
        self._note(0, x, self._last)

    def stop(self, epoch: int, x: np.ndarray, step: float = math.nan) -> bool:
        """Take note of x after `epoch` epochs (1, 2, ...); True when the run is over, with `status` set."""
        self.steps.append(step)
        due = epoch % self._interval == 0 or epoch == self._max_epochs
        if due or self._callback is not None:
            value = self._current = self._value(x)
            self._note(epoch, x, value, step)
            if not value <= 1e3 * abs(self._first) + 1e3:  # true for NaN as well
                self.status = "diverged"
            elif due:
                epochs = (epoch - 1) % self._interval + 1
                if abs(self._last - value) <= self._tol * epochs * abs(value):
                    self.status = "converged"
                self._last = value
        if epoch >= self._max_epochs and not self.status:
            self.status = "max_epochs"
        return bool(self.status)

    def finish(self, x: np.ndarray) -> Solution:
        """The solution: the best validated point if there was validation, otherwise x."""
        best = self._best[1]
        value = self._current if self.status else self._value(x)  # without a status the solver ended the run itself
        if best is not None and self.status != "diverged":
            x, value = best, self._value(best)
        return Solution(x, value, len(self.steps), self.status or "converged", self.history, self.steps)

    def _note(self, epoch: int, x: np.ndarray, value: float, step: float = math.nan) -> None:
        record: dict[str, Any] = {"value": value, "total": self._max_epochs}
        if not math.isnan(step):
            record["step"] = step
        if self._validate is not None:
            record["validation"] = score = self._validate(x)
            if score < self._best[0]:
                self._best = (score, x.copy())
        self.history.append({"epoch": epoch, **record})
        if self._callback is not None:
            self._callback(epoch, {**record, "x": x})
