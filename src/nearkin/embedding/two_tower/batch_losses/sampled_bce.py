"""Binary cross-entropy against uniformly sampled negatives, the most common sampled loss."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch.nn.functional import softplus

from nearkin._check import check_integer
from nearkin.embedding.two_tower.batch_losses.batch_loss import AbstractBatchLoss, PairBatch
from nearkin.embedding.two_tower.objective import AllPairs, Objective
from nearkin.embedding.two_tower.tower_pair import TowerPair
from nearkin.records import Interactions


@dataclass(eq=False, repr=False, kw_only=True)
class SampledBCE(BaseEstimator):
    """`TwoTower(loss=SampledBCE(...))`: logistic loss of observed pairs and of uniformly drawn others.

    negatives: how many are drawn for each observed pair; weighting: the record's weights as importance of a pair,
    "log" | "linear" | "none".
    """

    negatives: int = 4
    weighting: str = "log"

    name: ClassVar[str] = "sampled-bce"

    def objective(self, interactions: Interactions) -> Objective:
        """Weights and penalties, as the all-pairs loss has them."""
        check_integer(self.negatives, "negatives", low=1)
        return AllPairs(weighting=self.weighting).objective(interactions)

    def from_objective(self, objective: Objective) -> "BCEOfBatch":
        """The loss of these pairs' batches."""
        return BCEOfBatch(objective.b, objective.weights, self.negatives)


class BCEOfBatch(AbstractBatchLoss):
    """log(1 + exp(-z)) of observed pairs plus log(1 + exp(z)) of uniform rights for each.

    Rights of cost b_j = 0 (n,), those with features but without a pair, are no negatives.
    """

    def __init__(self, b: np.ndarray, weights: np.ndarray, negatives: int) -> None:
        self.rights, self.weights = torch.from_numpy(np.flatnonzero(b > 0)), torch.from_numpy(weights).float()
        self.negatives = negatives

    def __call__(self, batch: PairBatch, pair: TowerPair, generator: torch.Generator) -> Tensor:
        positive = softplus(-(batch.P * batch.Q).sum(1)) * self.weights[batch.places]
        drawn = torch.randint(len(self.rights), (len(batch.rows) * self.negatives,), generator=generator)
        Q = pair.embed_right(self.rights[drawn]).reshape(len(batch.rows), self.negatives, -1)
        return positive.mean() + softplus((batch.P[:, None, :] * Q).sum(2)).sum(1).mean()
