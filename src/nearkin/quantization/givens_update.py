"""Rotation updates by GCD: blocks of disjoint plane rotations on pairs of axes chosen by a matching. Loads torch."""

from collections.abc import Callable
from functools import partial

import numpy as np

from nearkin._compile import cached_njit
from nearkin.linalg.givens import rotate_rows
from nearkin.orthogonal.matching import WEIGHTED, random_matching
from nearkin.quantization.codebooks import Update

Selection = Callable[[np.ndarray], np.ndarray]  # symmetric weights (d, d) -> pairs (p, 2)


def givens_update(select: Selection, n_blocks: int, step: float | str) -> Update:
    """GCD, Algorithm 2, on the quantization objective: `n_blocks` Givens blocks for one update.

    With P = R^T M, turning axes (i, j) by theta changes tr(R^T M) from a = P_ii + P_jj to a cos(theta) + b sin(theta),
    b = P_ji - P_ij. `step="exact"` turns by the best angle atan2(b, a) and selects the pairs by what they then gain,
    hypot(a, b) - a; a number is the paper's lambda, theta = -lambda g_ij with g_ij = A_ij / sqrt(2) the normalised
    directional derivative of the mean distortion, pairs selected by |g_ij|. A block turns the rows of P too, so no
    matrix product stands between two blocks.
    """

    def update(R: np.ndarray, M: np.ndarray) -> np.ndarray:
        d = len(R)
        work = np.empty((d, 2 * d))  # P and R^T side by side: a block turns the rows of both
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

    return update


@cached_njit()
def _gains(P):
    """What the best angle of each pair of axes would add to tr(P): hypot(a, b) - a, symmetric (d, d)."""
    d = P.shape[0]
    gains = np.zeros((d, d))
    for i in range(d):
        for j in range(i + 1, d):
            a, b = P[i, i] + P[j, j], P[j, i] - P[i, j]
            root = np.sqrt(a * a + b * b)
            # b^2 / (root + a) is the same without the cancellation of root - a
            gains[i, j] = gains[j, i] = b * b / (root + a) if a > 0 else root - a
    return gains


def selection_of(name: str, generator: np.random.Generator | None) -> Selection:
    """What chooses the pairs that a block turns; weights need no check: they are made here."""
    if name == "givens-random":
        return lambda W: random_matching(len(W), generator)
    return partial(WEIGHTED[name.removeprefix("givens-")], check_input=False)
