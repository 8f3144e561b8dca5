"""The column steps of OnE and OgE in principal coordinates, where X^T X / n = diag(c) (SCQ, section 2.2 and 3.2)."""

import numpy as np

from nearkin.hashing.secular import sphere_column
from nearkin.linalg.orthonormal import unique_q
from nearkin.linalg.procrustes import nearest_orthogonal


class OrthonormalColumns:
    """OnE, Algorithm 1: minimise |B - X V|^2 / n column by column under V^T V = I."""

    def __init__(self, c: np.ndarray) -> None:
        self.c = c  # (m,) variances of the scaled data
        self.nu: list[float | None] = []  # multipliers nu_k, kept as first guesses of the next iteration

    def solve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Each column given the ones before it (SCQ, eq. 7-14); the incoming V plays no part."""
        V = np.empty_like(W)
        self.nu = self.nu or [None] * W.shape[1]
        for k in range(W.shape[1]):
            V[:, k], self.nu[k] = sphere_column(self.c, W[:, k], V[:, :k], self.nu[k])
        return V

    def descend(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Each column given *all* others, one sweep: coordinate descent proper."""
        V = V.copy()
        for k in range(W.shape[1]):
            V[:, k], _ = sphere_column(self.c, W[:, k], np.delete(V, k, axis=1), self.nu[k])
        return V

    def loss(self, W: np.ndarray, V: np.ndarray) -> float:
        """|B - X V|^2 / n (SCQ, eq. 1) = L - 2 tr(V^T W) + tr(V^T C V): no pass over the data."""
        return quantization_loss(self.c, W, V)


class OrthogonalColumns:
    """OgE, Algorithm 2: minimise |B - X V|^2 / n + mu |V|^2 column by column under v_i^T v_j = 0."""

    def __init__(self, c: np.ndarray, mu: float) -> None:
        self.c = c
        self.mu = mu
        self.root = 1 / np.sqrt(c + mu)  # Z^(1/2): Z is diagonal here and constant, nothing is inverted (eq. 24)

    def solve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Each column given the ones before it, closed form (SCQ, eq. 21 and 23).

        v_k = Z^(1/2) (I - P_k) Z^(1/2) w_k with P_k the projector on Z^(1/2) v_i, i < k: eq. 23 with Phi eliminated. An
        orthonormal basis of that span grows by one vector per column, as the paper's A_k grows by a row and a column.
        """
        V = np.empty_like(W)
        basis = np.zeros((W.shape[1], len(W)))  # rows, filled one by one
        for k in range(W.shape[1]):
            V[:, k] = self.root * remove_span(self.root * W[:, k], basis[:k])
            basis[k] = _unit(remove_span(_unit(self.root * V[:, k]), basis[:k]))
        return V

    def descend(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Each column given *all* others, one sweep: coordinate descent proper."""
        V = V.copy()
        for k in range(W.shape[1]):
            others = np.delete(V, k, axis=1)
            basis = np.linalg.qr(self.root[:, None] * others[:, others.any(axis=0)])[0].T
            V[:, k] = self.root * remove_span(self.root * W[:, k], basis)
        return V

    def loss(self, W: np.ndarray, V: np.ndarray) -> float:
        """The objective of eq. 19."""
        return quantization_loss(self.c, W, V) + self.mu * float((V * V).sum())


class StiefelColumns:
    """Our own step for OnE's objective: all columns at once on the Stiefel manifold, by majorise-minimise.

    tr(V^T C V) lies below its linearisation plus c_1 |V - V0|^2, and |V|^2 = L is constant there, so the minimiser of
    the bound is the polar factor of W + (c_1 - C) V0. Every such step lowers the loss for the codes at hand.
    """

    def __init__(self, c: np.ndarray, n_inner: int) -> None:
        self.c = c
        self.slack = c.max() - c
        self.n_inner = n_inner

    def solve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """`n_inner` polar factors."""
        for _ in range(self.n_inner):
            V = nearest_orthogonal(W + self.slack[:, None] * V)
        return V

    descend = solve  # it is a descent step already

    def loss(self, W: np.ndarray, V: np.ndarray) -> float:
        """|B - X V|^2 / n (SCQ, eq. 1)."""
        return quantization_loss(self.c, W, V)


def quantization_loss(c: np.ndarray, W: np.ndarray, V: np.ndarray) -> float:
    """Return |B - X V|^2 / n from W = X^T B / n and X^T X / n = diag(c) (SCQ, eq. 2)."""
    return float(W.shape[1] - 2 * (V * W).sum() + (c[:, None] * V * V).sum())


def remove_span(x: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return x (m,) without its part in the span of orthonormal rows `basis` (k, m); twice, for full precision."""
    x = x - (basis @ x) @ basis
    return x - (basis @ x) @ basis


def random_columns(m: int, n_bits: int, generator: np.random.Generator) -> np.ndarray:
    """Return orthonormal columns (m, L), uniform in the Haar measure: the start of both algorithms."""
    return unique_q(generator.standard_normal((m, n_bits)))


def _unit(x: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(x)
    return x / norm if norm > 0 else x
