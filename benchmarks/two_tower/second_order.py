"""Second-order solvers of the all-pairs loss: L-BFGS and Gauss-Newton, which gained a point on no two data sets here.

`nk.TwoTower(solver=GaussNewton())` takes them like solvers of the library. With the hidden layers of the paper's row
"Section 4: solvers, networks" Adam reaches .350 (NDCG@100), alternating Gauss-Newton .349 and L-BFGS .348.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from nearkin._check import check_integer, check_real
from nearkin._distributed import ALONE
from nearkin.contracts import PhasedIndex
from nearkin.embedding.all_pairs.loss import AllPairsPoint
from nearkin.embedding.two_tower.gradient import AbstractAllPairs
from nearkin.embedding.two_tower.towers import ResidualTower, Side, TowerPair, zero_grad
from nearkin.solvers.linesearch import armijo

Linear = Callable[[Tensor], Tensor]


@dataclass(eq=False, repr=False, kw_only=True)
class LBFGS(AbstractAllPairs):
    """`TwoTower(solver=LBFGS(...))`: five inner iterations a step, strong Wolfe search, on the exact gradient.

    start: where id tables begin, "als", "random" or "auto" (ALS on the default towers). max_iter, max_seconds,
    patience: as in `ALS`. A resumed fit starts without curvature pairs.
    """

    max_iter: int | None = 40
    start: str = "auto"

    name: ClassVar[str] = "l-bfgs"

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        if isinstance(pair.index, PhasedIndex) and pair.index.rotation_parameters():
            raise ValueError(
                f"solver is {self.name!r}, which would take the index's rotation off the rotations; use solver='adam', "
                "or an IndexingLayer with rotation='exact', 'cayley' or 'frozen'"
            )
        super().begin(pair, loss)
        self._optimizer = torch.optim.LBFGS(self.parameters, max_iter=5, line_search_fn="strong_wolfe")  # pyright: ignore[reportArgumentType]
        return self

    def step(self) -> float:
        return float(self._optimizer.step(self.gradient))  # pyright: ignore[reportArgumentType]


# ---- Gauss-Newton ----

PROBES = 2  # random signs with which the diagonal of the Gauss-Newton matrix is estimated


@dataclass(eq=False, repr=False, kw_only=True)
class GaussNewton(AbstractAllPairs):
    """`TwoTower(solver=GaussNewton(...))`: truncated Newton steps through any towers.

    The product J^T (l'' over all pairs) J + lambda is never a matrix; it costs O(nnz k + (m + n) k^2) and one
    forward-mode and one reverse pass of the towers. With `alternating` one side moves at a time: its block is then a
    plain least-squares problem (for linear towers an exact one), which converges where joint steps are slow. Id tables
    are preconditioned row by row with the other side's mean k x k curvature, scaled by the row's weight; other
    parameters by an estimate of the diagonal.

    max_iter: steps, None for 15, of both sides together for 20. alternating: one side at a time
    (`solver="gauss-newton"`) or both together (`solver="gauss-newton-joint"`). cg_steps: most conjugate-gradient steps
    in one of them. damping: the first one. start: where id tables begin, "als", "random" or "auto" (ALS on the default
    towers). max_seconds, patience: as in `ALS`.
    """

    alternating: bool = True
    cg_steps: int = 10
    damping: float = 1e-3
    start: str = "auto"

    through_index: ClassVar[bool] = False

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "gauss-newton" if self.alternating else "gauss-newton-joint"

    def check(self, all_pairs: bool) -> None:
        self.max_iter = (15 if self.alternating else 20) if self.max_iter is None else self.max_iter
        super().check(all_pairs)

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        # Each process works alone: conjugate gradients amplify the rounding of a merged sum a thousandfold.
        super().begin(alone(pair, torch.Generator().manual_seed(0)), loss)
        self.blocks = [(True, False), (False, True)] if self.alternating else [(True, True)]
        self.dampings = torch.full((len(self.blocks),), self.damping, dtype=torch.float64)
        return self

    def step(self) -> float:
        for number, active in enumerate(self.blocks):
            value = self._move(number, active)
        return value

    def state(self) -> dict[str, Tensor]:
        return super().state() | {"damping": self.dampings}

    def load_state(self, state: dict[str, Tensor]) -> None:
        super().load_state(state)
        self.dampings = state["damping"].clone()

    def _move(self, number: int, active: tuple[bool, bool]) -> float:
        """One Newton step of the active sides; returns the value after it."""
        parameters = [
            p for side, on in zip(self.pair.sides, active, strict=True) if on for p in side.parameters().values()
        ]
        zero_grad(self.parameters)
        before = self.pair.value_and_gradient(self.loss, self.scale)
        gradient = torch.cat([p.grad.reshape(-1) for p in parameters])  # pyright: ignore[reportOptionalMemberAccess]
        point = self.loss.at(*self.pair.embeddings())
        x = torch.cat([p.detach().reshape(-1) for p in parameters])
        matvec = self._matvec(point, active)

        def value(y: Tensor) -> float:
            _write(parameters, y)
            return self.pair.value(self.loss, self.scale)

        damping = float(self.dampings[number])
        preconditioner = self._preconditioner(point, active, matvec, damping)
        step = newton_step(
            value, gradient, matvec, x, start_value=before, damping=damping, preconditioner=preconditioner,
            max_iter=self.cg_steps,
        )  # fmt: skip
        _write(parameters, step.x)
        self.dampings[number] = min(max(step.damping, 1e-9), 1e9)
        return step.value

    def _matvec(self, point: AllPairsPoint, active: tuple[bool, bool]) -> Callable[[Tensor], Tensor]:
        """d -> (scale J^T G J + ridge) d over the active sides' parameters, flat."""

        def matvec(d: Tensor) -> Tensor:
            pushed, directions, offset = [], [], 0
            for side, on, X in zip(self.pair.sides, active, (point.P, point.Q), strict=True):
                size = _size(side) if on else 0
                directions.append(_named(side, d[offset : offset + size]) if on else {})
                pushed.append(push_forward(side, directions[-1]) if on else torch.zeros_like(X))
                offset += size
            parts = []
            for number, U in enumerate(point.gauss_newton_product(*pushed)):
                if active[number]:
                    side, ridge = self.pair.sides[number], self.pair.ridge[number]
                    tables = isinstance(side.tower, ResidualTower)
                    pulled = side.pulled_back(U if tables else U + ridge * pushed[number])
                    if tables:
                        pulled["table"] = pulled["table"] + ridge * directions[number]["table"]
                    parts += [self.scale * part.reshape(-1) for part in pulled.values()]
            return torch.cat(parts)

        return matvec

    def _preconditioner(
        self, point: AllPairsPoint, active: tuple[bool, bool], matvec: Callable[[Tensor], Tensor], damping: float
    ) -> Callable[[Tensor], Tensor]:
        size = sum(_size(side) for side, on in zip(self.pair.sides, active, strict=True) if on)
        signs = [torch.randint(0, 2, (size,), generator=self.pair.generator) * 2.0 - 1 for _ in range(PROBES)]
        diagonal = (sum((s * matvec(s) for s in signs), start=torch.zeros(size)) / PROBES).abs()
        diagonal = diagonal + damping + 0.01 * diagonal.mean()
        solves: list[tuple[slice, Callable[[Tensor], Tensor]]] = []
        offset = 0
        for number, (side, on) in enumerate(zip(self.pair.sides, active, strict=True)):
            if on and isinstance(side.tower, ResidualTower):
                count = side.tower.table.numel()
                solves.append((slice(offset, offset + count), self._table_solve(point, number, damping)))
            offset += _size(side) if on else 0

        def solve(r: Tensor) -> Tensor:
            z = r / diagonal
            for where, rows in solves:
                z[where] = rows(r[where])
            return z

        return solve

    def _table_solve(self, point: AllPairsPoint, number: int, damping: float) -> Callable[[Tensor], Tensor]:
        """Row i by (w_i M + damping I)^-1, M the mean curvature of a row and w_i its weight against the mean's."""
        pairs, c, ridge = point.pairs, point.constants, self.pair.ridge[number]
        if number == 0:
            other, smooth, columns = point.Q, point.right_gram * float(c.a.mean()), pairs.indices
            curvature = point.curvature.float()
        else:
            other, smooth, columns = point.P, point.left_gram * float(c.b.mean()), pairs.columns.rows
            curvature = point.curvature.float()[pairs.order]
        weights = torch.zeros(len(other)).index_add_(0, torch.from_numpy(columns).long(), curvature)
        rows = len(ridge)
        mean = self.loss.omega * smooth + (other.T @ (weights[:, None] * other)).double() / rows
        mean += float(ridge.mean()) * torch.eye(len(mean))
        spectrum, turn = torch.linalg.eigh(mean)
        share = (ridge / ridge.mean().clamp(min=1e-30)).clamp(min=1e-3)
        inverse = 1 / (self.scale * share * spectrum.clamp(min=float(spectrum[-1]) * 1e-6).float()[None, :] + damping)
        turn = turn.float()

        def solve(r: Tensor) -> Tensor:
            R = r.reshape(rows, -1)
            return (((R @ turn) * inverse) @ turn.T).reshape(-1)

        return solve


