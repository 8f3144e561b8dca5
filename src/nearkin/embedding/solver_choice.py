"""Which solver trains which objective on which towers."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nearkin.embedding.als import AlternatingLeastSquares
from nearkin.embedding.branch_regression import BranchRegression
from nearkin.embedding.full_batch import FullBatch
from nearkin.embedding.objective import Objective
from nearkin.embedding.tower_pair import TowerPair
from nearkin.embedding.towers import ResidualTower, Side
from nearkin.embedding.training import AbstractSolver

LOSSES = ("all-pairs",)
SOLVERS = {"als": 6, "ials++": 6, "adam": 100, "gd": 100, "l-bfgs": 40}  # name -> how many steps it gets unless told
TABLES_ONLY = ("als", "ials++")


@dataclass
class Plan:
    """Everything that a solver is made from."""

    objective: Objective
    strength: float
    left: Side
    right: Side
    start: tuple[Tensor, Tensor]  # tables
    index: nn.Module | None
    distortion_weight: float
    learning_rate: float | None
    batch_size: int
    generator: torch.Generator

    def pair(self) -> TowerPair:
        """The towers as one objective; id tables begin at `start`."""
        for side, table in zip((self.left, self.right), self.start, strict=True):
            if isinstance(side.tower, ResidualTower):
                side.tower.table.data.copy_(table)
        ridge = tuple(self.strength * torch.from_numpy(r).reshape(-1, 1) for r in self.objective.ridge)
        return TowerPair(
            self.left, self.right, ridge=ridge, index=self.index, distortion_weight=self.distortion_weight  # pyright: ignore[reportArgumentType]
        )  # fmt: skip


def choose_solver(loss: str, solver: str, *, custom: bool, index: bool) -> str:
    """What "auto" becomes; ValueError for a solver that cannot train these towers."""
    if solver == "auto":
        return "adam" if custom or index or loss != "all-pairs" else "als"
    if solver in TABLES_ONLY and (custom or index):
        reason = "an index" if index else "modules of your own as left or right"
        raise ValueError(f"solver is {solver!r}, which cannot train {reason}; use solver='adam' or 'auto'")
    return solver


def make_solver(loss: str, name: str, plan: Plan) -> AbstractSolver:
    """The solver of that name, ready for its first step."""
    if name in TABLES_ONLY:
        return _als(name, plan)
    return FullBatch(plan.pair(), plan.objective.loss(0.0), method=name, learning_rate=plan.learning_rate or 0.01)


def _als(name: str, plan: Plan) -> AlternatingLeastSquares:
    branches = tuple(
        BranchRegression(side, torch.from_numpy(ridge), generator=plan.generator)
        if isinstance(side.tower, ResidualTower) and side.tower.branch is not None
        else None
        for side, ridge in zip((plan.left, plan.right), plan.objective.ridge, strict=True)
    )
    block = {} if name == "als" else {"block_size": 16}
    return AlternatingLeastSquares(
        plan.objective.loss(plan.strength), *plan.start, branches=branches, **block  # pyright: ignore[reportArgumentType]
    )  # fmt: skip
