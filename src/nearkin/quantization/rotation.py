"""Rotation updates for product quantization: each is a step towards a larger tr(R^T M), M = X^T Y / n.

Procrustes is the exact maximum (OPQ). The Givens updates are GCD's: blocks of disjoint plane rotations on pairs of axes
chosen by a matching. Cayley moves the skew parameters of a rotation. All are functions (R, M) -> R on (d, d) arrays.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit

from nearkin._random import numpy_generator
from nearkin.linalg.givens import rotate_rows
from nearkin.linalg.procrustes import nearest_orthogonal
from nearkin.orthogonal.matching import random_matching
from nearkin.orthogonal.selection import SELECTIONS, WEIGHTED
from nearkin.quantization.learning import Update

Selection = Callable[[np.ndarray], np.ndarray]  # symmetric weights (d, d) -> pairs (p, 2)
CAYLEY_STEPS = 5  # gradient steps for one update, as many as the paper's Givens iterations


def procrustes_update(R: np.ndarray, M: np.ndarray) -> np.ndarray:
    """The orthogonal matrix nearest to M, U V^T of its SVD: the exact maximum over O(d) (OPQ, section 3.1)."""
    del R
    return nearest_orthogonal(M.astype(np.float64)).astype(np.float32)


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
        work = np.empty((d, 2 * d))  # P beside R^T: a block turns the rows of both
        work[:, :d] = R.T @ M
        work[:, d:] = R.T
        for _ in range(n_blocks):
            P = work[:, :d]
            pairs = select(_gains(P) if step == "exact" else np.abs(P.T - P))
            i, j = pairs.T
            a, b = P[i, i] + P[j, j], P[j, i] - P[i, j]
            theta = np.arctan2(b, a) if step == "exact" else np.sqrt(2) * step * b
            rotate_rows(work, pairs, -theta, in_order=True)
        return np.ascontiguousarray(work[:, d:].T, dtype=np.float32)

    return update


@njit(cache=True)
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


def cayley_update(R: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Gradient steps on the skew A of R <- R (I - A)(I + A)^-1, the parameters GCD compares with (section 1.1).

    A starts at zero in every update, where the map is well conditioned. The step is scale-free: one over the mean
    curvature 4 a, halved until the objective grows.
    """
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


def make_update(
    name: str, d: int, step: float | str, n_blocks: int | None, generator: np.random.Generator | None
) -> Update | None:
    """The update that a `rotation=` name stands for; None for no rotation.

    `n_blocks=None` takes d/8 Givens blocks for one update, and at least 8: fewer leave the rotation behind the
    codebooks at large d, more cost time without a better distortion (benchmarks/quantization/rotation.py).
    """
    if name == "none":
        return None
    if name == "procrustes":
        return procrustes_update
    if name == "cayley":
        return cayley_update
    if n_blocks is None:  # the paper's 5 where each matching costs O(d^3)
        n_blocks = 5 if name == "givens-steepest" else max(8, -(-d // 8))
    return givens_update(_selection(name, generator), n_blocks, step)


def _selection(name: str, generator: np.random.Generator | None) -> Selection:
    """What chooses the pairs that a block turns; weights need no check, as they are made here."""
    if name == "givens-overlapping-greedy":
        return _heaviest_pairs
    if name == "givens-overlapping-random":
        return lambda W: _random_pairs(len(W), numpy_generator(generator))
    if name == "givens-random":
        return lambda W: random_matching(len(W), generator)
    return partial(WEIGHTED[name.removeprefix("givens-")], check_input=False)


ROTATIONS = (
    *("none", "procrustes", *(f"givens-{selection}" for selection in SELECTIONS)),
    *("givens-overlapping-greedy", "givens-overlapping-random", "cayley"),
)


def _heaviest_pairs(W: np.ndarray) -> np.ndarray:
    """The d/2 heaviest pairs whether or not they share axes: the paper's ablation (GCD, section 3.1)."""
    i, j = np.triu_indices(len(W), 1)
    heaviest = np.argsort(-W[i, j], kind="stable")[: len(W) // 2]
    return np.stack([i[heaviest], j[heaviest]], axis=1)


def _random_pairs(d: int, generator: np.random.Generator) -> np.ndarray:
    """d/2 distinct pairs drawn from all, whether or not they share axes."""
    i, j = np.triu_indices(d, 1)
    drawn = generator.choice(len(i), size=d // 2, replace=False)
    return np.stack([i[drawn], j[drawn]], axis=1)
