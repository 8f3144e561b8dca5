"""Minimize f(x) = (1/m) sum_q F_q(x) term by term (SVRG-SBB, SGD, AdaGrad), or one function by its full gradient.

A stochastic solver updates x term by term according to a `Rule`. The rules are records, so that a sum needs one method
for all of them and can run gradient and update in one compiled loop.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.optimize

from nearkin import _check
from nearkin._types import Record
from nearkin.contracts import Run


@dataclass(frozen=True)
class Defaults:
    """When runs stop, and the length of a first step; on triplets of music, eurodist and made ones (2026-11)."""

    interval: int = 5  # epochs from one value of the objective to the next; a run converges at one of them
    probe: float = 0.01  # distance of the first step's second gradient, as a share of |x|


DEFAULTS = Defaults()


class Objective(Protocol):
    """A function of x with its gradient."""

    def value(self, x: np.ndarray) -> float: ...

    def gradient(self, x: np.ndarray) -> np.ndarray: ...  # same shape as x


@dataclass(frozen=True)
class Snapshot:
    """A point with its full gradient; `memo` is what the sum computed there and reuses in the next walk."""

    x: np.ndarray
    gradient: np.ndarray
    memo: Any = None


@dataclass(frozen=True)
class Plain:
    """Per term: x -= step grad F_q(x). One walk is a pass over all terms, or over the term numbers `drawn`."""

    step: float
    drawn: np.ndarray | None = None


@dataclass(frozen=True)
class RowScaled:
    """Per term and row r: accumulator[r] += |g_r|^2, x_r -= step g_r / sqrt(accumulator[r]). One walk is a pass."""

    step: float
    accumulator: np.ndarray


@dataclass(frozen=True)
class VarianceReduced:
    """Per batch I: x -= step [sum_{q in I} (grad F_q(x) - grad F_q(snapshot)) + |I| grad f(snapshot)], n_terms in all.

    Terms are taken cyclically, each walk starts where the last one stopped; or by their numbers, `drawn` (n_terms,).
    """

    step: float
    snapshot: Snapshot
    batch_size: int
    n_terms: int
    drawn: np.ndarray | None = None


Rule: TypeAlias = Plain | RowScaled | VarianceReduced


class FiniteSum(Objective, Protocol):
    """A sum of `n_terms` = m terms."""

    @property
    def n_terms(self) -> int: ...

    def snapshot(self, x: np.ndarray) -> Snapshot:
        """A copy of x with its full gradient."""
        ...

    def largest_step(self, batch_size: int) -> float:
        """The longest step at which a single batch of terms does not overshoot; infinity if unknown."""
        ...

    def walk(self, x: np.ndarray, rule: Rule) -> None:
        """Update x in place, term after term, by the rule."""


@dataclass(frozen=True)
class Solution:
    """The result of a solver, and why it stopped.

    `status` is "converged" (the objective no longer falls), "max_epochs", or "diverged" (it became infinite or NaN, or
    rose a thousandfold). `history` holds the callback's records, each with its "step"; without a callback those of
    every fifth epoch. `steps` is the step size of each epoch.
    """

    x: np.ndarray
    value: float
    n_epochs: int
    status: str
    history: list[Record] = field(default_factory=list[Record])
    steps: list[float] = field(default_factory=list[float])


class Solver(Protocol):
    """The interface of all solvers."""

    def minimize(self, problem: Any, x: np.ndarray, run: Run, /) -> Solution:
        """Minimize `problem` from x, which is not changed.

        A step of the run is an epoch. The callback's record has "objective", "total", "x", and if they exist
        "step_size" and "validation".
        """
        ...


class Monitor:
    """The loop's bookkeeping: evaluates the objective, reports, keeps the best validated point, decides when to stop.
    The objective is evaluated every 5 epochs, and after each one for a callback, which does not change the run. It has
    converged when the objective fell by less than `tol` per epoch, relative to itself or `floor`."""

    def __init__(self, value: Callable[[np.ndarray], float], run: Run, x: np.ndarray) -> None:
        self._value, self._run = value, run
        self._best: tuple[float, np.ndarray | None] = (math.inf, None)
        self.history: list[Record] = []
        self.steps: list[float] = []
        self.status = ""
        self._first = self._last = value(x)
        self._validate(x)

    def stop(self, epoch: int, x: np.ndarray, step: float = math.nan) -> bool:
        """Record x after `epoch` epochs (1, 2, ...); True when the run is over, with `status` set."""
        self.steps.append(step)
        due = epoch % DEFAULTS.interval == 0 or epoch == self._run.max_iter
        if due or self._run.callback is not None:
            value = self._value(x)
            record: Record = {"objective": value, "total": self._run.max_iter}
            if not math.isnan(step):
                record["step_size"] = step
            if self._run.validate is not None:
                record["validation"] = self._validate(x)
            self.history.append({"step": epoch, **record})
            if self._run.callback is not None:
                self._run.callback(epoch, {**record, "x": x})
            if not value <= 1e3 * (abs(self._first) + 1):  # diverged; true for NaN as well
                self.status = "diverged"
            elif due:
                epochs = (epoch - 1) % DEFAULTS.interval + 1
                if abs(self._last - value) <= self._run.tol * epochs * max(abs(value), self._run.floor):
                    self.status = "converged"
                self._last = value
        if epoch >= self._run.max_iter and not self.status:
            self.status: str = "max_epochs"
        return bool(self.status)

    def finish(self, x: np.ndarray) -> Solution:
        """The solution: the best validated point if there was validation, otherwise x."""
        if self._best[1] is not None and self.status != "diverged":
            x = self._best[1]
        status = self.status or "converged"  # without a status the solver ended the run itself
        return Solution(x, self._value(x), len(self.steps), status, self.history, self.steps)

    def _validate(self, x: np.ndarray) -> float | None:
        """The validation score of x, if the run has one; the best point is kept."""
        if self._run.validate is None:
            return None
        score = self._run.validate(x)
        if score < self._best[0]:
            self._best = (score, x.copy())
        return score


def _epochs(
    problem: Objective, x: np.ndarray, run: Run, move: Callable[[np.ndarray, int], tuple[np.ndarray, float]]
) -> Solution:
    """Replace x by `move(x, epoch)`, the next point and the step size, until the run is over; a copy of x is moved."""
    x = x.copy()
    monitor = Monitor(problem.value, run, x)
    with np.errstate(over="ignore", invalid="ignore"):  # a run that explodes is reported by its status
        for epoch in range(1, run.max_iter + 1):
            x, step = move(x, epoch)
            if monitor.stop(epoch, x, step):
                break
        return monitor.finish(x)


def _check_steps(step: float | str, automatic: tuple[str, ...], epsilon: float) -> None:
    if step not in automatic:
        _check.check_real(step, "step", above=0.0)
    _check.check_real(epsilon, "epsilon", low=0.0)


def _check_draws(draws: str, random_state: int) -> None:
    _check.check_choice(draws, "draws", ("cyclic", "uniform"))
    _check.check_integer(random_state, "random_state", low=0)


def _draw(draws: str, random_state: int, epoch: int, n_terms: int, size: int) -> np.ndarray | None:
    """The numbers (size,) of the terms of an epoch, uniform with replacement; None for the sum's own cycle."""
    if draws == "cyclic":
        return None
    return np.random.default_rng([random_state, epoch]).integers(n_terms, size=size)


