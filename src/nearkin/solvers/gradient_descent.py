"""Batch gradient descent with a fixed or a stabilized Barzilai-Borwein step."""

from dataclasses import dataclass

import numpy as np

from nearkin import _check
from nearkin.contracts import Run
from nearkin.solvers.barzilai_borwein import probe_step, sbb_step
from nearkin.solvers.finite_sum import Objective, Solution
from nearkin.solvers.monitor import Monitor


@dataclass(frozen=True)
class GradientDescent:
    """x -= eta grad f(x); eta is a number or "sbb" (SVRG-SBB eq. 14 on successive iterates)."""

    step: float | str = "sbb"
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if self.step != "sbb":
            _check.check_real(self.step, "step", above=0.0)
        _check.check_real(self.epsilon, "epsilon", low=0.0)

    def minimize(self, problem: Objective, x: np.ndarray, run: Run) -> Solution:
        """Minimize `problem` from x, which is not changed. An epoch is one full gradient."""
        x = x.copy()
        monitor = Monitor(problem.value, run, x)
        old_x = old_gradient = None
        with np.errstate(over="ignore", invalid="ignore"):
            for epoch in range(1, run.max_iter + 1):
                gradient = problem.gradient(x)
                if self.step != "sbb":
                    eta = float(self.step)
                elif old_x is None or old_gradient is None:
                    eta = probe_step(problem, x, gradient, self.epsilon)
                else:
                    eta = sbb_step(x - old_x, gradient - old_gradient, self.epsilon)
                old_x, old_gradient = x, gradient
                x = (x - eta * gradient).astype(x.dtype)
                if monitor.stop(epoch, x, eta):
                    break
            return monitor.finish(x)
