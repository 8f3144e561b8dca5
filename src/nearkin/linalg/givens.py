"""Givens rotations, many disjoint ones at once, as one fused pass over a matrix.

Convention (GCD, Definition 2): R_ij(theta) is the identity but for R[i,i] = R[j,j] = cos, R[i,j] = -sin, R[j,i] = sin.
The flows paper writes the opposite sign, G[i,j] = sin: its G_ij(theta) is R_ij(-theta).
"""

# pyright: reportUnknownMemberType=false

from typing import Any, TypeVar

import numpy as np
import torch

from nearkin._compile import cached_njit
from nearkin._types import ArrayLike
from nearkin.linalg import skew

Array = TypeVar("Array", np.ndarray, torch.Tensor)


def rotate_columns(X: Array, pairs: ArrayLike, theta: ArrayLike) -> Array:
    """X <- X R_{i1,j1}(theta_1) R_{i2,j2}(theta_2) ... in place; returns X.

    Parameters
    ----------
    X: (..., n, d) NumPy array or torch tensor, float; changed in place.
    pairs: (..., p, 2) integers, the axes (i, j) of each rotation. On the CPU they may overlap and are then applied in
        order; disjoint ones commute.
    theta: (..., p) angles in radians.

    On the CPU ValueError or TypeError, before anything is turned, for axes outside 0..d-1, a pair of one axis with
    itself, angles that are not finite, and an X that cannot be changed in place. Elsewhere torch checks the axes.

    Every rotation is written in Rutishauser's form, x - s (y + tau x) with tau = tan(theta / 2), whose rounding errors
    do not accumulate to a drift of the norm as those of c x - s y do.
    """
    return _rotate(X, pairs, theta, axis=-1)


def rotate_rows(X: Array, pairs: ArrayLike, theta: ArrayLike) -> Array:
    """X <- R_{i1,j1}(theta_1) R_{i2,j2}(theta_2) ... X in place, for disjoint pairs; returns X (..., d, k).

    Arguments and errors as in `rotate_columns`, and a ValueError if the pairs overlap. Rows lie in order in memory, so
    this is several times faster than columns; a column update of a matrix kept transposed is a row update with the
    angles' signs turned.
    """
    return _rotate(X, pairs, theta, axis=-2)


def descend_rows(
    X: torch.Tensor,  # (d, k), changed in place
    G: torch.Tensor,  # (d, k), the gradient at X
    pairs: torch.Tensor,  # (p, 2) integers, disjoint
    length: float,
) -> None:
    """Turn pairs of rows by theta = length * Omega[i, j], Omega = G X^T - X G^T. It is `left_skew_entries` followed by
    `rotate_rows`, in one call. ValueError if an angle is not finite; then nothing is turned."""
    skew.check_alike(X, G)
    if skew.for_kernels(X):
        axes = skew.check_groups(pairs, len(X), "pairs", size=2)
        if not descend_in_order(X.detach().numpy(), G.detach().numpy(), axes.reshape(-1), float(length)):
            raise ValueError(f"length is {length}; times the gradient's entries it is no finite angle, take less")
    else:
        rotate_rows(X, pairs, skew.left_skew_entries(X, G, pairs) * length)


def _rotate(X: Any, pairs: Any, theta: Any, *, axis: int) -> Any:
    """Choose the way: a numba kernel for float32/float64 in CPU memory, gather and scatter by torch elsewhere."""
    skew.check_changeable(X)
    if not skew.on_cpu(X):
        return _rotate_torch(X, torch.as_tensor(pairs, device=X.device), torch.as_tensor(theta, device=X.device), axis)
    loops = not isinstance(X, torch.Tensor) or skew.for_kernels(X)
    repeats = "across groups" if loops and axis == -1 else "never"
    pairs = skew.check_groups(pairs, X.shape[axis], "pairs", size=2, repeats=repeats)
    theta = skew.check_angles(theta, pairs)
    batch = tuple(X.shape[:-2])
    pairs = skew.broadcast(pairs, (*batch, *pairs.shape[-2:]), "pairs")
    theta = skew.broadcast(theta, (*batch, theta.shape[-1]), "theta")
    if not loops:
        return _rotate_torch(X, torch.from_numpy(pairs.copy()), torch.from_numpy(theta.copy()), axis)
    A = X.detach().numpy() if isinstance(X, torch.Tensor) else X
    s, tau = np.sin(theta).astype(A.dtype), np.tan(theta / 2).astype(A.dtype)
    kernel = _rotate_columns_kernel if axis == -1 else _rotate_rows_kernel
    for b in np.ndindex(batch):
        kernel(A[b], pairs[b], s[b], tau[b])
    return X


