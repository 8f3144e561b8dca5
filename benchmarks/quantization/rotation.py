"""Cost of one rotation update.

    python -m benchmarks quantization rotation --quick
    python -m benchmarks quantization rotation --threads 2

An update of R (n x n) from a given gradient. GCD's three steps are timed apart: the directional
derivatives (one product), the selection, the application; beside them one Cayley update (a gradient in the skew
parameters needs two solves), one SVD, and the one matrix product that is the floor of everything but GCD-R.
"""

from argparse import Namespace
from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.harness import median_ms
from benchmarks.jobs import Job, command
from nearkin.linalg.givens import rotate_rows
from nearkin.orthogonal import greedy_matching, random_matching


def directional_derivatives(G: np.ndarray, R: np.ndarray) -> np.ndarray:
    """A = G^T R - R^T G, skew: A[i, j] = d/dtheta L(R R_ij(theta)) at 0 for the gradient G of L at R (GCD, Prop. 1)."""
    P = G.T @ R
    return P - P.T


def cayley_step(R: np.ndarray, G: np.ndarray) -> np.ndarray:
    """One gradient step on A at A = 0 and the rotation it gives: R (I - A)(I + A)^-1."""
    A = 1e-3 * directional_derivatives(G, R)
    eye = np.eye(len(R), dtype=R.dtype)
    return R @ np.linalg.solve((eye + A).T, (eye - A).T).T


def update_costs(n: int, repeats: int) -> dict[str, float]:
    rng = np.random.default_rng(n)
    R = np.linalg.qr(rng.normal(size=(n, n)))[0].astype(np.float32)
    G = rng.normal(size=(n, n)).astype(np.float32)
    A = directional_derivatives(G, R)
    W = np.abs(A)
    pairs = greedy_matching(W)
    theta = 1e-3 * A[pairs[:, 0], pairs[:, 1]]
    shuffled = random_matching(n, rng)
    cost = median_ms(
        {
            "one product": lambda: G.T @ R,
            "derivatives": lambda: directional_derivatives(G, R),
            "select random": lambda: random_matching(n, rng),
            "select greedy": lambda: greedy_matching(W, check_input=False),
            "angles of given pairs": lambda: np.einsum(
                "pk,pk->p", G.T[shuffled[:, 0]], R.T[shuffled[:, 1]]
            ),  # all that GCD-R needs of A
            "apply": lambda: rotate_rows(R, pairs, theta),
            "Cayley": lambda: cayley_step(R, G),
            "SVD": lambda: np.linalg.svd(G),
        },
        repeats,
    )
    cost["GCD-R"] = cost["select random"] + cost["apply"]
    cost["GCD-G"] = cost["derivatives"] + cost["select greedy"] + cost["apply"]
    return cost


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for n in (64, 128, 256, 512) if given.quick else (64, 128, 256, 512, 1024):
        yield "rotation", Job({"n": n}, partial(update_costs, n, 7 if given.quick else 15))


def main() -> None:
    command(__doc__, jobs, {})
