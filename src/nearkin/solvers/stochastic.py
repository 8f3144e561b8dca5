"""Solvers of finite sums, term by term: SVRG with Barzilai-Borwein steps (SVRG-SBB), SGD, AdaGrad, and a sequence."""

from dataclasses import dataclass, replace

import numpy as np

from nearkin import _check
from nearkin.contracts import Callback, Run
from nearkin.solvers.finite_sum import (
    FiniteSum,
    Monitor,
    Objective,
    Plain,
    RowScaled,
    Solution,
    Solver,
    VarianceReduced,
)


def sbb_step(dx: np.ndarray, dy: np.ndarray, epsilon: float) -> float:
    """|dx|^2 / (|<dx, dy>| + epsilon |dx|^2) for dx = x_s - x_{s-1} and dy = g_{s+1} - g_s (SVRG-SBB eq. 14).

    It lies in [1 / (L + epsilon), 1 / epsilon] if the gradient is L-Lipschitz (eq. 15). With epsilon = 0 (SBB_0) it is
    unbounded, and infinite if <dx, dy> = 0. Algorithm 1 prints "Delta x" a second time; it must be Delta y. Returns 0
    if dx is zero, so the run stops moving.
    """
    dx, dy = dx.ravel().astype(np.float64), dy.ravel().astype(np.float64)
    square = float(dx @ dx)
    bottom = abs(float(dx @ dy)) + epsilon * square
    if square == 0.0:
        return 0.0
    return square / bottom if bottom > 0.0 else float("inf")


def probe_step(problem: Objective, x: np.ndarray, gradient: np.ndarray, epsilon: float) -> float:
    """Algorithm 1's eta_0, untuned: the SBB step between x and a point |x| / 100 down the gradient.

    It costs one gradient. With epsilon = 0 a positive floor keeps this first step finite.
    """
    length = float(np.linalg.norm(gradient.astype(np.float64)))
    if length == 0.0:
        return 0.0
    size = float(np.linalg.norm(x.astype(np.float64))) or 1.0
    dx = (-(0.01 * size / length) * gradient).astype(x.dtype)
    return sbb_step(dx, problem.gradient(x + dx) - gradient, max(epsilon, 1e-3))


@dataclass(frozen=True)
class SVRG:
    """Stochastic variance-reduced gradient (SVRG-SBB, Algorithm 1).

    Per epoch s: the full gradient g at the snapshot, then inner iterations over batches of `batch_size` terms,
    `n_inner` terms in all (None: all of them once). Per batch I, x -= step [sum_{q in I} (grad F_q(x) - grad
    F_q(snapshot)) + |I| g] with step = eta / n_inner, so that *the whole epoch moves along g by exactly one eta*,
    whatever the batch size. The paper's m iterations of b eta would move by b of them; its experiments (section 5.1)
    use m / b iterations, as here.

    step: "sbb" takes eta = |dx|^2 / (|<dx, dy>| + epsilon |dx|^2) from the last two snapshots (eq. 14, eq. 17 without
    its 1/m), after a first eta from `probe_step`; epsilon = 0 is the paper's SBB_0. A number is a fixed eta.
    restart: probe a new first step every `restart` epochs: the modules of Algorithm 2 (None: never).
    capped: keep an SBB step below n_inner times the sum's `largest_step`. With few terms per coordinate Theorem 2's
        condition (24) on m fails, and single terms overshoot although eta suits their mean. False: as in the paper.

    As printed, Algorithm 1 multiplies the inner step with x_t where u_t is meant. It returns a random iterate, which
    its proof needs; here the solution is the last snapshot, or the best validated one.
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


@dataclass(frozen=True)
class SGD:
    """x -= step_s / m grad F_q(x), term after term, with step_s = step / (1 + decay s) in epoch s = 0, 1, ...

    step: "auto" is `probe_step`, the inverse curvature along the first gradient, but at most what single terms allow
    (`largest_step`); a number is used unchanged.
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


@dataclass(frozen=True)
class AdaGrad:
    """accumulator_r += |g_r|^2, x_r -= step g_r / sqrt(accumulator_r), term after term (Duchi et al. 2011, per row).

    The step does not depend on the scale of the objective; `floor` is the accumulators' first value.
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


@dataclass(frozen=True)
class Sequential:
    """`first` for `n_first` epochs, then `second` from its solution; epochs are numbered through."""

    first: Solver
    second: Solver
    n_first: int = 8

    def __post_init__(self) -> None:
        _check.check_integer(self.n_first, "n_first", low=1)

    def minimize(self, problem: FiniteSum, x: np.ndarray, run: Run) -> Solution:
        """See `Solver`; with `run.validate` each part returns its best point."""
        n_first = min(self.n_first, run.max_iter)
        head = self.first.minimize(problem, x, replace(run, max_iter=n_first, tol=0.0, callback=_renumbered(run, 0)))
        if head.status == "diverged" or run.max_iter == n_first:
            return head
        rest = replace(run, max_iter=run.max_iter - n_first, callback=_renumbered(run, n_first))
        tail = self.second.minimize(problem, head.x, rest)
        later = [{**record, "step": n_first + record["step"]} for record in tail.history]
        return replace(
            tail, n_epochs=n_first + tail.n_epochs, history=head.history + later, steps=head.steps + tail.steps
        )


def _renumbered(run: Run, done: int) -> Callback | None:
    """The run's callback with steps counted from `done` and the total of the whole run."""
    callback = run.callback
    if callback is None:
        return None
    return lambda step, record: callback(done + step, {**record, "total": run.max_iter})
