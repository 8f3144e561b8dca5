"""Binary cross-entropy against uniformly sampled negatives, the most common sampled loss."""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from nearkin.embedding.mini_batches import AbstractBatchLoss, Batch, embed_right
from nearkin.embedding.tower_pair import TowerPair

NEGATIVES = 4  # a pair, drawn uniformly from all rights


class SampledBce(AbstractBatchLoss):
    """log(1 + exp(-z)) of observed pairs plus log(1 + exp(z)) of `NEGATIVES` uniform rights for each."""

    def __init__(self, n: int, weights: np.ndarray) -> None:
        self.n, self.weights = n, torch.from_numpy(weights).float()

    def __call__(self, batch: Batch, pair: TowerPair, generator: torch.Generator) -> Tensor:
        positive = softplus(-(batch.P * batch.Q).sum(1)) * self.weights[batch.places]
        negatives = torch.randint(self.n, (len(batch.rows) * NEGATIVES,), generator=generator)
        Q = embed_right(pair, negatives).reshape(len(batch.rows), NEGATIVES, -1)
        return positive.mean() + softplus((batch.P[:, None, :] * Q).sum(2)).sum(1).mean()
