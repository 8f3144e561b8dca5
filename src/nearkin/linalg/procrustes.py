"""The nearest orthonormal matrix, and the orthogonality error of a matrix. NumPy arrays and torch tensors alike."""

# pyright: reportConstantRedefinition=false, reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.linalg

if TYPE_CHECKING:
    import torch

Array = TypeVar("Array", np.ndarray, "torch.Tensor")


def namespace(X: Any) -> ModuleType:
    """torch for its tensors, else NumPy. Without torch loaded there are no tensors: search with codes needs none."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(X, torch.Tensor) else np


def deviation(X: Array) -> Array:
    """X^T X - I (..., k, k)."""
    gram: Any = X.mT @ X
    return gram - namespace(X).eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)


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


def newton_schulz(X: Array, steps: int = 1) -> Array:
    """Return X (..., d, k) after steps of X <- X (3 I - X^T X) / 2, which squares a small distance from orthonormality.

    It converges to the nearest orthonormal matrix if all singular values lie in (0, sqrt(3)); no factorisation.
    """
    for _ in range(steps):
        X = X - X @ deviation(X) / 2
    return X


def nearest_orthogonal(X: Array, *, special: bool = False) -> Array:
    """Return the orthonormal matrix (..., d, k) nearest to X in Frobenius norm, its polar factor.

    For X = A^T B it is the orthogonal R that minimises ||A R - B||_F: the Procrustes problem (Schoenemann 1966). With
    `special` (square X) the determinant is +1: the nearest rotation, whose last direction is flipped if necessary.
    """
    if special and X.shape[-2] != X.shape[-1]:
        raise ValueError(f"X has shape {tuple(X.shape)}; special=True needs a square matrix, which has a determinant")
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
