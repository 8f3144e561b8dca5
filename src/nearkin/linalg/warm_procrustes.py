"""The rotation nearest to a matrix that changes little from call to call."""

import numpy as np

from nearkin.linalg.procrustes import newton_schulz, orthogonality_error, singular_vectors

_FAR = 0.3  # entries of the correction from which the last decomposition says too little
_NEAR = 0.02  # and up to which one correction is enough
_ORTHOGONAL = 1e-5  # error from which a correction, small in each entry, turned too far in all
_SMALL = 1e-4  # sums of two singular values, of the largest, below which float32 does not tell their plane's angle


class WarmProcrustes:
    """The polar factor U V^T of a sequence of matrices M (d, d), each near the one before.

    In the basis of the last singular value decomposition M is nearly diagonal, E = U^T M V = diag(s) + small. The
    rotation exp(K) that makes E symmetric is, to first order, K_ij = (E_ij - E_ji) / (s_i + s_j), as in Newton's method
    for the polar factor (Higham, Functions of Matrices, section 8.4). That costs products only, a quarter of a
    decomposition; where K is large there is a decomposition again.
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
            K = (E - E.T) / np.maximum(s[:, None] + s, max(_SMALL * float(s.max()), np.finfo(np.float32).tiny))
            size = float(np.abs(K).max())
            if not size < _FAR:
                return None
            W = K + K @ K / 2
            W.flat[:: len(W) + 1] += 1
            left = left @ newton_schulz(W)
            if size < _NEAR:
                break
        left = newton_schulz(left)
        return (left, V) if orthogonality_error(left) < _ORTHOGONAL else None
