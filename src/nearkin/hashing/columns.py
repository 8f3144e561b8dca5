"""The loop that ITQ, OnE and OgE share: codes for fixed columns, then columns for fixed codes (SCQ, section 2.2).

Also here: the steps over columns, the secular equation that they solve, and sums of vectors under their signs."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs  # scipy.linalg's wrappers cost more than these small systems

from nearkin._distributed import ALONE, Group
from nearkin.contracts import Callback
from nearkin.hashing.spectrum import Spectrum
from nearkin.linalg.orthonormal import nearest_orthogonal, unique_q
from nearkin.linalg.signs import row_blocks
from nearkin.statistics import RowMean


class AbstractColumnStep(ABC):
    """The rule of a method that maps the sign moment W = X^T B / n (m, L) to new columns V (m, L).

    `c` (m,) are the variances of the scaled data, whose covariance is diagonal in principal coordinates.
    """

    def __init__(self, c: np.ndarray, mu: float = 0.0) -> None:
        self.c: np.ndarray = c
        self.mu: float = mu

    @abstractmethod
    def solve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the method's new columns for fixed codes; they may fit the codes worse than V does."""

    def loss(self, W: np.ndarray, V: np.ndarray) -> float:
        """|B - X V|^2 / n + mu |V|^2 (SCQ, eq. 1, 2 and 19), by L - 2 tr(V^T W) + tr(V^T C V): no pass over vectors."""
        error = W.shape[1] - 2 * (V * W).sum() + (self.c[:, None] * V * V).sum()
        return float(error) + self.mu * float((V * V).sum())


def learn_columns(
    moment: Callable[[np.ndarray], np.ndarray],
    step: AbstractColumnStep,
    V: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns V (m, L) of the least loss, and the least loss up to each iteration.

    The loss may rise, since a column is the best one given the columns *before* it; the next iteration goes on from
    there. Stops when |change| of the loss is at most `tol` of it; the paper prints this without the absolute value, so
    that every rise would stop it (Algorithm 1, line 17; Algorithm 2, line 5).
    """
    best, last, history = V, np.inf, list[float]()
    for iteration in range(1, max_iter + 1):
        W = moment(V)
        V = step.solve(W, V)
        value = step.loss(W, V)
        if not history or value < history[-1]:
            best = V
        history.append(min([value, *history[-1:]]))
        if callback is not None:
            callback(iteration, {"objective": history[-1], "total": max_iter})
        if abs(last - value) <= tol * abs(value):
            break
        last = value
    return best, np.array(history)


class OrthonormalColumns(AbstractColumnStep):
    """OnE, Algorithm 1: minimise |B - X V|^2 / n column by column under V^T V = I."""

    def __init__(self, c: np.ndarray) -> None:
        super().__init__(c)
        self.nu: list[float | None] = []  # multipliers nu_k, kept as first guesses of the next iteration

    def solve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Each column given the ones before it (SCQ, eq. 7-14); the incoming V is not used."""
        V = np.empty_like(W)
        self.nu = self.nu or [None] * W.shape[1]
        for k in range(W.shape[1]):
            V[:, k], self.nu[k] = sphere_column(self.c, W[:, k], V[:, :k], self.nu[k])
        return V


class OrthogonalColumns(AbstractColumnStep):
    """OgE, Algorithm 2: minimise |B - X V|^2 / n + mu |V|^2 column by column under v_i^T v_j = 0."""

    def __init__(self, c: np.ndarray, mu: float) -> None:
        super().__init__(c, mu)
        # Z^(1/2): Z is diagonal here and constant, nothing is inverted (eq. 24)
        self.root: np.ndarray = 1 / np.sqrt(c + mu)

    def solve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Each column given the ones before it, closed form (SCQ, eq. 21 and 23).

        v_k = Z^(1/2) (I - P_k) Z^(1/2) w_k with P_k the projector on Z^(1/2) v_i, i < k: eq. 23 with Phi eliminated. An
        orthonormal basis of that span grows by one vector per column, as the paper's A_k grows by a row and a
        column.
        """
        V = np.empty_like(W)
        basis = np.zeros((W.shape[1], len(W)))  # rows, filled one by one
        for k in range(W.shape[1]):
            V[:, k] = self.root * remove_span(self.root * W[:, k], basis[:k])
            basis[k] = _unit(remove_span(_unit(self.root * V[:, k]), basis[:k]))
        return V


class StiefelColumns(AbstractColumnStep):
    """Our own step for OnE's objective: all columns at once on the Stiefel manifold, by majorise-minimise.

    tr(V^T C V) lies below its linearisation plus c_1 |V - V0|^2, and |V|^2 = L is constant there, so the minimiser of
    the bound is the polar factor of W + (c_1 - C) V0. Every such step lowers the loss for the current codes.

    For `square` V, as ITQ's rotations, tr(V^T C V) is constant too, and the polar factor of W alone is the best V (Gong
    & Lazebnik 2011, section 2.2).
    """

    def __init__(self, c: np.ndarray, n_inner: int = 1, *, square: bool = False) -> None:
        super().__init__(c)
        self.slack: np.ndarray = np.zeros_like(c) if square else c.max() - c
        self.n_inner = n_inner

    def solve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        for _ in range(self.n_inner):
            V = nearest_orthogonal(W + self.slack[:, None] * V)
        return V


def remove_span(x: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return x (m,) without its part in the span of orthonormal rows `basis` (k, m); twice, for full precision."""
    x = x - (basis @ x) @ basis
    return x - (basis @ x) @ basis


