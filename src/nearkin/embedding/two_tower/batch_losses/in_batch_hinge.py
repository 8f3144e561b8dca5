"""In-batch hinge on cosines: a right of the batch must stay a margin behind the pair's own (GCD, section 3.2)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch.nn.functional import normalize

from nearkin._check import check_real
from nearkin.embedding.two_tower.batch_losses.batch_loss import AbstractBatchLoss, PairBatch
from nearkin.embedding.two_tower.objective import AllPairs, Objective
from nearkin.embedding.two_tower.tower_pair import TowerPair
from nearkin.records import Interactions


@dataclass(eq=False, repr=False, kw_only=True)
class InBatchHinge(BaseEstimator):
    """`TwoTower(loss=InBatchHinge(...))`: cosines of a pair against those of the batch's other rights.

    margin: how far they must stay behind, the paper's 0.1 by default; weighting: the record's weights as importance of
    a pair, "log" | "linear" | "none".
    """

    margin: float = 0.1
    weighting: str = "log"

    name: ClassVar[str] = "in-batch-hinge"

    def objective(self, interactions: Interactions) -> Objective:
        """Weights and penalties, as the all-pairs loss has them."""
        check_real(self.margin, "margin", low=0)
        return AllPairs(weighting=self.weighting).objective(interactions)

    def from_objective(self, objective: Objective) -> "HingeOfBatch":
        """The loss of these pairs' batches."""
        return HingeOfBatch(torch.from_numpy(objective.weights), self.margin)


class HingeOfBatch(AbstractBatchLoss):
    """Mean over the pairs of w max(0, margin - cos(p_i, q_i) + cos(p_i, q_j)), averaged over the batch's other rights.

    A right that stands twice in the batch is no negative of its own pair.
    """

    def __init__(self, weights: Tensor, margin: float) -> None:
        self.weights, self.margin = weights.float(), margin

    def __call__(self, batch: PairBatch, pair: TowerPair, generator: torch.Generator) -> Tensor:
        del pair, generator
        cosines = normalize(batch.P, dim=1) @ normalize(batch.Q, dim=1).T  # (b, b)
        behind = torch.relu(self.margin - cosines.diagonal()[:, None] + cosines)
        negatives = (batch.columns[:, None] != batch.columns[None, :]).to(behind)
        losses = (behind * negatives).sum(1) / negatives.sum(1).clamp(min=1)
        return (self.weights[batch.places] * losses).mean()
