"""Alternating least squares under the all-pairs loss, on id tables with or without branches of features."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from nearkin._check import check_integer
from nearkin._distributed import ALONE, Group
from nearkin.embedding.all_pairs.loss import AllPairsLoss, AllPairsPoint
from nearkin.embedding.all_pairs.row_solves import eigenbasis, improve_left
from nearkin.embedding.two_tower.branch_regression import BranchRegression
from nearkin.embedding.two_tower.optimizer_state import pack_optimizer, unpack_optimizer
from nearkin.embedding.two_tower.plan import Plan
from nearkin.embedding.two_tower.towers import ResidualTower
from nearkin.embedding.two_tower.training import AbstractSolver, Limits


@dataclass(eq=False, repr=False, kw_only=True)
class ALS(BaseEstimator):
    """`TwoTower(solver=ALS(...))`: one least-squares problem a row, one side at a time; for the default towers.

    max_iter: sweeps over both sides; max_seconds: no further one is begun after so many; patience: sweeps without a
    new best held-out NDCG@100 before it stops. cg_steps: conjugate-gradient steps a row. block_size: columns that are
    solved exactly together instead, as in iALS++, whose usual 16 are `solver="ials++"`.
    """

    max_iter: int = 8
    max_seconds: float | None = None
    patience: int = 10
    cg_steps: int = 2
    block_size: int | None = None

    start: ClassVar[str] = "random"
    tables_only: ClassVar[bool] = True
    through_index: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return "als" if self.block_size is None else "ials++"

    def limits(self) -> Limits:
        check_integer(self.cg_steps, "cg_steps", low=1)
        if self.block_size is not None:
            check_integer(self.block_size, "block_size", low=1)
        return Limits(self.max_iter, self.max_seconds, self.patience)

    def from_plan(self, plan: Plan) -> "AlternatingLeastSquares":
        data = plan.objective.interactions
        counts = np.diff(data.indptr), np.diff(data.columns.indptr)
        left, right = (
            BranchRegression(side, torch.from_numpy(np.where(count > 0, ridge, 0)), generator=plan.generator)
            if isinstance(side.tower, ResidualTower) and side.tower.branch is not None
            else None
            for side, ridge, count in zip((plan.left, plan.right), plan.objective.ridge, counts, strict=True)
        )
        return AlternatingLeastSquares(
            plan.objective.loss(plan.strength), *plan.start, branches=(left, right), cg_steps=self.cg_steps,
            block_size=self.block_size, group=plan.group,
        )  # fmt: skip


class AlternatingLeastSquares(AbstractSolver):
    """One side at a time: with the other side fixed, each row is a least-squares problem of its own.

    For the squared loss this is ALS for implicit feedback (Hu, Koren and Volinsky 2008) with a warm start; for another
    convex loss it is one Newton step a row with an Armijo search a side. Without `block_size` a row is solved by
    `cg_steps` steps of conjugate gradients in the eigenbasis of the other side's Gramian: there it is diagonal, so
    a product costs O(nnz_i k) instead of O(nnz_i k + k^2) and the exact diagonal preconditions it. The turn leaves
    every score unchanged and is not undone. With `block_size` the columns are solved exactly in blocks of that many, as
    in iALS++ (Rendle et al. 2021); `block_size` >= k is the textbook's exact ALS.

    Among several processes, all of which hold both tables, each improves its share of the rows.

    With branches of features, rows shrink towards g(x_i) instead of towards 0, and each sweep ends a side with a step
    of its branch's regression: every block lowers the same objective.
    """

    def __init__(
        self,
        loss: AllPairsLoss,
        P: Tensor,
        Q: Tensor,
        *,
        branches: tuple[BranchRegression | None, BranchRegression | None] = (None, None),
        cg_steps: int = 2,
        block_size: int | None = None,
        group: Group = ALONE,
    ) -> None:
        self.cg_steps, self.block_size, self.loss = cg_steps, block_size, loss
        self._own, self._own_turned = loss.part(group), loss.transposed().part(group)  # this process's rows
        self.P, self.Q, self.branches = P.clone(), Q.clone(), branches

    def step(self) -> float:
        """One sweep, the left side and then the right; returns the loss between the two, or after it with branches."""
        left, right = self.branches
        self.P, self.Q, _ = self._solve(self._own, self.P, self.Q, left, right)
        self.Q, self.P, between = self._solve(self._own_turned, self.Q, self.P, right, left)
        return between.value() if left is None and right is None else self.value()

    def value(self) -> float:
        """The loss; with branches its penalty is that of the embeddings' distance from them."""
        total = self.loss.value(self.P, self.Q)
        c = self.loss.at(self.P, self.Q).constants
        for X, ridge, branch in zip((self.P, self.Q), (c.ridge_left, c.ridge_right), self.branches, strict=True):
            if branch is not None:
                mean = branch.predict()
                total += float((ridge * (0.5 * mean.square() - X * mean)).sum(dtype=torch.float64))
        return total

    def embeddings(self) -> tuple[Tensor, Tensor]:
        return self.P, self.Q

    def state(self) -> dict[str, Tensor]:
        state = {"P": self.P, "Q": self.Q}
        for side, branch in zip(("left", "right"), self.branches, strict=True):
            if branch is not None:
                state |= {f"{side}.branch.{name}": p for name, p in branch.branch.state_dict().items()}
                state |= pack_optimizer(branch.optimizer, f"{side}.optimizer.")
                state[f"{side}.generator"] = branch.generator.get_state()
        return state

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.P, self.Q = state["P"].clone(), state["Q"].clone()
        for side, branch in zip(("left", "right"), self.branches, strict=True):
            if branch is not None:
                head = f"{side}.branch."
                branch.branch.load_state_dict({k[len(head) :]: v for k, v in state.items() if k.startswith(head)})
                unpack_optimizer(branch.optimizer, state, f"{side}.optimizer.")
                branch.generator.set_state(state[f"{side}.generator"])

    def _solve(
        self, loss: AllPairsLoss, P: Tensor, Q: Tensor, branch: BranchRegression | None, other: BranchRegression | None
    ) -> tuple[Tensor, Tensor, AllPairsPoint]:
        """Improve P for fixed Q; returns both, as Q may have been turned with P, and the point before."""
        spectrum = None
        if self.block_size is None:
            spectrum, turn = eigenbasis(loss, P, Q)
            P, Q = P @ turn, Q @ turn
            for follower in (branch, other):
                if follower is not None:
                    follower.turn(turn)
        mean = None if branch is None else branch.predict()[loss.rows]
        before, P = improve_left(
            loss, P, Q, spectrum=spectrum, cg_steps=self.cg_steps, block_size=self.block_size, mean=mean
        )
        if branch is not None:
            branch.step(P)
            unpaired = branch.weights.reshape(-1) == 0
            if unpaired.any():  # nothing but its features says where such a row is
                P[unpaired] = branch.predict()[unpaired]
        return P, Q, before
