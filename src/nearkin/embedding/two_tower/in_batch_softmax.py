"""The softmax among the items of a batch, and mini-batches for it and for sampled losses of your own."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch.nn.functional import cross_entropy

from nearkin.embedding.two_tower.objective import AllPairs, Objective
from nearkin.embedding.two_tower.towers import TowerPair, penalised, zero_grad
from nearkin.records import Interactions


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
        self.pair: TowerPair = pair
        self.batch_loss: BatchLoss = batch_loss
        self.batch_size: int = batch_size
        pairs = pair.objective.interactions
        self.rows: Tensor = torch.from_numpy(pairs.rows).long()
        self.columns: Tensor = torch.from_numpy(pairs.indices).long()
        counts = (
            torch.bincount(self.rows, minlength=pairs.shape[0]),
            torch.bincount(self.columns, minlength=pairs.shape[1]),
        )
        self.shares: tuple[Tensor, ...] = tuple(
            r.reshape(-1) / c.clamp(min=1).to(r) for r, c in zip(pair.ridge, counts, strict=True)
        )
        self.parameters: list[Tensor] = pair.parameters()
        self.optimizers: list[torch.optim.Optimizer] = pair.optimizers(learning_rate)

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
        loss = loss + distortion
        for side, X, numbers, share in zip(pair.sides, (P, E), (rows, columns), self.shares, strict=True):
            loss = loss + 0.5 * (share[numbers, None] * penalised(side, X, numbers).square()).sum() / len(places)
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return float(loss.detach())


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractSampledLoss(BaseEstimator, ABC):
    """A loss of batches of observed pairs, trained by `Adam`; `TwoTower(loss=...)` takes subclasses of your own.

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
    """`TwoTower(loss=InBatchSoftmax(...))`: softmax among the items of a batch, with the logQ correction.

    Cross-entropy of p_i.q_j - log f_j, f_j the frequency of j; an item that occurs twice in the batch is no negative
    where it is the positive.

    Parameters
    ----------
    weighting: importance of a pair by its weight, "log" | "linear" | "none".

    Attributes
    ----------
    weighting: as given.

    References
    ----------
    Yi et al. (2019), Sampling-bias-corrected neural modeling for large corpus item recommendations.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 6))
    >>> pairs = nk.Interactions.from_pairs(range(40), range(40)).with_features(left=X, right=X)
    >>> adam = nk.embedding.Adam(max_iter=2, batch_size=20)
    >>> model = nk.TwoTower(4, loss=nk.embedding.InBatchSoftmax(), solver=adam, random_state=0).fit(pairs)
    >>> model.left_embeddings_.shape
    (40, 4)
    """

    name: ClassVar[str] = "in-batch-softmax"

    def batch_loss(self, objective: Objective) -> BatchLoss:
        pairs = objective.interactions
        counts = np.bincount(pairs.indices, minlength=pairs.shape[1])
        log_frequency = torch.from_numpy(np.log(np.maximum(counts, 1) / len(pairs))).float()

        weights = torch.from_numpy(objective.weights).float()

        def loss(batch: PairBatch) -> Tensor:
            logits = batch.P @ batch.Q.T
            logits = logits - log_frequency[batch.columns].to(logits.device)  # (b, b)
            columns = batch.columns.to(logits.device)
            same = (columns[:, None] == columns[None, :]).fill_diagonal_(False)
            logits = logits.masked_fill(same, -torch.inf)
            losses = cross_entropy(logits, torch.arange(len(logits), device=logits.device), reduction="none")
            return (weights[batch.places].to(losses.device) * losses).mean()

        return loss
