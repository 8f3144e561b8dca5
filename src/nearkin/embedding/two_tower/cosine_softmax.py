"""Softmax over all items on cosines: the loss of a table of pairs, its sweeps on embeddings of norm 1, and new rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch.nn.functional import normalize, pad

from nearkin._check import check_real
from nearkin._compile import cached_njit
from nearkin._pairs import MatrixLike
from nearkin._types import ArrayLike
from nearkin.embedding.all_pairs.loss import check_embedding, vector
from nearkin.embedding.all_pairs.products import PairProducts, by_blocks, compiled, observed_pairs, softmax_rows
from nearkin.embedding.baselines import sparse_ease
from nearkin.embedding.two_tower.als import History, Known, matrix_of
from nearkin.embedding.two_tower.objective import AllPairs, Objective, growth
from nearkin.embedding.two_tower.towers import AbstractSolver, TowerPair
from nearkin.records import Interactions

BLOCK = 256  # rows whose scores with the other side are held at a time: the first sweeps' stay in the cache


class LeftSlope(NamedTuple):
    """The results of one pass over the users."""

    slope: Tensor  # (m, k) temperature * dL/dP
    log_masses: Tensor  # (m,) log sum_j b_j exp(p_i.q_j / temperature)
    value: float  # L


class Sample(NamedTuple):
    """Rows of one side, and what each counts for in a sum over the side: the inverse of its chance to be drawn."""

    numbers: Tensor  # (s,)
    log_counts: Tensor  # (s,) float64


class SoftmaxLoss:
    """Cross-entropy of each observed pair's item among all items, at a temperature t:

    L(P, Q) = sum_i w_i log sum_j a_ij b_j exp(s_ij) - sum_ij w_ij s_ij,  s_ij = p_i.q_j / t + c_j,  w_i = sum_j w_ij

    with a_ij = 1 but for observed pairs, which `counts` may leave out of the sums: then an item competes with those
    that a user does not have. A user who has all items has no sum.

    The positive part is linear in P and in Q, so it costs two sparse products; each row's mass log sum_j is summed
    once a row, not once a pair. Over all items a pass costs O(m n k). With a sample of items, or users, it costs
    O((m + n + nnz) k) for a fixed sample size, and value and gradient are estimates: what the observed pairs add to
    the sums is exact, the rest is the sample's.

    Parameters
    ----------
    observed : Interactions or sparse (m, n) matrix; its stored entries are the observed pairs
    temperature : t, greater than 0; 0.1 to 0.3 suit embeddings of norm 1
    weights : w_ij (nnz,) in row order; default 1
    b : (n,) weight of a right in the sums; default 1, and 0 leaves it out
    bias : (n,) c_j, added to a right's scores; default 0
    counts : a_ij (nnz,) in row order, at least 0; default 1

    >>> import numpy as np, scipy.sparse as sp, torch
    >>> loss = SoftmaxLoss(sp.csr_matrix(np.eye(2)), temperature=1.0)
    >>> round(loss.left(torch.zeros(2, 3), torch.zeros(2, 3)).value, 4)  # 2 log 2
    1.3863
    """

    def __init__(
        self,
        observed: Interactions | MatrixLike,
        *,
        temperature: float,
        weights: ArrayLike | None = None,
        b: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        counts: ArrayLike | None = None,
    ) -> None:
        self.pairs: PairProducts
        self.pairs, _ = observed_pairs(observed)
        self.temperature: float = check_real(temperature, "temperature", above=0)
        (_, n), nnz = self.pairs.shape, len(self.pairs.indices)
        self.weights: Tensor = vector(1.0 if weights is None else weights, "weights", nnz)
        self.b: Tensor = vector(1.0 if b is None else b, "b", n)
        self.bias: Tensor = vector(0.0 if bias is None else bias, "bias", n, low=None)
        self.masses: Tensor = self.b * self.bias.exp()  # (n,) the weights of the rights in the sums, bias included
        own, order = vector(1.0 if counts is None else counts, "counts", nnz).log(), self.pairs.order
        own = own if (own > -torch.inf).any() else own[:0]  # empty if no pair counts
        in_order = self.weights[order], own[order] if len(own) else own
        # weights and logarithms of counts of the pairs, by users and by items
        self.own: tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]] = (self.weights, own), in_order
        ones = torch.ones(max(self.pairs.shape), 1, dtype=torch.float64)
        self.left_weights: Tensor = self.pairs.times_right(self.weights, ones[:n])[:, 0]
        self.right_weights: Tensor = self.pairs.times_left(self.weights, ones[: self.pairs.shape[0]])[:, 0]
        self.lefts: Tensor = torch.nonzero(self.left_weights > 0)[:, 0]
        self.rights: Tensor = torch.nonzero(self.b > 0)[:, 0]
        if not len(self.rights):
            raise ValueError("b is 0 for every right; at least one must be greater than 0")

    def left(self, P: Tensor, Q: Tensor, sample: Sample | None = None) -> LeftSlope:
        """The slope and the masses of the users; `sample` are some of `rights`, default all of them."""
        self._check(P, Q)
        among, log_counts = _whole(self.rights) if sample is None else sample
        places, offsets = (self.pairs.indptr, self.pairs.indices), (self.b.log() + self.bias).to(P)
        weights = offsets[among] + log_counts.to(P)
        others = summed(P, Q[among], self.temperature, weights, places, among, shifted=True)
        log_masses, losses = torch.empty_like(others.top), torch.empty_like(others.top)
        known = *self.own[0], offsets, self.left_weights.to(P), *others, log_masses, losses
        slope = _with_own(places, P, Q, self.temperature, *known)
        return LeftSlope(slope, log_masses, float(losses.sum(dtype=torch.float64) - self.right_weights @ self.bias))

    def right(self, P: Tensor, Q: Tensor, log_masses: Tensor, sample: Sample | None = None) -> Tensor:
        """(n, k) temperature * dL/dQ; `sample` are some of `lefts`, default all of them."""
        self._check(P, Q)
        among, log_counts = _whole(self.lefts) if sample is None else sample
        places = self.pairs.columns.indptr, self.pairs.columns.rows
        shares, none = self.left_weights.log().to(P) - log_masses, P.new_empty(0)
        others = summed(Q, P[among], self.temperature, shares[among] + log_counts.to(P), places, among)
        known = *self.own[1], shares, self.masses.to(P), *others, none, none
        return _with_own(places, Q, P, self.temperature, *known)

    def _check(self, P: Tensor, Q: Tensor) -> None:
        check_embedding(P, "P", self.pairs.shape[0], None)
        check_embedding(Q, "Q", self.pairs.shape[1], P)


def _whole(numbers: Tensor) -> Sample:
    return Sample(numbers, torch.zeros(len(numbers), dtype=torch.float64))


def sampled(numbers: Tensor, weights: Tensor, n: int, generator: torch.Generator) -> Sample:
    """A systematic sample: chances in proportion to `weights`, at most 1, that sum to n; a sum over the sample in which
    each row counts for the inverse of its chance has the whole sum as its mean (Horvitz and Thompson 1952)."""
    if n >= len(numbers):
        return _whole(numbers)
    chances, surely = weights * (n / weights.sum()), 0
    while int((chances >= 1).sum()) > surely:
        sure = chances >= 1
        surely = int(sure.sum())
        chances = torch.where(sure, 1.0, weights * ((n - surely) / weights[~sure].sum()))
    order = torch.randperm(len(numbers), generator=generator)
    start = torch.rand((), generator=generator, dtype=torch.float64)
    passed = torch.floor(start + torch.cumsum(chances[order], 0))  # whole numbers that the sum has passed
    drawn = order[torch.diff(passed, prepend=torch.zeros(1, dtype=torch.float64)) > 0]
    return Sample(numbers[drawn], -chances[drawn].log())


class Sums(NamedTuple):
    """For each row x: the sum of the rows (y, 1) times exp(x.y / t + log_weights - top)."""

    sums: Tensor  # (n, k + 1), the last column the mass
    top: Tensor  # (n,)


def summed(
    X: Tensor,
    Y: Tensor,
    temperature: float,
    log_weights: Tensor,
    outside: tuple[np.ndarray, np.ndarray],
    among: Tensor,
    shifted: bool = False,
) -> Sums:
    """The sums without the pairs `outside`, their indptr and indices, of which the rows Y are those `among`. top is 0,
    or if `shifted` at least the largest exponent: one bound for all rows where no product can underflow below it."""
    # one more column in both products adds the weights and sums the mass: a fifth of the time
    top, sums = X.new_zeros(len(X)), X.new_empty(len(X), X.shape[1] + 1)
    reach = float(X.norm(dim=1).amax() * Y.norm(dim=1).amax()) / temperature if shifted else 0.0
    bounded = reach <= 1 / LOWEST
    if shifted and bounded:
        top += (log_weights.amax() + reach).clamp(min=torch.finfo(X.dtype).min)
        log_weights = log_weights - top[0]
    right, target = torch.cat([Y / temperature, log_weights[:, None]], 1).T, pad(Y, (0, 1), value=1.0)
    column = np.full(1 + max(int(outside[1].max(initial=0)), int(among.max())), -1)
    column[among.numpy()] = np.arange(len(among))
    for at in range(0, len(X), BLOCK):
        rows = slice(at, at + BLOCK)
        S = pad(X[rows], (0, 1), value=1.0) @ right
        hide(*outside, column, at, S.numpy())
        if not bounded:
            top[rows] = S.amax(1).clamp(min=torch.finfo(S.dtype).min)
            S -= top[rows, None]
        torch.mm(S.exp_(), target, out=sums[rows])
    return Sums(sums, top)


@cached_njit(nogil=True)
def hide(indptr, indices, column, first, S):
    """Set the scores S (b, s) of the pairs of the rows from `first` to -inf in their columns, -1 for none."""
    for row in range(len(S)):
        for e in range(indptr[first + row], indptr[first + row + 1]):
            if column[indices[e]] >= 0:
                S[row, column[indices[e]]] = -np.inf


def _with_own(at: tuple[np.ndarray, np.ndarray], X: Tensor, Y: Tensor, temperature: float, *known: Tensor) -> Tensor:
    """(n, k) the slopes of rows X whose pairs with rows Y are at these places, by `softmax_rows`."""
    slope = torch.empty(X.shape, dtype=X.dtype)
    by_blocks(softmax_rows, *at, 1 / temperature, *(x.contiguous().numpy() for x in (X, Y, *known, slope)))
    return slope


# ---- the loss of a table of pairs ----------------------------------------------------------------------------------

LOWEST = 0.03  # least temperature: exp(2 / temperature) must fit float32


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of the softmax on cosines; Recall@20 on gowalla's validation pairs (2026-11)."""

    # imputed rights a left by 1 / rank, and the neighbours of their regressions (100: +.0002); 10 of equal weights .206
    imputed: int = 50
    first_sampled: int = 512  # while the rate is 1; a held-out fifth .2117, with 2,048 .2118 in half as much time again


