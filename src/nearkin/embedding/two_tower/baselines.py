"""Methods for comparison with the loss over all pairs: losses of sampled pairs, SOGram, and their mini-batches."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize, softplus

from nearkin._check import check_integer, check_real
from nearkin.embedding.all_pairs.loss import AllPairsLoss, completed_losses
from nearkin.embedding.two_tower.objective import AllPairs, Objective
from nearkin.embedding.two_tower.towers import TowerPair, penalised, zero_grad
from nearkin.embedding.two_tower.training import AbstractTowerSolver
from nearkin.records import Interactions


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of the methods for comparison (2026-11, ml100k and gowalla, without a recorded table)."""

    gram_rate: float = 0.1  # weight of a batch in SOGram's running Gramians


DEFAULTS = Defaults()


class PairBatch(NamedTuple):
    """Observed pairs and their embeddings; a loss may draw and embed further rows."""

    rows: Tensor  # (b,) left numbers
    columns: Tensor  # (b,) right numbers
    places: Tensor  # (b,) numbers of the pairs
    P: Tensor  # (b, k) embeddings of `rows`, with a graph
    Q: Tensor  # (b, k) embeddings of `columns`, through the index if there is one
    pair: TowerPair


BatchLoss = Callable[[PairBatch], Tensor]  # the loss of a batch, as a mean over its pairs


class MiniBatches:
    """Adam on random batches of observed pairs. A row's penalty is divided among its pairs: one penalty an epoch."""

    def __init__(self, pair: TowerPair, batch_loss: BatchLoss, *, batch_size: int, learning_rate: float) -> None:
        self.pair, self.batch_loss, self.batch_size = pair, batch_loss, batch_size
        pairs = pair.objective.interactions
        self.rows, self.columns = torch.from_numpy(pairs.rows).long(), torch.from_numpy(pairs.indices).long()
        counts = (
            torch.bincount(self.rows, minlength=pairs.shape[0]),
            torch.bincount(self.columns, minlength=pairs.shape[1]),
        )
        self.shares = tuple(r.reshape(-1) / c.clamp(min=1) for r, c in zip(pair.ridge, counts, strict=True))
        self.parameters, self.optimizers = pair.parameters(), pair.optimizers(learning_rate)

    def epoch(self) -> float:
        """Adam steps on every batch; returns the mean loss."""
        total = 0.0
        for places in torch.randperm(len(self.rows), generator=self.pair.generator).split(self.batch_size):
            if len(places) > 1:  # a batch of one has no negatives
                total += self._step(places) * len(places)
        return total / len(self.rows)

    def _step(self, places: Tensor) -> float:
        pair, rows, columns = self.pair, self.rows[places], self.columns[places]
        zero_grad(self.parameters)
        P, E = pair.left.embed_rows(rows), pair.right.embed_rows(columns)
        Q, distortion = pair.quantized(E, noted=True)
        loss = self.batch_loss(PairBatch(rows, columns, places, P, Q, pair))
        loss = loss + pair.distortion_weight * distortion
        for side, X, numbers, share in zip(pair.sides, (P, E), (rows, columns), self.shares, strict=True):
            loss = loss + 0.5 * (share[numbers, None] * penalised(side, X, numbers).square()).sum() / len(places)
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return float(loss.detach())


# ---- sampled losses -------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractSampledLoss(BaseEstimator, ABC):
    """A loss of batches of observed pairs, trained by `Adam`.

    weighting: the record's weights as importance of a pair, "log" | "linear" | "none".
    """

    weighting: str = "log"

    name: ClassVar[str]

    def objective(self, interactions: Interactions) -> Objective:
        """Weights and penalties, the same as of the all-pairs loss."""
        return AllPairs(weighting=self.weighting).objective(interactions)

    @abstractmethod
    def batch_loss(self, objective: Objective) -> BatchLoss:
        """The loss of a batch of these pairs."""


@dataclass(eq=False, repr=False, kw_only=True)
class InBatchSoftmax(AbstractSampledLoss):
    """`TwoTower(loss=InBatchSoftmax(...))`: softmax among the rights of a batch, with the logQ correction.

    Cross-entropy of p_i.q_j - log f_j, f_j the frequency of j (Yi et al. 2019, logQ); a right that occurs twice in the
    batch is no negative where it is the positive.

    weighting: importance of a pair by its weight, "log" | "linear" | "none".
    """

    name: ClassVar[str] = "in-batch-softmax"

    def batch_loss(self, objective: Objective) -> BatchLoss:
        pairs = objective.interactions
        counts = np.bincount(pairs.indices, minlength=pairs.shape[1])
        log_frequency = torch.from_numpy(np.log(np.maximum(counts, 1) / len(pairs))).float()

        weights = torch.from_numpy(objective.weights).float()

        def loss(batch: PairBatch) -> Tensor:
            logits = batch.P @ batch.Q.T - log_frequency[batch.columns]  # (b, b)
            same = (batch.columns[:, None] == batch.columns[None, :]).fill_diagonal_(False)
            logits = logits.masked_fill(same, -torch.inf)
            losses = cross_entropy(logits, torch.arange(len(logits)), reduction="none")
            return (weights[batch.places] * losses).mean()

        return loss


@dataclass(eq=False, repr=False, kw_only=True)
class InBatchHinge(AbstractSampledLoss):
    """`TwoTower(loss=InBatchHinge(...))`: cosines of a pair against those of other rights (GCD, section 3.2).

    w max(0, margin - cos(p_i, q_i) + cos(p_i, q_j)), averaged over the batch's other rights; a right that occurs twice
    in the batch is no negative where it is the positive.

    margin: the paper's 0.1 by default; weighting: importance of a pair by its weight, "log" | "linear" | "none".
    """

    margin: float = 0.1

    name: ClassVar[str] = "in-batch-hinge"

    def objective(self, interactions: Interactions) -> Objective:
        check_real(self.margin, "margin", low=0)
        return super().objective(interactions)

    def batch_loss(self, objective: Objective) -> BatchLoss:
        weights = torch.from_numpy(objective.weights).float()

        def loss(batch: PairBatch) -> Tensor:
            cosines = normalize(batch.P, dim=1) @ normalize(batch.Q, dim=1).T  # (b, b)
            behind = torch.relu(self.margin - cosines.diagonal()[:, None] + cosines)
            negatives = (batch.columns[:, None] != batch.columns[None, :]).to(behind)
            losses = (behind * negatives).sum(1) / negatives.sum(1).clamp(min=1)
            return (weights[batch.places] * losses).mean()

        return loss


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


# ---- running Gramians -----------------------------------------------------------------------------------------------


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
        old, rate = self.grams or list(grams), DEFAULTS.gram_rate
        self.grams = [(1 - rate) * before + rate * now for before, now in zip(old, grams, strict=True)]
