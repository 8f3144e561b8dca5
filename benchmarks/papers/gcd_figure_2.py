"""GCD, Figure 2, as printed: five steps of Algorithm 2 and one codebook update a round, on SIFT as it is.

Every run starts from the same codebooks (random rows, five Lloyd rounds) for one seed; what differs is the rotation's
rule. lambda is the paper's, on g_ij = A_ij / sqrt(2) and the gradient of *half* the mean squared error: the paper does
not say, and of the whole error 2e-4 is too long a step for every rule.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import scipy.sparse as sp

from nearkin.orthogonal import greedy_matching, max_weight_matching, random_matching

M, K = 8, 256  # bytes, centroids
STEPS = 5  # of Algorithm 2 a round
ROUNDS = 20
SEEDS = 3  # the paper has ten
PAPER = 1e-4  # its lambda
LINES = [  # (rule, lambda) of 2 (a)
    *(("GCD-G", rate) for rate in (PAPER, PAPER / 2, 2 * PAPER)),
    *((rule, PAPER) for rule in ("GCD-R", "GCD-S", "GCD-R, overlapping", "GCD-G, overlapping")),
    *((rule, 2 * PAPER) for rule in ("GCD-R", "GCD-G, overlapping")),
]
OPQ = ("OPQ, identity start", "OPQ, random start")


def heaviest(W: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The n/2 largest entries above the diagonal, whichever axes they share."""
    del rng
    i, j = np.triu_indices(len(W), 1)
    top = np.argsort(-W[i, j], kind="stable")[: len(W) // 2]
    return np.stack([i[top], j[top]], axis=1)


def any_pairs(W: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """n/2 pairs drawn from all, whichever axes they share."""
    i, j = np.triu_indices(len(W), 1)
    drawn = rng.choice(len(i), len(W) // 2, replace=False)
    return np.stack([i[drawn], j[drawn]], axis=1)


RULES: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {  # (|g|, rng) -> pairs (n/2, 2)
    "GCD-G": lambda W, rng: np.asarray(greedy_matching(W)),
    "GCD-R": lambda W, rng: np.asarray(random_matching(len(W), rng)),
    "GCD-S": lambda W, rng: np.asarray(max_weight_matching(W)),
    "GCD-G, overlapping": heaviest,
    "GCD-R, overlapping": any_pairs,
}


def descend(R: np.ndarray, moment: np.ndarray, rule: str, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Five steps of Algorithm 2 on mean |x R - t|^2 / 2, whose gradient G is S R - moment, moment = X^T T / rows.

    S R drops out of A = G^T R - R^T G, since R^T S R is symmetric. Pairs turn one after the other, which matters where
    they overlap.
    """
    R = R.copy()
    for _ in range(STEPS):
        turned = R.T @ moment
        g = (turned - turned.T) / np.sqrt(2)
        for i, j in RULES[rule](np.abs(g), rng):
            c, s = np.cos(-rate * g[i, j]), np.sin(-rate * g[i, j])
            R[:, i], R[:, j] = c * R[:, i] + s * R[:, j], c * R[:, j] - s * R[:, i]
    return R


@dataclass
class Codes:
    """Codebooks (M, K, d/M) and one Lloyd round of them."""

    codebooks: np.ndarray

    def update(self, Z: np.ndarray) -> np.ndarray:
        """Assign rows, move the centroids to their means; return the rows' new centroids (n, d)."""
        n, d = Z.shape
        quantizer = faiss.ProductQuantizer(d, M, 8)
        faiss.copy_array_to_vector(self.codebooks.ravel(), quantizer.centroids)
        codes = quantizer.compute_codes(Z)
        T, rows = np.empty_like(Z), np.arange(n)
        for m, part in enumerate(np.split(np.arange(d), M)):
            members = sp.csr_matrix((np.ones(n, np.float32), (codes[:, m], rows)), shape=(K, n))
            counts = np.asarray(members.sum(axis=1)).ravel()
            full = counts > 0  # an empty centroid stays where it is
            self.codebooks[m][full] = (members @ Z[:, part])[full] / counts[full, None]
            T[:, part] = self.codebooks[m][codes[:, m]]
        return T


def run(X: np.ndarray, rule: str, rate: float, seed: int) -> dict[str, Any]:
    """Mean squared error after every round, and CPU seconds."""
    began, rng, d = time.process_time(), np.random.default_rng(seed), X.shape[1]
    rows = X[rng.choice(len(X), K, replace=False)]
    R = np.eye(d, dtype=np.float32)
    if "random start" in rule:
        R = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    codes = Codes(np.ascontiguousarray(np.stack(np.split(rows @ R, M, axis=1))))
    for _ in range(5):
        codes.update(X @ R)
    curve, squares = [], float((X.astype(np.float64) ** 2).sum()) / len(X)
    for _ in range(ROUNDS):
        T = codes.update(X @ R)
        moment = X.T @ T / len(X)
        if rule in RULES:
            R = descend(R, moment, rule, rate, rng)
        else:
            left, _, right = np.linalg.svd(moment)
            R = left @ right
        fit = float((T.astype(np.float64) ** 2).sum()) / len(X) - 2 * float((R * moment).sum(dtype=np.float64))
        curve.append(squares + fit)
    found = {"rule": rule, "lambda": rate, "rows": len(X), "seed": seed, "curve": curve}
    print({**found, "curve": round(curve[-1])}, flush=True)
    return found | {"seconds": time.process_time() - began}


def jobs() -> list[tuple[str, float, float, int]]:
    """(rule, lambda, share of the rows, seed): every line of 2 (a) with one seed, then 2 (b, c) over the seeds."""
    lines = [(rule, rate, 1.0, 0) for rule, rate in [*LINES, *((rule, 0.0) for rule in OPQ)]]
    ways = [("GCD-G", PAPER), *((rule, 0.0) for rule in OPQ)]
    spread = [(rule, rate, share, seed) for share, seed in product((0.1, 1.0), range(SEEDS)) for rule, rate in ways]
    return list(dict.fromkeys(lines + spread))


def gcd_figure_2(data: Path) -> list[dict[str, Any]]:
    """GCD, Figure 2 as printed: unscaled SIFT descriptors, all 100,000 base rows or a tenth of them."""
    with np.load(data / "sift_bsds.npz") as file:
        X = file["base"].astype(np.float32)
    found = []
    for rule, rate, share, seed in jobs():
        rows = np.random.default_rng([seed, 1]).permutation(len(X))[: round(share * len(X))]
        found.append(run(X[np.sort(rows)], rule, rate, seed))
    return found
