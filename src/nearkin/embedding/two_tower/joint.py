"""Towers and index trained together by block coordinate descent: users, codes, codebooks, each for the others fixed.

Alternating least squares, or sweeps of a softmax on cosines, first give exact tables P0 and Q0, the teacher. An index
must keep the scores near the top of each user's list, so the student, left vectors P and quantized right vectors
T, minimises

    sum over pairs (i, j) on a list of (p_i . t_j - p0_i . q0_j)^2 / 2
    + (omega / 2) sum over all other pairs of (p_i . t_j - p0_i . q0_j)^2,

an all-pairs loss whose labels and whose prior are the teacher's scores (ESL, eq. 5), at the cost of m + n. Every block
is exact least squares or a descent in codes, without a step size; docs/end_to_end.md has the gain of each block."""

from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from nearkin._distributed import ALONE, Group
from nearkin._guard import cached_property
from nearkin._types import Record
from nearkin.contracts import JointIndex, TrainableIndex
from nearkin.embedding.all_pairs.loss import AllPairsLoss
from nearkin.embedding.two_tower.als import ALS, descend_left
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax, SphereSweeps
from nearkin.embedding.two_tower.towers import AbstractSolver, TowerPair
from nearkin.metrics.ranking import recommend
from nearkin.records import Interactions, RowForms

BLOCK = 8192  # left rows whose lists are made at a time


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of joint learning (2026-11, gowalla and ml100k, `python -m benchmarks end_to_end`)."""

    sweeps: int = 8  # of the teacher
    sphere_sweeps: int = 4  # softmax sweeps in each of these steps, for a teacher on cosines
    rounds: int = 4  # rounds of the blocks; with three Recall@20 on gowalla is equal to .0001
    depth: int = 200  # length of a list: k is rarely above 100, and the next entities must rank lower
    unlisted_mass: float = 1.0  # total weight of all pairs, relative to the listed ones
    ridge: float = 1e-4  # share of the mean curvature, for directions on which no score depends


DEFAULTS = Defaults()


@dataclass(eq=False, repr=False, kw_only=True)
class Joint(AbstractSolver):
    """`TwoTower(index=..., solver=Joint(...))`: id tables and an `IndexingLayer` trained together, block by block.

    Teacher sweeps, then rounds of (codes, codebooks, users) through the index. It starts from the teacher's right
    vectors, weighted by their numbers of pairs as in mini-batches; from then on the right embeddings are the quantized
    ones. max_iter: steps, at least 9, None for 13; the first eight are sweeps of the towers (four sweeps each under
    `CosineSoftmax`), the ninth starts the index, and each later one is a round. max_seconds, patience: as in `ALS`.
    """

    max_iter: int | None = None

    name: ClassVar[str] = "joint"
    tables_only: ClassVar[bool] = True
    replaced: ClassVar[tuple[str, ...]] = ("left", "right")

    def check(self, all_pairs: bool) -> None:
        first = DEFAULTS.sweeps + 1
        self.max_iter = first + DEFAULTS.rounds if self.max_iter is None else self.max_iter
        super().check(all_pairs)
        if self.max_iter < first:
            raise ValueError(f"max_iter is {self.max_iter}; solver 'joint' starts the index at step {first}; give more")

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        teacher, sweeps = ALS(), 1
        if isinstance(loss, CosineSoftmax):
            sweeps = DEFAULTS.sphere_sweeps
            teacher = SphereSweeps(max_iter=sweeps * DEFAULTS.sweeps)
        objective, index = pair.objective, cast(JointIndex, pair.index)
        self.follow(teacher.begin(pair, loss), index, objective.interactions, objective.weights, pair.left.group)
        self.sweeps = sweeps
        return self

    def follow(
        self, teacher: AbstractSolver, index: JointIndex, seen: Interactions, weights: np.ndarray, group: Group = ALONE
    ) -> Self:
        """Begin with this teacher; `weights` (nnz,) are the importances of the seen pairs."""
        self.teacher: AbstractSolver = teacher
        self.index: JointIndex = index
        self.seen: Interactions = seen
        self.group: Group = group
        self.sweeps: int = 1
        self.importance: np.ndarray = 1.0 + np.bincount(seen.indices, weights, minlength=seen.shape[1])
        self.done: int = 0
        self.distortion: float = 0.0
        self.left: Tensor
        self.right: Tensor
        self.left, self.right = teacher.embeddings()
        return self

    def step(self) -> float:
        """One sweep of the teacher, or one round; returns the loss, of a round the student's."""
        self.done += 1
        if self.done <= DEFAULTS.sweeps:
            values = [self.teacher.step() for _ in range(self.sweeps)]
            self.left, self.right = self.teacher.embeddings()
            return values[-1]
        if self.done == DEFAULTS.sweeps + 1:
            self._start()
        else:  # codes by each row's own curvature, then the codebooks
            targets = descend_left(self.student.transposed(), self.right, self.left, self.group)
            self.right = self.index.descend(self.right, targets, right_forms(self.student, self.left, self.right))[0]
        self.distortion = float((self.right - self.exact()[1]).square_().sum(1).mean())
        self.left = descend_left(self.student, self.left, self.right, self.group)
        return self.student.value(self.left, self.right) / self.student.observed_weight

    def exact(self) -> tuple[Tensor, Tensor]:
        """The teacher's tables."""
        return self.teacher.embeddings()

    def ready(self) -> bool:
        return self.done > DEFAULTS.sweeps

    def notes(self) -> Record:
        return {"phase": "index" if self.ready() else "teacher", "distortion": self.distortion}

    def embeddings(self) -> tuple[Tensor, Tensor]:
        return self.left, self.right

    def modules(self) -> list[nn.Module | TrainableIndex]:
        return [self.index]

    @cached_property
    def student(self) -> AllPairsLoss:
        """The student's loss, made after the teacher's last sweep."""
        return student_loss(*self.exact(), self.seen)

    def _start(self) -> None:
        Q = self.exact()[1]
        if not self.index.start(Q, weights=self.importance):
            raise ValueError(f"the index needs more vectors than the {len(Q)} items; give a smaller n_centroids")
        with torch.no_grad():
            self.right = self.index.eval()(Q)[0].detach()


