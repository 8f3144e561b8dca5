"""Comparisons as a problem for `nearkin.solvers`: two objectives, the solver by name, and several starts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nearkin import _check, solvers
from nearkin._distributed import ALONE, Group
from nearkin._fields import counted
from nearkin._types import Fields, Record
from nearkin.contracts import Run
from nearkin.embedding.ordinal import losses
from nearkin.embedding.ordinal.losses import GNMDS, STE, T_STE, OrdinalLoss
from nearkin.records import Comparisons, as_indices

BLOCK = 4  # floats per block of a row, the unit of the passes in `losses`


def pad_rows(X: np.ndarray, dtype: type = np.float32) -> np.ndarray:
    """X (n, p) as blocks (n, ceil(p / 4), 4), padded with zeros."""
    n, p = X.shape
    blocks = -(-p // BLOCK)
    x = np.zeros((n, blocks * BLOCK), dtype)
    x[:, :p] = X
    return x.reshape(n, blocks, BLOCK)


def unpad_rows(x: np.ndarray, n_components: int) -> np.ndarray:
    """The inverse of `pad_rows`: a view (n, p)."""
    return x.reshape(len(x), -1)[:, :n_components]


def check_terms(indices: np.ndarray, n_objects: int, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Checked input of the compiled passes: uint32 indices below n_objects, and weights of mean 1, float64.

    Weights are empty, (0,), if none are given. Raises ValueError for no terms, an unknown object, a missing weight.
    """
    indices = as_indices(indices, "comparisons")
    if len(indices) == 0:
        raise ValueError("comparisons is empty; at least one is needed")
    if int(indices.max()) >= n_objects:
        row = int((indices >= n_objects).any(axis=1).argmax())
        raise ValueError(
            f"comparisons row {row} is {indices[row].tolist()}; there are only {counted(n_objects, 'object')}"
        )
    if weights is None:
        return indices, np.empty(0)
    weights = _check.check_row_weights(weights, len(indices))
    return indices, weights / weights.mean()


def check_points(n_objects: int, *points: np.ndarray) -> None:
    """ValueError if points are not blocks (n, c, 4)."""
    for x in points:
        if x.ndim != 3 or x.shape != (n_objects, points[0].shape[1], BLOCK):
            raise ValueError(f"x has shape {x.shape}; it must be ({n_objects}, blocks, {BLOCK}), made by pad_rows")


