"""Skew gradients: a Euclidean gradient G at X seen as an element of the Lie algebra of SO(d).

Two forms (flows, section 2.1.2). *Left*: Omega = G X^T - X G^T and X <- exp(-t Omega) X; X is (..., d, k), k <= d.
*Right*, the paper's "reverse form": Omega = X^T G - G^T X and X <- X exp(-t Omega); X is square. Both signs are such
that *minus* Omega descends: d/dt f(exp(-t Omega) X) = -||Omega||_F^2 / 2 at t = 0. The paper maximises, so it has
plus. GCD's A = G^T R - R^T G (Algorithm 2) is minus the right form, and its g_ij = A_ij / sqrt(2).
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from nearkin._compile import cached_njit
from nearkin._types import ArrayLike


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
    check_alike(X, G)
    if for_kernels(X):
        axes = check_groups(pairs, len(X), "pairs", size=2, repeats="allowed")
        return torch.from_numpy(_row_entries(X.detach().numpy(), G.detach().numpy(), axes))
    i, j = pairs.unbind(-1)
    return (G.index_select(0, i) * X.index_select(0, j) - X.index_select(0, i) * G.index_select(0, j)).sum(-1)


def right_skew_entries(
    X: Tensor,  # (d, d)
    G: Tensor,  # (d, d)
    pairs: Tensor,  # (m, 2) integers: the columns i, j of each entry
) -> Tensor:
    """Return Omega[i, j] (m,) of the right form in O(m d), without the product X^T G."""
    check_alike(X, G)
    return -left_skew_entries(X.mT.contiguous(), G.mT.contiguous(), pairs)  # rows lie in order in memory


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


def random_skew(*shape: int, generator: torch.Generator | None = None, dtype: torch.dtype | None = None) -> Tensor:
    """Return a Gaussian skew matrix (..., d, d): entries above the diagonal are independent standard normal."""
    upper = torch.randn(*shape, generator=generator, dtype=dtype).triu(1)
    return upper - upper.mT


Repeats = Literal["allowed", "across groups", "never"]
_REPEATS: dict[Repeats, int] = {"allowed": 0, "across groups": 1, "never": 2}
_FLOATS = ("float32", "float64", "float16", "bfloat16")


def as_numpy(values: ArrayLike) -> np.ndarray:
    """Return values as a NumPy array; a tensor is detached and brought to the CPU."""
    if not isinstance(values, torch.Tensor):
        return np.asarray(values)
    values = values.detach().cpu()
    return (values.float() if values.dtype in (torch.float16, torch.bfloat16) else values).numpy()


def on_cpu(X: np.ndarray | torch.Tensor) -> bool:
    return not isinstance(X, torch.Tensor) or X.device.type == "cpu"


def for_kernels(X: torch.Tensor) -> bool:
    """Whether the compiled kernels take X: float32 or float64 on the CPU."""
    return X.device.type == "cpu" and X.dtype in (torch.float32, torch.float64)


def check_changeable(X: ArrayLike) -> None:
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


def check_alike(X: torch.Tensor, G: torch.Tensor) -> None:
    """TypeError or ValueError unless G is a matrix of the shape and dtype of X."""
    if X.ndim != 2 or X.shape != G.shape:
        raise ValueError(f"X has shape {tuple(X.shape)} and G {tuple(G.shape)}; they must have one shape (d, k)")
    if X.dtype != G.dtype or X.device != G.device:
        raise TypeError(f"X is {X.dtype} on {X.device}, G {G.dtype} on {G.device}; pass G.to(X)")


def check_groups(
    groups: Any,  # (..., l, s) integers
    n: int,
    name: str,
    *,
    size: int | None = None,
    repeats: Repeats = "never",
) -> np.ndarray:
    """Return groups as int64 if they hold axes in 0..n-1; ValueError or TypeError otherwise.

    `size` is the s that is asked for. `repeats`: whether an axis may stand in several groups, or even twice in one.
    """
    array = as_numpy(groups)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {array.dtype}; it must be integers, the numbers of axes")
    if array.ndim < 2 or (size is not None and array.shape[-1] != size):
        raise ValueError(f"{name} has shape {array.shape}; it must be (..., {'s' if size is None else size})")
    array = np.ascontiguousarray(array, np.int64)  # one layout, so that loops compile once
    for number in np.ndindex(array.shape[:-2]):
        kind, axis = _fault(array[number], n, _REPEATS[repeats])
        if kind == 1:
            raise ValueError(f"{name} holds the axis {axis}; it must lie within 0..{n - 1}")
        if kind == 2:
            raise ValueError(f"{name} holds the axis {axis} twice; " + _REPEATED[repeats])
    return array


_REPEATED: dict[Repeats, str] = {
    "allowed": "",
    "across groups": "the axes of one group must differ",
    "never": "the groups must be disjoint, call once for each matching",
}


def check_angles(theta: Any, pairs: np.ndarray) -> np.ndarray:
    """Return theta as float64 if it is finite and has one angle for each pair of `pairs` (..., p, 2)."""
    angles = as_numpy(theta)
    if angles.dtype.kind not in "fiu":
        raise TypeError(f"theta has dtype {angles.dtype}; it must be angles in radians")
    if angles.ndim < 1 or angles.shape[-1] != pairs.shape[-2]:
        raise ValueError(
            f"theta has shape {angles.shape} for pairs {pairs.shape}; it must be (..., {pairs.shape[-2]}), an angle "
            "for each pair"
        )
    angles = angles.astype(np.float64)
    if not np.isfinite(angles).all():
        raise ValueError("theta contains NaN or infinity; every angle must be finite, nothing was turned")
    return angles


def broadcast(values: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Return values, or a view of them, with `shape`; ValueError that names both if there is none."""
    if values.shape == shape:
        return values
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(f"{name} has shape {values.shape}; it must broadcast to {shape}") from None


@cached_njit()
def _fault(groups: np.ndarray, n: int, repeats: int) -> tuple[int, int]:
    """(0, 0) if groups (l, s) are right, (1, axis) for an axis outside 0..n-1, (2, axis) for one that stands twice."""
    last = np.full(n, -1)
    for g in range(groups.shape[0]):
        for a in range(groups.shape[1]):
            axis = groups[g, a]
            if axis < 0 or axis >= n:
                return 1, axis
            if (repeats == 1 and last[axis] == g) or (repeats == 2 and last[axis] >= 0):
                return 2, axis
            last[axis] = g
    return 0, 0
