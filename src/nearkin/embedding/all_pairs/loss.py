"""The loss over all m x n pairs at the cost of m + n: value, gradient and Gauss-Newton product (ESL, section 3)."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn.functional import softplus

from nearkin._check import check_choice, check_finite, check_real
from nearkin._distributed import ALONE, Group, current
from nearkin._fields import counted
from nearkin._guard import cached_property
from nearkin._pairs import MatrixLike
from nearkin._types import ArrayLike
from nearkin.embedding.all_pairs.products import PairProducts, gathered, observed_pairs, product
from nearkin.records import Interactions

NARROW = (torch.float16, torch.bfloat16)
CHUNK = 8192  # rows of a Gramian per step: no float64 copy of all rows is made

Prior: TypeAlias = float | tuple[ArrayLike, ArrayLike] | None
"""Imputed labels of unobserved pairs: one number, or factors Pt (m, k') and Qt (n, k')."""


# ---- the loss of one observed pair -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairLoss:
    """l(y, z) of one pair, convex in z, with its derivatives by z, from functions of (nnz,) tensors."""

    value: Callable[[Tensor, Tensor], Tensor]
    first: Callable[[Tensor, Tensor], Tensor]
    second: Callable[[Tensor, Tensor], Tensor]


def _sign(y: Tensor) -> Tensor:
    return torch.where(y > 0, 1.0, -1.0).to(y.dtype)


SQUARED = PairLoss(  # (y - z)^2 / 2
    lambda y, z: (y - z).square_().mul_(0.5), lambda y, z: z - y, lambda y, z: torch.ones_like(z)
)
LOGISTIC = PairLoss(  # log(1 + exp(-s z)), where s = 1 for y > 0 and -1 otherwise
    lambda y, z: softplus(-_sign(y) * z),
    lambda y, z: -_sign(y) * torch.sigmoid(-_sign(y) * z),
    lambda y, z: torch.sigmoid(z) * torch.sigmoid(-z),
)
SQUARED_HINGE = PairLoss(  # max(0, 1 - s z)^2 / 2
    lambda y, z: (1 - _sign(y) * z).clamp_(min=0).square_().mul_(0.5),
    lambda y, z: -_sign(y) * (1 - _sign(y) * z).clamp_(min=0),
    lambda y, z: (_sign(y) * z < 1).to(z.dtype),
)
LOSSES = {"squared": SQUARED, "logistic": LOGISTIC, "squared-hinge": SQUARED_HINGE}


# ---- what does not change while the loss is minimized ---------------------------------------------------------------


class Constants(NamedTuple):
    """Labels, weights, costs, penalties and imputed factors; a vector of equal entries is kept as a scalar."""

    labels: Tensor  # (nnz,) or () Y_ij
    weights: Tensor  # (nnz,) or () w_ij
    pair_cost: Tensor  # (nnz,) or () omega a_i b_j
    imputed: Tensor  # (nnz,) or () Yt_ij of the observed pairs
    a: Tensor  # (m, 1)
    b: Tensor  # (n, 1)
    ridge_left: Tensor  # (m, 1) lambda r_i
    ridge_right: Tensor  # (n, 1) lambda s_j
    prior_left: Tensor  # (m, k'), k' = 0 if nothing is imputed
    prior_right: Tensor  # (n, k')

    def of_pairs(self, places: Tensor | slice) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Labels, weights, costs and imputed labels of some pairs; scalars stay scalars."""
        labels, weights, cost, imputed = (v[places] if v.ndim else v for v in self[:4])
        return labels, weights, cost, imputed

    def part(self, pairs: slice, rows: slice) -> "Constants":
        left = self.ridge_left[rows], self.ridge_right, self.prior_left[rows], self.prior_right
        return Constants(*self.of_pairs(pairs), self.a[rows], self.b, *left)

    def transposed(self, order: Tensor) -> "Constants":
        """The constants with the sides exchanged; `order` is the order of the pairs then."""
        turned = self.ridge_right, self.ridge_left, self.prior_right, self.prior_left
        return Constants(*self.of_pairs(order), self.b, self.a, *turned)