@cached_njit()
def _rotate_columns_kernel(
    X: np.ndarray, pairs: np.ndarray, s: np.ndarray, tau: np.ndarray
) -> None:  # X (n, d): a row fits the cache, so each is read from memory once
    for r in range(X.shape[0]):
        for p in range(pairs.shape[0]):
            i, j = pairs[p, 0], pairs[p, 1]
            x, y = X[r, i], X[r, j]
            X[r, i] = x + s[p] * (y - tau[p] * x)
            X[r, j] = y - s[p] * (x + tau[p] * y)


@cached_njit()
def _rotate_rows_kernel(X: np.ndarray, pairs: np.ndarray, s: np.ndarray, tau: np.ndarray) -> None:  # X (d, k)
    for p in range(pairs.shape[0]):
        _rotate_pair(X[pairs[p, 0]], X[pairs[p, 1]], s[p], tau[p])


@cached_njit()
def _rotate_pair(first: np.ndarray, second: np.ndarray, s: float, tau: float) -> None:
    for c in range(first.shape[0]):
        x, y = first[c], second[c]
        first[c] = x - s * (y + tau * x)
        second[c] = y + s * (x - tau * y)


@cached_njit()
def descend_in_order(
    X: np.ndarray,  # (d, k), changed in place
    G: np.ndarray,  # (d, k)
    order: np.ndarray,  # different rows: each turns with its neighbour, a last one without neighbour does not
    length: float,
) -> bool:
    """`descend_rows` of rows that are known to be right; False, and nothing is turned, if G or an angle is not finite.
    All angles come first, which tests G on the way: a separate test and a single pass take longer."""
    theta, total = np.empty(len(order) // 2), 0.0
    for p in range(len(theta)):
        i, j = order[2 * p], order[2 * p + 1]
        theta[p] = length * skew.row_entry(X[i], X[j], G[i], G[j])
        total += theta[p] * 0
    if len(order) % 2:
        for c in range(G.shape[1]):
            total += G[order[-1], c] * 0
    if total != 0:
        return False
    for p in range(len(theta)):
        s, tau = X.dtype.type(np.sin(theta[p])), X.dtype.type(np.tan(theta[p] / 2))
        _rotate_pair(X[order[2 * p]], X[order[2 * p + 1]], s, tau)
    return True


def _rotate_torch(X: torch.Tensor, pairs: torch.Tensor, theta: torch.Tensor, axis: int) -> torch.Tensor:
    """The same formulas by gather and scatter, for disjoint pairs; 16-bit storage is computed in float32."""
    work = X.detach()
    dtype = torch.float64 if X.dtype == torch.float64 else torch.float32
    theta = theta.double() if X.device.type != "mps" else theta.float()
    s, tau = torch.sin(theta).to(dtype).unsqueeze(-1), torch.tan(theta / 2).to(dtype).unsqueeze(-1)
    rows = work.mT if axis == -1 else work  # (..., d, k): rows of the view are what rotates
    if axis == -1:
        s = -s  # columns x_i, x_j of X R: cos x_i + sin x_j
        tau = -tau
    shape = (*work.shape[:-2], pairs.shape[-2], rows.shape[-1])
    i, j = (axis.unsqueeze(-1).expand(shape) for axis in pairs.unbind(-1))
    x, y = rows.gather(-2, i).to(dtype), rows.gather(-2, j).to(dtype)
    rows.scatter_(-2, i, (x - s * (y + tau * x)).to(X.dtype))
    rows.scatter_(-2, j, (y + s * (x - tau * y)).to(X.dtype))
    return X