def student_loss(P: Tensor, Q: Tensor, seen: Interactions) -> AllPairsLoss:
    """The all-pairs loss of an index's scores against the teacher's P (m, k), Q (n, k); seen pairs are on no list."""
    m, n = seen.shape
    # lists longer than a quarter of the right entities would not emphasize the top
    lists = listed(P.numpy(), Q.numpy(), min(DEFAULTS.depth, -(-n // 4)), seen)
    curvature = [lists.nnz * float(X.square().mean()) / len(Y) for X, Y in ((Q, P), (P, Q))]
    return AllPairsLoss(
        lists, omega=DEFAULTS.unlisted_mass * lists.nnz / (m * n), weights=1.0, prior=(P, Q),
        regularization=DEFAULTS.ridge, ridge=(np.full(m, curvature[0]), np.full(n, curvature[1])),
    )  # fmt: skip


def listed(P: np.ndarray, Q: np.ndarray, depth: int, seen: Interactions) -> sp.csr_matrix:
    """(m, n) scores of each user's first `depth` unseen items, sorted by number; a block of rows at a time."""
    blocks = []
    for first in range(0, len(P), BLOCK):
        scores, numbers = recommend(P, Q, depth, seen=seen, users=np.arange(first, min(first + BLOCK, len(P))))
        rows, places = np.nonzero(numbers >= 0)
        entries = scores[rows, places], (rows, numbers[rows, places])
        blocks.append(sp.csr_matrix(entries, (len(scores), len(Q))))
    return sp.csr_matrix(sp.vstack(blocks))


def right_forms(loss: AllPairsLoss, P: Tensor, Q: Tensor) -> RowForms:
    """The curvature of the loss at the rows of Q (n, k) for fixed P."""
    point, columns = loss.at(P, Q), loss.pairs.columns
    curvature = point.curvature.expand(len(columns.rows)).numpy()
    return RowForms(
        gram=(point.omega * point.left_gram).float().numpy(),
        ridge=point.constants.ridge_right.reshape(-1).expand(len(Q)).numpy(),
        indptr=columns.indptr, places=columns.rows, curvature=curvature[columns.order], points=P.numpy(),
    )  # fmt: skip
