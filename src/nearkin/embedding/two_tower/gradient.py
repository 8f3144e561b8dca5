"""First-order solvers of the all-pairs loss through the towers: Adam, gradient descent, L-BFGS, Adam on sub-blocks."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from nearkin._check import check_integer, check_real
from nearkin.contracts import PhasedIndex
from nearkin.embedding.all_pairs.loss import completed_losses
from nearkin.embedding.two_tower.baselines import AbstractSampledLoss, MiniBatches
from nearkin.embedding.two_tower.towers import TowerPair, penalised, zero_grad
from nearkin.embedding.two_tower.training import (
    AbstractTowerSolver,
    pack_optimizers,
    pack_random,
    unpack_optimizers,
    unpack_random,
)
from nearkin.solvers.linesearch import armijo

STEPS, EPOCHS = 200, 30  # of Adam: full-batch steps, epochs of a sampled loss
RATE, BATCH_RATE, BATCH = 1e-3, 3e-3, 4096  # PyTorch's rate on the full batch; on batches; pairs a batch


class AbstractFullBatch(AbstractTowerSolver):
    """Steps on the exact gradient over all m x n pairs (ESL, Algorithm 1), the value scaled to one observed pair."""

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

    def refuse_rotation(self) -> None:
        """ValueError for an index whose rotation has an optimizer, which this solver does not use."""
        if isinstance(self.pair.index, PhasedIndex) and self.pair.index.rotation_parameters():
            raise ValueError(
                f"solver is {self.name!r}, which would take the index's rotation off the rotations; use solver='adam', "
                "or an IndexingLayer with rotation='exact', 'cayley' or 'frozen'"
            )


@dataclass(eq=False, repr=False, kw_only=True)
class Adam(AbstractFullBatch):
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
        if self.learning_rate is not None:
            check_real(self.learning_rate, "learning_rate", above=0)
        if self.batch_size is not None:
            check_integer(self.batch_size, "batch_size", low=2)
            if all_pairs:
                raise ValueError(
                    f"batch_size is {self.batch_size}, but Adam takes the whole all-pairs loss in one step; leave it "
                    "out, or give solver=SOGram(batch_size=...) or a sampled loss"
                )
        self.max_iter = (STEPS if all_pairs else EPOCHS) if self.max_iter is None else self.max_iter
        super().check(all_pairs)

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        self._batches = None
        if isinstance(loss, AbstractSampledLoss):
            self.pair, rate = pair, self.learning_rate or BATCH_RATE
            self._batches = MiniBatches(
                pair, loss.batch_loss(pair.objective), batch_size=self.batch_size or BATCH, learning_rate=rate
            )
            return self
        super().begin(pair, loss)
        self.optimizers = pair.optimizers(self.learning_rate or RATE)
        return self

    def step(self) -> float:
        if self._batches is not None:
            return self._batches.epoch()
        value = self.gradient()
        for optimizer in self.optimizers:
            optimizer.step()
        return value

    def state(self) -> dict[str, Tensor]:
        if self._batches is not None:
            return self._batches.state()
        return self.pair.state() | pack_optimizers(self.optimizers)

    def load_state(self, state: dict[str, Tensor]) -> None:
        if self._batches is not None:
            return self._batches.load_state(state)
        self.pair.load_state(state)
        return unpack_optimizers(self.optimizers, state)


@dataclass(eq=False, repr=False, kw_only=True)
class GradientDescent(AbstractFullBatch):
    """`TwoTower(solver=GradientDescent(...))`: steepest descent on the exact gradient with an Armijo search.

    learning_rate: the search of the first step starts at twice this, each later one at twice the last step. start:
    where id tables begin, "als", "random" or "auto" (ALS on the default towers). max_iter, max_seconds, patience: as
    in `ALS`.
    """

    max_iter: int | None = 200
    learning_rate: float = 1e-3
    start: str = "auto"

    name: ClassVar[str] = "gd"

    def check(self, all_pairs: bool) -> None:
        check_real(self.learning_rate, "learning_rate", above=0)
        super().check(all_pairs)

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        super().begin(pair, loss).refuse_rotation()
        self.rate = self.learning_rate
        return self

    def step(self) -> float:
        value = self.gradient()
        gradients = [p.grad.clone() for p in self.parameters]  # pyright: ignore[reportOptionalMemberAccess]
        start = [p.detach().clone() for p in self.parameters]

        def along(t: float) -> float:
            with torch.no_grad():
                for p, s, g in zip(self.parameters, start, gradients, strict=True):
                    p.copy_(s - t * g)
            return self.pair.value(self.loss, self.scale)

        slope = -sum(float(g.square().sum(dtype=torch.float64)) for g in gradients)
        found = armijo(along, value, slope, start=2 * self.rate, max_iter=30)
        along(found.step_size)
        self.rate = found.step_size or self.rate / 1024
        return value

    def state(self) -> dict[str, Tensor]:
        return self.pair.state() | {"rate": torch.tensor(self.rate, dtype=torch.float64)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.pair.load_state(state)
        self.rate = float(state["rate"])


@dataclass(eq=False, repr=False, kw_only=True)
class LBFGS(AbstractFullBatch):
    """`TwoTower(solver=LBFGS(...))`: five inner iterations a step, strong Wolfe search, on the exact gradient.

    start: where id tables begin, "als", "random" or "auto" (ALS on the default towers). max_iter, max_seconds,
    patience: as in `ALS`. A resumed fit starts without curvature pairs.
    """

    max_iter: int | None = 40
    start: str = "auto"

    name: ClassVar[str] = "l-bfgs"

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        super().begin(pair, loss).refuse_rotation()
        self._optimizer = torch.optim.LBFGS(self.parameters, max_iter=5, line_search_fn="strong_wolfe")  # pyright: ignore[reportArgumentType]
        return self

    def step(self) -> float:
        return float(self._optimizer.step(self.gradient))  # pyright: ignore[reportArgumentType]

    def state(self) -> dict[str, Tensor]:
        return self.pair.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.pair.load_state(state)


@dataclass(eq=False, repr=False, kw_only=True)
class SubBlocks(AbstractTowerSolver):
    """`TwoTower(solver=SubBlocks(...))`: Adam on the cells of a random partition, for towers too large for a full
    batch.

    A step visits every cell of a random `grid` x `grid` partition of rows and columns once. Every pair lies in exactly
    one cell, so `grid`^2 times a cell's loss is an unbiased estimate of the whole. Only a cell's rows are embedded.

    max_iter: visits of all cells. grid: number of parts of the rows and of the columns. start: where id tables begin,
    "als", "random" or "auto" (ALS on the default towers). max_seconds, patience: as in `ALS`.
    """

    max_iter: int | None = 20
    learning_rate: float = 1e-3
    grid: int = 4
    start: str = "auto"

    name: ClassVar[str] = "sub-blocks"

    def check(self, all_pairs: bool) -> None:
        check_real(self.learning_rate, "learning_rate", above=0)
        check_integer(self.grid, "grid", low=1)
        super().check(all_pairs)

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        del loss
        self.pair, self.loss = pair, pair.objective.loss(0.0)
        pairs = pair.objective.interactions
        numbers = np.arange(len(pairs), dtype=np.int64)
        self.places = sp.csr_matrix((numbers, pairs.indices, pairs.indptr), shape=pairs.shape)
        self.scale = 1 / self.loss.observed_weight
        self.parameters = pair.parameters()
        self.optimizers = pair.optimizers(self.learning_rate)
        return self

    def step(self) -> float:
        (m, n), generator = self.loss.shape, self.pair.generator
        rows = torch.randperm(m, generator=generator).tensor_split(min(self.grid, m))
        columns = torch.randperm(n, generator=generator).tensor_split(min(self.grid, n))
        cells = torch.randperm(len(rows) * len(columns), generator=generator).tolist()
        parts = [self._cell(rows[c // len(columns)], columns[c % len(columns)], len(cells)) for c in cells]
        return sum(parts) / len(cells)

    def state(self) -> dict[str, Tensor]:
        return pack_random(self.pair, self.optimizers)

    def load_state(self, state: dict[str, Tensor]) -> None:
        unpack_random(self.pair, self.optimizers, state)

    def _cell(self, rows: Tensor, columns: Tensor, cells: int) -> float:
        """One Adam step on a cell; returns its estimate of the whole loss a pair."""
        zero_grad(self.parameters)
        P, E = self.pair.embed_left(rows), self.pair.right.embed_rows(columns)
        Q, distortion = self.pair.quantized(E, noted=True)
        value = cells * self._loss(P, Q, rows, columns)
        for side, X, numbers, ridge in zip(self.pair.sides, (P, E), (rows, columns), self.pair.ridge, strict=True):
            penalty = 0.5 * (ridge[numbers] * penalised(side, X, numbers).square()).sum()
            value = value + penalty * len(ridge) / len(numbers)
        value = self.scale * value + self.pair.distortion_weight * distortion
        value.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return float(value.detach())

    def _loss(self, P: Tensor, Q: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """The all-pairs loss of the cell, by ESL, eq. 13; its few observed pairs are gathered."""
        c = self.loss.constants(P)
        cell = sp.csr_matrix(self.places[rows.numpy()])[:, columns.numpy()].tocoo()
        i, j = (torch.from_numpy(numbers).long() for numbers in (cell.row, cell.col))
        places = torch.from_numpy(cell.data)
        observed = completed_losses(self.loss.loss, c.of_pairs(places), (P[i] * Q[j]).sum(1)).sum()
        P, Q = torch.cat([P, c.prior_left[rows]], 1), torch.cat([Q, -c.prior_right[columns]], 1)
        P_c, Q_c = P.T @ (c.a[rows] * P), Q.T @ (c.b[columns] * Q)
        return observed + 0.5 * self.loss.omega * (P_c * Q_c).sum()
