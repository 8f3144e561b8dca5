"""SVRG with a fixed or a stabilized Barzilai-Borwein step, and mini-batches: SVRG-SBB Algorithm 1."""

from dataclasses import dataclass

import numpy as np

from nearkin import _check
from nearkin.contracts import Run
from nearkin.solvers.barzilai_borwein import probe_step, sbb_step
from nearkin.solvers.finite_sum import FiniteSum, Solution, VarianceReduced
from nearkin.solvers.monitor import Monitor


@dataclass(frozen=True)
class SVRG:
    """Stochastic variance-reduced gradient (SVRG-SBB, Algorithm 1).

    Per epoch s: the full gradient g at the snapshot, then inner iterations over batches of `batch_size` terms,
    `n_inner` terms in all (None: as many as there are). Per batch I, x -= step [sum_{q in I} (grad F_q(x) - grad
    F_q(snapshot)) + |I| g] with step = eta / n_inner, so that *the whole epoch moves along g by exactly one eta*,
    whatever the batch size. The paper's m iterations of b eta would move by b of them: its experiments (section 5.1)
    use m / b iterations, which is this.

    step: "sbb" takes eta = |dx|^2 / (|<dx, dy>| + epsilon |dx|^2) from the last two snapshots (eq. 14, eq. 17 without
    its 1/m), after a first eta from `probe_step`; epsilon = 0 is the paper's SBB_0. A number is a fixed eta.
    restart: begin anew with a probed step every `restart` epochs: the modules of Algorithm 2 (None: never).
    capped: with few terms per coordinate, where Theorem 2's condition (24) on m fails, single terms overshoot although
        eta suits their mean; so an SBB step stays below n_inner times the sum's `largest_step`. False: as in the paper.

    As printed, Algorithm 1 also multiplies the inner step with x_t where u_t is meant, and returns a random iterate, as
    its proof wants; here it is the last snapshot, or the best validated one.
    """

    step: float | str = "sbb"
    epsilon: float = 0.1
    batch_size: int = 1
    n_inner: int | None = None
    restart: int | None = None
    capped: bool = True

    def __post_init__(self) -> None:
        if self.step != "sbb":
            _check.check_real(self.step, "step", above=0.0)
        _check.check_real(self.epsilon, "epsilon", low=0.0)
        _check.check_integer(self.batch_size, "batch_size", low=1)
        for name in ("n_inner", "restart"):
            if getattr(self, name) is not None:
                _check.check_integer(getattr(self, name), name, low=1)

    def minimize(self, problem: FiniteSum, x: np.ndarray, run: Run) -> Solution:
        """Minimize `problem` from x, which is not changed. An epoch is one full gradient and `n_inner` terms."""
        x = x.copy()
        n_inner = self.n_inner or problem.n_terms
        monitor = Monitor(problem.value, run, x)
        before = None
        with np.errstate(over="ignore", invalid="ignore"):  # a run that explodes is reported by its status
            for epoch in range(1, run.max_iter + 1):
                now = problem.snapshot(x)
                if self.restart and (epoch - 1) % self.restart == 0:
                    before = None
                if self.step != "sbb":
                    eta = float(self.step)
                elif before is None:
                    eta = probe_step(problem, x, now.gradient, self.epsilon)
                else:
                    eta = sbb_step(now.x - before.x, now.gradient - before.gradient, self.epsilon)
                if self.step == "sbb" and self.capped:
                    eta = min(eta, n_inner * problem.largest_step(self.batch_size))
                problem.walk(x, VarianceReduced(eta / n_inner, now, self.batch_size, n_inner))
                before = now
                if monitor.stop(epoch, x, eta):
                    break
            return monitor.finish(x)
