"""Which solver trains which objective on which towers."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from nearkin.embedding.two_tower.batch_losses.in_batch_hinge import InBatchHinge
from nearkin.embedding.two_tower.batch_losses.in_batch_softmax import InBatchSoftmax
from nearkin.embedding.two_tower.batch_losses.sampled_bce import SampledBce
from nearkin.embedding.two_tower.batch_losses.sogram import SoGram
from nearkin.embedding.two_tower.branch_regression import BranchRegression
from nearkin.embedding.two_tower.objective import Objective
from nearkin.embedding.two_tower.solvers.als import AlternatingLeastSquares
from nearkin.embedding.two_tower.solvers.full_batch import FullBatch
from nearkin.embedding.two_tower.solvers.gauss_newton import GaussNewton
from nearkin.embedding.two_tower.solvers.joint import ROUNDS, SWEEPS, JointIndex
from nearkin.embedding.two_tower.solvers.mini_batches import AbstractBatchLoss, MiniBatches
from nearkin.embedding.two_tower.solvers.sub_blocks import SubBlocks
from nearkin.embedding.two_tower.tower_pair import TowerPair
from nearkin.embedding.two_tower.towers import ResidualTower, Side
from nearkin.embedding.two_tower.training import AbstractSolver

LOSSES = ("all-pairs", "in-batch-softmax", "in-batch-hinge", "sampled-bce")
SOLVERS = {  # name -> how many sweeps, steps or epochs it gets unless told
    **{"als": 8, "ials++": 8, "adam": 200, "gd": 200, "l-bfgs": 40},
    "joint": SWEEPS + 1 + ROUNDS,
    **{"gauss-newton": 15, "gauss-newton-joint": 20, "sub-blocks": 20, "sogram": 30},
}
EPOCHS = 30  # of a sampled loss
TABLES_ONLY = ("als", "ials++", "joint")


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

    def mini_batches(self, pair: TowerPair, batch_loss: AbstractBatchLoss) -> MiniBatches:
        """Adam on batches of pairs under a loss of theirs."""
        return MiniBatches(
            pair, self.objective, batch_loss, batch_size=self.batch_size, learning_rate=self.learning_rate or 3e-3,
            generator=self.generator,
        )  # fmt: skip

    def pair(self) -> TowerPair:
        """The towers as one objective; id tables begin at `start`."""
        for side, table in zip((self.left, self.right), self.start, strict=True):
            if isinstance(side.tower, ResidualTower):
                side.tower.table.data.copy_(table)
        ridge = tuple(self.strength * torch.from_numpy(r).reshape(-1, 1) for r in self.objective.ridge)
        return TowerPair(
            self.left, self.right, ridge=ridge, index=self.index, distortion_weight=self.distortion_weight  # pyright: ignore[reportArgumentType]
        )  # fmt: skip


def choose_solver(loss: str, solver: str, *, custom: bool, index: nn.Module | None) -> str:
    """What "auto" becomes; ValueError for a solver that cannot train these towers or this loss.

    `custom`: the towers are more than id tables. An index with `descend` is learned jointly with tables.
    """
    if loss != "all-pairs":
        if solver not in ("auto", "adam"):
            raise ValueError(f"solver is {solver!r}; loss={loss!r} is trained by solver='adam' or 'auto'")
        return "adam"
    if solver == "auto":
        joint = hasattr(index, "descend") and not getattr(index, "n_coarse", 0)
        return "als" if index is None and not custom else "joint" if joint and not custom else "adam"
    if solver == "joint" and not hasattr(index, "descend"):
        raise ValueError("solver is 'joint', which needs index=nk.quantization.IndexingLayer(...)")
    if solver in ("als", "ials++", "gauss-newton", "gauss-newton-joint") and index is not None:
        raise ValueError(f"solver is {solver!r}, which cannot train through an index; use solver='adam' or 'auto'")
    if solver in TABLES_ONLY and custom:
        raise ValueError(f"solver is {solver!r}, which cannot train modules of your own; use solver='adam' or 'auto'")
    return solver


def default_steps(loss: str, solver: str) -> int:
    """How many steps a solver gets unless told."""
    return SOLVERS[solver] if loss == "all-pairs" else EPOCHS


def make_solver(loss: str, name: str, plan: Plan) -> AbstractSolver:
    """The solver of that name, ready for its first step."""
    if name == "joint":
        return JointIndex(_als("als", plan), plan.index, plan.objective.interactions, plan.objective.weights)  # pyright: ignore[reportArgumentType]
    if name in TABLES_ONLY:
        return _als(name, plan)
    pair, data = plan.pair(), plan.objective.interactions
    if loss == "in-batch-softmax":
        return plan.mini_batches(pair, InBatchSoftmax(data, plan.objective.weights))
    if loss == "in-batch-hinge":
        return plan.mini_batches(pair, InBatchHinge(torch.from_numpy(plan.objective.weights)))
    if loss == "sampled-bce":
        return plan.mini_batches(pair, SampledBce(plan.objective.b, plan.objective.weights))
    all_pairs = plan.objective.loss(0.0)  # the penalties are the pair's own, as they fall on parameters
    if name == "sogram":
        return plan.mini_batches(pair, SoGram(all_pairs))
    if name == "sub-blocks":
        return SubBlocks(
            pair, plan.objective, all_pairs, generator=plan.generator, learning_rate=plan.learning_rate or 1e-3
        )
    if name.startswith("gauss-newton"):
        return GaussNewton(pair, all_pairs, alternating=name == "gauss-newton")
    return FullBatch(pair, all_pairs, method=name, learning_rate=plan.learning_rate or 1e-3)


def _als(name: str, plan: Plan) -> AlternatingLeastSquares:
    data = plan.objective.interactions
    counts = np.diff(data.indptr), np.diff(data.columns.indptr)
    branches = tuple(
        BranchRegression(side, torch.from_numpy(np.where(count > 0, ridge, 0)), generator=plan.generator)
        if isinstance(side.tower, ResidualTower) and side.tower.branch is not None
        else None
        for side, ridge, count in zip((plan.left, plan.right), plan.objective.ridge, counts, strict=True)
    )
    block = {} if name == "als" else {"block_size": 16}
    return AlternatingLeastSquares(
        plan.objective.loss(plan.strength), *plan.start, branches=branches, **block  # pyright: ignore[reportArgumentType]
    )  # fmt: skip
