"""Alternating least squares under the all-pairs loss, and the same solution for new rows with the other side fixed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple, Self, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from nearkin._check import check_vectors, each_once
from nearkin._distributed import ALONE, Group
from nearkin._fields import Extra
from nearkin._pairs import MatrixLike, number_ids, unordered
from nearkin._types import ArrayLike
from nearkin.contracts import TrainableIndex
from nearkin.embedding.all_pairs.loss import SQUARED, AllPairsLoss, AllPairsPoint
from nearkin.embedding.all_pairs.products import by_blocks, compiled, gathered
from nearkin.embedding.two_tower.objective import AllPairs
from nearkin.embedding.two_tower.towers import AbstractSolver, FeatureBranch, Side, TowerPair, as_tensor
from nearkin.records import Interactions
from nearkin.solvers.newton import armijo


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of alternating least squares (2026-11, ml100k and gowalla, without a recorded table)."""

    branch_rate: float = 3e-3  # Adam's rate for a branch of features
    # tried for its last layer: the first and the last power of 10, and how many. With .001 always the NDCG@20 of known
    # lefts of WordNet is .066 instead of .094 (three seeds), with .0001 two small planted sets lose .02
    dampings: tuple[float, float, int] = (-6, 1, 15)


DEFAULTS = Defaults()


@dataclass(eq=False, repr=False, kw_only=True)
class ALS(AbstractSolver):
    """`TwoTower(solver=ALS(...))`: one least-squares problem a row, one side at a time; for the default towers.

    For the squared loss this is ALS for implicit feedback with a warm start; for another convex loss it is one Newton
    step for each row, with an Armijo search for each side. A row is solved by conjugate gradients in the eigenbasis of
    the other side's Gramian, where it is diagonal: a product costs O(nnz_i k) instead of O(nnz_i k + k^2), and the
    exact diagonal preconditions it. The rotation into this basis changes no score, so it is not undone. With
    `block_size` the columns are solved in blocks, as in iALS++, to convergence; `block_size` >= k is the textbook's
    exact ALS.

    Several processes, each with both tables, share the rows. With branches of features, rows shrink towards g(x_i)
    instead of 0, and each sweep ends a side with a step of its branch's regression: every block lowers one objective.

    Parameters
    ----------
    max_iter: sweeps over both sides.
    max_seconds: no sweep begins after this time.
    patience: sweeps without a new best held-out NDCG@100 before the fit stops.
    cg_steps: conjugate-gradient steps a row.
    block_size: columns that are solved together to convergence instead, as in iALS++, whose usual 16 are
        `solver="ials++"`.

    Attributes
    ----------
    max_iter, max_seconds, patience, cg_steps, block_size: as given.

    References
    ----------
    Hu, Koren & Volinsky (2008), Collaborative filtering for implicit feedback datasets; Rendle et al. (2021), iALS++,
    arXiv:2110.14044.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs(*np.random.default_rng(0).integers(0, 40, (2, 400)))
    >>> model = nk.TwoTower(4, loss="all-pairs", solver=nk.embedding.ALS(max_iter=3), regularization=0.1).fit(pairs)
    >>> len(model.history_)
    3
    """

    max_iter: int | None = 8
    cg_steps: int = 2
    block_size: int | None = None

    tables_only: ClassVar[bool] = True
    through_index: ClassVar[bool] = False
    replaced: ClassVar[tuple[str, ...]] = ("P", "Q")

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "als" if self.block_size is None else "ials++"

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        objective = pair.objective
        counts = np.diff(objective.interactions.indptr), np.diff(objective.interactions.columns.indptr)
        left, right = (
            BranchRegression(side, torch.from_numpy(np.where(count > 0, ridge, 0)), generator=pair.generator)
            if isinstance(side.encoder, FeatureBranch)
            else None
            for side, ridge, count in zip(pair.sides, objective.ridge, counts, strict=True)
        )
        return self.alternate(objective.loss(pair.strength), *pair.tables(), (left, right), pair.left.group)

    def alternate(
        self,
        loss: AllPairsLoss,
        P: Tensor,
        Q: Tensor,
        branches: "tuple[BranchRegression | None, BranchRegression | None]" = (None, None),
        group: Group = ALONE,
    ) -> Self:
        """Begin from tables P (m, k) and Q (n, k), which are copied."""
        self.loss: AllPairsLoss = loss
        self.branches: tuple[BranchRegression | None, BranchRegression | None] = branches
        self._own = loss.part(group), loss.transposed().part(group)  # this process's rows
        self.P, self.Q = P.clone(), Q.clone()
        return self

    def step(self) -> float:
        """One sweep, the left side and then the right; returns the loss between the two, or after it with branches."""
        self._improve(0)
        between = self._improve(1)
        value = between.value() if self.branches == (None, None) else self.value()
        return value / self.loss.observed_weight

    def value(self) -> float:
        """The loss; with branches its penalty is that of the embeddings' distance from them."""
        total = self.loss.value(self.P, self.Q)
        c = self.loss.at(self.P, self.Q).constants
        for X, ridge, branch in zip((self.P, self.Q), (c.ridge_left, c.ridge_right), self.branches, strict=True):
            if branch is not None:
                mean = branch.side.encoded()
                total += float((ridge * (0.5 * mean.square() - X * mean)).sum(dtype=torch.float64))
        return total

    def embeddings(self) -> tuple[Tensor, Tensor]:
        return self.P, self.Q

    def modules(self) -> list[nn.Module | TrainableIndex]:
        return [branch.branch for branch in self.branches if branch is not None]

    def _improve(self, side: int) -> AllPairsPoint:
        """Improve the rows of a side for fixed others, which are rotated with them; returns the point before."""
        loss, branch = self._own[side], self.branches[side]
        X, Y = (self.Q, self.P) if side else (self.P, self.Q)
        spectrum, turn = eigenbasis(loss, X, Y)
        X, Y = X @ turn, Y @ turn
        for follower in self.branches:
            if follower is not None:
                follower.turn(turn)
        mean = None if branch is None else branch.side.encoded()[loss.rows]
        before, X = improve_left(loss, X, Y, spectrum, cg_steps=self.cg_steps, block_size=self.block_size, mean=mean)
        if branch is not None:
            branch.step(X)
            unpaired = branch.weights.reshape(-1) == 0
            if unpaired.any():  # only its features determine such a row
                X[unpaired] = branch.side.encoded()[unpaired]
        self.P, self.Q = (Y, X) if side else (X, Y)
        return before


