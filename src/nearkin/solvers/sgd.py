"""Stochastic gradient descent with a step that decays."""

from dataclasses import dataclass

import numpy as np

from nearkin import _check
from nearkin.contracts import Run
from nearkin.solvers.barzilai_borwein import probe_step
from nearkin.solvers.finite_sum import FiniteSum, Plain, Solution
from nearkin.solvers.monitor import Monitor


@dataclass(frozen=True)
class SGD:
    """x -= step_s / m grad F_q(x), term after term, with step_s = step / (1 + decay s) in epoch s = 0, 1, ...

    step: "auto" is `probe_step`, the inverse curvature along the first gradient, unless single terms would overshoot
    with it; a number is taken as it is.
    """

    step: float | str = "auto"
    decay: float = 0.1
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if self.step != "auto":
            _check.check_real(self.step, "step", above=0.0)
        _check.check_real(self.decay, "decay", low=0.0)
        _check.check_real(self.epsilon, "epsilon", low=0.0)

    def minimize(self, problem: FiniteSum, x: np.ndarray, run: Run) -> Solution:
        """Minimize `problem` from x, which is not changed. An epoch is one pass over the terms."""
        x = x.copy()
        monitor = Monitor(problem.value, run, x)
        if self.step == "auto":
            first = probe_step(problem, x, problem.gradient(x), self.epsilon)
            first = min(first, problem.n_terms * problem.largest_step(1))
        else:
            first = float(self.step)
        with np.errstate(over="ignore", invalid="ignore"):
            for epoch in range(1, run.max_iter + 1):
                step = first / (1.0 + self.decay * (epoch - 1))
                problem.walk(x, Plain(step / problem.n_terms))
                if monitor.stop(epoch, x, step):
                    break
            return monitor.finish(x)
