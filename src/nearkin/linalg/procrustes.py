"""The nearest orthonormal matrix, and the orthogonality error of a matrix. NumPy arrays and torch tensors alike."""

# pyright: reportConstantRedefinition=false, reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import sys
from dataclasses import dataclass
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


def singular_vectors(X: Array) -> tuple[Array, Array]:
    """U and V^T of X = U diag(s) V^T (..., d, k); QR iteration where divide and conquer, the fast way, fails."""
    try:
        U, _, Vt = namespace(X).linalg.svd(X, full_matrices=False)
    except np.linalg.LinAlgError:
        by_qr: Any = scipy.linalg.svd
        U, _, Vt = by_qr(X, full_matrices=False, lapack_driver="gesvd")
    return U, Vt


def nearest_orthogonal(X: Array, *, special: bool = False) -> Array:
    """Return the orthonormal matrix (..., d, k) nearest to X in Frobenius norm, its polar factor.

    For X = A^T B it is the orthogonal R that minimises ||A R - B||_F: the Procrustes problem (Schoenemann 1966). With
    `special` (square X) the determinant is +1: the nearest rotation, whose last direction is flipped if necessary.
    """
    if special and X.shape[-2] != X.shape[-1]:
        raise ValueError(f"X has shape {tuple(X.shape)}; special=True needs a square matrix, which has a determinant")
    xp = namespace(X)
    U, Vt = singular_vectors(X)
    if special:
        sign = xp.sign(xp.linalg.det(U @ Vt))
        turned: Any = xp.concatenate([U[..., :-1], U[..., -1:] * sign[..., None, None]], -1)
        return turned @ Vt
    return U @ Vt


@dataclass(frozen=True)
class Defaults:
    """When `WarmProcrustes` corrects its last decomposition, and when it makes a new one."""

    far: float = 0.3  # entries of the correction from which the last decomposition is too far off
    near: float = 0.02  # and up to which one correction is enough
    orthogonal: float = 1e-5  # error from which a correction, small in each entry, was too large in total
    small: float = 1e-4  # least sum of two singular values, of the largest, whose plane has an angle in float32


DEFAULTS = Defaults()


class WarmProcrustes:
    """The polar factor U V^T of a sequence of matrices M (d, d), each near the one before.

    In the basis of the last decomposition E = U^T M V is nearly diagonal, and exp(K), K_ij = (E_ij - E_ji) / (s_i +
    s_j), makes it symmetric to first order (Higham, Functions of Matrices, section 8.4): products only, a quarter of
    the cost. Where K is large, M is decomposed again.
    """

    def __init__(self) -> None:
        self._factors: tuple[np.ndarray, np.ndarray] | None = None  # U (d, d) and V (d, d) float32
        self.decompositions = 0

    def __call__(self, M: np.ndarray) -> np.ndarray:
        """The nearest orthogonal matrix to M (d, d), float32."""
        narrow = M.astype(np.float32, copy=False)
        found = None if self._factors is None else self._corrected(narrow, *self._factors)
        if found is None:
            U, Vt = singular_vectors(narrow.astype(np.float64))
            self.decompositions += 1
            found = U.astype(np.float32), np.ascontiguousarray(Vt.T, np.float32)
        self._factors = found
        return found[0] @ found[1].T

    @staticmethod
    def _corrected(M: np.ndarray, left: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The factors U and V of M, from those of a matrix near it; None where it is not near enough."""
        MV = M @ V
        for _ in range(2):
            E = left.T @ MV
            s = E.diagonal()
            K = (E - E.T) / np.maximum(s[:, None] + s, max(DEFAULTS.small * float(s.max()), np.finfo(np.float32).tiny))
            size = float(np.abs(K).max())
            if not size < DEFAULTS.far:
                return None
            W = K + K @ K / 2
            W.flat[:: len(W) + 1] += 1
            left = left @ newton_schulz(W)
            if size < DEFAULTS.near:
                break
        left = newton_schulz(left)
        return (left, V) if orthogonality_error(left) < DEFAULTS.orthogonal else None
