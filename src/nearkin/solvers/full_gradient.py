"""Solvers that need nothing but the full gradient: gradient descent, and L-BFGS by SciPy."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from dataclasses import dataclass

import numpy as np
import scipy.optimize

from nearkin import _check
from nearkin.contracts import Run
from nearkin.solvers.finite_sum import Monitor, Objective, Solution
from nearkin.solvers.stochastic import probe_step, sbb_step


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


@dataclass(frozen=True)
class LBFGS:
    """SciPy's L-BFGS-B on the full gradient; give it x in float64. An epoch is one iteration (about one gradient)."""

    memory: int = 10

    def __post_init__(self) -> None:
        _check.check_integer(self.memory, "memory", low=1)

    def minimize(self, problem: Objective, x: np.ndarray, run: Run) -> Solution:
        """See `Solver`."""
        monitor = Monitor(problem.value, run, x)
        found, epoch = x.copy(), 0

        def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
            point = flat.reshape(x.shape).astype(x.dtype)
            return problem.value(point), problem.gradient(point).ravel().astype(np.float64)

        def after_iteration(flat: np.ndarray) -> None:
            nonlocal found, epoch
            found, epoch = flat.reshape(x.shape).astype(x.dtype), epoch + 1
            if monitor.stop(epoch, found):
                raise StopIteration

        limits = {"maxiter": run.max_iter, "maxfun": 20 * run.max_iter, "ftol": 0.0, "gtol": 1e-9}
        scipy.optimize.minimize(
            value_and_gradient,
            x.ravel().astype(np.float64),
            jac=True,
            method="L-BFGS-B",
            callback=after_iteration,
            options={"maxcor": self.memory, **limits},
        )
        return monitor.finish(found)
