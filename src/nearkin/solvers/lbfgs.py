"""Limited-memory BFGS, by SciPy."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from dataclasses import dataclass

import numpy as np
import scipy.optimize

from nearkin import _check
from nearkin.contracts import Run
from nearkin.solvers.finite_sum import Objective, Solution
from nearkin.solvers.monitor import Monitor


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

        scipy.optimize.minimize(
            value_and_gradient,
            x.ravel().astype(np.float64),
            jac=True,
            method="L-BFGS-B",
            callback=after_iteration,
            options={
                "maxcor": self.memory,
                "maxiter": run.max_iter,
                "maxfun": 20 * run.max_iter,
                "ftol": 0.0,
                "gtol": 1e-9,
            },
        )
        return monitor.finish(found)
