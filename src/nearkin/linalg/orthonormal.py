"""Orthonormal matrices and the error of a matrix, principal axes, rows of norm 1. No torch for NumPy arrays."""

# pyright: reportConstantRedefinition=false, reportMissingTypeStubs=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.linalg

from nearkin._check import numpy_generator
from nearkin._types import Seed

if TYPE_CHECKING:
    import torch

Array = TypeVar("Array", np.ndarray, "torch.Tensor")
SHORT = 1e-15  # float32 keeps all digits of the squares of longer rows


def namespace(X: Any) -> ModuleType:
    """torch for its tensors, else NumPy. Without torch loaded there are no tensors: search with codes needs none."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(X, torch.Tensor) else np


def deviation(X: Array) -> Array:
    """X^T X - I (..., k, k), in the type of X."""
    if isinstance(X, np.ndarray):
        return X.mT @ X - np.eye(X.shape[-1], dtype=X.dtype)
    gram = X.new_empty(*X.shape[:-2], X.shape[-1], X.shape[-1])
    namespace(X).matmul(X.mT, X, out=gram)  # autocast casts no call with `out`
    gram.diagonal(dim1=-2, dim2=-1).sub_(1)  # in place: a batch of small matrices takes half the time
    return gram


def orthogonality_error(X: Any) -> float:
    """Return ||X^T X - I||_F / sqrt(k), for a batch (..., d, k) its largest value; 0 for orthonormal columns.

    The columns are the short side: for a wide matrix the rows are tested. Sums are taken in at least float32.
    """
    if X.ndim < 2:
        raise ValueError(f"X has shape {tuple(X.shape)}; it must be a matrix or a batch of matrices (..., d, k)")
    xp = namespace(X)
    if xp is not np:
        X = X.detach()
        X = X if X.dtype == xp.float64 else X.float()
    X = X.mT if X.shape[-2] < X.shape[-1] else X
    square = (deviation(X) ** 2).sum((-2, -1)) / X.shape[-1]
    return float(square.max()) ** 0.5


def newton_schulz(X: Array) -> Array:
    """Return X (3 I - X^T X) / 2 (..., d, k), which squares a small distance of X from orthonormality.

    Such steps converge to the nearest orthonormal matrix if all singular values lie in (0, sqrt(3)).
    """
    return X - X @ deviation(X) / 2


def nearest_orthogonal(X: Array, *, special: bool = False) -> Array:
    """Return the orthonormal matrix (..., d, k) nearest to X in Frobenius norm, its polar factor.

    For X = A^T B it is the orthogonal R that minimises ||A R - B||_F: the Procrustes problem (Schoenemann 1966). With
    `special` (square X) the determinant is +1: the nearest rotation, whose last direction is flipped if necessary.
    """
    xp = namespace(X)
    try:
        U, _, Vt = xp.linalg.svd(X, full_matrices=False)
    except np.linalg.LinAlgError:  # divide and conquer fails on a few matrices; QR iteration is slower
        by_qr: Any = scipy.linalg.svd
        U, _, Vt = by_qr(X, full_matrices=False, lapack_driver="gesvd")
    if special:
        sign = xp.sign(xp.linalg.det(U @ Vt))
        turned: Any = xp.concatenate([U[..., :-1], U[..., -1:] * sign[..., None, None]], -1)
        return turned @ Vt
    return U @ Vt


def unique_q(M: Array) -> Array:
    """Return the Q of M = Q R (..., d, k), array or tensor, with R's diagonal positive: Q is then a function of M.

    Of a Gaussian M it is uniform, by the Haar measure (Mezzadri 2007); without the signs it is not.
    """
    xp = namespace(M)
    Q, R = xp.linalg.qr(M)
    signs = xp.where(xp.linalg.diagonal(R) < 0, -1.0, 1.0)
    return Q * xp.asarray(signs, dtype=M.dtype)[..., None, :]


def haar_rotation(d: int, random_state: Seed = None) -> np.ndarray:
    """Return a uniform random rotation or reflection (d, d) float32."""
    gaussian = numpy_generator(random_state).standard_normal((d, d))
    return np.ascontiguousarray(unique_q(gaussian), np.float32)


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Return rows of X (..., d) divided by their lengths, in X's type; rows of zeros stay."""
    lengths = np.linalg.norm(X, axis=-1, keepdims=True)
    if (lengths < SHORT).any():  # their squares lose digits or vanish; the largest entry is 1 first
        largest = np.abs(X).max(axis=-1, keepdims=True, initial=0)
        X = np.divide(X, largest, out=X.copy(), where=(lengths < SHORT) & (largest > 0))
        lengths = np.linalg.norm(X, axis=-1, keepdims=True)
    return np.divide(X, lengths, out=X.copy(), where=lengths > 0)


def deal_axes(logs: np.ndarray, n_groups: int) -> np.ndarray:
    """Deal axes (m,) with the logarithms of their variances, none below 0, largest first, to groups (M, m // M).

    An axis goes to the open group of the smallest volume, the product of its variances; of equal ones, to the first.
    The last m - M (m // M) axes are left out.

    >>> deal_axes(np.array([3.0, 2.0, 1.0, 0.5]), 2).tolist()
    [[0, 3], [1, 2]]
    """
    size = len(logs) // n_groups
    groups: list[list[int]] = [[] for _ in range(n_groups)]
    volumes = np.zeros(n_groups)
    for axis in range(size * n_groups):
        chosen = int(np.argmin(np.where([len(group) < size for group in groups], volumes, np.inf)))
        groups[chosen].append(axis)
        volumes[chosen] += logs[axis]
    return np.array(groups)


def principal_axes(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Axes (d, d) float32, largest entries positive, and descending variances (d,) of centred rows X (n, d)."""
    variances, axes = np.linalg.eigh((X.T @ X).astype(np.float64) / len(X))
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(len(axes))])
    return np.ascontiguousarray(axes[:, ::-1], np.float32), np.maximum(variances[::-1], 0)


def reached(variances: np.ndarray, bits: float, margin: float = 1.0) -> int:
    """Number of axes, at least 1, whose descending variances (d,) a code of `bits` bits can lower.

    For normal rows the best code gives the i-th axis log2(v_i / t) / 2 bits where v_i is above the water level t, and
    none elsewhere (reverse water-filling; Cover & Thomas 2006, section 10.3). Axes down to t / `margin` are counted.

    >>> reached(np.array([16.0, 4.0, 0.01, 0.0]), 3)
    2
    """
    logs = np.log2(np.maximum(variances, np.finfo(float).tiny))
    levels = (np.cumsum(logs) - 2 * bits) / np.arange(1, len(logs) + 1)  # of t, were the first k axes those above it
    above = int(np.flatnonzero(logs >= levels)[-1])
    return max(1, int((logs >= levels[above] - np.log2(margin)).sum()))