def vector(values: ArrayLike, name: str, size: int, low: float | None = 0, *, narrow: bool = False) -> Tensor:
    """`values`, one number or (size,), as a finite float64 tensor (size,) of entries not below `low`.

    `narrow` keeps float32 arrays in float32.
    """
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    array = array.astype(np.float32 if narrow and array.dtype == np.float32 else np.float64)
    if array.shape not in ((), (size,)):
        raise ValueError(f"{name} has shape {array.shape}; it must be one number or ({size},)")
    check_finite(array.reshape(-1), name)
    if low is not None and (array < low).any():
        raise ValueError(
            f"{name} has {counted(int((array < low).sum()), 'entry', 'entries')} below {low}; each must be at least "
            f"{low}"
        )
    return torch.from_numpy(array).expand(size).contiguous()


def _of_pairs(values: ArrayLike, name: str, size: int, low: float | None = 0) -> Tensor:
    """A `vector` of the pairs; one number for all of them stays a scalar."""
    return _short(vector(values, name, 1 if np.ndim(values) == 0 else size, low, narrow=True))


def _pair_cost(pairs: PairProducts, omega: float, a: Tensor, b: Tensor) -> Tensor:
    """omega a_i b_j of the pairs, (nnz,) or one number."""
    a, b = _short(a), _short(b)
    if a.ndim:
        a = torch.repeat_interleave(a, torch.from_numpy(np.diff(pairs.indptr)))
    return _short(omega * a * (b[torch.from_numpy(pairs.indices).long()] if b.ndim else b))


def _short(values: Tensor) -> Tensor:
    """One number where all entries are equal."""
    if values.ndim == 0 or not len(values) or not bool((values == values[0]).all()):
        return values
    return values[0].clone()


def _factors(prior: Prior, m: int, n: int) -> tuple[Tensor, Tensor]:
    """Pt (m, k') and Qt (n, k'), in float64 unless both are of float32: k' = 0 for no prior, 1 for one number."""
    if prior is None:
        return torch.zeros((m, 0), dtype=torch.float64), torch.zeros((n, 0), dtype=torch.float64)
    if isinstance(prior, int | float):
        number = check_real(prior, "prior")
        return torch.full((m, 1), number, dtype=torch.float64), torch.ones((n, 1), dtype=torch.float64)
    left, right = (torch.as_tensor(part) for part in prior)
    if not left.dtype == right.dtype == torch.float32:
        left, right = left.double(), right.double()
    if left.ndim != 2 or right.ndim != 2 or left.shape != (m, right.shape[1]) or right.shape[0] != n:
        raise ValueError(
            f"prior has shapes {tuple(left.shape)} and {tuple(right.shape)}; it must be (Pt ({m}, k'), Qt ({n}, k')) "
            "or one number"
        )
    return left, right


# ---- the loss over all pairs ----------------------------------------------------------------------------------------


