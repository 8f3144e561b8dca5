"""What does not change while an all-pairs loss is minimised: labels, weights, costs, penalties and imputed factors."""

from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nearkin._check import check_finite, check_real
from nearkin._types import ArrayLike
from nearkin.embedding.all_pairs.products import PairProducts

Prior: TypeAlias = float | tuple[ArrayLike, ArrayLike] | None
"""What imputes the labels of unobserved pairs: one number, or factors Pt (m, k') and Qt (n, k')."""


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

    def of_pairs(self, places: Tensor | slice) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Labels, weights, costs and imputed labels of some pairs; what is one number for all stays one."""
        labels, weights, cost, imputed = (v[places] if v.ndim else v for v in self[:4])
        return labels, weights, cost, imputed

    def part(self, pairs: slice, rows: slice) -> "Constants":
        """Those of some left rows and of their pairs."""
        left = self.ridge_left[rows], self.ridge_right, self.prior_left[rows], self.prior_right
        return Constants(*self.of_pairs(pairs), self.a[rows], self.b, *left)

    def transposed(self, order: Tensor) -> "Constants":
        """Those of the same pairs with the sides exchanged, which come in this order then."""
        turned = self.ridge_right, self.ridge_left, self.prior_right, self.prior_left
        return Constants(*self.of_pairs(order), self.b, self.a, *turned)


def make_constants(
    pairs: PairProducts,
    *,
    omega: float,
    labels: ArrayLike,
    weights: ArrayLike | None,
    costs: tuple[ArrayLike | None, ArrayLike | None],
    prior: Prior,
    strength: float,
    ridge: tuple[ArrayLike, ArrayLike] | None,
) -> Constants:
    """The constants in float64, or what of the pairs was float32 as it was, which costs half and loses nothing.

    ValueError or TypeError that names the argument of `AllPairsLoss` that does not fit.
    """
    (m, n), nnz = pairs.shape, len(pairs.indices)
    a, b = (vector(1.0 if v is None else v, name, size) for v, name, size in zip(costs, "ab", (m, n), strict=True))
    r, s = (1.0, 1.0) if ridge is None else ridge
    prior_left, prior_right = _factors(prior, m, n)
    return Constants(
        labels=_of_pairs(labels, "labels", nnz, low=None),
        weights=_of_pairs(1.0 if weights is None else weights, "weights", nnz),
        pair_cost=_pair_cost(pairs, omega, a, b),
        imputed=torch.zeros((), dtype=torch.float64) if prior is None else _imputed(pairs, prior_left, prior_right),
        a=a[:, None],
        b=b[:, None],
        ridge_left=strength * vector(r, "ridge[0]", m)[:, None],
        ridge_right=strength * vector(s, "ridge[1]", n)[:, None],
        prior_left=prior_left,
        prior_right=prior_right,
    )


def vector(values: ArrayLike, name: str, size: int, low: float | None = 0, *, narrow: bool = False) -> Tensor:
    """`values`, one number or (size,), as a finite float64 tensor (size,) of entries not below `low`.

    `narrow` leaves float32 what was float32.
    """
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    array = array.astype(np.float32 if narrow and array.dtype == np.float32 else np.float64)
    if array.shape not in ((), (size,)):
        raise ValueError(f"{name} has shape {array.shape}; it must be one number or ({size},)")
    check_finite(array.reshape(-1), name)
    if low is not None and (array < low).any():
        raise ValueError(f"{name} has {int((array < low).sum())} entries below {low}; each must be at least {low}")
    return torch.from_numpy(array).expand(size).contiguous()


def _of_pairs(values: ArrayLike, name: str, size: int, low: float | None = 0) -> Tensor:
    """A `vector` of the pairs; one number for all of them stays one."""
    return _short(vector(values, name, 1 if np.ndim(values) == 0 else size, low, narrow=True))


def _pair_cost(pairs: PairProducts, omega: float, a: Tensor, b: Tensor) -> Tensor:
    """omega a_i b_j of the pairs, (nnz,) or one number."""
    a, b = _short(a), _short(b)
    if a.ndim:
        a = torch.repeat_interleave(a, torch.from_numpy(np.diff(pairs.indptr)))
    return _short(omega * a * (b[torch.from_numpy(pairs.indices).long()] if b.ndim else b))


def _imputed(pairs: PairProducts, left: Tensor, right: Tensor) -> Tensor:
    """pt_i . qt_j of the pairs, in the factors' precision."""
    return _short(pairs.dots(left, right))


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
