"""Givens rotations, many disjoint ones at once, as one fused pass over a matrix.

Convention (GCD, Definition 2): R_ij(theta) is the identity but for R[i,i] = R[j,j] = cos, R[i,j] = -sin, R[j,i] = sin.
The flows paper writes the opposite sign, G[i,j] = sin: its G_ij(theta) is R_ij(-theta).
"""

# pyright: reportConstantRedefinition=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from typing import Any, TypeVar

import numpy as np
import torch

from nearkin._check import as_array
from nearkin._compile import cached_njit
from nearkin._types import ArrayLike
from nearkin.linalg.skew import for_kernels, row_entry

Array = TypeVar("Array", np.ndarray, torch.Tensor)
_FLOATS = ("float32", "float64", "float16", "bfloat16")  # NumPy arrays: the first two


def rotate_columns(X: Array, pairs: ArrayLike, theta: ArrayLike) -> Array:
    """X <- X R_{i1,j1}(theta_1) R_{i2,j2}(theta_2) ... in place; returns X.

    Every rotation is written in Rutishauser's form, x - s (y + tau x) with tau = tan(theta / 2), whose rounding errors
    do not accumulate to a drift of the norm as those of c x - s y do.

    Parameters
    ----------
    X: (..., n, d) NumPy array or torch tensor, float; changed in place.
    pairs: (..., p, 2) integers, the axes (i, j) of each rotation. On the CPU they may overlap and are then applied in
        order; disjoint ones commute.
    theta: (..., p) angles in radians.

    Returns
    -------
    X: the given array or tensor.

    References
    ----------
    Rutishauser (1966), The Jacobi method for real symmetric matrices.

    Examples
    --------
    >>> nk.linalg.rotate_columns(np.array([[1.0, 0.0]]), [[0, 1]], [np.pi / 2]).round(6)
    array([[ 0., -1.]])
    """
    return _rotate(X, pairs, theta, axis=-1)


def rotate_rows(X: Array, pairs: ArrayLike, theta: ArrayLike) -> Array:
    """X <- R_{i1,j1}(theta_1) R_{i2,j2}(theta_2) ... X (..., d, k) in place, for disjoint pairs, as `rotate_columns`.

    Rows lie in order in memory, so this is several times faster than columns; a column update of a matrix kept
    transposed is a row update with the angles' signs turned.
    """
    return _rotate(X, pairs, theta, axis=-2)


def _rotate(X: Any, pairs: Any, theta: Any, *, axis: int) -> Any:
    """Choose the way: a numba kernel for float32/float64 in CPU memory, gather and scatter by torch elsewhere."""
    _check_changeable(X)
    if isinstance(X, torch.Tensor) and X.device.type != "cpu":
        return _rotate_torch(X, torch.as_tensor(pairs, device=X.device), torch.as_tensor(theta, device=X.device), axis)
    loops = not isinstance(X, torch.Tensor) or for_kernels(X)
    pairs, theta = _checked(pairs, theta, X.shape[axis], overlapping=loops and axis == -1)
    batch = tuple(X.shape[:-2])
    pairs = _broadcast(pairs, (*batch, *pairs.shape[-2:]), "pairs")
    theta = _broadcast(theta, (*batch, theta.shape[-1]), "theta")
    if not loops:
        return _rotate_torch(X, torch.from_numpy(pairs.copy()), torch.from_numpy(theta.copy()), axis)
    A = X.detach().numpy() if isinstance(X, torch.Tensor) else X
    if not A.flags.c_contiguous and A.swapaxes(-1, -2).flags.c_contiguous:  # turn the other way what lies in order
        A, theta, axis = A.swapaxes(-1, -2), -theta, -3 - axis
    s, tau = np.sin(theta).astype(A.dtype), np.tan(theta / 2).astype(A.dtype)
    kernel = rotate_columns_kernel if axis == -1 else rotate_rows_kernel
    ordered, pairs = np.ascontiguousarray(A), np.array(pairs)  # one layout, so that loops compile once
    for b in np.ndindex(batch):
        kernel(ordered[b], pairs[b], s[b], tau[b])
    if ordered is not A:
        A[...] = ordered
    return X


