"""The loss over all m x n pairs at the cost of m + n: value, gradient and Gauss-Newton product (ESL, section 3)."""

from copy import copy
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from nearkin._check import check_finite, check_real
from nearkin._distributed import ALONE, Group, current
from nearkin._pairs import MatrixLike
from nearkin._types import ArrayLike
from nearkin.embedding.all_pairs.pair_losses import AbstractPairLoss, check_convex, pair_loss
from nearkin.embedding.all_pairs.point import AllPairsPoint, Constants, check_embedding
from nearkin.embedding.all_pairs.products import PairProducts, gathered
from nearkin.records import ColumnOrder, Interactions

Prior: TypeAlias = float | tuple[ArrayLike, ArrayLike] | None
"""What imputes the labels of unobserved pairs: one number, or factors Pt (m, k') and Qt (n, k')."""


class AllPairsLoss:
    """The loss over all m x n pairs of embeddings P (m, k) and Q (n, k), wherever they come from (ESL, eqs. 5-8).

    L(P, Q) = sum over observed of w_ij l(Y_ij, p_i.q_j) + sum over unobserved of (omega/2) a_i b_j (Yt_ij - p_i.q_j)^2
    + (lambda/2) (sum r_i |p_i|^2 + sum s_j |q_j|^2)

    Parameters
    ----------
    observed : Interactions or sparse (m, n) matrix; its stored entries are the observed pairs
    loss : l, "squared" | "logistic" | "squared-hinge" | a CustomPairLoss; convex and twice differentiable
    omega : weight of the unobserved pairs, at least 0
    labels : Y_ij (nnz,) in row order, or one number for all; default the stored values
    weights : w_ij (nnz,) in row order, or one number for all; default 1
    a, b : (m,) and (n,) costs a_i b_j of an unobserved pair, such as inverse propensities; default 1
    prior : (Pt (m, k'), Qt (n, k')) that impute Yt_ij = pt_i . qt_j, or one number for all; default 0
    regularization : lambda, at least 0
    ridge : (r (m,), s (n,)), what lambda is multiplied by in each row; default 1

    Everything costs O(nnz k + (m + n) k^2); the k x k sums are float64, whatever the dtype of P and Q. Calling the loss
    gives a differentiable scalar: `loss(left(u), right(v)).backward()` reaches any towers.

    >>> import numpy as np, scipy.sparse as sp, torch
    >>> loss = AllPairsLoss(sp.csr_matrix(np.eye(3)), omega=0.5)
    >>> P = torch.eye(3, dtype=torch.float64, requires_grad=True)
    >>> round(loss(P, 2 * P).item(), 3)  # (1 - 2)^2 / 2 on the three observed pairs, 0 on the others
    1.5
    """

    def __init__(
        self,
        observed: Interactions | MatrixLike,
        *,
        loss: str | AbstractPairLoss = "squared",
        omega: float = 1.0,
        labels: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        a: ArrayLike | None = None,
        b: ArrayLike | None = None,
        prior: Prior = None,
        regularization: float = 0.0,
        ridge: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        indptr, indices, columns, stored = _structure(observed)
        self.pairs = PairProducts(indptr, indices, columns)
        self.loss = pair_loss(loss)
        self.omega = check_real(omega, "omega", low=0)
        strength = check_real(regularization, "regularization", low=0)
        (m, n), nnz = self.pairs.shape, len(indices)
        a, b = (_vector(1.0 if v is None else v, name, size) for v, name, size in ((a, "a", m), (b, "b", n)))
        r, s = (1.0, 1.0) if ridge is None else ridge
        prior_left, prior_right = _check_prior(prior, m, n)
        rows = torch.from_numpy(np.repeat(np.arange(m), np.diff(indptr)))
        self._exact = Constants(
            labels=_short(_vector(stored if labels is None else labels, "labels", nnz, low=None)),
            weights=_short(_vector(1.0 if weights is None else weights, "weights", nnz)),
            pair_cost=_short(self.omega * a[rows] * b[torch.from_numpy(indices).long()]),
            imputed=_short(self.pairs.dots(prior_left, prior_right)),
            a=a[:, None],
            b=b[:, None],
            ridge_left=strength * _vector(r, "ridge[0]", m)[:, None],
            ridge_right=strength * _vector(s, "ridge[1]", n)[:, None],
            prior_left=prior_left,
            prior_right=prior_right,
        )
        check_convex(self.loss, self._exact.labels.reshape(-1))
        self._cast: dict[tuple[torch.dtype, torch.device], Constants] = {}
        self.group, self.rows, self._part = ALONE, slice(0, m), None

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
        return self.at(P, Q).gradient()

    def gauss_newton_product(self, P: Tensor, Q: Tensor, W: Tensor, H: Tensor) -> tuple[Tensor, Tensor]:
        """The Gauss-Newton matrix in (P, Q) times the direction (W (m, k), H (n, k)): an (m, k) and an (n, k) part.

        With Z_ij = w_i.q_j + p_i.h_j it is the sum over all pairs of l''_ij Z_ij (q_j, p_i), where l''_ij is w l'' on
        the observed pairs and omega a_i b_j on the others: positive semi-definite, although what is left on the
        observed pairs after completing the sum, w l'' - omega a_i b_j, may be negative (ESL, section 3.4 and on).
        """
        return self.at(P, Q).gauss_newton_product(W, H)

    def at(self, P: Tensor, Q: Tensor) -> "AllPairsPoint":
        """The loss at one point: what value, gradient and products share is computed once."""
        check_embedding(P, "P", self.shape[0], None)
        check_embedding(Q, "Q", self.shape[1], P)
        return AllPairsPoint(self.pairs, self.loss, self.omega, self.constants(P), P.detach(), Q.detach(), self.group)

    def __call__(self, P: Tensor, Q: Tensor) -> Tensor:
        """L(P, Q) as a scalar that autograd differentiates; the processes that joined share the work."""
        return self.differentiable(P, Q, current())

    def differentiable(self, P: Tensor, Q: Tensor, group: Group) -> Tensor:
        """The same, the work shared among the processes of `group`."""
        return _Differentiable.apply(P, Q, self, group)  # pyright: ignore[reportReturnType]

    def transposed(self) -> "AllPairsLoss":
        """The same loss with the sides exchanged: value(P, Q) = transposed().value(Q, P)."""
        order, c = self.pairs.order, self._exact
        turned = copy(self)
        turned.pairs, turned._cast, turned._part = self.pairs.transposed(), {}, None
        turned.rows = slice(0, turned.pairs.shape[0])
        labels, weights, cost, imputed = (v[order] if v.ndim else v for v in c[:4])
        turned._exact = Constants(
            *(labels, weights, cost, imputed, c.b, c.a),
            *(c.ridge_right, c.ridge_left, c.prior_right, c.prior_left),
        )
        return turned

    def part(self, group: Group) -> "AllPairsLoss":
        """The loss as one process of a group works at it: on the pairs of its `rows`, a share of the left ones.

        It takes P of the rows and the whole Q. Value and right gradient are those of the whole on every process, the
        left gradient that of the rows.
        """
        if group.size > 1 and self.group.size == 1 and self._part is None:
            rows = self.pairs.share(group)
            pairs = slice(*self.pairs.indptr[[rows.start, rows.stop]])
            part = copy(self)
            part.pairs, part.group, part.rows, part._cast = self.pairs.part(rows), group, rows, {}
            part._exact = self._exact.part(pairs, rows)
            self._part = part
        return self._part or self

    def constants(self, like: Tensor) -> Constants:
        """The constants in the dtype and on the device of `like`."""
        key = (like.dtype, like.device)
        if key not in self._cast:
            self._cast[key] = Constants(*(v.to(dtype=like.dtype, device=like.device) for v in self._exact))
        return self._cast[key]


class _Differentiable(torch.autograd.Function):
    """The scalar loss with its hand-written gradient."""

    @staticmethod
    def forward(ctx: FunctionCtx, P: Tensor, Q: Tensor, loss: AllPairsLoss, group: Group) -> Tensor:
        part = loss.part(group)
        point = part.at(P[part.rows], Q)
        dP, dQ = point.gradient()
        ctx.save_for_backward(gathered(dP, part.group), dQ)
        return P.new_tensor(point.value())

    @staticmethod
    def backward(ctx: FunctionCtx, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, None, None]:
        dP, dQ = ctx.saved_tensors
        return grad_outputs[0] * dP, grad_outputs[0] * dQ, None, None


def _structure(observed: Interactions | MatrixLike) -> tuple[np.ndarray, np.ndarray, ColumnOrder, np.ndarray]:
    """CSR structure, its column order, and the stored values, of a record or a sparse matrix."""
    if sp.issparse(observed):
        matrix = sp.csr_matrix(observed)
        matrix.sum_duplicates()
        if not matrix.nnz:
            raise ValueError("observed has no stored entry; it must hold at least one observed pair")
        by_column = sp.csc_matrix(sp.csr_matrix((np.arange(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape))
        columns = ColumnOrder(by_column.indptr.astype(np.int64), by_column.indices.astype(np.int32), by_column.data)
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), columns, matrix.data
    if not isinstance(observed, Interactions):
        raise TypeError(
            f"observed is of type {type(observed).__name__}; it must be Interactions or a scipy sparse matrix, "
            "pass scipy.sparse.csr_matrix(observed)"
        )
    return observed.indptr, observed.indices, observed.columns, observed.weights


def _vector(values: ArrayLike, name: str, size: int, low: float | None = 0) -> Tensor:
    """`values`, one number or (size,), as a finite float64 tensor (size,) of entries not below `low`."""
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    array = array.astype(np.float64)
    if array.shape not in ((), (size,)):
        raise ValueError(f"{name} has shape {array.shape}; it must be one number or ({size},)")
    check_finite(array.reshape(-1), name)
    if low is not None and (array < low).any():
        raise ValueError(f"{name} has {int((array < low).sum())} entries below {low}; each must be at least {low}")
    return torch.from_numpy(array).expand(size).contiguous()


def _short(values: Tensor) -> Tensor:
    """One number where all entries are equal."""
    return values[0].clone() if len(values) and bool((values == values[0]).all()) else values


def _check_prior(prior: Prior, m: int, n: int) -> tuple[Tensor, Tensor]:
    """Pt (m, k') and Qt (n, k') in float64: k' = 0 for no prior, 1 for one number."""
    if prior is None:
        return torch.zeros((m, 0), dtype=torch.float64), torch.zeros((n, 0), dtype=torch.float64)
    if isinstance(prior, int | float):
        number = check_real(prior, "prior")
        return torch.full((m, 1), number, dtype=torch.float64), torch.ones((n, 1), dtype=torch.float64)
    left, right = (torch.as_tensor(part, dtype=torch.float64) for part in prior)
    if left.ndim != 2 or right.ndim != 2 or left.shape != (m, right.shape[1]) or right.shape[0] != n:
        raise ValueError(
            f"prior has shapes {tuple(left.shape)} and {tuple(right.shape)}; it must be (Pt ({m}, k'), Qt ({n}, k')) "
            "or one number"
        )
    return left, right
