"""Binary cross-entropy against uniformly sampled negatives, the most common sampled loss."""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from nearkin.embedding.two_tower.solvers.mini_batches import AbstractBatchLoss, Batch, embed_right
from nearkin.embedding.two_tower.tower_pair import TowerPair

NEGATIVES = 4  # a pair, drawn uniformly from all rights


class SampledBce(AbstractBatchLoss):
    """log(1 + exp(-z)) of observed pairs plus log(1 + exp(z)) of `NEGATIVES` uniform rights for each.

    Rights of cost b_j = 0 (n,), those with features but without a pair, are no negatives.
    """

    def __init__(self, b: np.ndarray, weights: np.ndarray) -> None:
        self.rights, self.weights = torch.from_numpy(np.flatnonzero(b > 0)), torch.from_numpy(weights).float()

    def __call__(self, batch: Batch, pair: TowerPair, generator: torch.Generator) -> Tensor:
        positive = softplus(-(batch.P * batch.Q).sum(1)) * self.weights[batch.places]
        drawn = torch.randint(len(self.rights), (len(batch.rows) * NEGATIVES,), generator=generator)
        negatives = self.rights[drawn]
        Q = embed_right(pair, negatives).reshape(len(batch.rows), NEGATIVES, -1)
        return positive.mean() + softplus((batch.P[:, None, :] * Q).sum(2)).sum(1).mean()
