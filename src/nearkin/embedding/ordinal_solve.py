"""From comparisons to points with a named solver: one start, one run."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nearkin import _check
from nearkin.embedding.ordinal_gram import GramObjective, ProjectedGram, gram_points
from nearkin.embedding.ordinal_losses import OrdinalLoss
from nearkin.embedding.ordinal_objective import OrdinalObjective, pad_rows, unpad_rows
from nearkin.records import Comparisons
from nearkin.solvers import LBFGS, SGD, SVRG, AdaGrad, GradientDescent, Solution

SOLVERS = (
    "auto",
    "svrg-sbb",
    "svrg-sbb0",
    "svrg-sbb-modular",
    "svrg",
    "sgd",
    "adagrad",
    "gd",
    "l-bfgs",
    "projected-gram",
)


def build_solver(name: str, *, step: float | None = None, epsilon: float = 0.1, batch_size: int = 1) -> Any:
    """The solver called `name`. `step` None means the solver's own rule; what a solver has no use for is ignored.

    "svrg-sbb0" is "svrg-sbb" with epsilon = 0; "svrg-sbb-modular" is SVRG-SBB Algorithm 2 with modules of 10 epochs;
    "svrg" without a step keeps 1.0, which on the objective per object suits most data. Raises ValueError for another
    name.
    """
    _check.check_choice(name, "solver", SOLVERS)
    if name.startswith("svrg-sbb"):
        restart = 10 if name.endswith("modular") else None
        return SVRG(epsilon=0.0 if name.endswith("0") else epsilon, batch_size=batch_size, restart=restart)
    if name == "svrg":
        return SVRG(step=1.0 if step is None else step, batch_size=batch_size)
    if name == "sgd":
        return SGD(step="auto" if step is None else step, epsilon=epsilon)
    if name in ("adagrad", "auto"):
        return AdaGrad(step=1.0 if step is None else step)
    if name == "gd":
        return GradientDescent(step="sbb" if step is None else step, epsilon=epsilon)
    if name == "l-bfgs":
        return LBFGS()
    return ProjectedGram(epsilon=epsilon)


def solve(
    comparisons: Comparisons,
    start: np.ndarray,
    loss: OrdinalLoss,
    solver: str,
    options: dict[str, Any],
    *,
    rng: np.random.Generator,
    max_epochs: int,
    tol: float,
    callback: Callable[[int, dict[str, Any]], None] | None = None,
    validate: Callable[[np.ndarray], float] | None = None,
) -> tuple[np.ndarray, Solution]:
    """Embed from `start` (n, p): the points found (n, p) and the solver's report.

    `validate` and the callback's record["embedding"] see points (n, p). Raises FloatingPointError if the run diverged.
    """
    n, p = start.shape
    method = build_solver(solver, **options)
    if solver == "projected-gram":
        problem: Any = GramObjective(comparisons.indices, n, loss, comparisons.weights)
        X = start.astype(np.float64)
        x = X @ X.T

        def points(x: np.ndarray) -> np.ndarray:
            return gram_points(x, p)
    else:
        order = rng.permutation(len(comparisons))
        weights = None if comparisons.weights is None else comparisons.weights[order]
        dtype = np.float64 if solver == "l-bfgs" else np.float32  # L-BFGS' line search needs the digits
        problem = OrdinalObjective(comparisons.indices[order], n, loss, weights, dtype)
        x = pad_rows(start, dtype)

        def points(x: np.ndarray) -> np.ndarray:
            return unpad_rows(x, p)

    def report(epoch: int, record: dict[str, Any]) -> None:
        if callback is not None:
            inner = record.pop("x")
            callback(epoch, {**record, "embedding": points(inner)})

    solution = method.minimize(
        problem,
        x,
        max_epochs=max_epochs,
        tol=tol,
        callback=None if callback is None else report,
        validate=None if validate is None else lambda x: validate(points(x)),
    )
    if solution.status == "diverged":
        raise FloatingPointError(
            f"solver={solver!r} diverged after {solution.n_epochs} epochs (last step {solution.steps[-1]:.3g}); "
            "use a smaller step, or solver='svrg-sbb' or 'auto', whose steps are bounded"
        )
    return np.ascontiguousarray(points(solution.x)), solution


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