class AllPairsLoss:
    """The loss over all m x n pairs of any embeddings P (m, k) and Q (n, k) (ESL, eqs. 5-8).

    L(P, Q) = sum over observed of w_ij l(Y_ij, p_i.q_j) + sum over unobserved of (omega/2) a_i b_j (Yt_ij - p_i.q_j)^2
    + (lambda/2) (sum r_i |p_i|^2 + sum s_j |q_j|^2)

    Everything costs O(nnz k + (m + n) k^2); the k x k sums are float64 for every dtype of P and Q, and all others
    float32 at least, also for embeddings of 16 bits and under autocast. Calling the loss gives a differentiable scalar:
    `loss(left(u), right(v)).backward()` reaches any towers. u and v are all rows: of a mini-batch, most pairs would be
    missing. For mini-batches take `TwoTower(loss="in-batch-softmax")`.

    Parameters
    ----------
    observed : Interactions or sparse (m, n) matrix; its stored entries are the observed pairs
    loss : l, "squared" | "logistic" | "squared-hinge"
    omega : weight of the unobserved pairs, at least 0
    labels : Y_ij (nnz,) in row order, or one number for all; default the stored values
    weights : w_ij (nnz,) in row order, or one number for all; default 1
    a, b : (m,) and (n,) costs a_i b_j of an unobserved pair, such as inverse propensities; default 1
    prior : (Pt (m, k'), Qt (n, k')) that impute Yt_ij = pt_i . qt_j, or one number for all; default 0
    regularization : lambda, at least 0
    ridge : (r (m,), s (n,)), factors of lambda for each row; default 1

    Attributes
    ----------
    shape: (m, n).
    omega, regularization: as given.

    References
    ----------
    Yuan et al. (2021), eqs. 5-8 (ESL), arXiv:2010.13511.

    Examples
    --------
    >>> import scipy.sparse as sp, torch
    >>> loss = nk.embedding.AllPairsLoss(sp.csr_matrix(np.eye(3)), omega=0.5)
    >>> P = torch.eye(3, dtype=torch.float64, requires_grad=True)
    >>> round(loss(P, 2 * P).item(), 3)  # (1 - 2)^2 / 2 on the three observed pairs, 0 on the others
    1.5
    """

    def __init__(
        self,
        observed: Interactions | MatrixLike,
        *,
        loss: str = "squared",
        omega: float = 1.0,
        labels: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        a: ArrayLike | None = None,
        b: ArrayLike | None = None,
        prior: Prior = None,
        regularization: float = 0.0,
        ridge: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        self.pairs: PairProducts
        self.pairs, values = observed_pairs(observed)
        self.omega: float = check_real(omega, "omega", low=0)
        strength = check_real(regularization, "regularization", low=0)
        (m, n), nnz = self.pairs.shape, len(self.pairs.indices)
        left, right = vector(1.0 if a is None else a, "a", m), vector(1.0 if b is None else b, "b", n)
        r, s = (1.0, 1.0) if ridge is None else ridge
        prior_left, prior_right = _factors(prior, m, n)
        # in float64; float32 arrays of the pairs stay float32, at half the memory without loss
        self._exact = Constants(
            labels=_of_pairs(values if labels is None else labels, "labels", nnz, low=None),
            weights=_of_pairs(1.0 if weights is None else weights, "weights", nnz),
            pair_cost=_pair_cost(self.pairs, self.omega, left, right),
            imputed=torch.zeros((), dtype=torch.float64)
            if prior is None
            else _short(self.pairs.dots(prior_left, prior_right)),
            a=left[:, None],
            b=right[:, None],
            ridge_left=strength * vector(r, "ridge[0]", m)[:, None],
            ridge_right=strength * vector(s, "ridge[1]", n)[:, None],
            prior_left=prior_left,
            prior_right=prior_right,
        )
        self.loss: PairLoss = LOSSES[check_choice(loss, "loss", LOSSES)]
        self._cast: dict[tuple[torch.dtype, torch.device], Constants] = {}
        self.group: Group = ALONE
        self.rows: slice = slice(0, self.shape[0])
        self._part = None

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.pairs.shape

    @property
    def observed_weight(self) -> float:
        """Sum of w_ij over the observed pairs, a natural unit of the loss."""
        weights = self._exact.weights
        return float(weights.sum()) if weights.ndim else float(weights) * len(self.pairs.indices)

    def value(self, P: Tensor, Q: Tensor) -> float:
        """L(P, Q) by ESL, eqs. 10-13."""
        return self.at(P, Q).value()

    def gradient(self, P: Tensor, Q: Tensor) -> tuple[Tensor, Tensor]:
        """dL/dP (m, k) and dL/dQ (n, k) by ESL, eqs. 17, 23 and 26."""
        left, right = self.at(P, Q).gradient()
        return as_given(left, P, "dL/dP"), as_given(right, Q, "dL/dQ")

    def gauss_newton_product(self, P: Tensor, Q: Tensor, W: Tensor, H: Tensor) -> tuple[Tensor, Tensor]:
        """The Gauss-Newton matrix in (P, Q) times the direction (W (m, k), H (n, k)): an (m, k) and an (n, k) part.

        With Z_ij = w_i.q_j + p_i.h_j it is the sum over all pairs of l''_ij Z_ij (q_j, p_i), where l''_ij is w l'' on
        the observed pairs and omega a_i b_j on the others: positive semi-definite, although the curvature left on the
        observed pairs after completing the sum, w l'' - omega a_i b_j, may be negative (ESL, section 3.4 and on).
        """
        left, right = self.at(P, Q).gauss_newton_product(W, H)
        return as_given(left, P, "the product's P"), as_given(right, Q, "the product's Q")

    def at(self, P: Tensor, Q: Tensor) -> "AllPairsPoint":
        """The loss at one point; intermediate results are shared by value, gradient and products.

        Embeddings of 16 bits are widened: what the point has is in float32.
        """
        P, Q = widened(P), widened(Q)
        check_embedding(P, "P", self.shape[0], None)
        check_embedding(Q, "Q", self.shape[1], P)
        return AllPairsPoint(self.pairs, self.loss, self.omega, self.constants(P), P, Q, self.group)

    def __call__(self, P: Tensor, Q: Tensor) -> Tensor:
        """L(P, Q) as a scalar that autograd differentiates; joined processes share the work.

        The scalar is float32 for embeddings of 16 bits. Entries of their gradients that exceed float16 are infinite, as
        `torch.amp.GradScaler` expects.
        """
        return self.differentiable(P, Q, current())

    def differentiable(self, P: Tensor, Q: Tensor, group: Group) -> Tensor:
        """The same, the work shared among the processes of `group`."""
        return _Differentiable.apply(P, Q, self, group)  # pyright: ignore[reportReturnType]

    def transposed(self) -> "AllPairsLoss":
        """The same loss with the sides exchanged: value(P, Q) = transposed().value(Q, P)."""
        return self._on(self.pairs.transposed(), self._exact.transposed(self.pairs.order))

    def part(self, group: Group) -> "AllPairsLoss":
        """The part of one process of a group: the pairs of its `rows`, a share of the users.

        Its P has these rows, its Q all. Value and right gradient are of the whole loss on every process, the left
        gradient is of the rows.
        """
        if group.size > 1 and self.group.size == 1 and self._part is None:
            rows = self.pairs.share(group)
            pairs = slice(*self.pairs.indptr[[rows.start, rows.stop]])
            self._part = self._on(self.pairs.part(rows), self._exact.part(pairs, rows))
            self._part.group, self._part.rows = group, rows
        return self._part or self

    def _on(self, pairs: PairProducts, constants: Constants) -> "AllPairsLoss":
        """The same loss with other pairs."""
        other = copy(self)
        other.pairs, other._exact, other._cast, other._part = pairs, constants, {}, None
        other.rows = slice(0, other.shape[0])
        return other

    def constants(self, like: Tensor) -> Constants:
        """The constants in the dtype and on the device of `like`."""
        key = (like.dtype, like.device)
        if key not in self._cast:
            self._cast[key] = Constants(*(v.to(dtype=like.dtype, device=like.device) for v in self._exact))
        return self._cast[key]


@dataclass(eq=False)
class AllPairsPoint:
    """An `AllPairsLoss` at embeddings P (m, k) and Q (n, k); its parts are computed on first use.

    In a group P and the pairs are those of one process, Q is whole, and sums over users are merged.
    """

    pairs: PairProducts
    loss: PairLoss
    omega: float
    constants: Constants
    P: Tensor
    Q: Tensor
    group: Group = ALONE

    @cached_property
    def scores(self) -> Tensor:
        """(nnz,) p_i . q_j of the observed pairs."""
        return self.pairs.dots(self.P, self.Q)

    @cached_property
    def left_gram(self) -> Tensor:
        """P_c = P^T A P (k, k), float64 (ESL, eq. 14)."""
        return self._merged(gram(self.P, self.P, self.constants.a))

    @cached_property
    def right_gram(self) -> Tensor:
        """Q_c = Q^T B Q (k, k), float64 (ESL, eq. 14)."""
        rows = slice(*self.group.share(len(self.Q), CHUNK))
        return self._merged(gram(self.Q[rows], self.Q[rows], self.constants.b[rows]))

    @cached_property
    def _crossed(self) -> tuple[Tensor, Tensor]:
        """Ph_c = Pt^T A P and Qh_c = Qt^T B Q, both (k', k), float64 (ESL, eq. 14)."""
        c = self.constants
        return self._merged(gram(c.prior_left, self.P, c.a)), gram(c.prior_right, self.Q, c.b)

    @cached_property
    def curvature(self) -> Tensor:
        """(nnz,) or (): the second derivative of l+ on the observed pairs, w l'' - omega a_i b_j."""
        c = self.constants
        values = c.weights * self.loss.second(c.labels, self.scores) - c.pair_cost
        return values if values.ndim else values.expand_as(self.scores).contiguous()

    @cached_property
    def slopes(self) -> Tensor:
        """(nnz,) the derivative of l+ on the observed pairs, X_ij of ESL, eq. 17."""
        c = self.constants
        return c.weights * self.loss.first(c.labels, self.scores) - c.pair_cost * (self.scores - c.imputed)

    def value(self) -> float:
        c = self.constants
        observed = c.weights * self.loss.value(c.labels, self.scores)
        observed -= 0.5 * c.pair_cost * (self.scores - c.imputed).square()  # added to the sum over all
        mine = observed.sum(dtype=torch.float64) + _penalty(self.P, c.ridge_left)
        total = self._merged(mine.reshape(1))[0] + 0.5 * self.omega * (self.left_gram * self.right_gram).sum()
        if c.prior_left.shape[1]:
            Ph_c, Qh_c = self._crossed
            Pt_c, Qt_c = gram(c.prior_left, c.prior_left, c.a), gram(c.prior_right, c.prior_right, c.b)
            Pt_c = self._merged(Pt_c)
            total += self.omega * (0.5 * (Pt_c * Qt_c).sum() - (Ph_c * Qh_c).sum())
        return float(total + _penalty(self.Q, c.ridge_right))

    def gradient(self) -> tuple[Tensor, Tensor]:
        return self.left_gradient(), self.right_gradient()

    def left_gradient(self) -> Tensor:
        """dL/dP (m, k) = X Q + omega (A P Q_c - A Pt Qh_c) + lambda R P."""
        c = self.constants
        smooth = product(self.P, self.right_gram.to(self.P))
        if c.prior_left.shape[1]:
            smooth -= product(c.prior_left, self._crossed[1].to(self.P))
        smooth *= self.omega * c.a
        return smooth.addcmul_(c.ridge_left, self.P).add_(self.pairs.times_right(self.slopes, self.Q))

    def right_gradient(self) -> Tensor:
        """dL/dQ (n, k) = X^T P + omega (B Q P_c - B Qt Ph_c) + lambda S Q."""
        c = self.constants
        smooth = product(self.Q, self.left_gram.to(self.Q))
        if c.prior_right.shape[1]:
            smooth -= product(c.prior_right, self._crossed[0].to(self.Q))
        smooth *= self.omega * c.b
        observed = self._merged(self.pairs.times_left(self.slopes, self.P))
        return smooth.addcmul_(c.ridge_right, self.Q).add_(observed)

    def gauss_newton_product(self, W: Tensor, H: Tensor) -> tuple[Tensor, Tensor]:
        """See `AllPairsLoss.gauss_newton_product`."""
        W, H = widened(W), widened(H)
        check_embedding(W, "W", self.pairs.shape[0], self.P)
        check_embedding(H, "H", self.pairs.shape[1], self.P)
        P, Q, c = self.P, self.Q, self.constants
        Z = self.pairs.dots(W, Q).add_(self.pairs.dots(P, H)).mul_(self.curvature)
        HQ, WP = gram(H, Q, c.b).to(P), gram(W, P, c.a).to(P)  # H^T B Q and W^T A P
        left = product(W, self.right_gram.to(P)).addmm_(P, HQ).mul_(self.omega * c.a).addcmul_(c.ridge_left, W)
        right = product(H, self.left_gram.to(P)).addmm_(Q, WP).mul_(self.omega * c.b).addcmul_(c.ridge_right, H)
        return left.add_(self.pairs.times_right(Z, Q)), right.add_(self.pairs.times_left(Z, P))

    def _merged(self, total: Tensor) -> Tensor:
        """The sum over the processes' rows."""
        if self.group.size > 1:
            host = total.cpu()  # no copy if the tensor is on the CPU
            self.group.all_reduce(host.numpy())
            return host.to(total)
        return total


class _Differentiable(torch.autograd.Function):
    """The scalar loss with its hand-written gradient."""

    @staticmethod
    def forward(ctx: FunctionCtx, P: Tensor, Q: Tensor, loss: AllPairsLoss, group: Group) -> Tensor:
        part = loss.part(group)
        point = part.at(P[part.rows], Q)
        dP, dQ = point.gradient()
        ctx.save_for_backward(gathered(dP, part.group), dQ)
        return point.P.new_tensor(point.value())

    @staticmethod
    def backward(ctx: FunctionCtx, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, None, None]:
        dP, dQ = ctx.saved_tensors
        return grad_outputs[0] * dP, grad_outputs[0] * dQ, None, None


def gram(X: Tensor, Y: Tensor, weights: Tensor) -> Tensor:
    """X^T diag(weights) Y in float64; chunks of rows are widened one at a time, to save a float64 copy of X."""
    total = torch.zeros((X.shape[1], Y.shape[1]), dtype=torch.float64, device=X.device)
    for x, y, w in zip(X.split(CHUNK), Y.split(CHUNK), weights.split(CHUNK), strict=True):
        total.addmm_((x.double() * w.double()).T, y.double())
    return total


def _penalty(X: Tensor, ridge: Tensor) -> Tensor:
    return 0.5 * (X.square().sum(1, keepdim=True) * ridge).sum(dtype=torch.float64)


def widened(X: Tensor) -> Tensor:
    """X without its graph, in float32 if it has 16 bits."""
    if isinstance(X, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        return (X.float() if X.dtype in NARROW else X).detach()
    return X


def as_given(X: Tensor, like: Tensor, name: str) -> Tensor:
    """X in the type of `like`; ValueError if its 16 bits cannot hold it."""
    given = X.to(like.dtype)
    if like.dtype in NARROW and not bool(given.isfinite().all()):
        raise ValueError(
            f"{name} has an entry of size {float(X.abs().amax()):.3g}, which {like.dtype} cannot hold; pass P.float() "
            "and Q.float(), or scale the weights"
        )
    return given


def check_embedding(X: ArrayLike, name: str, rows: int, like: Tensor | None) -> None:
    if not isinstance(X, Tensor) or X.dtype not in (torch.float32, torch.float64):
        kind = X.dtype if isinstance(X, Tensor) else type(X).__name__
        raise TypeError(f"{name} is {kind}; it must be a float32 or float64 tensor, pass torch.as_tensor({name}, ...)")
    if X.ndim != 2 or X.shape[0] != rows or X.shape[1] < 1 or (like is not None and X.shape[1] != like.shape[1]):
        width = "k >= 1" if like is None else like.shape[1]
        way = "for mini-batches take TwoTower(loss='in-batch-softmax')"
        raise ValueError(f"{name} has shape {tuple(X.shape)}; it must be ({rows}, {width}), all rows: {way}")
    if like is not None and (X.dtype, X.device) != (like.dtype, like.device):
        raise TypeError(f"{name} is {X.dtype} on {X.device}; it must be {like.dtype} on {like.device}, as P")
