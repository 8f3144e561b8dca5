"""SOGram: mini-batches of the all-pairs loss with running averages of the two Gramians (Krichene et al. 2019)."""

import torch
from torch import Tensor

from nearkin.embedding.all_pairs.loss import AllPairsLoss
from nearkin.embedding.two_tower.solvers.mini_batches import AbstractBatchLoss, Batch, embed_left, embed_right
from nearkin.embedding.two_tower.tower_pair import TowerPair

RATE = 0.1  # weight of a batch in the running Gramians


class SoGram(AbstractBatchLoss):
    """The observed part on the batch's pairs; the all-pairs part omega/2 <P_c, Q_c> made linear at running averages.

    P_c = P^T A P and Q_c are estimated by a batch of uniform rows, and <P_c, Q_c> is replaced by <P_c, right> +
    <left, Q_c> - <left, right>, left and right their averages over batches. Where these are exact, so are the value and
    the gradient, omega A P Q_c. An imputation is carried along as further columns, [P, Pt] and [Q, -Qt], whose product
    is the residual itself.
    """

    def __init__(self, loss: AllPairsLoss) -> None:
        self.loss, self.constants = loss, loss.constants(torch.zeros(1))
        self.scale = len(loss.pairs.indices) / loss.observed_weight
        self.grams: list[Tensor] = []

    def __call__(self, batch: Batch, pair: TowerPair, generator: torch.Generator) -> Tensor:
        m, n = self.loss.shape
        c, size = self.constants, len(batch.rows)
        labels, weights, cost, imputed = (v[batch.places] if v.ndim else v for v in c[:4])
        z = (batch.P * batch.Q).sum(1)
        observed = weights * self.loss.loss.value(labels, z) - 0.5 * cost * (z - imputed).square()
        rows = torch.randint(m, (size,), generator=generator)
        columns = torch.randint(n, (size,), generator=generator)
        P = torch.cat([embed_left(pair, rows), c.prior_left[rows]], 1)
        Q = torch.cat([embed_right(pair, columns), -c.prior_right[columns]], 1)
        P_c, Q_c = (X.T @ (w * X) * (total / size) for X, w, total in ((P, c.a[rows], m), (Q, c.b[columns], n)))
        self._average(P_c.detach(), Q_c.detach())
        left, right = self.grams
        smooth = 0.5 * self.loss.omega * ((P_c * right).sum() + (Q_c * left).sum() - (left * right).sum())
        return self.scale * (observed.mean() + smooth / len(self.loss.pairs.indices))

    def state(self) -> dict[str, Tensor]:
        return dict(zip(("left", "right"), self.grams, strict=False))

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.grams = [state["left"], state["right"]] if state else []

    def _average(self, *grams: Tensor) -> None:
        old = self.grams or list(grams)
        self.grams = [(1 - RATE) * before + RATE * now for before, now in zip(old, grams, strict=True)]