class BranchRegression:
    """Fit g(x_i) to given embeddings p_i = e_i + g(x_i) in the norm of the ids' penalty, sum of weight_i |p_i -
    g(x_i)|^2. For fixed p_i the best branch is this regression, and no pair is touched. One `step` is an epoch of Adam,
    then the exact last linear layer at a cost of m h^2. Rows without a pair have weight 0."""

    def __init__(self, side: Side, weights: Tensor, *, generator: torch.Generator) -> None:
        self.side: Side = side
        self.generator: torch.Generator = generator
        self.rows: int = int((weights > 0).sum())
        self.branch: FeatureBranch = cast(FeatureBranch, side.encoder)
        mean = weights.sum().clamp(min=1e-30) / max(self.rows, 1)
        self.weights: Tensor = (weights / mean).reshape(-1, 1).float()
        self.optimizer: torch.optim.Adam = torch.optim.Adam(self.branch.parameters(), lr=DEFAULTS.branch_rate)

    def turn(self, turn: Tensor) -> None:
        """Apply a rotation of the embeddings: g(x) becomes g(x) @ turn."""
        with torch.no_grad():
            self.branch.last.weight.copy_(turn.T @ self.branch.last.weight)
            self.branch.last.bias.copy_(self.branch.last.bias @ turn)

    def step(self, targets: Tensor) -> None:
        """One epoch towards `targets` (n_rows, k), then the exact last layer."""
        for rows in torch.randperm(self.side.n_rows, generator=self.generator).split(1024):  # one step
            error = self.branch(self.side.feature_rows(rows)) - targets[rows]
            self.optimizer.zero_grad()
            (self.weights[rows] * error.square()).mean().backward()
            self.optimizer.step()
        self._solve_last_layer(targets)

    @torch.no_grad()
    def _solve_last_layer(self, targets: Tensor) -> None:
        """Weighted ridge regression of the targets on (hidden, 1), in float64."""
        width = self.branch.last.in_features + 1
        A = torch.zeros((width, width), dtype=torch.float64)
        B = torch.zeros((width, targets.shape[1]), dtype=torch.float64)
        squares = 0.0
        for rows in self.side.chunks():
            hidden = self.branch.hidden(self.side.feature_rows(rows)).double()
            hidden = torch.cat([hidden, torch.ones(len(hidden), 1, dtype=torch.float64)], 1)
            weighted, Y = (hidden * self.weights[rows]).T, targets[rows].double()
            A += weighted @ hidden
            B += weighted @ Y
            squares += float((self.weights[rows] * Y.square()).sum())
        solution = solve_by_cross_validation(A, B, squares, self.rows)
        self.branch.last.weight.copy_(solution[:-1].T)
        self.branch.last.bias.copy_(solution[-1])


