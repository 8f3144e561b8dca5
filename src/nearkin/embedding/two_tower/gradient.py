"""Solvers of the all-pairs loss through any towers: Adam, Gauss-Newton."""

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from nearkin.embedding.all_pairs.loss import AllPairsLoss, AllPairsPoint
from nearkin.embedding.two_tower.in_batch_softmax import AbstractSampledLoss, MiniBatches
from nearkin.embedding.two_tower.towers import AbstractTowerSolver, ResidualTower, Side, TowerPair, zero_grad
from nearkin.solvers.newton import Linear, newton_step


@dataclass(frozen=True)
class Defaults:
    """Numbers of the gradient solvers (2026-11, ml100k and gowalla, without a recorded table)."""

    epochs: int = 30  # of Adam on a sampled loss
    batch_rate: float = 3e-3  # of these batches
    batch: int = 4096  # pairs in one of them
    probes: int = 2  # random signs with which the diagonal of the Gauss-Newton matrix is estimated
    floor: float = 0.01  # added to that diagonal, as a share of its mean; with 0 small networks lose .02 of NDCG@100


DEFAULTS = Defaults()


class AbstractAllPairs(AbstractTowerSolver):
    """A solver of the exact loss over all m x n pairs (ESL, Algorithm 1), the value scaled to one observed pair."""

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        self.pair: TowerPair = pair
        self.loss: AllPairsLoss = pair.objective.loss(0.0)
        self.scale: float = 1 / self.loss.observed_weight
        self.parameters: list[Tensor] = pair.parameters()
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
        self.max_iter: int | None = (200 if all_pairs else DEFAULTS.epochs) if self.max_iter is None else self.max_iter
        super().check(all_pairs)
        if self.batch_size is not None and all_pairs:
            raise ValueError(
                f"batch_size is {self.batch_size}, but Adam takes the whole all-pairs loss in one step; leave it "
                "out, or give loss='in-batch-softmax'"
            )

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        super().begin(pair, loss)
        self._batches: MiniBatches | None = None
        if isinstance(loss, AbstractSampledLoss):
            size, rate = self.batch_size or DEFAULTS.batch, self.learning_rate or DEFAULTS.batch_rate
            of_batch = loss.batch_loss(pair.objective)
            self._batches = MiniBatches(pair, of_batch, batch_size=size, learning_rate=rate)
        else:
            self.optimizers: list[torch.optim.Optimizer] = pair.optimizers(self.learning_rate or 1e-3)  # PyTorch's own
        return self

    def step(self) -> float:
        if self._batches is not None:
            return self._batches.epoch()
        value = self.gradient()
        for optimizer in self.optimizers:
            optimizer.step()
        return value


# ---- Gauss-Newton ----


@dataclass(eq=False, repr=False, kw_only=True)
class GaussNewton(AbstractAllPairs):
    """`TwoTower(solver=GaussNewton(...))`: truncated Newton steps through any towers.

    The product J^T (l'' over all pairs) J + lambda is never a matrix; it costs O(nnz k + (m + n) k^2) and one
    forward-mode and one reverse pass of the towers. One side is updated at a time: its block is then a least-squares
    problem (for linear towers an exact one), which converges faster than joint steps. An estimate of the matrix'
    diagonal preconditions.

    cg_steps: most conjugate-gradient steps in one Newton step. damping: the first one. start: where id tables begin,
    "als", "random" or "auto" (ALS on the default towers). max_iter, max_seconds, patience: as in `ALS`.
    """

    max_iter: int | None = 15
    cg_steps: int = 10
    damping: float = 1e-3
    start: str = "auto"

    name: ClassVar[str] = "gauss-newton"
    through_index: ClassVar[bool] = False

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        # Each process works alone: conjugate gradients amplify the rounding of a merged sum a thousandfold.
        super().begin(pair.alone(torch.Generator().manual_seed(0)), loss)
        self.dampings: list[float] = [self.damping, self.damping]
        return self

    def step(self) -> float:
        self._move(0)
        return self._move(1)

    def _move(self, number: int) -> float:
        """One Newton step of a side; returns the value after it."""
        parameters, damping = list(self.pair.sides[number].parameters().values()), self.dampings[number]
        before = self.gradient()
        gradient = parameters_to_vector([p.grad for p in parameters])  # pyright: ignore[reportArgumentType]
        matvec = self._matvec(self.loss.at(*self.pair.embeddings()), number)
        diagonal = self._diagonal(matvec, len(gradient)) + damping

        def value(y: Tensor) -> float:
            vector_to_parameters(y, parameters)
            return self.pair.value(self.loss, self.scale)

        step = newton_step(
            value, gradient, matvec, parameters_to_vector(parameters).detach(), start_value=before, damping=damping,
            preconditioner=lambda r: r / diagonal, max_iter=self.cg_steps,
        )  # fmt: skip
        vector_to_parameters(step.x, parameters)
        self.dampings[number] = min(max(step.damping, 1e-9), 1e9)
        return step.value

    def _matvec(self, point: AllPairsPoint, number: int) -> Linear:
        """d -> (scale J^T G J + ridge) d over the parameters of a side, flat."""
        side, ridge = self.pair.sides[number], self.pair.ridge[number]

        def matvec(d: Tensor) -> Tensor:
            direction, pushed = _named(side, d), [torch.zeros_like(point.P), torch.zeros_like(point.Q)]
            pushed[number] = side.push_forward(direction)
            U = point.gauss_newton_product(*pushed)[number]
            if isinstance(side.tower, ResidualTower):
                pulled = side.pulled_back(U)
                pulled["table"] = pulled["table"] + ridge * direction["table"]
            else:
                pulled = side.pulled_back(U + ridge * pushed[number])
            return torch.cat([self.scale * part.reshape(-1) for part in pulled.values()])

        return matvec

    def _diagonal(self, matvec: Linear, size: int) -> Tensor:
        """The matrix' diagonal, estimated by products with random signs: id embeddings and layers differ in scale."""
        drawn = [torch.randint(0, 2, (size,), generator=self.pair.generator) * 2.0 - 1 for _ in range(DEFAULTS.probes)]
        signs = torch.stack(drawn).to(self.parameters[0].device)
        found = torch.stack([s * matvec(s) for s in signs]).mean(dim=0).abs()
        return found + DEFAULTS.floor * found.mean()


def _named(side: Side, flat: Tensor) -> dict[str, Tensor]:
    parameters = side.parameters()
    parts = flat.split([p.numel() for p in parameters.values()])
    return {name: part.reshape(p.shape) for (name, p), part in zip(parameters.items(), parts, strict=True)}