DEFAULTS = Defaults()


@dataclass(eq=False, repr=False, kw_only=True)
class CosineSoftmax(BaseEstimator):
    """`TwoTower(loss=CosineSoftmax(...))`: cross-entropy of each pair's item among all items, on embeddings of norm 1.

    A score far below the best adds almost nothing to the loss, unlike the squared loss, so few dimensions rank many
    items. It is trained by `SphereSweeps`, on id tables; see `nearkin.embedding.two_tower.cosine_softmax`.

    A pair counts for one over the root of its user's number of pairs (`left_shares`); its item's bias counts all alike.
    With a `bias_power` a score is p_i.q_j / temperature + bias_power * log d_j, d_j the weight of the right's pairs:
    cosines need not encode popularity. The bias is one of the n_components: the last number of a row is 1 on the left
    and temperature times the bias on the right, and the n_components - 1 before it have norm 1.

    Parameters
    ----------
    temperature : divisor of the cosines, at least 0.03; 0.12 suits long sparse tables, 0.3 small ones with
        long histories; choose it on validation pairs
    bias_power : lead of popular items at equal cosines; 0 for embeddings of norm 1 and no bias
    recency : power of an item's growth (`growth`) by which its probability is multiplied after the fit, where the pairs
        have times; it joins the bias
    imputed : share of a user's target, from 0 to 1, that lies on the 50 items that `nk.embedding.sparse_ease` ranks
        first for it, the r-th in proportion to 1 / r; 0.2 to 0.3 with a temperature of 0.1 suits long sparse tables. It
        costs one regression a right
    ridge : of those regressions
    weighting : the record's weights as importance of a pair, "log" | "linear" | "none"

    Attributes
    ----------
    temperature, bias_power, imputed: as given; `TwoTower.loss_` holds those chosen.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs(*np.random.default_rng(0).integers(0, 40, (2, 400)))
    >>> sweeps = nk.embedding.SphereSweeps(max_iter=5)
    >>> loss = nk.embedding.CosineSoftmax(temperature=0.3)
    >>> model = nk.TwoTower(8, loss=loss, solver=sweeps, random_state=0).fit(pairs)
    >>> model.right_embeddings_.shape
    (40, 8)
    """

    temperature: float = 0.15
    bias_power: float = 0.5
    recency: float = 0.0
    imputed: float = 0.0
    ridge: float = 30.0
    weighting: str = "log"

    name: ClassVar[str] = "cosine-softmax"

    def objective(self, interactions: Interactions) -> Objective:
        """Weights and costs, the same as of the all-pairs loss."""
        check_real(self.temperature, "temperature", low=LOWEST)
        check_real(self.bias_power, "bias_power", low=-2, high=2)
        if check_real(self.recency, "recency") and not self.bias_power:
            raise ValueError(f"recency is {self.recency} and bias_power 0; it joins the bias: leave one of them out")
        return AllPairs(weighting=self.weighting).objective(interactions)

    def softmax_loss(self, objective: Objective, lists: np.ndarray | None = None) -> SoftmaxLoss:
        """The loss of these pairs, which their users' sums leave out, and items without a pair. `lists` are the imputed
        items."""
        pairs, counts, degrees = objective.interactions, 0.0, right_degrees(objective)
        labels = sp.csr_matrix((objective.weights, pairs.indices, pairs.indptr), pairs.shape)
        labels = sp.csr_matrix(sp.diags(left_shares(objective)) @ labels)
        if check_real(self.imputed, "imputed", low=0, high=1):
            labels = with_imputed(labels, self.lists(pairs) if lists is None else lists, self.imputed)
            counts = ~np.isin(_numbers(labels), _numbers(pairs.matrix()), assume_unique=True)
        return SoftmaxLoss(
            labels, temperature=self.temperature, weights=labels.data, b=np.where(degrees > 0, objective.b, 0.0),
            bias=self.bias(degrees, degrees), counts=counts,
        )  # fmt: skip

    def lists(self, pairs: Interactions) -> np.ndarray:
        """(m, 50) the imputed items of each left, best first."""
        return sparse_ease(pairs, DEFAULTS.imputed, n_neighbours=DEFAULTS.imputed, ridge=self.ridge)[1]

    def bias(self, degrees: np.ndarray, fitted: np.ndarray) -> np.ndarray:
        """c_j of items whose pairs have these weights in all, `fitted` those of the fit, over which the mean is 0."""
        known = np.log(np.maximum(fitted, 1))
        return self.bias_power * (np.log(np.maximum(degrees, 1)) - known.mean())


