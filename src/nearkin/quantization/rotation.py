"""Rotation updates for product quantization: each is a step towards a larger tr(R^T M), M = X^T Y / n.

The exact maximum (OPQ) stands in `codebooks`, whose loop calls it. Cayley moves the skew parameters of a rotation. The
Givens updates, which load torch, stand in `givens_update`. All are functions (R, M) -> R on (d, d) arrays.
"""

import numpy as np

from nearkin.quantization.codebooks import Update, exact_updates

CAYLEY_STEPS = 5  # gradient steps for one update, as many as the paper's Givens iterations
ROTATIONS = ("none", "procrustes", "givens-random", "givens-greedy", "givens-steepest", "cayley")


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


def make_update(
    name: str, d: int, step: float | str, n_blocks: int | None, generator: np.random.Generator | None
) -> Update | None:
    """The update of a `rotation=` name; None for no rotation. `n_blocks=None` takes d/8 Givens blocks for one update,
    at least 8 (measured by benchmarks/quantization/rotation.py)."""
    if name == "none":
        return None
    if name == "procrustes":
        return exact_updates()
    if name == "cayley":
        return cayley_update
    if n_blocks is None:  # the paper's 5 where each matching costs O(d^3)
        n_blocks = 5 if name == "givens-steepest" else max(8, -(-d // 8))
    from nearkin.quantization.givens_update import givens_update, selection_of  # loads torch

    return givens_update(selection_of(name, generator), n_blocks, step)
