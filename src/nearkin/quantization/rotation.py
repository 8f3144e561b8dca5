"""Rotation updates for product quantization: each is a step towards a larger tr(R^T M), M = X^T Y / n.

The exact maximum (OPQ) is in `codebooks`, whose loop calls it; `training.make_update` chooses among them. Cayley
updates the skew parameters of a rotation; GCD rotates pairs of axes chosen by a matching. All are functions (R, M) -> R
on (d, d) arrays."""

from collections.abc import Callable

import numpy as np

Selection = Callable[[np.ndarray], np.ndarray]  # symmetric weights (d, d) -> pairs (p, 2)

CAYLEY_STEPS = 5  # gradient steps of one update, equal to the paper's number of Givens iterations


def cayley_update(R: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Gradient steps on the skew A of R <- R (I - A)(I + A)^-1, the parameters GCD compares with (section 1.1), from A
    = 0. The step is one over the mean curvature 4 a, halved until the objective grows."""
    d = len(R)
    P = R.T.astype(np.float64) @ M
    eye, A, C = np.eye(d), np.zeros((d, d)), np.eye(d)
    value = float(np.trace(P))
    rate = d / (8 * abs(value)) if value else 0.0  # nothing to gain where M is zero
    for _ in range(CAYLEY_STEPS):
        N = np.linalg.solve(eye + A, P.T @ (eye + C)).T
        gradient = N.T - N
        for _ in range(30):
            trial = A + rate * gradient
            turned = np.linalg.solve((eye + trial).T, (eye - trial).T).T
            if (grown := float(np.einsum("ij,ij->", turned, P))) >= value:
                A, C, value = trial, turned, grown
                break
            rate /= 2
    return (R @ C).astype(np.float32)


def givens_update(R: np.ndarray, M: np.ndarray, select: Selection, n_blocks: int, step: float | str) -> np.ndarray:
    """GCD, Algorithm 2, on the quantization objective: `n_blocks` Givens blocks for one update.

    With P = R^T M, rotating axes (i, j) by theta changes tr(R^T M) from a = P_ii + P_jj to a cos(theta) + b sin(theta),
    b = P_ji - P_ij. `step="exact"` rotates by the best angle atan2(b, a) and selects the pairs by their gain, hypot(a,
    b) - a; a number is the paper's lambda, theta = -lambda g_ij with g_ij = A_ij / sqrt(2) the normalised directional
    derivative of the mean distortion, pairs selected by |g_ij|. A block rotates the vectors of P too, so no matrix
    product is needed between two blocks.
    """
    from nearkin.linalg.givens import rotate_rows  # loads torch

    d = len(R)
    work = np.empty((d, 2 * d))  # P and R^T in one array: a block rotates the rows of both
    work[:, :d] = R.T @ M
    work[:, d:] = R.T
    for _ in range(n_blocks):
        P = work[:, :d]
        pairs = select(_gains(P) if step == "exact" else np.abs(P.T - P))
        i, j = pairs.T
        a, b = P[i, i] + P[j, j], P[j, i] - P[i, j]
        theta = np.arctan2(b, a) if step == "exact" else np.sqrt(2) * step * b
        rotate_rows(work, pairs, -theta)
    return np.ascontiguousarray(work[:, d:].T, dtype=np.float32)


def _gains(P: np.ndarray) -> np.ndarray:
    """The gain in tr(P) of the best angle of each pair of axes: hypot(a, b) - a, symmetric (d, d)."""
    a, square = P.diagonal()[:, None] + P.diagonal(), np.square(P.T - P)
    root = np.sqrt(a * a + square)
    # b^2 / (root + a) is the same without the cancellation of root - a
    gains = np.divide(square, root + a, out=root - a, where=a > 0)
    np.fill_diagonal(gains, 0)
    return gains