def right_degrees(objective: Objective) -> np.ndarray:
    """(n,) the weight of each right's pairs."""
    pairs = objective.interactions
    return np.bincount(pairs.indices, objective.weights, minlength=pairs.shape[1])


def left_shares(objective: Objective) -> np.ndarray:
    """(m,) what a pair of each left counts for in the loss: one over the root of the number of its pairs, so that a few
    lefts of many pairs do not place the rights; the mean over all pairs is 1.

    Recall@20 / NDCG@20 of a held-out fifth (28 November 2026): gowalla .2143 / .1544 to .2159 / .1554, standard errors
    .0007 and .0004; Yelp2018 .1140 / .0989 to .1140 / .0986, .0004 and .0003.
    """
    pairs = objective.interactions
    shares = np.maximum(np.diff(pairs.indptr), 1.0) ** -0.5
    return shares * objective.weights.sum() / (shares[pairs.rows] @ objective.weights)


def _numbers(matrix: sp.csr_matrix) -> np.ndarray:
    """i n + j of the stored entries (i, j)."""
    entries = matrix.tocoo()
    return entries.row.astype(np.int64) * entries.shape[1] + entries.col  # pyright: ignore[reportOptionalSubscript]


def with_imputed(labels: sp.csr_matrix, lists: np.ndarray, share: float) -> sp.csr_matrix:
    """(m, n) labels whose rows keep their sums, a share of each on its list (d,) of columns, best first, -1 for none.

    The r-th of a list gets its part in proportion to 1 / r; a row without a list is unchanged.
    """
    weights = np.where(lists >= 0, 1 / np.arange(1.0, lists.shape[1] + 1), 0.0)
    listed = np.asarray(weights.sum(axis=1) > 0, dtype=float)
    parts = share * np.asarray(labels.sum(1)) * weights / np.maximum(weights.sum(axis=1, keepdims=True), 1)
    rows, places = np.nonzero(parts)
    imputed = sp.csr_matrix((parts[rows, places], (rows, lists[rows, places])), labels.shape)
    found = sp.csr_matrix(sp.diags(1 - share * listed) @ labels + imputed)
    found.sort_indices()
    return found


