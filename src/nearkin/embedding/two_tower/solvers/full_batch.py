"""Full-batch first-order solvers of the all-pairs loss through the towers: Adam, gradient descent, L-BFGS."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from nearkin._check import check_choice, check_real
from nearkin.contracts import PhasedIndex
from nearkin.embedding.all_pairs.loss import AllPairsLoss
from nearkin.embedding.two_tower.optimizer_state import pack_optimizers, unpack_optimizers
from nearkin.embedding.two_tower.plan import Plan
from nearkin.embedding.two_tower.solvers.tower_solver import AbstractTowerSolver
from nearkin.embedding.two_tower.tower_pair import TowerPair, zero_grad
from nearkin.embedding.two_tower.training import Limits
from nearkin.solvers.linesearch import armijo


@dataclass(eq=False, repr=False, kw_only=True)
class GradientDescent(BaseEstimator):
    """`TwoTower(solver=GradientDescent(...))`: steepest descent on the exact gradient with an Armijo search.

    learning_rate: the search of the first step starts at twice this, each later one at twice the last step. start:
    where id tables begin, "als", "random" or "auto" (ALS on the default towers). max_iter, max_seconds, patience: as
    in `ALS`.
    """

    max_iter: int = 200
    max_seconds: float | None = None
    patience: int = 10
    learning_rate: float = 1e-3
    start: str = "auto"

    name: ClassVar[str] = "gd"
    tables_only: ClassVar[bool] = False
    through_index: ClassVar[bool] = True

    def limits(self) -> Limits:
        check_real(self.learning_rate, "learning_rate", above=0)
        return Limits(self.max_iter, self.max_seconds, self.patience)

    def from_plan(self, plan: Plan) -> "FullBatch":
        return FullBatch(plan.pair(), plan.objective.loss(0.0), method="gd", learning_rate=self.learning_rate)


@dataclass(eq=False, repr=False, kw_only=True)
class LBFGS(BaseEstimator):
    """`TwoTower(solver=LBFGS(...))`: five inner iterations a step, strong Wolfe search, on the exact gradient.

    start: where id tables begin, "als", "random" or "auto" (ALS on the default towers). max_iter, max_seconds,
    patience: as in `ALS`. A resumed fit starts its curvature pairs anew.
    """

    max_iter: int = 40
    max_seconds: float | None = None
    patience: int = 10
    start: str = "auto"

    name: ClassVar[str] = "l-bfgs"
    tables_only: ClassVar[bool] = False
    through_index: ClassVar[bool] = True

    def limits(self) -> Limits:
        return Limits(self.max_iter, self.max_seconds, self.patience)

    def from_plan(self, plan: Plan) -> "FullBatch":
        return FullBatch(plan.pair(), plan.objective.loss(0.0), method="l-bfgs")


class FullBatch(AbstractTowerSolver):
    """Steps on the exact gradient over all m x n pairs (ESL, Algorithm 1), the value scaled to one observed pair.

    `method` is "adam", "gd" (steepest descent, Armijo search started at twice the last step) or "l-bfgs" (five inner
    iterations a step, strong Wolfe search).
    """

    def __init__(
        self, pair: TowerPair, loss: AllPairsLoss, *, method: str = "adam", learning_rate: float = 1e-3
    ) -> None:
        check_choice(method, "method", ("adam", "gd", "l-bfgs"))
        if method != "adam" and isinstance(pair.index, PhasedIndex) and pair.index.rotation_parameters():
            raise ValueError(
                f"solver is {method!r}, which would take the index's rotation off the rotations; use solver='adam', or "
                "an IndexingLayer with rotation='exact', 'cayley' or 'frozen'"
            )
        self.pair, self.loss, self.method, self.rate = pair, loss, method, learning_rate
        self.scale = 1 / loss.observed_weight
        self.parameters = pair.parameters()
        self.optimizers: list[torch.optim.Optimizer] = (
            [torch.optim.LBFGS(self.parameters, max_iter=5, line_search_fn="strong_wolfe")]  # pyright: ignore[reportArgumentType]
            if method == "l-bfgs"
            else pair.optimizers(self.rate)
        )

    def step(self) -> float:
        if self.method == "gd":
            return self._descend()
        if self.method == "l-bfgs":
            return float(self.optimizers[0].step(self._closure))  # pyright: ignore[reportArgumentType]
        value = self._closure()
        for optimizer in self.optimizers:
            optimizer.step()
        return value

    def state(self) -> dict[str, Tensor]:
        packed = {} if self.method == "gd" else pack_optimizers(self.optimizers)
        return self.pair.state() | packed | {"rate": torch.tensor(self.rate, dtype=torch.float64)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.pair.load_state(state)
        self.rate = float(state["rate"])
        if self.method == "adam":
            unpack_optimizers(self.optimizers, state)

    def _closure(self) -> float:
        zero_grad(self.parameters)
        return self.pair.value_and_gradient(self.loss, self.scale)

    def _descend(self) -> float:
        value = self._closure()
        gradients = [p.grad.clone() for p in self.parameters]  # pyright: ignore[reportOptionalMemberAccess]
        start = [p.detach().clone() for p in self.parameters]

        def along(t: float) -> float:
            with torch.no_grad():
                for p, s, g in zip(self.parameters, start, gradients, strict=True):
                    p.copy_(s - t * g)
            return self.pair.value(self.loss, self.scale)

        slope = -sum(float(g.square().sum(dtype=torch.float64)) for g in gradients)
        found = armijo(along, value, slope, start=2 * self.rate, max_iter=30)
        along(found.step_size)
        self.rate = found.step_size or self.rate / 1024
        return value
