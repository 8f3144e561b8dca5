"""Alternating least squares under the all-pairs loss, on id tables with or without branches of features."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from nearkin._check import check_integer
from nearkin._distributed import current
from nearkin.embedding.all_pairs import kernels
from nearkin.embedding.all_pairs.loss import AllPairsLoss
from nearkin.embedding.all_pairs.pair_losses import Squared
from nearkin.embedding.all_pairs.point import AllPairsPoint
from nearkin.embedding.all_pairs.products import by_blocks, gathered
from nearkin.embedding.two_tower.branch_regression import BranchRegression
from nearkin.embedding.two_tower.training import AbstractSolver, pack_optimizer, unpack_optimizer
from nearkin.solvers.linesearch import armijo


class AlternatingLeastSquares(AbstractSolver):
    """One side at a time: with the other side fixed, each row is a least-squares problem of its own.

    For the squared loss this is ALS for implicit feedback (Hu, Koren and Volinsky 2008) with a warm start; for another
    convex loss it is one Newton step a row with an Armijo search a side. Without `block_size` a row is solved by
    `steps` steps of conjugate gradients in the eigenbasis of the other side's Gramian: there the Gramian is diagonal,
    so a product costs O(nnz_i k) instead of O(nnz_i k + k^2) and the exact diagonal preconditions it. The turn leaves
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
        steps: int = 2,
        block_size: int | None = None,
    ) -> None:
        self.steps = check_integer(steps, "steps", low=1)
        self.block_size = None if block_size is None else check_integer(block_size, "block_size", low=1)
        self.loss, self.turned = loss, loss.transposed()
        self.P, self.Q, self.branches = P.clone(), Q.clone(), branches

    def step(self) -> float:
        """One sweep, the left side and then the right; returns the loss between the two, or after it with branches."""
        left, right = self.branches
        self.P, self.Q, _ = self._solve(self.loss, self.P, self.Q, left, right)
        self.Q, self.P, between = self._solve(self.turned, self.Q, self.P, right, left)
        return between.value() if left is None and right is None else self.value()

    def solved_left(self) -> Tensor:
        """P (m, k) that is best for the present Q; the solver stays as it is."""
        return self._solve(self.loss, self.P, self.Q, self.branches[0], self.branches[1])[0]

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
        loss = loss.part(current())  # P's own rows from here on
        if self.block_size is None:
            spectrum, turn = torch.linalg.eigh(loss.omega * loss.at(P[loss.rows], Q).right_gram)
            loss.group.broadcast(spectrum.numpy(), turn.numpy())  # machines may round differently
            turn = turn.to(P)
            P, Q = P @ turn, Q @ turn
            for follower in (branch, other):
                if follower is not None:
                    follower.turn(turn)
            solve = _by_conjugate_gradients(spectrum.clamp(min=0).to(P), self.steps)
            blocks = [slice(None)]
        else:
            solve = _exactly
            blocks = torch.arange(P.shape[1]).split(self.block_size)
        before = loss.at(P[loss.rows], Q)
        if self.block_size is None and loss.omega:
            before.right_gram = torch.diag(spectrum.double()) / loss.omega  # known, so not summed again
        mean = None if branch is None else branch.predict()[loss.rows]
        point = before
        for columns in blocks:
            point = loss.at(_improve(loss, point, solve, columns, mean), Q)
        P = gathered(point.P, loss.group)
        if branch is not None:
            branch.step(P)
            unpaired = branch.weights.reshape(-1) == 0
            if unpaired.any():  # nothing but its features says where such a row is
                P[unpaired] = branch.predict()[unpaired]
        return P, Q, before


def _improve(
    loss: AllPairsLoss, point: AllPairsPoint, solve: Callable, columns: Tensor | slice, mean: Tensor | None
) -> Tensor:
    """P after a Newton step on some of its columns; full for a quadratic, else as far as Armijo's rule goes."""
    gradient = point.left_gradient()
    if mean is not None:
        gradient -= point.constants.ridge_left * mean
    P = point.P.clone()
    if isinstance(loss.loss, Squared):
        P[:, columns] += solve(point, gradient, columns)
        return P
    direction = torch.zeros_like(P)
    direction[:, columns] = solve(point, gradient, columns)

    towards = 0.0 if mean is None else float((point.constants.ridge_left * mean * direction).sum())
    sums = np.array([towards, float((gradient * direction).sum(dtype=torch.float64))])
    loss.group.all_reduce(sums)

    def along(t: float) -> float:
        return loss.value(point.P + t * direction, point.Q) - t * float(sums[0])

    slope = min(float(sums[1]), 0.0)
    return P.add_(direction, alpha=armijo(along, point.value(), slope).step)


def _by_conjugate_gradients(spectrum: Tensor, steps: int) -> Callable:
    def solve(point: AllPairsPoint, gradient: Tensor, columns: slice) -> Tensor:
        del columns  # all of them
        return _by_rows(kernels.solve_rows_cg, point, point.Q, spectrum, gradient, steps)

    return solve


def _exactly(point: AllPairsPoint, gradient: Tensor, columns: Tensor) -> Tensor:
    Q = point.Q[:, columns].contiguous()
    gram = (point.omega * point.right_gram[columns][:, columns]).to(Q)
    return _by_rows(kernels.solve_rows_exactly, point, Q, gram, gradient[:, columns].contiguous())


def _by_rows(kernel: Callable, point: AllPairsPoint, Q: Tensor, gram: Tensor, gradient: Tensor, *extra: int) -> Tensor:
    """Directions of all rows by a kernel of `pair_kernels`."""
    c, out = point.constants, torch.empty_like(gradient)
    arrays = (point.curvature, Q, gram, c.a.reshape(-1), c.ridge_left.reshape(-1), gradient, out)
    by_blocks(
        kernel, point.pairs.indptr, point.pairs.indices, *(array.contiguous().numpy() for array in arrays), *extra
    )
    return out