# ---- training ------------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False, kw_only=True)
class SphereSweeps(AbstractSolver):
    """`TwoTower(solver=SphereSweeps(...))`: a step of every user, then of every item; for `CosineSoftmax`.

    A row's step is its slope in the tangent of the sphere divided by its weight: with w_i the weight of row i and t the
    temperature,

        p_i <- normalised(p_i - rate * tangent(g_i)),   g_i = t / w_i * dL/dp_i = E_softmax[q] - mean_observed q,

    so at the rate 1 a row moves about to the mean of its observed items, away from those that the softmax expects.
    There is no step size to choose, and the noise of the sample is not scaled. Rows may start short: then the first
    sweep is a step of power iteration on the pairs. A row without a pair stays 0.

    The embeddings are the means over the last quarter of the sweeps, in which the noise of the samples cancels.

    Parameters
    ----------
    max_iter: sweeps over both sides; the rate falls in their second half.
    max_seconds, patience: as in `ALS`.
    n_sampled: rows of the other side, drawn in each half sweep in proportion to their weights in the sums and shared by
        all rows, on which the sums over that side are estimated (in the first half of the sweeps at most 512); None for
        all, at a cost of m n.
    momentum: share of the last step that is kept.

    Attributes
    ----------
    max_iter, max_seconds, patience, n_sampled, momentum: as given.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs(*np.random.default_rng(0).integers(0, 40, (2, 400)))
    >>> sweeps = nk.embedding.SphereSweeps(max_iter=5)
    >>> nk.TwoTower(4, loss="cosine-softmax", solver=sweeps, random_state=0).fit(pairs).solver_
    'sphere'
    """

    max_iter: int | None = 30
    n_sampled: int | None = 2048  # Recall@20 on gowalla's validation pairs (2026-11) .214; with 1,024 .209
    momentum: float = 0.6  # .209; .8 .206 (temperature .1)

    name: ClassVar[str] = "sphere"
    tables_only: ClassVar[bool] = True
    through_index: ClassVar[bool] = False
    replaced: ClassVar[tuple[str, ...]] = ("P", "Q", "done", "left_sum", "right_sum")

    def begin(self, pair: TowerPair, loss: BaseEstimator) -> Self:
        settings, start = cast(CosineSoftmax, loss), pair.tables()
        softmax = settings.softmax_loss(pair.objective)
        if softmax.bias.any() and start[0].shape[1] < 2:
            raise ValueError("n_components is 1, which a bias takes alone; it must be at least 2, or bias_power=0")
        self.sweep_from(softmax, *start, pair.generator)
        self.lead = settings.recency * growth(pair.objective.interactions)
        return self

    def sweep_from(self, loss: SoftmaxLoss, P: Tensor, Q: Tensor, generator: torch.Generator) -> Self:
        """Begin from tables P (m, k) and Q (n, k), which are copied. With a bias, which takes the last column in
        `embeddings`, that column is 0 here: products of 63 numbers take 1.7 times as long as those of 64."""
        self.loss: SoftmaxLoss = loss
        self.generator: torch.Generator = generator
        self.lead: Tensor | float = 0.0  # is added to the bias of the rights in `embeddings`
        self.done: int = 0
        weights = loss.left_weights, loss.right_weights
        self.shares: tuple[Tensor, ...] = tuple(torch.where(w > 0, 1 / w, 0).to(P)[:, None] for w in weights)
        self.P, self.Q = (torch.where(s > 0, X, 0) for X, s in zip((P, Q), self.shares, strict=True))
        if loss.bias.any():
            self.P[:, -1:], self.Q[:, -1:] = 0, 0
        self.left_move: Tensor = torch.zeros_like(P)
        self.right_move: Tensor = torch.zeros_like(Q)
        self.left_sum: Tensor = torch.zeros_like(P)  # over the last quarter of the sweeps
        self.right_sum: Tensor = torch.zeros_like(Q)
        return self

    def step(self) -> float:
        """One sweep; returns the loss before it, estimated on the sample of items."""
        rate = self._rate()
        n = self.n_sampled if rate < 1 or self.n_sampled is None else min(self.n_sampled, DEFAULTS.first_sampled)
        rights = self._sample(self.loss.rights, self.loss.masses, n)
        left = self.loss.left(self.P, self.Q, rights)
        self.P = self._moved(self.P, left.slope, 0, self.left_move, rate)
        lefts = self._sample(self.loss.lefts, self.loss.left_weights, n)
        slope = self.loss.right(self.P, self.Q, left.log_masses, lefts)
        self.Q = self._moved(self.Q, slope, 1, self.right_move, rate)
        self.done += 1
        if self._averaging():
            self.left_sum, self.right_sum = self.left_sum + self.P, self.right_sum + self.Q
        return left.value / float(self.loss.left_weights.sum())

    def _sample(self, rows: Tensor, weights: Tensor, n: int | None) -> Sample | None:
        """About n of these rows, each with a chance in proportion to its weight; None for all."""
        return None if n is None else sampled(rows, weights[rows], n, self.generator)

    def embeddings(self) -> tuple[Tensor, Tensor]:
        """Both tables, whose products are temperature times the scores: a bias of the items takes the last column."""
        P, Q = self.P, self.Q
        if self._averaging():
            P, Q = normalize(self.left_sum), normalize(self.right_sum)
        if not self.loss.bias.any():
            return P, Q
        bias = (self.loss.temperature * (self.loss.bias + self.lead)).to(Q)[:, None]
        return torch.cat([P[:, :-1], torch.ones_like(P[:, :1])], 1), torch.cat([Q[:, :-1], bias], 1)

    def _averaging(self) -> bool:
        return self.done > 0.75 * (self.max_iter or 1)

    def _rate(self) -> float:
        """1 in the first half of the sweeps, then falling linearly to .2."""
        late, last = max(0.0, (self.done + 1) / (self.max_iter or 1) - 0.5) / 0.5, 0.2
        return max(last, 1 - (1 - last) * late)

    def _moved(self, X: Tensor, slope: Tensor, side: int, move: Tensor, rate: float) -> Tensor:
        """The rows after their step, of length 1; `slope` and `move`, the step before, are overwritten."""
        moved = torch.empty_like(X)
        arrays = (x.numpy() for x in (X, slope, self.shares[side], move, moved))
        by_blocks(move_rows, (self.loss.pairs, self.loss.pairs.columns)[side].indptr, self.momentum, rate, *arrays)
        return moved


