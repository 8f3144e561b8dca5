"""Towers and index learned together, block by block: users, codes, codebooks, each the best for the others.

Alternating least squares, or sweeps of a softmax on cosines, first give exact tables P0 and Q0, the teacher. What an
index must keep are the scores near the top of each left entity's list, so the student, left vectors P and quantized
right vectors T, minimises

    sum over pairs (i, j) on a list of (p_i . t_j - p0_i . q0_j)^2 / 2
    + (omega / 2) sum over all other pairs of (p_i . t_j - p0_i . q0_j)^2,

an all-pairs loss whose labels and whose prior are the teacher's scores (ESL, eq. 5), at the cost of m + n. Every block
is exact least squares or a descent in codes, so nothing is tuned; see docs/end_to_end.md for what each block gains.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from nearkin._distributed import ALONE, Group
from nearkin._types import Record
from nearkin.contracts import JointIndex
from nearkin.embedding.all_pairs.loss import AllPairsLoss
from nearkin.embedding.all_pairs.row_solves import descend_left, descend_right
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax
from nearkin.embedding.two_tower.plan import Plan
from nearkin.embedding.two_tower.solvers.als import ALS
from nearkin.embedding.two_tower.solvers.sphere import SphereSweeps
from nearkin.embedding.two_tower.training import AbstractSolver, Limits
from nearkin.metrics.ranking import recommend
from nearkin.records import Interactions, RowForms

SWEEPS = 8  # of the teacher
SPHERE_SWEEPS = 4  # of a teacher with a softmax on cosines, in each of those steps
ROUNDS = 4  # of the blocks; more gain little
BLOCK = 8192  # left rows whose lists are made at a time
DEPTH = 200  # length of a list: what is asked for is rarely more than 100, and the next ones must stay behind them;
# of a small catalogue a quarter, since a list of everything singles nothing out
UNLISTED_MASS = 1.0  # what all pairs together weigh, in units of the listed ones
_RIDGE = 1e-4  # of the mean curvature: settles directions that no score depends on


@dataclass(eq=False, repr=False, kw_only=True)
class Joint(BaseEstimator):
    """`TwoTower(index=..., solver=Joint(...))`: id tables and an `IndexingLayer` learned together, block by block.

    max_iter: steps, of which the first eight are sweeps of the towers (four sweeps each under `CosineSoftmax`), the
    ninth starts the index and each later one is a round of codes, codebooks and left vectors; at least 9. max_seconds,
    patience: as in `ALS`.
    """

    max_iter: int = SWEEPS + 1 + ROUNDS
    max_seconds: float | None = None
    patience: int = 10

    name: ClassVar[str] = "joint"
    start: ClassVar[str] = "random"
    tables_only: ClassVar[bool] = True
    through_index: ClassVar[bool] = True

    def limits(self) -> Limits:
        limits = Limits(self.max_iter, self.max_seconds, self.patience)
        if self.max_iter <= SWEEPS:
            raise ValueError(
                f"max_iter is {self.max_iter}, but solver 'joint' starts the index at step {SWEEPS + 1}, after "
                f"{SWEEPS} sweeps of the towers: it would never start. Give {SWEEPS + 1} or more, or leave it out"
            )
        return limits

    def from_plan(self, plan: Plan) -> "JointBlocks":
        if not isinstance(plan.index, JointIndex):
            raise TypeError("index cannot be learned by blocks; use solver='adam'")
        pairs, weights = plan.objective.interactions, plan.objective.weights
        if isinstance(plan.loss, CosineSoftmax):
            teacher, sweeps = SphereSweeps(max_iter=SPHERE_SWEEPS * SWEEPS).from_plan(plan), SPHERE_SWEEPS
        else:
            teacher, sweeps = ALS().from_plan(plan), 1
        return JointBlocks(teacher, plan.index, pairs, weights, plan.group, sweeps=sweeps)


class JointBlocks(AbstractSolver):
    """Teacher sweeps, then rounds of (codes, codebooks, users) through an index with `start`, `descend` and `phase`.

    The index starts from the teacher's right vectors, each counting as often as it was observed (as it would in
    mini-batches). From then on the right embeddings are the quantized ones.
    """

    def __init__(
        self,
        teacher: AbstractSolver,
        index: JointIndex,
        seen: Interactions,
        weights: np.ndarray,
        group: Group = ALONE,
        *,
        sweeps: int = 1,
    ) -> None:
        self.teacher, self.index, self.seen, self.group, self.sweeps = teacher, index, seen, group, sweeps
        self.importance = 1.0 + np.bincount(seen.indices, weights, minlength=seen.shape[1])
        self._observed_weight = float(np.sum(weights))
        self.done, self.distortion = 0, 0.0
        self.left, self.right = teacher.embeddings()
        self._student: AllPairsLoss | None = None
        self._nothing: float | None = None  # the student's loss where all scores are 0

    def step(self) -> float:
        """One sweep of the teacher, or one round; returns the loss, of a round as a share of what no vectors give."""
        self.done += 1
        if self.done <= SWEEPS:
            values = [self.teacher.step() for _ in range(self.sweeps)]
            self.left, self.right = self.teacher.embeddings()
            return values[-1] / self._observed_weight
        self._start() if self.done == SWEEPS + 1 else self._round()
        self.distortion = float((self.right - self.exact()[1]).square_().sum(1).mean())
        self.left = descend_left(self.student, self.left, self.right, self.group)
        if self._nothing is None:
            self._nothing = self.student.value(*(X.new_zeros(len(X), 1) for X in (self.left, self.right)))
        return self.student.value(self.left, self.right) / self._nothing

    def exact(self) -> tuple[Tensor, Tensor]:
        """The teacher's tables."""
        return self.teacher.embeddings()

    def ready(self) -> bool:
        return self.done > SWEEPS

    def notes(self) -> Record:
        return {"phase": "index" if self.ready() else "teacher", "distortion": self.distortion}

    def embeddings(self) -> tuple[Tensor, Tensor]:
        return self.left, self.right

    def state(self) -> dict[str, Tensor]:
        index = {f"index.{name}": value for name, value in self.index.state_dict().items()}
        progress = torch.tensor([self.done, self.distortion], dtype=torch.float64)
        return self.teacher.state() | index | {"left": self.left, "right": self.right, "progress": progress}

    def settled(self) -> Collection[str]:
        """The teacher's tables, once it has learned."""
        return self.teacher.state().keys() if self.ready() else ()

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._student = self._nothing = None
        self.teacher.load_state(state)
        self.index.load_state_dict({name[6:]: value for name, value in state.items() if name.startswith("index.")})
        self.left, self.right = state["left"].clone(), state["right"].clone()
        self.done, self.distortion = int(state["progress"][0]), float(state["progress"][1])

    @property
    def student(self) -> AllPairsLoss:
        """The student's loss, made when the teacher is done."""
        if self._student is None:
            self._student = student_loss(*self.exact(), self.seen)
        return self._student

    def _start(self) -> None:
        Q = self.exact()[1]
        if not self.index.start(Q, weights=self.importance):
            raise ValueError(f"the index needs more rows than the {len(Q)} right entities; give a smaller n_centroids")
        with torch.no_grad():
            self.right = self.index.eval()(Q)[0].detach()

    def _round(self) -> None:
        """Codes by each row's own curvature, then the codebooks."""
        self.right = self.index.descend(
            self.right, descend_right(self.student, self.left, self.right, self.group),
            right_forms(self.student, self.left, self.right),
        )[0]  # fmt: skip


