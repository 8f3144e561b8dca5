"""A rival of the loss over all pairs, as an object that `TwoTower` takes: a sampled loss."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from nearkin._check import check_integer
from nearkin.embedding.two_tower.in_batch_softmax import AbstractSampledLoss, BatchLoss, PairBatch
from nearkin.embedding.two_tower.objective import Objective
from nearkin.records import Interactions


@dataclass(eq=False, repr=False, kw_only=True)
class SampledBCE(AbstractSampledLoss):
    """`TwoTower(loss=SampledBCE(...))`: logistic loss of observed pairs and of uniformly drawn others.

    log(1 + exp(-z)) of observed pairs plus log(1 + exp(z)) of uniform rights for each; rights with features but without
    a pair are not drawn. negatives: number of drawn rights for each observed pair; weighting: the record's weights as
    importance of a pair, "log" | "linear" | "none".
    """

    negatives: int = 4

    name: ClassVar[str] = "sampled-bce"

    def objective(self, interactions: Interactions) -> Objective:
        check_integer(self.negatives, "negatives", low=1)
        return super().objective(interactions)

    def batch_loss(self, objective: Objective) -> BatchLoss:
        rights, weights = torch.from_numpy(np.flatnonzero(objective.b > 0)), torch.from_numpy(objective.weights).float()

        def loss(batch: PairBatch) -> Tensor:
            positive = softplus(-(batch.P * batch.Q).sum(1)) * weights[batch.places]
            count = len(batch.rows) * self.negatives
            drawn = torch.randint(len(rights), (count,), generator=batch.pair.generator)
            Q = batch.pair.embed_right(rights[drawn]).reshape(len(batch.rows), self.negatives, -1)
            return positive.mean() + softplus((batch.P[:, None, :] * Q).sum(2)).sum(1).mean()

        return loss
