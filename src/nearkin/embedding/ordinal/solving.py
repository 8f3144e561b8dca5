"""From comparisons to points with a named solver: one start, one run."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nearkin import _check, contracts
from nearkin.embedding.ordinal.gram import GramObjective, ProjectedGram, gram_points
from nearkin.embedding.ordinal.losses import CKL, SOE, T_STE, OrdinalLoss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows, unpad_rows
from nearkin.records import Comparisons
from nearkin.solvers import LBFGS, SGD, SVRG, AdaGrad, GradientDescent, Relay, Solution

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


def choose_solver(name: str, loss: OrdinalLoss) -> str:
    """What "auto" means for a loss, by measurement (benchmarks/ordinal.py, clean and with 10 % of answers flipped).

    Eight epochs of AdaGrad, half as dear as SVRG's and needing no first step, come near fastest; SVRG-SBB then ends
    lower where answers contradict. With the losses that grow slowly ("ckl", "t-ste", "soe"), points stay where
    AdaGrad's long first steps threw them, and held-out errors are higher: these start with SVRG-SBB.
    """
    return "svrg-sbb" if name == "auto" and loss.code in (CKL, T_STE, SOE) else name


def build_solver(
    name: str, *, step: float | None = None, epsilon: float = 0.1, batch_size: int = 1, longest: float = np.inf
) -> Any:
    """The solver called `name`. `step` None means the solver's own rule; what a solver has no use for is ignored.

    "svrg-sbb0" is "svrg-sbb" with epsilon = 0; "svrg-sbb-modular" is SVRG-SBB Algorithm 2 with modules of 10 epochs;
    "svrg" without a step keeps min(1, longest), `longest` being what single terms bear: on the objective per object 1
    suits most data. Raises ValueError for another name.
    """
    _check.check_choice(name, "solver", SOLVERS)
    if name.startswith("svrg-sbb"):
        restart = 10 if name.endswith("modular") else None
        if name == "svrg-sbb0":
            return SVRG(epsilon=0.0, batch_size=batch_size, capped=False)
        return SVRG(epsilon=epsilon, batch_size=batch_size, restart=restart)
    if name == "svrg":
        return SVRG(step=min(1.0, longest) if step is None else step, batch_size=batch_size)
    if name == "sgd":
        return SGD(step="auto" if step is None else step, epsilon=epsilon)
    if name == "adagrad":
        return AdaGrad(step=1.0 if step is None else step)
    if name == "auto":
        return Relay(AdaGrad(), SVRG(epsilon=epsilon, batch_size=batch_size), n_first=8)
    if name == "gd":
        return GradientDescent(step="sbb" if step is None else step, epsilon=epsilon)
    if name == "l-bfgs":
        return LBFGS()
    return ProjectedGram(epsilon=epsilon)


class Run:
    """Comparisons made ready for one solver: shuffled once, in its precision, to be solved from several starts.

    `options` are the keywords of `build_solver`.
    """

    def __init__(
        self,
        comparisons: Comparisons,
        n_components: int,
        loss: OrdinalLoss,
        solver: str,
        options: dict[str, Any],
        rng: np.random.Generator,
    ) -> None:
        self._name, self._p = choose_solver(solver, loss), n_components
        n = comparisons.n_objects
        if self._name == "projected-gram":
            self._solver = build_solver(self._name, **options)
            self._problem: Any = GramObjective(comparisons.indices, n, loss, comparisons.weights)
            return
        order = rng.permutation(len(comparisons))
        weights = None if comparisons.weights is None else comparisons.weights[order]
        self._dtype = np.float64 if self._name == "l-bfgs" else np.float32  # L-BFGS' line search needs the digits
        self._problem = OrdinalObjective(comparisons.indices[order], n, loss, weights, self._dtype)
        longest = self._problem.n_terms * self._problem.largest_step(options.get("batch_size", 1))
        self._solver = build_solver(self._name, **options, longest=longest)

    def solve(
        self,
        start: np.ndarray,
        *,
        max_epochs: int,
        tol: float,
        callback: Callable[[int, dict[str, Any]], None] | None = None,
        validate: Callable[[np.ndarray], float] | None = None,
    ) -> tuple[np.ndarray, Solution]:
        """Embed from `start` (n, p): the points found (n, p) and the solver's report.

        `validate` and the callback's record["embedding"] see points (n, p). Raises FloatingPointError on divergence.
        """

        def report(epoch: int, record: Mapping[str, Any]) -> None:
            if callback is not None:
                rest = {name: value for name, value in record.items() if name != "x"}
                callback(epoch, {**rest, "embedding": self._points(record["x"])})

        solution = self._solver.minimize(
            self._problem,
            start @ start.T if self._name == "projected-gram" else pad_rows(start, self._dtype),
            contracts.Run(
                max_iter=max_epochs,
                tol=tol,
                callback=None if callback is None else report,
                validate=None if validate is None else lambda x: validate(self._points(x)),
            ),
        )
        if solution.status == "diverged":
            raise FloatingPointError(
                f"solver={self._name!r} diverged after {solution.n_epochs} epochs, last step {solution.steps[-1]:.3g}; "
                "use a smaller step, or solver='svrg-sbb' or 'auto' with their bounded steps"
            )
        return np.ascontiguousarray(self._points(solution.x)), solution

    def _points(self, x: np.ndarray) -> np.ndarray:
        return gram_points(x, self._p) if self._name == "projected-gram" else unpad_rows(x, self._p)


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
