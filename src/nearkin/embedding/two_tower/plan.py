"""Everything that a solver is made from."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from nearkin._distributed import Group
from nearkin.contracts import TrainableIndex
from nearkin.embedding.two_tower.batch_losses.batch_loss import AbstractBatchLoss
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax
from nearkin.embedding.two_tower.objective import AllPairs, Objective
from nearkin.embedding.two_tower.tower_pair import TowerPair
from nearkin.embedding.two_tower.towers import ResidualTower, Side


class BatchLossSettings(Protocol):
    """`loss=` of a sampled kind: what makes the loss of a batch."""

    def from_objective(self, objective: Objective) -> AbstractBatchLoss: ...


@dataclass(frozen=True)
class Plan:
    """An objective with the strength of its penalties, towers, and where their tables begin."""

    objective: Objective
    strength: float
    left: Side
    right: Side
    start: tuple[Tensor, Tensor]  # tables (m, k) and (n, k)
    loss: AllPairs | CosineSoftmax | BatchLossSettings
    index: TrainableIndex | None
    distortion_weight: float
    generator: torch.Generator
    group: Group

    def pair(self, group: Group | None = None) -> TowerPair:
        """The towers as one objective; id tables begin at `start`. `group` shares the work, by default the plan's."""
        group = self.group if group is None else group
        sides = [Side(side.tower, side.n_rows, side.features, group) for side in (self.left, self.right)]
        for side, table in zip(sides, self.start, strict=True):
            if isinstance(side.tower, ResidualTower):
                side.tower.table.data.copy_(table)
        left, right = (self.strength * torch.from_numpy(r).reshape(-1, 1) for r in self.objective.ridge)
        return TowerPair(*sides, ridge=(left, right), index=self.index, distortion_weight=self.distortion_weight)
