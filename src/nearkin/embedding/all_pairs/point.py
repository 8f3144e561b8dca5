"""The all-pairs loss at one point: value, gradient and Gauss-Newton product from three k x k sums (ESL, section 3)."""

from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from nearkin._distributed import ALONE, Group
from nearkin._types import ArrayLike
from nearkin.embedding.all_pairs.pair_losses import AbstractPairLoss
from nearkin.embedding.all_pairs.products import PairProducts

CHUNK = 8192  # rows of a Gramian, or pairs, worked on at a time: what lies between stays in the cache


class Constants(NamedTuple):
    """What does not change in training; a vector whose entries are all equal is kept as a scalar."""

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

    def part(self, pairs: slice, rows: slice) -> "Constants":
        """Those of some left rows and of their pairs."""
        by_pair = ("labels", "weights", "pair_cost", "imputed")
        return self._replace(
            **{name: getattr(self, name)[pairs] for name in by_pair if getattr(self, name).ndim},
            a=self.a[rows],
            ridge_left=self.ridge_left[rows],
            prior_left=self.prior_left[rows],
        )


class AllPairsPoint:
    """An `AllPairsLoss` at embeddings P (m, k) and Q (n, k); its parts are computed when first asked for.

    In a group P and the pairs are a process's own, Q is whole, and what sums over left rows is merged.
    """

    def __init__(
        self,
        pairs: PairProducts,
        loss: AbstractPairLoss,
        omega: float,
        constants: Constants,
        P: Tensor,
        Q: Tensor,
        group: Group = ALONE,
    ) -> None:
        self.pairs, self.loss, self.omega, self.constants, self.P, self.Q = pairs, loss, omega, constants, P, Q
        self.group = group

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
        return _filled(c.weights * self.loss.second(c.labels, self.scores) - c.pair_cost, self.scores)

    @cached_property
    def slopes(self) -> Tensor:
        """(nnz,) the derivative of l+ on the observed pairs, X_ij of ESL, eq. 17."""
        c, slopes = self.constants, torch.empty_like(self.scores)
        for part in range(0, len(slopes), CHUNK):
            labels, weights, cost, imputed, scores, out = (
                v[part : part + CHUNK] if v.ndim else v for v in (*c[:4], self.scores, slopes)
            )
            torch.sub(weights * self.loss.first(labels, scores), cost * (scores - imputed), out=out)
        return slopes

    def value(self) -> float:
        c = self.constants
        observed = c.weights * self.loss.value(c.labels, self.scores)
        observed -= 0.5 * c.pair_cost * (self.scores - c.imputed).square()
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
        smooth = self.P @ self.right_gram.to(self.P)
        if c.prior_left.shape[1]:
            smooth -= c.prior_left @ self._crossed[1].to(self.P)
        smooth *= self.omega * c.a
        return smooth.addcmul_(c.ridge_left, self.P).add_(self.pairs.times_right(self.slopes, self.Q))

    def right_gradient(self) -> Tensor:
        """dL/dQ (n, k) = X^T P + omega (B Q P_c - B Qt Ph_c) + lambda S Q."""
        c = self.constants
        smooth = self.Q @ self.left_gram.to(self.Q)
        if c.prior_right.shape[1]:
            smooth -= c.prior_right @ self._crossed[0].to(self.Q)
        smooth *= self.omega * c.b
        observed = self._merged(self.pairs.times_left(self.slopes, self.P))
        return smooth.addcmul_(c.ridge_right, self.Q).add_(observed)

    def gauss_newton_product(self, W: Tensor, H: Tensor) -> tuple[Tensor, Tensor]:
        """See `AllPairsLoss.gauss_newton_product`."""
        check_embedding(W, "W", self.pairs.shape[0], self.P)
        check_embedding(H, "H", self.pairs.shape[1], self.P)
        P, Q, c = self.P, self.Q, self.constants
        Z = self.pairs.cross_dots(P, Q, W.detach(), H.detach()).mul_(self.curvature)
        HQ, WP = gram(H, Q, c.b).to(P), gram(W, P, c.a).to(P)  # H^T B Q and W^T A P
        left = (W @ self.right_gram.to(P)).addmm_(P, HQ).mul_(self.omega * c.a).addcmul_(c.ridge_left, W)
        right = (H @ self.left_gram.to(P)).addmm_(Q, WP).mul_(self.omega * c.b).addcmul_(c.ridge_right, H)
        return left.add_(self.pairs.times_right(Z, Q)), right.add_(self.pairs.times_left(Z, P))

    def _merged(self, total: Tensor) -> Tensor:
        """The sum over the processes' rows."""
        if self.group.size > 1:
            self.group.all_reduce(total.numpy())
        return total


def gram(X: Tensor, Y: Tensor, weights: Tensor) -> Tensor:
    """X^T diag(weights) Y in float64; chunks of rows are widened one at a time, so no wide copy of X exists."""
    total = torch.zeros((X.shape[1], Y.shape[1]), dtype=torch.float64, device=X.device)
    for x, y, w in zip(X.split(CHUNK), Y.split(CHUNK), weights.split(CHUNK), strict=True):
        total.addmm_((x.double() * w.double()).T, y.double())
    return total


def _penalty(X: Tensor, ridge: Tensor) -> Tensor:
    return 0.5 * (X.square().sum(1, keepdim=True) * ridge).sum(dtype=torch.float64)


def _filled(values: Tensor, like: Tensor) -> Tensor:
    return values if values.ndim else values.expand_as(like).contiguous()


def check_embedding(X: ArrayLike, name: str, rows: int, like: Tensor | None) -> None:
    if not isinstance(X, Tensor) or not X.is_floating_point():
        kind = X.dtype if isinstance(X, Tensor) else type(X).__name__
        raise TypeError(f"{name} is {kind}; it must be a float32 or float64 tensor, pass torch.as_tensor({name}, ...)")
    if X.ndim != 2 or X.shape[0] != rows or X.shape[1] < 1 or (like is not None and X.shape[1] != like.shape[1]):
        width = "k >= 1" if like is None else like.shape[1]
        raise ValueError(f"{name} has shape {tuple(X.shape)}; it must be ({rows}, {width})")
    if like is not None and (X.dtype, X.device) != (like.dtype, like.device):
        raise TypeError(f"{name} is {X.dtype} on {X.device}; it must be {like.dtype} on {like.device}, as P")
