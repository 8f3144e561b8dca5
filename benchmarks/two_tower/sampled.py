"""Rivals of the loss over all pairs by mini-batches, as objects that `TwoTower` takes: a sampled loss and SOGram."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch.nn.functional import softplus

from nearkin._check import check_integer
from nearkin.embedding.all_pairs.loss import AllPairsLoss, completed_losses
from nearkin.embedding.two_tower.in_batch_softmax import AbstractSampledLoss, BatchLoss, MiniBatches, PairBatch
from nearkin.embedding.two_tower.objective import Objective
from nearkin.embedding.two_tower.towers import TowerPair
from nearkin.embedding.two_tower.training import AbstractTowerSolver
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


@dataclass(eq=False, repr=False, kw_only=True)
class SOGram(AbstractTowerSolver):
    """`TwoTower(solver=SOGram(...))`: mini-batches of the all-pairs loss with running Gramians (Krichene et al. 2019).

    The observed part is that of the batch's pairs. The all-pairs part omega/2 <P_c, Q_c>, P_c = P^T A P and Q_c
    estimated by a batch of uniform rows, is replaced by <P_c, right> + <left, Q_c> - <left, right>, left and right
    their averages over batches. If these are exact, so are the value and the gradient, omega A P Q_c. An imputation is
    appended as columns, [P, Pt] and [Q, -Qt], whose product is the residual.

    max_iter: epochs. batch_size: pairs a batch. start: where id tables begin, "als", "random" or "auto" (ALS on the
    default towers). max_seconds, patience: as in `ALS`.
    """

    max_iter: int | None = 30
    learning_rate: float = 3e-3
    batch_size: int = 4096
    start: str = "auto"
    gram_rate: float = 0.1  # weight of a batch in the averages

    name: ClassVar[str] = "sogram"

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        self.pair, self.grams = pair, list[Tensor]()
        batch_loss = self.batch_loss(pair.objective.loss(0.0))
        self._batches = MiniBatches(pair, batch_loss, batch_size=self.batch_size, learning_rate=self.learning_rate)
        self.optimizers = self._batches.optimizers
        return self

    def step(self) -> float:
        return self._batches.epoch()

    def batch_loss(self, loss: AllPairsLoss) -> BatchLoss:
        """The estimate of this loss on a batch, in units of the mean loss of an observed pair."""
        (m, n), c, count = loss.shape, loss.constants(torch.zeros(1)), len(loss.pairs.indices)
        scale = count / loss.observed_weight

        def of_batch(batch: PairBatch) -> Tensor:
            size, pair = len(batch.rows), batch.pair
            observed = completed_losses(loss.loss, c.of_pairs(batch.places), (batch.P * batch.Q).sum(1))
            rows = torch.randint(m, (size,), generator=pair.generator)
            columns = torch.randint(n, (size,), generator=pair.generator)
            P = torch.cat([pair.left.embed_rows(rows), c.prior_left[rows]], 1)
            Q = torch.cat([pair.embed_right(columns), -c.prior_right[columns]], 1)
            P_c, Q_c = (X.T @ (w * X) * (total / size) for X, w, total in ((P, c.a[rows], m), (Q, c.b[columns], n)))
            self._average(P_c.detach(), Q_c.detach())
            left, right = self.grams
            smooth = 0.5 * loss.omega * ((P_c * right).sum() + (Q_c * left).sum() - (left * right).sum())
            return scale * (observed.mean() + smooth / count)

        return of_batch

    def state(self) -> dict[str, Tensor]:
        return super().state() | dict(zip(("loss.left", "loss.right"), self.grams, strict=False))

    def load_state(self, state: dict[str, Tensor]) -> None:
        super().load_state(state)
        self.grams = [state[name].clone() for name in ("loss.left", "loss.right") if name in state]

    def _average(self, *grams: Tensor) -> None:
        old, rate = self.grams or list(grams), self.gram_rate
        self.grams = [(1 - rate) * before + rate * now for before, now in zip(old, grams, strict=True)]
