"""Checks of what the compiled kernels are called with: they read and write wherever an index points.

They are made where the data are in the memory of the CPU. Elsewhere torch checks indices itself, and to look at values
would make the device wait.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from typing import Any, Literal

import numpy as np
import torch

from nearkin._compile import cached_njit
from nearkin._types import ArrayLike

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
    """Whether X lies in the memory of the CPU."""
    return not isinstance(X, torch.Tensor) or X.device.type == "cpu"


def for_kernels(X: torch.Tensor) -> bool:
    """Whether the compiled kernels take X: float32 or float64 on the CPU."""
    return X.device.type == "cpu" and X.dtype in (torch.float32, torch.float64)


def check_changeable(X: ArrayLike, name: str = "X") -> None:
    """TypeError or ValueError unless X (..., d, k) is a floating array or tensor whose entries can be written one by
    one.
    """
    if not isinstance(X, np.ndarray | torch.Tensor):
        raise TypeError(f"{name} is of type {type(X).__name__}; it must be a NumPy array or a torch tensor")
    allowed = _FLOATS if isinstance(X, torch.Tensor) else _FLOATS[:2]
    dtype = str(X.dtype).removeprefix("torch.")
    if dtype not in allowed:
        raise TypeError(f"{name} has dtype {dtype}; it must be one of {', '.join(allowed)}")
    if X.ndim < 2:
        raise ValueError(f"{name} has shape {tuple(X.shape)}; it must be a matrix or a batch of matrices (..., d, k)")
    if isinstance(X, np.ndarray) and not X.flags.writeable:
        raise ValueError(f"{name} is read-only and is to be changed in place; pass {name}.copy()")
    strides = X.stride() if isinstance(X, torch.Tensor) else X.strides
    if any(step == 0 and size > 1 for step, size in zip(strides, X.shape, strict=True)):
        raise ValueError(f"{name} is a broadcast view whose entries share memory; pass a copy")


def check_alike(X: torch.Tensor, G: torch.Tensor, name: str = "G") -> None:
    """TypeError or ValueError unless G is a matrix of the shape and dtype of X."""
    if X.ndim != 2 or X.shape != G.shape:
        raise ValueError(
            f"X has shape {tuple(X.shape)} and {name} {tuple(G.shape)}; they must be matrices of one shape (d, k)"
        )
    if X.dtype != G.dtype or X.device != G.device:
        raise TypeError(
            f"X is {X.dtype} on {X.device} and {name} {G.dtype} on {G.device}; they must agree, pass {name}.to(X)"
        )


def check_groups(
    groups: Any,  # (..., l, s) integers
    n: int,
    name: str,
    *,
    size: int | None = None,
    repeats: Repeats = "never",
) -> np.ndarray:
    """Return groups as int64 if they hold axes in 0..n-1; ValueError or TypeError otherwise.

    `size` is the s that is asked for. `repeats` says whether an axis may stand in several groups, or even twice in one.
    """
    array = as_numpy(groups)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {array.dtype}; it must be integers, the numbers of axes")
    if array.ndim < 2 or (size is not None and array.shape[-1] != size):
        raise ValueError(f"{name} has shape {array.shape}; it must be (..., {'s' if size is None else size})")
    array = array.astype(np.int64, copy=False)
    matrices = array.reshape(-1, *array.shape[-2:])
    for matrix in matrices:
        kind, axis = _fault(matrix, n, _REPEATS[repeats])
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