def solve_by_cross_validation(A: Tensor, B: Tensor, squares: float, n: int) -> Tensor:
    """(A + d I)^-1 B with the damping d of least generalized cross-validation error (Golub, Heath and Wahba 1979).

    A = X^T X (h, h), B = X^T Y (h, k), squares = |Y|^2 over n rows; the error is |Y - X S|^2 / (n - trace of the hat
    matrix)^2. One eigendecomposition serves every damping.
    """
    spectrum, turn = torch.linalg.eigh(A)
    spectrum = spectrum.clamp(min=0)
    turned = turn.T @ B
    energy = turned.square().sum(1)
    best, chosen = float("inf"), float(spectrum[-1])
    for damping in float(spectrum[-1].clamp(min=1e-12)) * torch.logspace(*DEFAULTS.dampings, dtype=torch.float64):
        shrunk = 1 / (spectrum + damping)
        residual = squares - float((energy * shrunk * (2 - spectrum * shrunk)).sum())
        free = n - float((spectrum * shrunk).sum())
        error = max(residual, 0.0) / free**2 if free > 0 else float("inf")
        if error < best:
            best, chosen = error, float(damping)
    return turn @ (turned / (spectrum + chosen)[:, None])


# ---- rows of one side while the other is fixed ----------------------------------------------------------------------


def descend_left(
    loss: AllPairsLoss, P: Tensor, Q: Tensor, group: Group = ALONE, *, mean: Tensor | None = None
) -> Tensor:
    """(m, k) the minimiser of a squared loss over P for fixed Q; of another loss, the next point of Newton's method.

    Rows shrink towards `mean`, as in `improve_left`.
    """
    part = loss.part(group)
    spectrum, turn = eigenbasis(part, P, Q)
    mean = None if mean is None else mean @ turn
    return improve_left(part, P @ turn, Q @ turn, spectrum, block_size=P.shape[1], mean=mean)[1] @ turn.T


def eigenbasis(loss: AllPairsLoss, P: Tensor, Q: Tensor) -> tuple[Tensor, Tensor]:
    """Spectrum (k,) float64 and eigenvectors (k, k) of omega Q^T B Q: a basis that changes no score."""
    spectrum, turn = torch.linalg.eigh(loss.omega * loss.at(P[loss.rows], Q).right_gram)
    loss.group.broadcast(spectrum.numpy(), turn.numpy())  # machines may round differently
    return spectrum, turn.to(P)


def improve_left(
    loss: AllPairsLoss,
    P: Tensor,
    Q: Tensor,
    spectrum: Tensor,
    *,
    cg_steps: int = 2,
    block_size: int | None = None,
    mean: Tensor | None = None,
) -> tuple[AllPairsPoint, Tensor]:
    """A Newton step on every row of P (m, k): the point before it, of the rows of `loss`, and all rows after it.

    The tables are in the `eigenbasis` of this spectrum. With `block_size` it is a step in each block of columns, solved
    to convergence. Rows shrink towards `mean` (rows, k), by default 0. A loss that is not quadratic gets an Armijo
    search.
    """
    before = point = loss.at(P[loss.rows], Q)
    if loss.omega:
        before.right_gram = torch.diag(spectrum.double()) / loss.omega  # known, so not summed again
    width, steps = (P.shape[1], cg_steps) if block_size is None else (block_size, 4 * block_size)
    for first in range(0, P.shape[1], width):
        columns = slice(first, first + width)
        gradient, direction = point.left_gradient(), torch.zeros_like(point.P)
        if mean is not None:
            gradient -= point.constants.ridge_left * mean
        direction[:, columns] = _newton_steps(point, gradient[:, columns], columns, spectrum, steps)
        length = 1.0 if loss.loss == SQUARED else _step_size(loss, point, gradient, direction, mean)
        point = loss.at(torch.add(point.P, direction, alpha=length, out=direction), Q)
        point.right_gram = before.right_gram
    return before, gathered(point.P, loss.group)


