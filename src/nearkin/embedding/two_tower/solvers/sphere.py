"""Alternating sweeps on rows of length 1 under a softmax over all rights."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch.nn.functional import normalize

from nearkin._check import check_integer, check_real
from nearkin.embedding.all_pairs.softmax import SoftmaxLoss
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax
from nearkin.embedding.two_tower.plan import Plan
from nearkin.embedding.two_tower.training import AbstractSolver, Limits

LAST_RATE = 0.2  # of the last sweep; the first half of them has the rate 1


@dataclass(eq=False, repr=False, kw_only=True)
class SphereSweeps(BaseEstimator):
    """`TwoTower(solver=SphereSweeps(...))`: a step of every left row, then of every right row; for `CosineSoftmax`.

    max_iter: sweeps over both sides; the rate falls in their second half. n_sampled: rows of the other side, drawn anew
    in each half sweep and shared by all rows, on which the sums over that side are estimated; None for all, at a cost
    of m n. momentum: share of the last step that is kept. max_seconds, patience: as in `ALS`.
    """

    max_iter: int = 30
    max_seconds: float | None = None
    patience: int = 10
    n_sampled: int | None = 2048
    momentum: float = 0.6

    name: ClassVar[str] = "sphere"
    tables_only: ClassVar[bool] = True
    through_index: ClassVar[bool] = False
    start: ClassVar[str] = "random"

    def limits(self) -> Limits:
        if self.n_sampled is not None:
            check_integer(self.n_sampled, "n_sampled", low=1)
        check_real(self.momentum, "momentum", low=0, high=0.99)
        return Limits(self.max_iter, self.max_seconds, self.patience)

    def from_plan(self, plan: Plan) -> "SweepsOnSphere":
        if not isinstance(plan.loss, CosineSoftmax):
            raise ValueError("solver is 'sphere', which trains loss='cosine-softmax' only")
        loss, start = plan.loss.from_objective(plan.objective), plan.start
        if loss.bias.any():
            if start[0].shape[1] < 2:
                raise ValueError(
                    "n_components is 1, which a bias alone would take; it must be at least 2, or bias_power=0"
                )
            start = start[0][:, :-1], start[1][:, :-1]
        return SweepsOnSphere(
            loss, *start, sweeps=self.max_iter, n_sampled=self.n_sampled, momentum=self.momentum,
            generator=plan.generator,
        )  # fmt: skip


class SweepsOnSphere(AbstractSolver):
    """Every row of a side at once, the other side fixed, then the other.

    A row's step is its slope in the tangent of the sphere divided by its weight: with w_i the weight of row i and t the
    temperature,

        p_i <- normalised(p_i - rate * tangent(g_i)),   g_i = t / w_i * dL/dp_i = E_softmax[q] - mean_observed q,

    so at the rate 1 a row goes about to where its observed rights are in the mean, away from those that the softmax
    expects. The steps have no scale to choose, and noise of the sample enters by its own size. Rows may start short:
    then the first sweep is a step of power iteration on the pairs. A row without a pair stays 0.
    """

    def __init__(
        self,
        loss: SoftmaxLoss,
        P: Tensor,
        Q: Tensor,
        *,
        sweeps: int,
        n_sampled: int | None = None,
        momentum: float = 0.6,
        generator: torch.Generator,
    ) -> None:
        self.loss, self.sweeps, self.n_sampled, self.momentum = loss, sweeps, n_sampled, momentum
        self.generator, self.done = generator, 0
        weights = loss.left_weights, loss.right_weights
        self.shares = tuple(torch.where(w > 0, 1 / w, 0).to(P)[:, None] for w in weights)
        self.P, self.Q = (torch.where(s > 0, X, 0) for X, s in zip((P, Q), self.shares, strict=True))
        self.moves = torch.zeros_like(P), torch.zeros_like(Q)

    def step(self) -> float:
        """One sweep; returns the loss before it, estimated on the sample of rights."""
        rate = self._rate()
        left = self.loss.left(self.P, self.Q, self._sample(self.loss.rights))
        self.P = self._moved(self.P, left.slope, 0, rate)
        slope = self.loss.right(self.P, self.Q, left.log_masses, self._sample(self.loss.lefts))
        self.Q = self._moved(self.Q, slope, 1, rate)
        self.done += 1
        return left.value

    def embeddings(self) -> tuple[Tensor, Tensor]:
        """Both tables, whose products are temperature times the scores: a bias of the rights takes one more column."""
        if not self.loss.bias.any():
            return self.P, self.Q
        bias = (self.loss.temperature * self.loss.bias).to(self.Q)[:, None]
        return torch.cat([self.P, torch.ones_like(self.P[:, :1])], 1), torch.cat([self.Q, bias], 1)

    def state(self) -> dict[str, Tensor]:
        return {
            "P": self.P, "Q": self.Q, "left.move": self.moves[0], "right.move": self.moves[1],
            "done": torch.tensor(self.done), "generator": self.generator.get_state(),
        }  # fmt: skip

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.P, self.Q = state["P"].clone(), state["Q"].clone()
        self.moves = state["left.move"].clone(), state["right.move"].clone()
        self.done = int(state["done"])
        self.generator.set_state(state["generator"])

    def _rate(self) -> float:
        """1 in the first half of the sweeps, then falling in a line to LAST_RATE."""
        late = max(0.0, (self.done + 1) / self.sweeps - 0.5) / 0.5
        return max(LAST_RATE, 1 - (1 - LAST_RATE) * late)

    def _sample(self, numbers: Tensor) -> Tensor:
        """Those that stand for all of them in this half sweep."""
        if self.n_sampled is None or self.n_sampled >= len(numbers):
            return numbers
        return numbers[torch.randperm(len(numbers), generator=self.generator)[: self.n_sampled]]

    def _moved(self, X: Tensor, slope: Tensor, side: int, rate: float) -> Tensor:
        """The rows after their step, of length 1; `slope` is overwritten."""
        step = tangent_step(X, slope.mul_(self.shares[side]))
        self.moves[side].mul_(self.momentum).add_(step)
        return normalize(X - rate * self.moves[side])


def tangent_step(X: Tensor, slope: Tensor) -> Tensor:
    """The part of the slopes that turns rows X of length 1, at most 1 long; `slope` is overwritten.

    A row that a sample meets by chance goes no further than 1.
    """
    slope -= (slope * X).sum(1, keepdim=True) * X
    slope /= slope.norm(dim=1, keepdim=True).clamp(min=1)
    return slope
