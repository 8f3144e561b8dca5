"""SOGram: mini-batches of the all-pairs loss with running averages of the two Gramians (Krichene et al. 2019)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from nearkin._check import check_integer, check_real
from nearkin.embedding.all_pairs.loss import AllPairsLoss, completed_losses
from nearkin.embedding.two_tower.batch_losses.batch_loss import AbstractBatchLoss, PairBatch
from nearkin.embedding.two_tower.plan import Plan
from nearkin.embedding.two_tower.solvers.mini_batches import MiniBatches
from nearkin.embedding.two_tower.tower_pair import TowerPair
from nearkin.embedding.two_tower.training import Limits

RATE = 0.1  # weight of a batch in the running Gramians


@dataclass(eq=False, repr=False, kw_only=True)
class SOGram(BaseEstimator):
    """`TwoTower(solver=SOGram(...))`: Adam on batches of pairs, the other pairs by running Gramians.

    max_iter: epochs. batch_size: pairs a batch. start: where id tables begin, "als", "random" or "auto" (ALS on the
    default towers). max_seconds, patience: as in `ALS`.
    """

    max_iter: int = 30
    max_seconds: float | None = None
    patience: int = 10
    learning_rate: float = 3e-3
    batch_size: int = 4096
    start: str = "auto"

    name: ClassVar[str] = "sogram"
    tables_only: ClassVar[bool] = False
    through_index: ClassVar[bool] = True

    def limits(self) -> Limits:
        check_real(self.learning_rate, "learning_rate", above=0)
        check_integer(self.batch_size, "batch_size", low=2)
        return Limits(self.max_iter, self.max_seconds, self.patience)

    def from_plan(self, plan: Plan) -> MiniBatches:
        return MiniBatches(
            plan.pair(), plan.objective, RunningGramians(plan.objective.loss(0.0)), batch_size=self.batch_size,
            learning_rate=self.learning_rate, generator=plan.generator,
        )  # fmt: skip


class RunningGramians(AbstractBatchLoss):
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

    def __call__(self, batch: PairBatch, pair: TowerPair, generator: torch.Generator) -> Tensor:
        m, n = self.loss.shape
        c, size = self.constants, len(batch.rows)
        observed = completed_losses(self.loss.loss, c.of_pairs(batch.places), (batch.P * batch.Q).sum(1))
        rows = torch.randint(m, (size,), generator=generator)
        columns = torch.randint(n, (size,), generator=generator)
        P = torch.cat([pair.embed_left(rows), c.prior_left[rows]], 1)
        Q = torch.cat([pair.embed_right(columns), -c.prior_right[columns]], 1)
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