def student_loss(P: Tensor, Q: Tensor, seen: Interactions) -> AllPairsLoss:
    """The all-pairs loss of an index's scores against the teacher's P (m, k), Q (n, k); seen pairs are on no list."""
    m, n = seen.shape
    lists = listed(P.numpy(), Q.numpy(), min(DEPTH, -(-n // 4)), seen)
    curvature = [lists.nnz * float(X.square().mean()) / len(Y) for X, Y in ((Q, P), (P, Q))]
    return AllPairsLoss(
        lists, omega=UNLISTED_MASS * lists.nnz / (m * n), weights=1.0, prior=(P, Q), regularization=_RIDGE,
        ridge=(np.full(m, curvature[0]), np.full(n, curvature[1])),
    )  # fmt: skip


def listed(P: np.ndarray, Q: np.ndarray, depth: int, seen: Interactions) -> sp.csr_matrix:
    """(m, n) scores of each left row's first `depth` unseen rights, sorted by number; a block of rows at a time."""
    scores, numbers, counts = [], [], [np.zeros(1, np.int64)]
    for first in range(0, len(P), BLOCK):
        near, found = recommend(P, Q, depth, seen=seen, rows=np.arange(first, min(first + BLOCK, len(P))))
        order = np.argsort(found, axis=1)
        found, near = (np.take_along_axis(x, order, axis=1) for x in (found, near))
        scores.append(near[found >= 0])
        numbers.append(found[found >= 0].astype(np.int32))
        counts.append((found >= 0).sum(axis=1))
    starts = np.cumsum(np.concatenate(counts))
    return sp.csr_matrix((np.concatenate(scores), np.concatenate(numbers), starts), (len(P), len(Q)))


def right_forms(loss: AllPairsLoss, P: Tensor, Q: Tensor) -> RowForms:
    """How the loss measures errors of the rows of Q (n, k) for fixed P."""
    point, columns = loss.at(P, Q), loss.pairs.columns
    curvature = point.curvature.expand(len(columns.rows)).numpy()
    return RowForms(
        gram=(point.omega * point.left_gram).float().numpy(),
        ridge=point.constants.ridge_right.reshape(-1).expand(len(Q)).numpy(),
        indptr=columns.indptr, places=columns.rows, curvature=curvature[columns.order], points=P.numpy(),
    )  # fmt: skip