@compiled
def move_rows(start, stop, indptr, momentum, rate, X, slope, shares, move, moved):
    """A step of rows x of length 1 by their shares' slopes: the part tangent to the sphere, cut to length 1 so that no
    sample moves a row far, momentum, normalise; one pass over memory in place of twelve."""
    number = X.dtype.type
    part, length = number(momentum), number(rate)
    for i in range(start, stop):
        x, g, v, y, dot, square = X[i], slope[i], move[i], moved[i], number(0), number(0)
        for c in range(len(x)):
            g[c] *= shares[i, 0]
            dot += g[c] * x[c]
        for c in range(len(x)):
            g[c] -= dot * x[c]
            square += g[c] * g[c]
        scale, square = number(1) / max(np.sqrt(square), number(1)), number(0)
        for c in range(len(x)):
            v[c] = part * v[c] + scale * g[c]
            y[c] = x[c] - length * v[c]
            square += y[c] * y[c]
        scale = number(1) / max(np.sqrt(square), number(1e-12))
        for c in range(len(x)):
            y[c] *= scale


# ---- new rows ------------------------------------------------------------------------------------------------------

Push = Callable[[Tensor, sp.csr_matrix], Tensor]  # of rows X (b, k) and their histories: what pushes each away


def fold_in_softmax(
    history: History, known: Known, others: np.ndarray, loss: CosineSoftmax, fitted: Interactions
) -> np.ndarray:
    """(b, k) float32, rows that `SphereSweeps` would not move, all others fixed; up to 100 products with the known
    side.

    A new left takes p <- normalised(p - rate * tangent(E_softmax[q] - mean_history q)), the sum over the items that it
    does not have. A new right takes the same step by its own slope, over the users that do not have it, with their
    masses in the fit, and the bias of its number of pairs. `others` are the fitted embeddings of the new rows' side.
    Items that `imputed` would add are left out. A row without a pair is 0, except for the bias.
    """
    pairs, share, bias, of_fit = _histories(history, known, loss, fitted)
    Y = torch.from_numpy(known.embeddings)
    cosines = Y[:, :-1] if of_fit.bias.any() else Y
    if known.side == "right":
        last, X = np.ones(len(share)), _new_lefts(pairs, of_fit, cosines)
    else:
        last = of_fit.temperature * bias
        Y, lefts = cosines[of_fit.lefts], of_fit.lefts
        masses = of_fit.left(cosines, torch.from_numpy(others[:, : cosines.shape[1]])).log_masses
        shares = (of_fit.left_weights.log() - masses).to(cosines)[lefts]

        def push(X: Tensor, own: sp.csr_matrix) -> Tensor:  # the sum of the lefts that expect rows x, over exp(c_j)
            return summed(X, Y, of_fit.temperature, shares, (own.indptr, own.indices), lefts).sums[:, :-1]

        X = _still(sp.csr_matrix(sp.diags(share / np.exp(bias)) @ pairs), cosines, push)
    return np.column_stack([X.numpy(), last.astype(np.float32)]) if of_fit.bias.any() else X.numpy()


