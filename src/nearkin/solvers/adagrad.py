"""Row-wise AdaGrad: one step size per row, set by the gradients that the row has seen."""

from dataclasses import dataclass

import numpy as np

from nearkin import _check
from nearkin.contracts import Run
from nearkin.solvers.finite_sum import FiniteSum, RowScaled, Solution
from nearkin.solvers.monitor import Monitor


@dataclass(frozen=True)
class AdaGrad:
    """accumulator_r += |g_r|^2, x_r -= step g_r / sqrt(accumulator_r), term after term (Duchi et al. 2011, per row).

    The step does not depend on the scale of the objective; `floor` is where the accumulators start.
    """

    step: float = 1.0
    floor: float = 1e-8

    def __post_init__(self) -> None:
        _check.check_real(self.step, "step", above=0.0)
        _check.check_real(self.floor, "floor", above=0.0)

    def minimize(self, problem: FiniteSum, x: np.ndarray, run: Run) -> Solution:
        """Minimize `problem` from x, which is not changed. An epoch is one pass over the terms."""
        x = x.copy()
        monitor = Monitor(problem.value, run, x)
        accumulator = np.full(len(x), self.floor, x.dtype)
        for epoch in range(1, run.max_iter + 1):
            problem.walk(x, RowScaled(self.step, accumulator))
            if monitor.stop(epoch, x, self.step):
                break
        return monitor.finish(x)