def _check_changeable(X: ArrayLike) -> None:
    """TypeError or ValueError unless X (..., d, k) is a floating array or tensor with writable entries."""
    if not isinstance(X, np.ndarray | torch.Tensor):
        raise TypeError(f"X is of type {type(X).__name__}; it must be a NumPy array or a torch tensor")
    allowed = _FLOATS if isinstance(X, torch.Tensor) else _FLOATS[:2]
    dtype = str(X.dtype).removeprefix("torch.")
    if dtype not in allowed:
        raise TypeError(f"X has dtype {dtype}; it must be one of {', '.join(allowed)}")
    if X.ndim < 2:
        raise ValueError(f"X has shape {tuple(X.shape)}; it must be a matrix or a batch of matrices (..., d, k)")
    if isinstance(X, np.ndarray) and not X.flags.writeable:
        raise ValueError("X is read-only and is to be changed in place; pass X.copy()")
    strides = X.stride() if isinstance(X, torch.Tensor) else X.strides
    if any(step == 0 and size > 1 for step, size in zip(strides, X.shape, strict=True)):
        raise ValueError("X is a broadcast view whose entries share memory; pass a copy")


def _checked(pairs: Any, theta: Any, d: int, *, overlapping: bool) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (..., p, 2) int64 of axes in 0..d-1 and angles (..., p) float64; ValueError or TypeError for others."""
    pairs, theta = as_array(pairs, "pairs"), as_array(theta, "theta")
    if pairs.dtype.kind not in "iu":
        raise TypeError(f"pairs has dtype {pairs.dtype}; it must be integers, the numbers of axes")
    if pairs.ndim < 2 or pairs.shape[-1] != 2:
        raise ValueError(f"pairs has shape {pairs.shape}; it must be (..., 2)")
    pairs = pairs.astype(np.int64)
    if len(outside := pairs[(pairs < 0) | (pairs >= d)]):
        raise ValueError(f"pairs holds the axis {outside[0]}; it must lie within 0..{d - 1}")
    axes = pairs if overlapping else pairs.reshape(*pairs.shape[:-2], 2 * pairs.shape[-2])  # of one pair, or of all
    axes = np.sort(axes, axis=-1)
    if len(twice := axes[..., 1:][axes[..., 1:] == axes[..., :-1]]):
        rule = "the axes of a group must differ" if overlapping else "groups must be disjoint, call once a matching"
        raise ValueError(f"pairs holds the axis {twice[0]} twice; {rule}")
    if theta.dtype.kind not in "fiu":
        raise TypeError(f"theta has dtype {theta.dtype}; it must be angles in radians")
    if theta.ndim < 1 or theta.shape[-1] != pairs.shape[-2]:
        raise ValueError(
            f"theta has shape {theta.shape} for pairs {pairs.shape}; it must be (..., {pairs.shape[-2]}), an angle "
            "for each pair"
        )
    theta = theta.astype(np.float64)
    if not np.isfinite(theta).all():
        raise ValueError("theta contains NaN or infinity, so nothing was turned; take a shorter step")
    return pairs, theta


def _broadcast(values: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    """A view of the values with that shape; ValueError that names both if there is none."""
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(f"{name} has shape {values.shape}; it must broadcast to {shape}") from None


@cached_njit()
def rotate_columns_kernel(
    X: np.ndarray, pairs: np.ndarray, s: np.ndarray, tau: np.ndarray
) -> None:  # X (n, d): a row fits the cache, so each is read from memory once
    for r in range(X.shape[0]):
        for p in range(pairs.shape[0]):
            i, j = pairs[p, 0], pairs[p, 1]
            x, y = X[r, i], X[r, j]
            X[r, i] = x + s[p] * (y - tau[p] * x)
            X[r, j] = y - s[p] * (x + tau[p] * y)


@cached_njit()
def rotate_rows_kernel(X: np.ndarray, pairs: np.ndarray, s: np.ndarray, tau: np.ndarray) -> None:  # X (d, k)
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
    order: np.ndarray,  # different rows in pairs of neighbours; a last one without partner stays
    length: float,
) -> bool:
    """Rotate pairs of rows by theta = length * Omega[i, j], Omega = G X^T - X G^T; False, without any change, if G or
    an angle is not finite. All angles come first, which tests G on the way: a separate test and a single pass take
    longer. The last rows of X, which are still in the cache, turn first."""
    theta, total = np.empty(len(order) // 2), 0.0
    for p in range(len(theta)):
        i, j = order[2 * p], order[2 * p + 1]
        theta[p] = length * row_entry(X[i], X[j], G[i], G[j])
        total += theta[p] * 0
    if len(order) % 2:
        for c in range(G.shape[1]):
            total += G[order[-1], c] * 0
    if total != 0:
        return False
    for p in range(len(theta) - 1, -1, -1):
        tau = np.tan(theta[p] / 2)
        s = 2 * tau / (1 + tau * tau)  # sin(theta), a quarter cheaper
        _rotate_pair(X[order[2 * p]], X[order[2 * p + 1]], X.dtype.type(s), X.dtype.type(tau))
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