def random_columns(m: int, n_bits: int, generator: np.random.Generator) -> np.ndarray:
    """Return columns (m, L), orthonormal in groups of m, uniform in the Haar measure: the start of both algorithms."""
    groups = [unique_q(generator.standard_normal((m, min(m, n_bits - start)))) for start in range(0, n_bits, m)]
    return np.concatenate(groups, axis=1)


def _unit(x: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(x)
    return x / norm if norm > 0 else x


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
    rounding = 8 * np.finfo(float).eps * float(length + np.abs(c).max())
    low, high = length - c.max(), length - c.min() + rounding  # |w| / (c_max + nu) <= |v| <= |w| / (c_min + nu)
    nu = high if guess is None else min(max(guess, low), high)
    for _ in range(MAX_NEWTON):
        v, slope = _column_at(nu, c, reduced, Q)
        norm = float(np.linalg.norm(v))
        if abs(norm - 1) < 1e-14:
            return _orthonormal(v, Q), float(nu)
        if norm > 1:
            low = nu
        else:
            high = nu
        # Newton for 1 / |v| = 1, which is nearly linear in nu, as in trust-region methods
        step = nu + norm**2 / slope * (norm - 1) if slope > 0 else np.nan
        following = step if low < step < high else (low + high) / 2
        if following == nu or high - low <= 4e-16 * max(abs(low), abs(high)):
            break
        nu = following
    # no nu gives length 1: near a pole |v| changes fast, and in the hard case w has no part along the pole's
    # eigenvector. The missing length goes along that eigenvector, which a step of inverse iteration finds
    v, lowest = (_column_at(high, c, some, Q)[0] for some in (reduced, _orthonormal(np.ones_like(c), Q)))
    lowest = _orthonormal(lowest, Q)
    inside = float(v @ lowest)
    more = np.sqrt(max(inside**2 + 1 - v @ v, 0)) - abs(inside)
    return _orthonormal(v + np.copysign(more, inside) * lowest, Q), float(high)


def _orthonormal(x: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """The unit vector along the part of x (m,) outside the span of columns Q (m, k)."""
    return _unit(x - Q @ (Q.T @ x))


def _column_at(nu: float, c: np.ndarray, w: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, float]:
    """v(nu) and v^T (C + nu)^-1 v on the complement of Q; infinite and 0 if C + nu is not positive definite there."""
    shifted, beyond = c + nu, (np.full(len(c), np.inf), 0.0)
    if not shifted.all():
        return beyond
    D = 1 / shifted
    if not Q.shape[1]:
        return (D * w, float(w @ (D**3 * w))) if (shifted > 0).all() else beyond
    A = Q.T @ (D[:, None] * Q)
    solve = _solver(A, int((shifted < 0).sum()))
    if solve is None:
        return beyond
    v = D * (w - Q @ solve(Q.T @ (D * w)))
    return v, float(v @ (D * (v - Q @ solve(Q.T @ (D * v)))))


def _solver(A: np.ndarray, n_negative: int):
    """A function b -> A^-1 b, or None unless A has exactly `n_negative` negative eigenvalues. By Sylvester's law C + nu
    is positive definite on the complement of Q if A = Q^T (C + nu)^-1 Q has as many as C + nu."""
    if n_negative == 0:
        factor, info = dpotrf(A)
        return None if info else lambda b: dpotrs(factor, b)[0]
    if n_negative > len(A):
        return None
    values, vectors = np.linalg.eigh(A)
    if (values < 0).sum() != n_negative or not values.all():
        return None
    return lambda b: vectors @ ((vectors.T @ b) / values)


BLOCK = 1024  # rows and their projections stay in the cache between the two products: one pass over memory, not two


@dataclass(frozen=True)
class CentredRows:
    """Centred data; a fit needs only their sign moments."""

    spectrum: Spectrum
    coordinates: np.ndarray  # (n, m) of its vectors along their principal axes; of a group each process has its own
    group: Group = ALONE

    def sign_moment(self, V: np.ndarray) -> np.ndarray:
        """Return Z^T sign(Z V) / n (m, L) float64 for the coordinates Z (n, m) and V (m, L)."""
        moment, narrow = RowMean(*V.shape), V.astype(self.coordinates.dtype)
        for rows in row_blocks(self.coordinates, BLOCK):
            moment.update(rows.T @ _signs_in_place(rows @ narrow), len(rows))
        return self.group.merge(moment).finalize()


def principal_coordinates(X: np.ndarray, spectrum: Spectrum) -> np.ndarray:
    """Vectors X (n, d), rotated into the axes of their spectrum, (n, m)."""
    mean, axes = spectrum.mean.astype(X.dtype), spectrum.axes.astype(X.dtype)
    coordinates = np.empty((len(X), spectrum.rank), X.dtype)
    for block, out in zip(row_blocks(X), row_blocks(coordinates), strict=True):
        np.matmul(block - mean, axes, out=out)
    return coordinates


def _signs_in_place(Y: np.ndarray) -> np.ndarray:
    """Replace Y by its signs with sign(0) = +1 (SCQ, eq. 4)."""
    np.greater_equal(Y, 0, out=Y, casting="unsafe")
    Y *= 2
    Y -= 1
    return Y
