"""In-batch softmax: the other rights of a batch are the negatives, corrected for how often they are drawn."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch.nn.functional import cross_entropy

from nearkin.embedding.two_tower.batch_losses.batch_loss import AbstractBatchLoss, PairBatch
from nearkin.embedding.two_tower.objective import AllPairs, Objective
from nearkin.embedding.two_tower.tower_pair import TowerPair
from nearkin.records import Interactions


@dataclass(eq=False, repr=False, kw_only=True)
class InBatchSoftmax(BaseEstimator):
    """`TwoTower(loss=InBatchSoftmax(...))`: softmax among the rights of a batch, with the logQ correction.

    weighting: the record's weights as importance of a pair, "log" | "linear" | "none".
    """

    weighting: str = "log"

    name: ClassVar[str] = "in-batch-softmax"

    def objective(self, interactions: Interactions) -> Objective:
        """Weights and penalties, as the all-pairs loss has them."""
        return AllPairs(weighting=self.weighting).objective(interactions)

    def from_objective(self, objective: Objective) -> "SoftmaxOfBatch":
        """The loss of these pairs' batches."""
        return SoftmaxOfBatch(objective.interactions, objective.weights)


class SoftmaxOfBatch(AbstractBatchLoss):
    """Cross-entropy of p_i.q_j - log f_j among the batch's rights, f_j the frequency of j (Yi et al. 2019, logQ).

    A right that stands twice in the batch is no negative of its own pair.
    """

    def __init__(self, interactions: Interactions, weights: np.ndarray) -> None:
        counts = np.bincount(interactions.indices, minlength=interactions.shape[1])
        self.log_frequency = torch.from_numpy(np.log(np.maximum(counts, 1) / len(interactions))).float()
        self.weights = torch.from_numpy(weights).float()

    def __call__(self, batch: PairBatch, pair: TowerPair, generator: torch.Generator) -> Tensor:
        del pair, generator
        logits = batch.P @ batch.Q.T - self.log_frequency[batch.columns]  # (b, b)
        same = batch.columns[:, None] == batch.columns[None, :]
        same.fill_diagonal_(False)
        logits = logits.masked_fill(same, -torch.inf)
        losses = cross_entropy(logits, torch.arange(len(logits)), reduction="none")
        return (self.weights[batch.places] * losses).mean()