def sbb_step(dx: np.ndarray, dy: np.ndarray, epsilon: float) -> float:
    """|dx|^2 / (|<dx, dy>| + epsilon |dx|^2) for dx = x_s - x_{s-1} and dy = g_{s+1} - g_s (SVRG-SBB eq. 14); 0 if dx
    is zero. It lies in [1 / (L + epsilon), 1 / epsilon] if the gradient is L-Lipschitz (eq. 15), and is unbounded with
    epsilon = 0 (SBB_0). Algorithm 1 prints "Delta x" a second time; it must be Delta y."""
    dx, dy = dx.ravel().astype(np.float64), dy.ravel().astype(np.float64)
    square = float(dx @ dx)
    bottom = abs(float(dx @ dy)) + epsilon * square
    if square == 0.0:
        return 0.0
    return square / bottom if bottom > 0.0 else float("inf")


def geometric_step(dx: np.ndarray, dy: np.ndarray, epsilon: float) -> float:
    """|dx| / (|dy| + epsilon |dx|), the geometric mean of Barzilai and Borwein's two steps; 0 if dx is zero. It is
    shorter than `sbb_step` where dx and dy point apart: on answers without errors the loss then falls steadily."""
    length, change = (float(np.linalg.norm(d.astype(np.float64))) for d in (dx, dy))
    bottom = change + epsilon * length
    if length == 0.0:
        return 0.0
    return length / bottom if bottom > 0.0 else float("inf")


def probe_step(problem: Objective, x: np.ndarray, gradient: np.ndarray, epsilon: float) -> float:
    """Algorithm 1's eta_0, untuned: the SBB step between x and a point |x| / 100 down the gradient.

    It costs one gradient. With epsilon = 0 a positive floor keeps this first step finite.
    """
    length = float(np.linalg.norm(gradient.astype(np.float64)))
    if length == 0.0:
        return 0.0
    size = float(np.linalg.norm(x.astype(np.float64))) or 1.0
    dx = (-(DEFAULTS.probe * size / length) * gradient).astype(x.dtype)
    # keeps the first step finite if epsilon is 0
    return sbb_step(dx, problem.gradient(x + dx) - gradient, max(epsilon, 1e-3))