def _step_size(
    loss: AllPairsLoss, point: AllPairsPoint, gradient: Tensor, direction: Tensor, mean: Tensor | None
) -> float:
    """How far to go along a direction, by Armijo's rule."""
    towards = 0.0 if mean is None else float((point.constants.ridge_left * mean * direction).sum())
    sums = np.array([towards, float((gradient * direction).sum(dtype=torch.float64))])
    loss.group.all_reduce(sums)

    def along(t: float) -> float:
        return loss.value(point.P + t * direction, point.Q) - t * float(sums[0])

    return armijo(along, point.value(), min(float(sums[1]), 0.0)).step_size


def _newton_steps(point: AllPairsPoint, gradient: Tensor, columns: slice, spectrum: Tensor, cg_steps: int) -> Tensor:
    """The steps of all rows in some columns of this gradient."""
    c, out = point.constants, torch.empty(gradient.shape, dtype=gradient.dtype)
    Q, flat = point.Q[:, columns], spectrum.clamp(min=0)[columns].to(point.Q)
    arrays = (point.curvature, Q, flat, c.a.reshape(-1), c.ridge_left.reshape(-1), gradient, out)
    given = (*(X.contiguous().numpy() for X in arrays), cg_steps, float(spectrum[-1]))
    by_blocks(solve_rows, point.pairs.indptr, point.pairs.indices, *given)
    return out


@compiled
def solve_rows(start, stop, indptr, indices, curvature, Q, spectrum, cost, ridge, gradient, out, steps, top):
    """Solve (cost_i diag(spectrum) + ridge_i I + sum_e curvature_e q_j q_j^T) d_i = -gradient_i by CG, preconditioned
    by the exact diagonal; P and Q are in the eigenbasis, so a product costs O(nnz_i k). `top` is the largest of all
    columns' spectra."""
    k = Q.shape[1]
    one = Q.dtype.type(1)
    smallest = (10 * np.finfo(Q.dtype).eps) ** 2  # of |r|^2: a residual as large as its rounding
    x, r, s = np.empty(k, Q.dtype), np.empty(k, Q.dtype), np.empty(k, Q.dtype)
    p, Hp, inverse = np.empty(k, Q.dtype), np.empty(k, Q.dtype), np.empty(k, Q.dtype)
    for i in range(start, stop):
        for c in range(k):
            inverse[c] = cost[i] * spectrum[c] + ridge[i]
        for e in range(indptr[i], indptr[i + 1]):
            q, h = Q[indices[e]], curvature[e]
            for c in range(k):
                inverse[c] += h * q[c] * q[c]
        rs, largest = Q.dtype.type(0), Q.dtype.type(cost[i] * top)
        for c in range(k):
            largest = max(largest, inverse[c])
        noise = smallest * largest
        for c in range(k):  # a column of rounding errors stays, since nothing determines its step, without ridge
            inverse[c] = one / inverse[c] if inverse[c] > noise else Q.dtype.type(0)
            x[c], r[c] = 0, -gradient[i, c]
            p[c] = inverse[c] * r[c]
            rs += r[c] * p[c]
        converged = rs * smallest
        for _ in range(steps):
            if rs <= converged:
                break
            for c in range(k):
                Hp[c] = (cost[i] * spectrum[c] + ridge[i]) * p[c]
            for e in range(indptr[i], indptr[i + 1]):
                q = Q[indices[e]]
                t = Q.dtype.type(0)
                for c in range(k):
                    t += q[c] * p[c]
                t *= curvature[e]
                for c in range(k):
                    Hp[c] += t * q[c]
            pHp = Q.dtype.type(0)
            for c in range(k):
                pHp += p[c] * Hp[c]
            if pHp <= 0:
                break
            alpha, new = rs / pHp, Q.dtype.type(0)
            for c in range(k):
                x[c] += alpha * p[c]
                r[c] -= alpha * Hp[c]
                s[c] = inverse[c] * r[c]
                new += r[c] * s[c]
            for c in range(k):
                p[c] = s[c] + (new / rs) * p[c]
            rs = new
        for c in range(k):
            out[i, c] = x[c]