def explained_softmax(
    history: History, known: Known, loss: CosineSoftmax, fitted: Interactions
) -> tuple[sp.csr_matrix, np.ndarray]:
    """The histories, one row each, and (nnz, k) parts whose sums over a row are its cosines of `fold_in_softmax`.

    A row stands still where p is parallel to u = mean_history q - E[q], E the mean of the other items that the softmax
    expects at p. So part j is (w_j / w) (q_j - E[q]) / |u|, what item j adds to what everybody would get. It is
    computed as (w_j / w) ((q_j - mean_history q) / (u . p) + p), the same for a row that stands still, and always with
    the sum p.
    """
    pairs, share, _, of_fit = _histories(history, known, loss, fitted)
    width = known.embeddings.shape[1] - int(of_fit.bias.any())
    cosines = known.embeddings[:, :width]
    X = _new_lefts(pairs, of_fit, torch.from_numpy(cosines)).numpy()
    mean, rows = pairs @ cosines, np.repeat(np.arange(len(X)), np.diff(pairs.indptr))
    apart = mean - _expected_right(of_fit, torch.from_numpy(cosines))(torch.from_numpy(X), pairs).numpy()
    length = np.where(share > 0, (apart * X).sum(axis=1), 1)[rows, None]
    parts = np.zeros((pairs.nnz, known.embeddings.shape[1]), known.embeddings.dtype)
    parts[:, :width] = pairs.data[:, None] * ((cosines[pairs.indices] - mean[rows]) / length + X[rows])
    return pairs, parts