def _next_step(step: float | str, problem: Objective, now: Snapshot, before: Snapshot | None, epsilon: float) -> float:
    if step not in ("sbb", "geometric"):
        return float(step)
    if before is None:
        return probe_step(problem, now.x, now.gradient, epsilon)
    rule = sbb_step if step == "sbb" else geometric_step
    return rule(now.x - before.x, now.gradient - before.gradient, epsilon)


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
    draws: "cyclic" takes the terms one after another in the sum's order, which is faster; "uniform" draws each with
        replacement by `random_state`, as Algorithm 1 is printed.
    capped: keep such a step below n_inner times the sum's `largest_step`. With few terms per coordinate Theorem 2's
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
    draws: str = "cyclic"
    random_state: int = 0

    def __post_init__(self) -> None:
        _check_steps(self.step, ("sbb", "geometric"), self.epsilon)
        _check_draws(self.draws, self.random_state)
        _check.check_integer(self.batch_size, "batch_size", low=1)
        for name in ("n_inner", "restart"):
            if getattr(self, name) is not None:
                _check.check_integer(getattr(self, name), name, low=1)

    def minimize(self, problem: FiniteSum, x: np.ndarray, run: Run) -> Solution:
        """Minimize `problem` from x, which is not changed. An epoch is one full gradient and `n_inner` terms."""
        n_inner = self.n_inner or problem.n_terms
        before: Snapshot | None = None

        def move(x: np.ndarray, epoch: int) -> tuple[np.ndarray, float]:
            nonlocal before
            now = problem.snapshot(x)
            if self.restart and (epoch - 1) % self.restart == 0:
                before = None
            eta = _next_step(self.step, problem, now, before, self.epsilon)
            if self.step in ("sbb", "geometric") and self.capped:
                eta = min(eta, n_inner * problem.largest_step(self.batch_size))
            drawn = _draw(self.draws, self.random_state, epoch, problem.n_terms, n_inner)
            problem.walk(x, VarianceReduced(eta / n_inner, now, self.batch_size, n_inner, drawn))
            before = now
            return x, eta

        return _epochs(problem, x, run, move)


@dataclass(frozen=True)
class SGD:
    """x -= step_s / m grad F_q(x), term after term, with step_s = step / (1 + decay s) in epoch s = 0, 1, ...

    step: "auto" is `probe_step`, the inverse curvature along the first gradient, but at most what single terms allow
    (`largest_step`); a number is used unchanged. draws, random_state: see `SVRG`.
    """

    step: float | str = "auto"
    decay: float = 0.1
    epsilon: float = 0.1
    draws: str = "cyclic"
    random_state: int = 0

    def __post_init__(self) -> None:
        _check_steps(self.step, ("auto",), self.epsilon)
        _check_draws(self.draws, self.random_state)
        _check.check_real(self.decay, "decay", low=0.0)

    def minimize(self, problem: FiniteSum, x: np.ndarray, run: Run) -> Solution:
        """Minimize `problem` from x, which is not changed. An epoch is one pass over the terms."""
        if self.step == "auto":
            first = probe_step(problem, x, problem.gradient(x), self.epsilon)
            first = min(first, problem.n_terms * problem.largest_step(1))
        else:
            first = float(self.step)

        def move(x: np.ndarray, epoch: int) -> tuple[np.ndarray, float]:
            step = first / (1.0 + self.decay * (epoch - 1))
            drawn = _draw(self.draws, self.random_state, epoch, problem.n_terms, problem.n_terms)
            problem.walk(x, Plain(step / problem.n_terms, drawn))
            return x, step

        return _epochs(problem, x, run, move)


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
        accumulator = np.full(len(x), self.floor, x.dtype)

        def move(x: np.ndarray, epoch: int) -> tuple[np.ndarray, float]:
            problem.walk(x, RowScaled(self.step, accumulator))
            return x, self.step

        return _epochs(problem, x, run, move)


@dataclass(frozen=True)
class GradientDescent:
    """x -= eta grad f(x); eta is a number or "sbb" (SVRG-SBB eq. 14 on successive iterates)."""

    step: float | str = "sbb"
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        _check_steps(self.step, ("sbb",), self.epsilon)

    def minimize(self, problem: Objective, x: np.ndarray, run: Run) -> Solution:
        """Minimize `problem` from x, which is not changed. An epoch is one full gradient."""
        before: Snapshot | None = None

        def move(x: np.ndarray, epoch: int) -> tuple[np.ndarray, float]:
            nonlocal before
            now = Snapshot(x, problem.gradient(x))
            eta = _next_step(self.step, problem, now, before, self.epsilon)
            before = now
            return (x - eta * now.gradient).astype(x.dtype), eta

        return _epochs(problem, x, run, move)


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