# ---- new rows ------------------------------------------------------------------------------------------------------

History: TypeAlias = Interactions | sp.spmatrix | sp.sparray | np.ndarray | Sequence[Extra]
"""The history of new entities: pairs, a matrix of weights, or ids of one entity or of each."""


class FittedLoss(NamedTuple):
    """The loss that the model was fitted with."""

    loss: AllPairs
    omega: float
    strength: float  # lambda
    fitted: Interactions  # whose weights have the mean importance 1


class Known(NamedTuple):
    """The fixed side of a fold-in: its ids, embeddings, name, and its rows' costs as unobserved."""

    ids: np.ndarray
    embeddings: np.ndarray
    side: str  # "left" or "right"
    costs: np.ndarray


def fold_in(
    history: History, known: Known, model: FittedLoss, encoder: nn.Module | None, features: ArrayLike | None
) -> np.ndarray:
    """(b, k) float32, the minimisers of the loss over the new rows p_i for the fixed embeddings q_j,

        sum over the history w_ij l(Y_ij, p_i . q_j) + (omega / 2) sum over the others b_j (p_i . q_j)^2
        + (lambda / 2) r_i |p_i - g(x_i)|^2,

    r_i the weight that the row meets and g(x_i) the branch of its features, 0 without them: one solve of a k x k system
    a row (ESL, eq. 5 with a new row). A prior of several factors has no row for a new entity, which then gets 0.
    """
    pairs = matrix_of(history, known)
    mean = (
        None if encoder is None or features is None else encoded(encoder, features, "features", len(pairs.indptr) - 1)
    )
    return _solved(pairs, known, model, mean).P.numpy()


def explained(history: History, known: Known, model: FittedLoss) -> tuple[sp.csr_matrix, np.ndarray]:
    """The histories, one row each, and (nnz, k) parts whose sums over a row are its `fold_in` without features.

    Where the gradient is 0, A p = sum over the history (h_j s_j - g_j) q_j with A = omega Q^T B Q + lambda r I + sum
    h_j q_j q_j^T, s_j the score of item j, g_j and h_j the derivatives of its pair's term. Part j is A^-1 (h_j s_j -
    g_j) q_j; under the squared loss h_j s_j - g_j is the pair's weight times its label (Hu, Koren and Volinsky 2008,
    section 5). A `prior` adds A^-1 omega Yt Q^T b, which no item of the history has.
    """
    pairs = matrix_of(history, known)
    point = _solved(pairs, known, model, None)
    Q, h = known.embeddings.astype(np.float64), point.curvature.numpy().astype(np.float64)
    pull = h * point.scores.numpy() - point.slopes.numpy()
    everywhere = model.omega * point.right_gram.numpy()
    parts = np.empty((pairs.nnz, Q.shape[1]), known.embeddings.dtype)
    for row, (first, stop) in enumerate(pairwise(pairs.indptr)):
        X = Q[pairs.indices[first:stop]]
        A = everywhere + float(point.constants.ridge_left[row]) * np.eye(X.shape[1]) + (X.T * h[first:stop]) @ X
        parts[first:stop] = np.linalg.solve(A, (X * pull[first:stop, None]).T).T if len(X) else X
    return pairs, parts