def _size(side: Side) -> int:
    return sum(p.numel() for p in side.parameters().values())


def _named(side: Side, flat: Tensor) -> dict[str, Tensor]:
    parameters = side.parameters()
    parts = flat.split([p.numel() for p in parameters.values()])
    return {name: part.reshape(p.shape) for (name, p), part in zip(parameters.items(), parts, strict=True)}


def _write(parameters: list[Tensor], flat: Tensor) -> None:
    with torch.no_grad():
        for p, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            p.copy_(part.reshape(p.shape))


def alone(pair: TowerPair, generator: torch.Generator) -> TowerPair:
    """The same towers without the other processes."""
    left, right = (replace(side, group=ALONE) for side in pair.sides)
    return replace(pair, left=left, right=right, generator=generator)


def push_forward(side: Side, direction: dict[str, Tensor]) -> Tensor:
    """(n_rows, k) J direction, by forward-mode differentiation."""
    point = {name: p.detach() for name, p in side.parameters().items()}

    def outputs(rows: slice) -> Tensor:
        inputs = side.inputs(rows)

        def embed(values: dict[str, Tensor]) -> Tensor:
            return torch.func.functional_call(side.tower, values, inputs)

        return torch.func.jvp(embed, (point,), (direction,))[1]

    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit.script`", DeprecationWarning)  # torch's own, at first use
        return torch.cat([outputs(rows) for rows in side.chunks()])


# ---- truncated Newton steps ----


class Solved(NamedTuple):
    """x and how it was reached; `residual` is |b - A x| / |b|."""

    x: Tensor
    steps: int
    residual: float


class NewtonStep(NamedTuple):
    """Where a step led, its value, the damping for the next one, and what it cost."""

    x: Tensor
    value: float
    damping: float
    cg_steps: int
    evaluations: int


def conjugate_gradient(
    matvec: Linear, b: Tensor, *, preconditioner: Linear | None = None, tolerance: float = 0.1, max_iter: int = 20
) -> Solved:
    """Solve A x = b (any shape) for a positive semi-definite A given by `matvec` (Nocedal and Wright, Alg. 5.3).

    Stops at |b - A x| <= tolerance |b|, after `max_iter`, or at a direction of no curvature, where x is the last one:
    a descent direction for the quadratic in every case.
    """
    check_real(tolerance, "tolerance", low=0)
    check_integer(max_iter, "max_iter", low=1)
    x, r = torch.zeros_like(b), b.clone()
    z = r if preconditioner is None else preconditioner(r)
    p, rz, scale = z.clone(), _dot(r, z), float(b.norm())
    steps = 0
    while steps < max_iter and scale > 0 and float(r.norm()) > tolerance * scale:
        Ap = matvec(p)
        curvature = _dot(p, Ap)
        if curvature <= 0:
            x = x + p if steps == 0 else x
            break
        x, r = x + (rz / curvature) * p, r - (rz / curvature) * Ap
        z = r if preconditioner is None else preconditioner(r)
        new = _dot(r, z)
        p, rz, steps = z + (new / rz) * p, new, steps + 1
    return Solved(x, steps, float(r.norm()) / scale if scale else 0.0)


def newton_step(
    value: Callable[[Tensor], float],
    gradient: Tensor,
    matvec: Linear,
    x: Tensor,
    *,
    start_value: float,
    damping: float,
    preconditioner: Linear | None = None,
    tolerance: float = 0.1,
    max_iter: int = 20,
) -> NewtonStep:
    """One step of minimising `value` from x, G being the (Gauss-)Newton matrix of `matvec`.

    Solves (G + damping I) d = -gradient by `max_iter` steps of conjugate gradients at most, searches along d by
    Armijo's rule, and adapts the damping to how well the model predicted the decrease: less above a ratio of 3/4, more
    below 1/4 (Levenberg-Marquardt; Nocedal and Wright, 10.3).
    """

    def damped(d: Tensor) -> Tensor:
        return matvec(d) + damping * d

    solved = conjugate_gradient(
        damped, -gradient, preconditioner=preconditioner, tolerance=tolerance, max_iter=max_iter
    )
    d = solved.x
    slope = _dot(gradient, d)
    predicted = slope + 0.5 * _dot(d, matvec(d))
    found = armijo(lambda t: value(x + t * d), start_value, min(slope, 0.0))
    ratio = (found.value - start_value) / predicted if predicted < 0 else 0.0
    if found.step_size < 1 or ratio < 0.25:
        damping *= 4
    elif ratio > 0.75:
        damping /= 3
    return NewtonStep(x + found.step_size * d, found.value, damping, solved.steps, found.evaluations)


def _dot(x: Tensor, y: Tensor) -> float:
    return float((x * y).sum(dtype=torch.float64))
