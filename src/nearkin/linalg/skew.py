"""Skew gradients: a Euclidean gradient G at X seen as an element of the Lie algebra of SO(d).

Two forms (flows, section 2.1.2). *Left*: Omega = G X^T - X G^T and X <- exp(-t Omega) X; X is (..., d, k), k <= d.
*Right*, the paper's "reverse form": Omega = X^T G - G^T X and X <- X exp(-t Omega); X is square. Both signs are such
that *minus* Omega descends: d/dt f(exp(-t Omega) X) = -||Omega||_F^2 / 2 at t = 0. The paper maximises, so it has
plus. GCD's A = G^T R - R^T G (Algorithm 2) is minus the right form, and its g_ij = A_ij / sqrt(2).
"""

# pyright: reportUnknownMemberType=false

import numpy as np
import torch
from torch import Tensor

from nearkin._compile import cached_njit


def left_skew(
    X: Tensor,  # (..., d, k), orthonormal columns
    G: Tensor,  # (..., d, k), Euclidean gradient at X
) -> Tensor:
    """Return Omega = G X^T - X G^T (..., d, d) in O(d^2 k) (flows, eq. 2)."""
    product = G @ X.mT
    return product - product.mT


def right_skew(
    X: Tensor,  # (..., d, d), orthogonal
    G: Tensor,  # (..., d, d), Euclidean gradient at X
) -> Tensor:
    """Return Omega = X^T G - G^T X (..., d, d) in O(d^3) (flows, section 2.1.2, "reverse form"; minus GCD's A)."""
    product = X.mT @ G
    return product - product.mT


def left_skew_entries(
    X: Tensor,  # (d, k)
    G: Tensor,  # (d, k)
    pairs: Tensor,  # (m, 2) integers: the rows i, j of each entry
) -> Tensor:
    """Return Omega[i, j] (m,) of the left form in O(m k), without the d x d matrix."""
    if for_kernels(X):
        x, g = (T.detach().contiguous().numpy() for T in (X, G))
        return torch.from_numpy(_row_entries(x, g, pairs.numpy()))
    i, j = pairs.unbind(-1)
    return (G.index_select(0, i) * X.index_select(0, j) - X.index_select(0, i) * G.index_select(0, j)).sum(-1)


@cached_njit(fastmath={"reassoc", "contract", "nsz"})  # NaN and infinity still come through
def row_entry(
    x: np.ndarray, y: np.ndarray, g: np.ndarray, h: np.ndarray
) -> float:  # one entry of the left form, from rows i, j of X and rows i, j of G
    total = x.dtype.type(0)
    for c in range(x.shape[0]):
        total += g[c] * y[c] - x[c] * h[c]
    return total


@cached_njit()
def _row_entries(X: np.ndarray, G: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    entries = np.empty(pairs.shape[0], X.dtype)
    for p in range(pairs.shape[0]):
        i, j = pairs[p, 0], pairs[p, 1]
        entries[p] = row_entry(X[i], X[j], G[i], G[j])
    return entries


def drop_normal(
    X: Tensor,  # (..., d, k)
    V: Tensor,  # (..., d, k)
) -> Tensor:
    """Return V - X sym(X^T V): V without its part normal to the manifold at X. The left form of V does not change."""
    product = X.mT @ V
    return V - X @ ((product + product.mT) / 2)


def for_kernels(X: torch.Tensor) -> bool:
    """Whether the compiled kernels take X: float32 or float64 on the CPU."""
    return X.device.type == "cpu" and X.dtype in (torch.float32, torch.float64)