def _solved(pairs: sp.csr_matrix, known: Known, model: FittedLoss, mean: Tensor | None) -> AllPairsPoint:
    """The loss of new rows with these pairs at its minimiser, the known side fixed."""
    loss, omega = model.loss, model.omega
    n, count = len(known.ids), len(pairs.indptr) - 1
    own, fitted = np.diff(pairs.indptr), model.fitted.columns if known.side == "right" else model.fitted
    degrees = np.repeat(own, own), np.diff(fitted.indptr)[pairs.indices]
    weights = loss.importance(pairs.data, degrees, model.fitted)
    row_weight = np.add.reduceat(np.append(weights, 0.0), pairs.indptr[:-1]) * (np.diff(pairs.indptr) > 0)
    ridge = row_weight + omega * known.costs.sum()
    of_rows = AllPairsLoss(
        pairs, loss=loss.pair_loss, omega=omega, labels=pairs.data if loss.labels == "weights" else 1.0,
        weights=weights, b=known.costs, prior=loss.prior if isinstance(loss.prior, int | float) else None,
        regularization=model.strength, ridge=(ridge, np.ones(n)),
    )  # fmt: skip
    Q = torch.from_numpy(known.embeddings)
    P = torch.zeros(count, Q.shape[1], dtype=Q.dtype)
    # for a loss that is not quadratic most rows need five steps
    for _ in range(1 if of_rows.loss == SQUARED else 20):
        P = descend_left(of_rows, P, Q, mean=mean)
    return of_rows.at(P, Q)


def matrix_of(history: History, known: Known) -> sp.csr_matrix:
    """One row an entity, one column an entity of the known side, the weights as values; ValueError without a pair."""
    n, side = len(known.ids), known.side
    if isinstance(history, np.ndarray) and history.dtype == bool:
        history = sp.csr_matrix(np.atleast_2d(history))
    if isinstance(history, Interactions):
        pairs, ids = sp.coo_matrix(history.matrix()), history.right_ids
        if side == "left":
            pairs, ids = pairs.T, history.left_ids
        columns, _ = number_ids(ids, known.ids, side)
        matrix = sp.csr_matrix((pairs.data, (pairs.row, columns[pairs.col])), (pairs.get_shape()[0], n))
    elif isinstance(history, sp.spmatrix | sp.sparray):
        matrix = sp.csr_matrix(history)
        if matrix.get_shape()[1] != n:
            raise ValueError(f"history has shape {matrix.shape}; it must be (b, {n}), a column for each {side} id")
        matrix.sum_duplicates()
    else:
        given = np.asarray(history) if hasattr(history, "columns") else history
        if isinstance(given, Mapping):
            raise TypeError(f"history is a {type(given).__name__}; give ids, or a sparse matrix of weights")
        for row in np.atleast_2d(given) if isinstance(given, np.ndarray) and given.dtype.kind != "O" else ():
            each_once(row, f"history of shape {given.shape} (weights are a scipy.sparse.csr_matrix)")
        some: list = [given] if np.isscalar(given) else [unordered(row) for row in given]
        # one sequence of ids an entity; text has no dimension
        rows: list[np.ndarray | Sequence] = some if some and np.ndim(some[0]) == 1 else [some]
        parts = [number_ids(row, known.ids, side)[0] for row in rows if len(row)]
        columns = np.concatenate([np.empty(0, np.int32), *parts])
        numbers = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        matrix = sp.csr_matrix((np.ones(len(columns)), (numbers, columns)), (len(rows), n))
        matrix.data[:] = 1.0  # a repeated id is one pair
    if not matrix.nnz:
        raise ValueError(f"history is empty; give at least one {side} id that the model was fitted on")
    return matrix


def encoded(encoder: nn.Module, features: MatrixLike, name: str, rows: int | None = None) -> Tensor:
    """g(x_i) (b, k) of features (b, d), dense or sparse, of any float type; ValueError unless there are `rows`."""
    if isinstance(features, sp.spmatrix | sp.sparray):
        given = sp.csr_matrix(features, dtype=np.float32)
    else:
        given = check_vectors(features, name=name).astype(np.float32, copy=False)
    shape: tuple[int, ...] = given.shape  # pyright: ignore[reportAssignmentType]
    if rows is not None and shape[0] != rows:
        raise ValueError(f"{name} has shape {shape}; it must be ({rows}, d), one row for each history")
    with torch.no_grad():
        return encoder(as_tensor(given))
