"""From comparisons to points with a named solver, from several starts."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nearkin import _check
from nearkin._distributed import ALONE, Group
from nearkin._types import Fields
from nearkin.contracts import Run
from nearkin.embedding.ordinal.choices import ChoiceObjective
from nearkin.embedding.ordinal.gram import GramObjective, ProjectedGram, gram_points
from nearkin.embedding.ordinal.losses import CKL, SOE, T_STE, OrdinalLoss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows, unpad_rows
from nearkin.records import Comparisons
from nearkin.solvers import LBFGS, SGD, SVRG, AdaGrad, GradientDescent, Sequential, Solution, Solver

HEAT = 10  # epochs of a start before the best one is chosen: as good a choice as after all epochs (measured)


BUILDERS: dict[str, Callable[..., Solver]] = {  # name -> solver; a builder's parameters are the options it understands
    "auto": lambda epsilon=0.1, batch_size=1: Sequential(
        AdaGrad(), SVRG(epsilon=epsilon, batch_size=batch_size), n_first=8
    ),
    "svrg-sbb": lambda epsilon=0.1, batch_size=1: SVRG(epsilon=epsilon, batch_size=batch_size),
    "svrg-sbb0": lambda batch_size=1: SVRG(epsilon=0.0, batch_size=batch_size, capped=False),
    "svrg-sbb-modular": lambda epsilon=0.1, batch_size=1: SVRG(epsilon=epsilon, batch_size=batch_size, restart=10),
    "svrg": lambda step=1.0, batch_size=1: SVRG(step=step, batch_size=batch_size),
    "sgd": lambda step="auto", epsilon=0.1: SGD(step=step, epsilon=epsilon),
    "adagrad": lambda step=1.0: AdaGrad(step=step),
    "gd": lambda step="sbb", epsilon=0.1: GradientDescent(step=step, epsilon=epsilon),
    "l-bfgs": lambda: LBFGS(),
    "projected-gram": lambda epsilon=0.1: ProjectedGram(epsilon=epsilon),
}
SOLVERS = tuple(BUILDERS)


def build_solver(name: str, loss: OrdinalLoss, options: Fields) -> Solver:
    """The solver called `name`; an option ("step", "epsilon", "batch_size") that is None is the solver's own.

    What "auto" means was measured (benchmarks/ordinal, clean and with 10 % of answers flipped): eight epochs of
    AdaGrad, half as dear as SVRG's and needing no first step, come near fastest; SVRG-SBB then ends lower where answers
    contradict. With the losses that grow slowly ("ckl", "t-ste", "soe"), points stay where AdaGrad's long first steps
    threw them, and held-out errors are higher: these start with SVRG-SBB.

    Raises ValueError for a name that is none of `SOLVERS`, and for an option that the solver has no use for.
    """
    _check.check_choice(name, "solver", SOLVERS)
    build = BUILDERS["svrg-sbb" if name == "auto" and loss.code in (CKL, T_STE, SOE) else name]
    known = inspect.signature(build).parameters
    given = {option: value for option, value in options.items() if value is not None}
    for option, value in given.items():
        if option not in known:
            has = f"it has {' and '.join(known)}" if known else "it has none of these options"
            raise ValueError(f"{option} is {value!r}; solver={name!r} does not use it ({has}). Leave {option}=None")
    return build(**given)


def _solver_of_choices(solver: str) -> str:
    """The solver for events of several comparisons; ValueError for those that walk comparisons one by one."""
    if solver not in ("auto", "l-bfgs", "gd"):
        raise ValueError(
            f"solver is {solver!r}, and comparisons has events, answers of several comparisons each; use 'auto' or "
            "'l-bfgs', or dataclasses.replace(comparisons, events=None) to take each row as an answer of its own"
        )
    return "l-bfgs" if solver == "auto" else solver


class Task:
    """Comparisons made ready for one solver: shuffled once, in its precision, to be solved from several starts.

    `options` are "step", "epsilon" and "batch_size", None for the solver's own.
    """

    def __init__(
        self,
        comparisons: Comparisons,
        n_components: int,
        loss: OrdinalLoss,
        solver: str,
        options: Fields,
        rng: np.random.Generator,
        group: Group = ALONE,
    ) -> None:
        if comparisons.events is not None and loss.has_model:
            solver = _solver_of_choices(solver)
            self._p, self._in_gram, self._dtype = n_components, False, np.float64
            self._solver = build_solver(solver, loss, options)
            self._problem: Any = ChoiceObjective(
                comparisons.indices, comparisons.n_objects, loss, comparisons.events, comparisons.weights
            )
            return
        self._p, self._in_gram = n_components, solver == "projected-gram"
        self._solver = build_solver(solver, loss, options)
        n, weights = comparisons.n_objects, comparisons.weights
        if self._in_gram:
            self._problem = GramObjective(comparisons.indices, n, loss, weights)
            return
        order = rng.permutation(len(comparisons))
        weights = None if weights is None else weights[order]
        self._dtype = np.float64 if solver == "l-bfgs" else np.float32  # L-BFGS' line search needs the digits
        self._problem = OrdinalObjective(comparisons.indices[order], n, loss, weights, self._dtype, group)
        plain = solver == "svrg" and options["step"] is None
        if plain and isinstance(self._solver, SVRG):  # 1 suits most data, where single terms bear it
            longest = len(comparisons) * self._problem.largest_step(self._solver.batch_size)
            self._solver = replace(self._solver, step=min(1.0, longest))

    def solve_best(self, starts: Sequence[np.ndarray], run: Run) -> tuple[np.ndarray, Solution]:
        """Run every start (n, p) for `HEAT` epochs and the best one to the end: by validation if there is any.

        The callback's steps count on from start to start, and its record names the "start".
        """
        heats = len(starts) * HEAT if len(starts) > 1 else 0
        total, heat = heats + run.max_iter, replace(run, max_iter=HEAT, tol=0.0)
        values = []
        for number, start in enumerate(starts if heats else []):
            X, solution = self.solve(start, heat, done=number * HEAT, about={"total": total, "start": number})
            values.append(solution.value if run.validate is None else run.validate(X))
        best = int(np.argmin(values)) if values else 0
        return self.solve(starts[best], run, done=heats, about={"total": total, "start": best})

    def solve(
        self, start: np.ndarray, run: Run, *, done: int = 0, about: Fields | None = None
    ) -> tuple[np.ndarray, Solution]:
        """Embed from `start` (n, p): the points found (n, p) and the solver's report.

        `run.validate` and the callback's record["embedding"] see points (n, p); the callback's steps count on from
        `done`, and its records have `about` too. Raises FloatingPointError if the run diverges.
        """
        validate, callback = run.validate, run.callback

        def report(step: int, record: Fields) -> None:
            if callback is not None:
                rest = {name: value for name, value in record.items() if name != "x"}
                callback(done + step, {**rest, **(about or {}), "embedding": self._points(record["x"])})

        inner = replace(
            run,
            callback=None if callback is None else report,
            validate=None if validate is None else lambda x: validate(self._points(x)),
        )
        x = start @ start.T if self._in_gram else pad_rows(start, self._dtype)
        solution = self._solver.minimize(self._problem, x, inner)
        if solution.status == "diverged":
            raise FloatingPointError(
                f"the solver diverged after {solution.n_epochs} epochs, last step {solution.steps[-1]:.3g}; "
                "use a smaller step, or solver='svrg-sbb' or 'auto' with their bounded steps"
            )
        return np.ascontiguousarray(self._points(solution.x)), solution

    def _points(self, x: np.ndarray) -> np.ndarray:
        return gram_points(x, self._p) if self._in_gram else unpad_rows(x, self._p)


def principal_axes(X: np.ndarray, placed: np.ndarray) -> np.ndarray:
    """X (n, p) centred and turned to its principal axes, largest variance first; rows not in `placed` (n,) go to 0.

    Each axis points to where its largest coordinate is positive, so equal points give equal coordinates.
    """
    X = X.astype(np.float64)
    X = np.where(placed[:, None], X - X[placed].mean(axis=0), 0.0)
    _, axes = np.linalg.eigh(X.T @ X)
    X = X @ axes[:, ::-1]
    peaks = X[np.abs(X).argmax(axis=0), np.arange(X.shape[1])]
    return (X * np.where(peaks < 0, -1.0, 1.0)).astype(np.float32)
