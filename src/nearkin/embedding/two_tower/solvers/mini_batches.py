"""Mini-batches of observed pairs: the loop that sampled losses and running Gramians share."""

import torch
from torch import Tensor

from nearkin.embedding.two_tower.batch_losses.batch_loss import AbstractBatchLoss, PairBatch
from nearkin.embedding.two_tower.objective import Objective
from nearkin.embedding.two_tower.optimizer_state import pack_optimizers, unpack_optimizers
from nearkin.embedding.two_tower.solvers.tower_solver import AbstractTowerSolver
from nearkin.embedding.two_tower.tower_pair import TowerPair, penalised, zero_grad


class MiniBatches(AbstractTowerSolver):
    """Adam on random batches of observed pairs; a step is an epoch.

    A row's penalty is shared out over its pairs, so an epoch sees each penalty once.
    """

    def __init__(
        self,
        pair: TowerPair,
        objective: Objective,
        batch_loss: AbstractBatchLoss,
        *,
        batch_size: int,
        learning_rate: float,
        generator: torch.Generator,
    ) -> None:
        self.pair, self.batch_loss, self.generator = pair, batch_loss, generator
        self.batch_size = batch_size
        pairs = objective.interactions
        self.rows = torch.from_numpy(pairs.rows).long()
        self.columns = torch.from_numpy(pairs.indices).long()
        counts = (
            torch.bincount(self.rows, minlength=pairs.shape[0]),
            torch.bincount(self.columns, minlength=pairs.shape[1]),
        )
        self.shares = tuple(r.reshape(-1) / c.clamp(min=1) for r, c in zip(pair.ridge, counts, strict=True))
        self.parameters = pair.parameters()
        self.optimizers = pair.optimizers(learning_rate)

    def step(self) -> float:
        total = 0.0
        for places in torch.randperm(len(self.rows), generator=self.generator).split(self.batch_size):
            if len(places) > 1:  # a batch of one has no negatives of its own
                total += self._batch(places) * len(places)
        return total / len(self.rows)

    def state(self) -> dict[str, Tensor]:
        own = {f"loss.{name}": value for name, value in self.batch_loss.state().items()}
        return self.pair.state() | pack_optimizers(self.optimizers) | own | {"generator": self.generator.get_state()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.pair.load_state(state)
        unpack_optimizers(self.optimizers, state)
        self.generator.set_state(state["generator"])
        self.batch_loss.load_state(
            {name[5:]: value.clone() for name, value in state.items() if name.startswith("loss.")}
        )

    def _batch(self, places: Tensor) -> float:
        rows, columns = self.rows[places], self.columns[places]
        zero_grad(self.parameters)
        P, E = self.pair.embed_left(rows), self.pair.right.embed_rows(columns)
        Q, distortion = self.pair.quantized(E, noted=True)
        loss = self.batch_loss(PairBatch(rows, columns, places, P, Q), self.pair, self.generator)
        loss = loss + self.pair.distortion_weight * distortion
        for side, X, numbers, share in zip(self.pair.sides, (P, E), (rows, columns), self.shares, strict=True):
            loss = loss + 0.5 * (share[numbers, None] * penalised(side, X, numbers).square()).sum() / len(places)
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return float(loss.detach())