def _histories(
    history: History, known: Known, loss: CosineSoftmax, fitted: Interactions
) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray, SoftmaxLoss]:
    """One row an entity, whose weights sum to 1, those sums before (b,), the bias (b,) of new rights, and the loss of
    the fit."""
    loss = replace(loss, imputed=0.0)  # these sums do not depend on it, and it costs a regression a right
    objective = loss.objective(fitted)
    pairs, of_fit = matrix_of(history, known), loss.softmax_loss(objective)
    weights = AllPairs(weighting=loss.weighting).importance(pairs.data, (np.zeros(0), np.zeros(0)), fitted)
    pairs = sp.csr_matrix((weights, pairs.indices, pairs.indptr), pairs.shape)
    share = np.asarray(pairs.sum(1)).ravel()
    bias = np.zeros_like(share)
    if known.side == "left":
        bias = loss.bias(share, right_degrees(objective))
        pairs = sp.csr_matrix(pairs @ sp.diags(left_shares(objective)))
        share = np.asarray(pairs.sum(1)).ravel()
    scaled = sp.diags(np.divide(1, share, where=share > 0, out=np.zeros_like(share))) @ pairs
    return scaled, share, bias, of_fit


def _expected_right(of_fit: SoftmaxLoss, cosines: Tensor) -> Push:
    """The mean (b, k) of the rights outside their histories that a softmax expects at rows X (b, k)."""
    offsets = (of_fit.b[of_fit.rights].log() + of_fit.bias[of_fit.rights]).to(cosines)
    Y = cosines[of_fit.rights]

    def mean(X: Tensor, own: sp.csr_matrix) -> Tensor:
        places = own.indptr, own.indices
        sums = summed(X, Y, of_fit.temperature, offsets, places, of_fit.rights, shifted=True).sums
        return sums[:, :-1] / sums[:, -1:].where(sums[:, -1:] > 0, 1)

    return mean


