"""In-batch hinge on cosines: a right of the batch must stay a margin behind the pair's own (GCD, section 3.2)."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from nearkin.embedding.two_tower.solvers.mini_batches import AbstractBatchLoss, Batch
from nearkin.embedding.two_tower.tower_pair import TowerPair

MARGIN = 0.1  # the paper's


class InBatchHinge(AbstractBatchLoss):
    """Mean over the pairs of w max(0, margin - cos(p_i, q_i) + cos(p_i, q_j)), averaged over the batch's other rights.

    A right that stands twice in the batch is no negative of its own pair.
    """

    def __init__(self, weights: Tensor, margin: float = MARGIN) -> None:
        self.weights, self.margin = weights.float(), margin

    def __call__(self, batch: Batch, pair: TowerPair, generator: torch.Generator) -> Tensor:
        del pair, generator
        cosines = normalize(batch.P, dim=1) @ normalize(batch.Q, dim=1).T  # (b, b)
        behind = torch.relu(self.margin - cosines.diagonal()[:, None] + cosines)
        negatives = (batch.columns[:, None] != batch.columns[None, :]).to(behind)
        losses = (behind * negatives).sum(1) / negatives.sum(1).clamp(min=1)
        return (self.weights[batch.places] * losses).mean()
