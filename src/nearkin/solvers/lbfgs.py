"""Limited-memory BFGS, by SciPy."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.optimize

from nearkin import _check
from nearkin.solvers.finite_sum import Callback, FiniteSum, Solution
from nearkin.solvers.monitor import Monitor


@dataclass(frozen=True)
class LBFGS:
    """SciPy's L-BFGS-B on the full gradient; give it x in float64. An epoch is one iteration (about one gradient)."""

    memory: int = 10

    def __post_init__(self) -> None:
        _check.check_integer(self.memory, "memory", low=1)

    def minimize(
        self,
        problem: FiniteSum,
        x: np.ndarray,
        *,
        max_epochs: int = 100,
        tol: float = 1e-4,
        callback: Callback | None = None,
        validate: Callable[[np.ndarray], float] | None = None,
    ) -> Solution:
        """Minimize `problem` from x, which is not changed."""
        monitor = Monitor(problem.value, max_epochs=max_epochs, tol=tol, callback=callback, validate=validate)
        monitor.start(x)
        state = {"x": x.copy(), "epoch": 0}

        def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
            point = flat.reshape(x.shape).astype(x.dtype)
            return problem.value(point), problem.gradient(point).ravel().astype(np.float64)

        def after_iteration(flat: np.ndarray) -> None:
            state["x"] = flat.reshape(x.shape).astype(x.dtype)
            state["epoch"] += 1
            if monitor.stop(state["epoch"], state["x"]):
                raise StopIteration

        scipy.optimize.minimize(
            value_and_gradient,
            x.ravel().astype(np.float64),
            jac=True,
            method="L-BFGS-B",
            callback=after_iteration,
            options={
                "maxcor": self.memory,
                "maxiter": max_epochs,
                "maxfun": 20 * max_epochs,
                "ftol": 0.0,
                "gtol": 1e-9,
            },
        )
        return monitor.finish(state["x"])