@dataclass
class OrdinalObjective:
    """f(x) = (n / W) sum_q w_q f_q(x) with W = sum_q w_q: the sum per object, so steps and epsilon do not depend on
    sizes.

    indices (m, 3) or (m, 4) uint32 are processed in the given order: shuffle them once before. Without weights w_q = 1.
    The points are blocks x (n, c, 4) of `dtype` (see `pad_rows`). As a finite sum its terms are F_q = n m / W w_q f_q.
    Raises ValueError for indices, weights or points that do not fit, as the compiled passes do not check them.
    """

    indices: np.ndarray
    n_objects: int
    loss: OrdinalLoss
    weights: np.ndarray | None = None
    dtype: type = np.float32
    group: Group = ALONE
    _position: int = field(default=0, init=False)  # where the next SVRG pass starts

    def __post_init__(self) -> None:
        self.indices, weights = check_terms(self.indices, self.n_objects, self.weights)
        self._weights = weights.astype(self.dtype)
        self._loss = (self.loss.code, self.dtype(self.loss.parameter))

    @property
    def n_terms(self) -> int:
        return len(self.indices)

    def value(self, x: np.ndarray) -> float:
        """f(x), summed in float64."""
        check_points(self.n_objects, x)
        indices, weights, group = self._share()
        total = np.array([losses.sum_values(x, indices, weights, *self._loss)])
        group.all_reduce(total)
        return float(total[0]) * self.n_objects / self.n_terms

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """grad f(x), same shape as x; the processes of a group sum a share of the terms each."""
        indices, weights, group = self._share()
        return self._summed(x, indices, weights, np.empty((0, 2), self.dtype), group)

    def snapshot(self, x: np.ndarray) -> solvers.Snapshot:
        """A copy of x, the full gradient and every term's two slopes, which the passes from here reuse."""
        slopes = np.empty((self.n_terms, 2), self.dtype)
        return solvers.Snapshot(x.copy(), self._summed(x, self.indices, self._weights, slopes), slopes)

    def _summed(
        self, x: np.ndarray, indices: np.ndarray, weights: np.ndarray, slopes: np.ndarray, group: Group = ALONE
    ) -> np.ndarray:
        check_points(self.n_objects, x)
        gradient = np.zeros_like(x)
        losses.sum_gradients(x, indices, weights, *self._loss, self.dtype(1), gradient, slopes)
        group.all_reduce(gradient)
        gradient *= self.dtype(self.n_objects / self.n_terms)
        return gradient

    def largest_step(self, batch_size: int) -> float:
        """1 / (12 n w), w the largest weight: a bound for most losses, a rule of thumb for the others.

        The slopes' part of a term's Hessian is at most 2 s |M|, |M| = 3 (SVRG-SBB eqs. 53-57), with slopes s <= 1 for
        GNMDS, STE and t-STE with alpha >= 1; single terms of CKL and SOE may overshoot. The step is half of what s = 1
        allows: with 1 / 6 some runs diverged (five answers per object). A batch adds up 3 batch_size / n terms of one
        object.
        """
        heaviest = float(self._weights.max()) if len(self._weights) else 1.0
        shared = max(1.0, 3.0 * batch_size / self.n_objects)
        curved = DEFAULTS.most_curved / (4.0 if self.loss.code == T_STE else 1.0)
        return 1.0 / (curved * heaviest * shared * self.n_objects)

    def walk(self, x: np.ndarray, rule: solvers.Rule) -> None:
        """See `FiniteSum`. Raises ValueError if x, a snapshot or an accumulator does not fit, or a batch is empty."""
        check_points(self.n_objects, x)
        cyclic = isinstance(rule, solvers.RowScaled) or rule.drawn is None
        order = slice(None) if cyclic else rule.drawn
        terms = self.indices[order], self._weights[order if len(self._weights) else ...], *self._loss
        match rule:
            case solvers.Plain(step):
                losses.sum_gradients(x, *terms, -self.dtype(step * self.n_objects), x, np.empty((0, 2), self.dtype))
            case solvers.RowScaled(step, accumulator):
                if accumulator.shape != (self.n_objects,):
                    raise ValueError(f"accumulator has shape {accumulator.shape}; it must be ({self.n_objects},)")
                losses.adagrad_pass(x, accumulator, *terms, self.dtype(step))
            case solvers.VarianceReduced(step, snapshot, batch_size, n_terms):
                check_points(self.n_objects, x, snapshot.x, snapshot.gradient)
                for value, name in ((batch_size, "batch_size"), (n_terms, "n_terms")):
                    _check.check_integer(value, name, low=1)  # a batch of none would never end
                known = snapshot.x, snapshot.gradient, snapshot.memo[order]
                start = (self._position if cyclic else 0), n_terms
                size, scale = min(batch_size, n_terms), self.dtype(self.n_objects)
                self._position = losses.svrg_pass(x, *known, *terms, *start, self.dtype(step), scale, size)

    def _share(self) -> tuple[np.ndarray, np.ndarray, Group]:
        """The terms that fall to this process, and their weights."""
        rows = slice(*self.group.share(self.n_terms))
        return self.indices[rows], self._weights[rows], self.group