def _new_lefts(pairs: sp.csr_matrix, of_fit: SoftmaxLoss, cosines: Tensor) -> Tensor:
    """(b, k) new lefts of these histories, of length 1."""
    return _still(pairs, cosines, _expected_right(of_fit, cosines))


def _still(pairs: sp.csr_matrix, cosines: Tensor, push: Push) -> Tensor:
    """The rows of length 1 at which push - pull has no tangent, pull their histories' sums; 0 for one without a pair.

    A row's rate is that of Barzilai & Borwein 1988, at most 4 times the last one. It has converged when its step is
    shorter than 1e-6."""
    pull = torch.from_numpy(np.asarray(pairs @ cosines.numpy(), dtype=cosines.numpy().dtype))
    X, moving = normalize(pull), np.flatnonzero(pairs.sum(axis=1))
    rate, before = X.new_ones(len(moving), 1), X.new_zeros(len(moving), X.shape[1])
    for _ in range(100):  # steps, at most
        rows = X[moving]
        slope = push(rows, pairs[moving]).sub_(pull[moving])
        slope -= (slope * rows).sum(1, keepdim=True) * rows
        square, change = (x.sum(1, keepdim=True) for x in (before * before, before * (before - slope)))
        rate *= torch.where(square < 4 * change, square / change, torch.where(square > 0, 4.0, 1.0))
        length = (rate * slope).norm(dim=1, keepdim=True)
        X[moving] = normalize(rows - rate * slope / length.clamp(min=1))
        far = length[:, 0] >= 1e-6
        moving, rate, before = moving[far.numpy()], rate[far], slope[far]
        if not len(moving):
            break
    return X
