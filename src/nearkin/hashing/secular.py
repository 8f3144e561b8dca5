"""One column of OnE: least squares on the unit sphere, orthogonal to the columns before it (SCQ, eq. 5-16).

In the eigenbasis of the covariance the matrix is diagonal, C = diag(c). With w = X^T b / n the column minimises

    v^T C v - 2 w^T v   subject to   v^T v = 1,   Q^T v = 0,

so that v = (C + nu)^-1 (w - Q phi) with phi = (Q^T (C + nu)^-1 Q)^-1 Q^T (C + nu)^-1 w (eq. 12-14; the paper's Phi is
2 phi and its nu_k is this nu). The paper alternates between nu and Phi. Eliminating Phi leaves one equation in nu,
|v(nu)| = 1, that falls strictly on nu > -(smallest eigenvalue of C on the complement of Q): one safeguarded Newton.

Where the paper is wrong: eq. 13 asks for nu_k > -lambda_d / n and says that a solution always exists. From the second
column on that holds on the complement of Q only, whose smallest eigenvalue may be larger (interlacing); the root then
lies below -lambda_d / n. Feasibility is checked by inertia instead.
"""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs  # scipy.linalg's wrappers cost more than these small systems

MAX_NEWTON = 60


def sphere_column(
    c: np.ndarray,  # (m,) diagonal of C
    w: np.ndarray,  # (m,)
    Q: np.ndarray,  # (m, k - 1) orthonormal columns
    guess: float | None = None,  # of nu, for example of the last iteration
) -> tuple[np.ndarray, float]:
    """Return the global minimiser v (m,) and its multiplier nu (SCQ, eq. 7-8 for k = 1, eq. 12-14 after)."""
    reduced = w - Q @ (Q.T @ w)
    length = float(np.linalg.norm(reduced))
    low, high = length - c.max(), length - c.min()  # |w| / (c_max + nu) <= |v| <= |w| / (c_min + nu)
    nu = high if guess is None else min(max(guess, low), high)
    for _ in range(MAX_NEWTON):
        v, slope = _column_at(nu, c, reduced, Q)
        norm = 0.0 if v is None else float(np.linalg.norm(v))
        if v is not None and abs(norm - 1) < 1e-14:
            break
        if v is None or norm > 1:
            low = nu
        else:
            high = nu
        # Newton for 1 / |v| = 1, which is nearly linear in nu, as in trust-region methods
        step = nu + norm**2 / slope * (norm - 1) if v is not None and slope > 0 else np.nan
        following = step if low < step < high else (low + high) / 2
        if following == nu or high - low <= 4e-16 * max(abs(low), abs(high)):
            break
        nu = following
    if v is not None and abs(norm - 1) < 1e-9:
        v = v - Q @ (Q.T @ v)
        v /= np.linalg.norm(v)
        residual = (c + nu) * v - reduced
        residual -= Q @ (Q.T @ residual)
        if np.linalg.norm(residual) <= 1e-11 * (length + np.abs(c + nu).max()):
            return v, float(nu)
    return _column_by_eigenvectors(c, w, Q)


def _column_at(nu: float, c: np.ndarray, w: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray | None, float]:
    """v(nu) and v^T (C + nu)^-1 v on the complement of Q; (None, 0) if C + nu is not positive definite there."""
    shifted = c + nu
    if not shifted.all():
        return None, 0.0
    D = 1 / shifted
    if not Q.shape[1]:
        return (D * w, float(w @ (D**3 * w))) if (shifted > 0).all() else (None, 0.0)
    A = Q.T @ (D[:, None] * Q)
    solve = _solver(A, int((shifted < 0).sum()))
    if solve is None:
        return None, 0.0
    v = D * (w - Q @ solve(Q.T @ (D * w)))
    return v, float(v @ (D * (v - Q @ solve(Q.T @ (D * v)))))


def _solver(A: np.ndarray, n_negative: int):
    """A function b -> A^-1 b, or None unless A has exactly `n_negative` negative eigenvalues.

    By Sylvester's law C + nu is positive definite on the complement of Q exactly when A = Q^T (C + nu)^-1 Q has as many
    negative eigenvalues as C + nu itself.
    """
    if n_negative == 0:
        factor, info = dpotrf(A)
        return None if info else lambda b: dpotrs(factor, b)[0]
    if n_negative > len(A):
        return None
    values, vectors = np.linalg.eigh(A)
    if (values < 0).sum() != n_negative or not values.all():
        return None
    return lambda b: vectors @ ((vectors.T @ b) / values)


def _column_by_eigenvectors(c: np.ndarray, w: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, float]:
    """The same in a basis of the complement, O(m^3): for the rare column whose root Newton cannot reach.

    Holds the hard case as well: if w has no part along the lowest eigenvector, any |v(nu)| = 1 may be out of reach, and
    the missing length goes along that eigenvector.
    """
    basis = np.linalg.qr(Q, mode="complete")[0][:, Q.shape[1] :] if Q.shape[1] else np.eye(len(c))
    values, vectors = np.linalg.eigh(basis.T @ (c[:, None] * basis))
    vectors = basis @ vectors
    target = vectors.T @ w
    lowest = values[0]
    low, high = -lowest, float(np.linalg.norm(target)) - lowest
    spread = max(values[-1] - lowest, float(np.linalg.norm(target)), np.finfo(float).tiny)
    free = values - lowest > 1e-13 * spread
    at_pole = np.where(free, target / np.where(free, values - lowest, 1.0), 0.0)
    if np.linalg.norm(target[~free]) <= 1e-14 * spread and at_pole @ at_pole <= 1:
        at_pole[0] += np.sqrt(1 - at_pole @ at_pole)
        return vectors @ at_pole, float(-lowest)
    for _ in range(200):
        nu = (low + high) / 2
        if nu in (low, high):
            break
        if np.linalg.norm(target / (values + nu)) > 1:
            low = nu
        else:
            high = nu
    coordinates = target / (values + high)
    return vectors @ (coordinates / np.linalg.norm(coordinates)), float(high)
