"""Stochastic gradients from sub-blocks of m' x n' pairs, each block an all-pairs problem of its own."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from nearkin._check import check_integer, check_real
from nearkin.embedding.all_pairs.loss import AllPairsLoss, completed_losses
from nearkin.embedding.two_tower.objective import Objective
from nearkin.embedding.two_tower.optimizer_state import pack_optimizers, unpack_optimizers
from nearkin.embedding.two_tower.plan import Plan
from nearkin.embedding.two_tower.solvers.tower_solver import AbstractTowerSolver
from nearkin.embedding.two_tower.tower_pair import TowerPair, penalised, zero_grad
from nearkin.embedding.two_tower.training import Limits


@dataclass(eq=False, repr=False, kw_only=True)
class SubBlocks(BaseEstimator):
    """`TwoTower(solver=SubBlocks(...))`: Adam on the cells of a random partition; for towers whose full batch does
    not fit.

    max_iter: visits of all cells. grid: rows and columns are each cut into so many parts. start: where id tables
    begin, "als", "random" or "auto" (ALS on the default towers). max_seconds, patience: as in `ALS`.
    """

    max_iter: int = 20
    max_seconds: float | None = None
    patience: int = 10
    learning_rate: float = 1e-3
    grid: int = 4
    start: str = "auto"

    name: ClassVar[str] = "sub-blocks"
    tables_only: ClassVar[bool] = False
    through_index: ClassVar[bool] = True

    def limits(self) -> Limits:
        check_real(self.learning_rate, "learning_rate", above=0)
        check_integer(self.grid, "grid", low=1)
        return Limits(self.max_iter, self.max_seconds, self.patience)

    def from_plan(self, plan: Plan) -> "CellSteps":
        return CellSteps(
            plan.pair(), plan.objective, plan.objective.loss(0.0), generator=plan.generator, grid=self.grid,
            learning_rate=self.learning_rate,
        )  # fmt: skip


class CellSteps(AbstractTowerSolver):
    """Adam on the cells of a random `grid` x `grid` partition of rows and columns; a step visits every cell once.

    Every pair lies in exactly one cell, so `grid`^2 times a cell's loss is an unbiased estimate of the whole. Only the
    rows of a cell are embedded: this is for towers whose full batch does not fit.
    """

    def __init__(
        self,
        pair: TowerPair,
        objective: Objective,
        loss: AllPairsLoss,
        *,
        generator: torch.Generator,
        grid: int = 4,
        learning_rate: float = 1e-3,
    ) -> None:
        self.pair, self.loss, self.generator = pair, loss, generator
        self.grid = grid
        pairs = objective.interactions
        numbers = np.arange(len(pairs), dtype=np.int64)
        self.places = sp.csr_matrix((numbers, pairs.indices, pairs.indptr), shape=pairs.shape)
        self.scale = 1 / loss.observed_weight
        self.parameters = pair.parameters()
        self.optimizers = pair.optimizers(learning_rate)

    def step(self) -> float:
        m, n = self.loss.shape
        rows = torch.randperm(m, generator=self.generator).tensor_split(min(self.grid, m))
        columns = torch.randperm(n, generator=self.generator).tensor_split(min(self.grid, n))
        cells = torch.randperm(len(rows) * len(columns), generator=self.generator).tolist()
        return sum(self._cell(rows[c // len(columns)], columns[c % len(columns)], len(cells)) for c in cells) / len(
            cells
        )

    def state(self) -> dict[str, Tensor]:
        return self.pair.state() | pack_optimizers(self.optimizers) | {"generator": self.generator.get_state()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.pair.load_state(state)
        unpack_optimizers(self.optimizers, state)
        self.generator.set_state(state["generator"])

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
