"""ESL's eq. 13: the loss over all pairs by the cells of a partition, which gained on no data set here."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from nearkin.embedding.all_pairs.loss import completed_losses
from nearkin.embedding.two_tower.gradient import AbstractAllPairs
from nearkin.embedding.two_tower.towers import TowerPair, penalised, zero_grad


@dataclass(eq=False, repr=False, kw_only=True)
class SubBlocks(AbstractAllPairs):
    """`TwoTower(solver=SubBlocks(...))`: Adam on the cells of a random partition (ESL, section 3.5).

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

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        super().begin(pair, loss)
        pairs = pair.objective.interactions
        numbers = np.arange(len(pairs), dtype=np.int64)
        self.places = sp.csr_matrix((numbers, pairs.indices, pairs.indptr), shape=pairs.shape)
        self.optimizers = pair.optimizers(self.learning_rate)
        return self

    def step(self) -> float:
        (m, n), generator = self.loss.shape, self.pair.generator
        rows = torch.randperm(m, generator=generator).tensor_split(min(self.grid, m))
        columns = torch.randperm(n, generator=generator).tensor_split(min(self.grid, n))
        cells = torch.randperm(len(rows) * len(columns), generator=generator).tolist()
        parts = [self._cell(rows[c // len(columns)], columns[c % len(columns)], len(cells)) for c in cells]
        return sum(parts) / len(cells)

    def _cell(self, rows: Tensor, columns: Tensor, cells: int) -> float:
        """One Adam step on a cell; returns its estimate of the whole loss a pair."""
        zero_grad(self.parameters)
        P, E = self.pair.left.embed_rows(rows), self.pair.right.embed_rows(columns)
        Q, distortion = self.pair.quantized(E, noted=True)
        value = cells * self._loss(P, Q, rows, columns)
        for side, X, numbers, ridge in zip(self.pair.sides, (P, E), (rows, columns), self.pair.ridge, strict=True):
            penalty = 0.5 * (ridge[numbers] * penalised(side, X, numbers).square()).sum()
            value = value + penalty * len(ridge) / len(numbers)
        value = self.scale * value + distortion
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
