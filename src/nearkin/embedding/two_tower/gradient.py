"""Adam, full batch on the all-pairs loss through any towers or on mini-batches of a sampled loss."""

from dataclasses import dataclass
from typing import ClassVar, Self

from sklearn.base import BaseEstimator

from nearkin.embedding.two_tower.baselines import AbstractSampledLoss, MiniBatches
from nearkin.embedding.two_tower.towers import TowerPair, zero_grad
from nearkin.embedding.two_tower.training import AbstractTowerSolver

STEPS, EPOCHS = 200, 30  # of Adam: full-batch steps, epochs of a sampled loss
RATE, BATCH_RATE, BATCH = 1e-3, 3e-3, 4096  # PyTorch's rate on the full batch; on batches; pairs a batch


class AbstractAllPairs(AbstractTowerSolver):
    """A solver of the exact loss over all m x n pairs (ESL, Algorithm 1), the value scaled to one observed pair."""

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        del loss
        self.pair, self.loss = pair, pair.objective.loss(0.0)
        self.scale = 1 / self.loss.observed_weight
        self.parameters = pair.parameters()
        return self

    def gradient(self) -> float:
        """Fill the parameters' `.grad`; return the value."""
        zero_grad(self.parameters)
        return self.pair.value_and_gradient(self.loss, self.scale)


@dataclass(eq=False, repr=False, kw_only=True)
class Adam(AbstractAllPairs):
    """`TwoTower(solver=Adam(...))`: full batch for the all-pairs loss, mini-batches for a sampled loss.

    max_iter: full-batch steps (None for 200) or epochs (None for 30). learning_rate: None for 0.001 on the full batch
    and 0.003 on batches. batch_size: pairs a batch, None for 4096; a ValueError with the all-pairs loss, which has no
    batches. start: where id tables begin, "als", "random" or "auto" (ALS for the all-pairs loss on the default
    towers). max_seconds, patience: as in `ALS`.
    """

    learning_rate: float | None = None
    batch_size: int | None = None
    start: str = "auto"

    name: ClassVar[str] = "adam"

    def check(self, all_pairs: bool) -> None:
        self.max_iter = (STEPS if all_pairs else EPOCHS) if self.max_iter is None else self.max_iter
        super().check(all_pairs)
        if self.batch_size is not None and all_pairs:
            raise ValueError(
                f"batch_size is {self.batch_size}, but Adam takes the whole all-pairs loss in one step; leave it "
                "out, or give solver=SOGram(batch_size=...) or a sampled loss"
            )

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        super().begin(pair, loss)
        self._batches: MiniBatches | None = None
        if isinstance(loss, AbstractSampledLoss):
            size, rate = self.batch_size or BATCH, self.learning_rate or BATCH_RATE
            of_batch = loss.batch_loss(pair.objective)
            self._batches = MiniBatches(pair, of_batch, batch_size=size, learning_rate=rate)
            self.optimizers = self._batches.optimizers
        else:
            self.optimizers = pair.optimizers(self.learning_rate or RATE)
        return self

    def step(self) -> float:
        if self._batches is not None:
            return self._batches.epoch()
        value = self.gradient()
        for optimizer in self.optimizers:
            optimizer.step()
        return value