@dataclass
class EventObjective:
    """f(x) = (n / W) sum_e w_e (-log p_e) over events e, W = sum_e w_e: "the odd one of three", "the nearest of k".

    An event is one answer given as several comparisons with the same near pair {a, b} (`Comparisons.events`). With the
    similarity s of the loss' model (exp(-d^2) for STE, 1 / (mu + d^2) for the crowd kernel, (alpha + d^2)^(-(alpha + 1)
    / 2) for t-STE) it has the probability (Luce 1959)

        p = s_ab / (s_ab + sum_r s_r),   -log p = log(1 + sum_r (exp(f_r) - 1)),

    where s_r is the similarity of the far pair of comparison r and f_r = log(1 + s_r / s_ab) is its loss alone. So the
    slopes of comparison r are its own times the share exp(f_r + log p); a single comparison has the share 1. Taken as
    independent, two comparisons would count the same answer twice when both are close.

    indices (m, 3) or (m, 4) and events (m,), the number of each row's event; weights (m,) are the events', the mean
    over their rows. x (n, c, 4) float64. ValueError for terms or points that do not fit, or a loss without model.
    """

    indices: np.ndarray
    n_objects: int
    loss: OrdinalLoss
    events: np.ndarray
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not self.loss.has_model:
            raise ValueError(f"loss={self.loss.name!r} has no probability of a choice; use 'ste', 't-ste' or 'ckl'")
        self.indices, weights = check_terms(self.indices, self.n_objects, self.weights)
        order = np.argsort(self.events, kind="stable")
        numbers = self.events[order]
        self.indices = self.indices[order]
        self._starts = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1, [len(numbers)]]).astype(np.int64)
        size = np.diff(self._starts)
        sums = np.add.reduceat(weights[order], self._starts[:-1]) if len(weights) else size
        self._weights = sums / size * len(size) / (sums / size).sum()
        self._by_row = np.repeat(self._weights, size)

    @property
    def n_terms(self) -> int:
        return len(self._weights)

    def value(self, x: np.ndarray) -> float:
        """f(x)."""
        return float(self.event_values(x)[0] @ self._weights) * self.n_objects / self.n_terms

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """grad f(x), same shape as x."""
        weights = self.event_values(x)[1] * self._by_row
        gradient, loss = np.zeros_like(x), (self.loss.code, self.loss.parameter)
        losses.sum_gradients(x, self.indices, weights, *loss, 1.0, gradient, np.empty((0, 2)))
        return gradient * (self.n_objects / self.n_terms)

    def event_values(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """-log p of the events (e,) in the order of their numbers, and the shares (m,) of the rows in that order."""
        check_points(self.n_objects, x)
        values, shares = np.empty(self.n_terms), np.empty(len(self.indices))
        losses.event_pass(x, self.indices, self._starts, self.loss.code, self.loss.parameter, values, shares)
        return values, shares


# ---- the solver by name, several starts ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of a fit (2026-11: planted points, clusters, MNIST, music, eurodist; clean and with errors)."""

    first_epochs: int = 8  # of a start, by AdaGrad for "ste" and "gnmds": half the cost of SVRG's, then SVRG ends lower
    extra: int = 2  # dimensions more in the first epochs, so that objects pass each other
    # random starts against local minima, most frequent in two dimensions; twice as many without extra dimensions
    starts: int = 2
    # comparisons; above, to bound the time, one start, and choices="auto" takes those of one answer as separate
    few: int = 100_000
    # inverse of `largest_step` in units of 1 / (n w); with 6 some runs diverged. A quarter for "t-ste": music in eight
    # dimensions errs .158 after 12 epochs in place of 60
    most_curved: float = 12.0


TRIAL_EPOCHS = 10  # of each start, the first ones included; then the best start continues
DEFAULTS = Defaults()
SOLVERS: dict[str, solvers.Solver] = {
    "auto": solvers.SVRG(),  # with other steps for most losses, after a few epochs of AdaGrad; see `find_solver`
    "svrg-sbb": solvers.SVRG(),
    "svrg": solvers.SVRG(step=1.0),
    "sgd": solvers.SGD(),
    "adagrad": solvers.AdaGrad(),
    "gd": solvers.GradientDescent(),
    "l-bfgs": solvers.LBFGS(),
}


def find_solver(solver: str | solvers.Solver, loss: OrdinalLoss) -> solvers.Solver:
    """The solver of that name, or `solver` itself; ValueError for anything else. "auto" is SVRG with
    geometric steps, which are steadier than SBB's, but too short where the loss has a kink ("gnmds", "soe")."""
    if not isinstance(solver, str) and callable(getattr(solver, "minimize", None)):
        return solver
    name = str(_check.check_choice(solver, "solver", SOLVERS))
    return solvers.SVRG(step="geometric") if name == "auto" and loss.has_model else SOLVERS[name]


def count_dimensions(solver: str | solvers.Solver, loss: OrdinalLoss, n_components: int) -> int:
    """Columns of a start: more than p where "auto" begins in more dimensions."""
    return n_components + (DEFAULTS.extra if solver == "auto" and loss.has_model else 0)


class Task:
    """Comparisons, shuffled once and in a solver's precision, for several starts."""

    def __init__(
        self,
        comparisons: Comparisons,
        n_components: int,
        loss: OrdinalLoss,
        solver: str | solvers.Solver,
        rng: np.random.Generator,
        group: Group = ALONE,
    ) -> None:
        self._p, n, weights = n_components, comparisons.n_objects, comparisons.weights
        events = comparisons.events if loss.has_model else None
        joint = solver == "auto" and events is not None
        self._solver = self._first = find_solver("l-bfgs" if joint else solver, loss)
        self._floor = 0.0
        if events is not None:
            if not isinstance(self._solver, solvers.LBFGS | solvers.GradientDescent):
                raise ValueError(
                    f"solver is {solver!r}, which takes comparisons one by one, but comparisons has events, answers of "
                    "several comparisons each; use 'auto' or 'l-bfgs', or fit(..., choices='separate')"
                )
            self._dtype = np.float64
            self._problem: Any = EventObjective(comparisons.indices, n, loss, events, weights)
            return
        order = rng.permutation(len(comparisons))
        weights = None if weights is None else weights[order]
        line_search = isinstance(self._solver, solvers.LBFGS)  # which needs the digits of float64
        self._dtype = np.float64 if line_search else np.float32
        self._problem = OrdinalObjective(comparisons.indices[order], n, loss, weights, self._dtype, group)
        if solver == "auto":
            # AdaGrad needs no first step length. Losses that grow slowly do without: its first steps are too long.
            self._first = solvers.AdaGrad() if loss.code in (GNMDS, STE) else self._solver
            # STE's loss of answers without errors falls to zero for ever; half of what equal points have is enough
            self._floor = 0.5 * n * math.log(2.0) if loss.code == STE else 0.0
        if solver == "svrg" and isinstance(self._solver, solvers.SVRG):
            longest = len(comparisons) * self._problem.largest_step(self._solver.batch_size)
            self._solver = self._first = replace(
                self._solver, step=min(1.0, longest)
            )  # 1 suits most data, if single terms allow it

    def solve_best(self, starts: Sequence[np.ndarray], run: Run) -> tuple[np.ndarray, solvers.Solution]:
        """Run every start (n, q) for a few epochs, the best to the end, by validation if any; records have "start".

        The first epochs take all q >= p columns, the others the p principal axes of the points found.
        """
        n_trial = min(run.max_iter, TRIAL_EPOCHS)
        total = run.max_iter + (len(starts) - 1) * n_trial
        found: list[tuple[np.ndarray, solvers.Solution]] = []
        for number, start in enumerate(starts):
            about = {"total": total, "start": number}
            begun = self._begin(start, run, number * n_trial, about)
            limit = n_trial if len(starts) > 1 else run.max_iter
            tol = 0.0 if len(starts) > 1 else run.tol
            found.append(self._continue(begun, replace(run, max_iter=limit, tol=tol), number * n_trial, about))
        if len(starts) == 1:
            return found[0]
        values = [solution.value if run.validate is None else run.validate(X) for X, solution in found]
        best = int(np.argmin(values))
        done = (len(starts) - 1) * n_trial
        return self._continue(found[best], run, done, {"total": total, "start": best})

    def _begin(
        self, start: np.ndarray, run: Run, done: int, about: Fields
    ) -> tuple[np.ndarray, solvers.Solution | None]:
        """The points (n, p) after the first epochs, if they take another solver or more columns."""
        if self._first is self._solver and start.shape[1] == self._p:
            return start, None
        limits = replace(run, max_iter=min(run.max_iter, DEFAULTS.first_epochs), tol=0.0)
        X, solution = self.solve(start, limits, solver=self._first, done=done, about=about)
        return self._flat(X), solution

    def _continue(
        self, begun: tuple[np.ndarray, solvers.Solution | None], run: Run, done: int, about: Fields
    ) -> tuple[np.ndarray, solvers.Solution]:
        """`run` from points that have had some of its epochs."""
        X, head = begun
        if head is None:
            return self.solve(X, run, done=done, about=about)
        rest = run.max_iter - head.n_epochs
        if rest == 0:
            return X, replace(head, value=self._problem.value(pad_rows(X, self._dtype)) / len(X), status="max_epochs")
        X, tail = self.solve(X, replace(run, max_iter=rest), done=done + head.n_epochs, about=about)
        history = head.history + [{**record, "step": head.n_epochs + record["step"]} for record in tail.history]
        return X, replace(tail, n_epochs=head.n_epochs + tail.n_epochs, history=history, steps=head.steps + tail.steps)

    def _flat(self, X: np.ndarray) -> np.ndarray:
        """X (n, q) on its first p principal axes, or X if it has no more columns."""
        return X if X.shape[1] == self._p else principal_axes(X, np.ones(len(X), bool))[:, : self._p]

    def solve(
        self,
        start: np.ndarray,
        run: Run,
        *,
        solver: solvers.Solver | None = None,
        done: int = 0,
        about: Fields | None = None,
    ) -> tuple[np.ndarray, solvers.Solution]:
        """Embed from `start` (n, q): the points found (n, q) and the solver's report. The callback's steps count from
        `done`, its records include `about`. Raises FloatingPointError if the run diverges."""
        validate, callback, q = run.validate, run.callback, start.shape[1]

        def mean(record: Fields) -> Record:
            """The record with the mean loss of an answer: the solver's value is n times this."""
            return {**record, "objective": record["objective"] / len(start)}

        def report(step: int, record: Fields) -> None:
            if callback is not None:
                rest = {name: value for name, value in mean(record).items() if name != "x"}
                callback(done + step, {**rest, **(about or {}), "embedding": self._flat(unpad_rows(record["x"], q))})

        inner = replace(
            run,
            floor=self._floor,
            callback=None if callback is None else report,
            validate=None if validate is None else lambda x: validate(unpad_rows(x, q)),
        )
        solution = (solver or self._solver).minimize(self._problem, pad_rows(start, self._dtype), inner)
        if solution.status == "diverged":
            raise FloatingPointError(
                f"the solver diverged after {solution.n_epochs} epochs, last step {solution.steps[-1]:.3g}; "
                "use a smaller step, or solver='svrg-sbb' or 'auto' with their bounded steps"
            )
        history = [mean(record) for record in solution.history]
        solution = replace(solution, value=solution.value / len(start), history=history)
        return np.ascontiguousarray(unpad_rows(solution.x, q)), solution


def principal_axes(X: np.ndarray, placed: np.ndarray) -> np.ndarray:
    """X (n, p) centred and rotated to its principal axes, largest variance first; rows not in `placed` (n,) become 0.

    On each axis the coordinate of largest magnitude is positive, so equal points give equal coordinates.
    """
    X = X.astype(np.float64)
    X = np.where(placed[:, None], X - X[placed].mean(axis=0), 0.0)
    _, axes = np.linalg.eigh(X.T @ X)
    X = X @ axes[:, ::-1]
    peaks = X[np.abs(X).argmax(axis=0), np.arange(X.shape[1])]
    return (X * np.where(peaks < 0, -1.0, 1.0)).astype(np.float32)
