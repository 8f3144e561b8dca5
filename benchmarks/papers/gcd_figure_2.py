"""GCD, Figure 2, as printed: five steps of Algorithm 2 and one codebook update a round, on SIFT as it is.

Every run starts from the same codebooks (random rows, five Lloyd rounds) for one seed; what differs is the rotation's
rule. lambda is the paper's, on g_ij = A_ij / sqrt(2) and the gradient of *half* the mean squared error: the paper does
not say, and of the whole error 2e-4 is too long a step for every rule.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.harness import arrays
from benchmarks.jobs import Job, Row
from nearkin.orthogonal import greedy_matching, max_weight_matching, random_matching
from nearkin.quantization.codebooks import assign, decode

STEPS = 5  # of Algorithm 2 a round
PAPER = 1e-4  # its lambda
OPQ = ("OPQ, identity start", "OPQ, random start")
MAIN = [("GCD-G", PAPER), *((rule, 0.0) for rule in OPQ)]  # (rule, lambda) of 2 (b, c)
OTHERS = [  # of 2 (a) beside them
    *((rule, PAPER) for rule in ("GCD-R", "GCD-S", "GCD-R, overlapping", "GCD-G, overlapping")),
    *(("GCD-G", PAPER / 2), ("GCD-G", 2 * PAPER)),
    *((rule, 2 * PAPER) for rule in ("GCD-R", "GCD-G, overlapping")),
]


@dataclass(frozen=True)
class Size:
    """Rows, of which the smaller numbers are shares drawn anew for every seed; bytes, centroids, rounds, seeds."""

    rows: tuple[int, ...] = (10_000, 100_000)
    M: int = 8
    K: int = 256
    rounds: int = 20
    seeds: int = 10


FULL, SMALL = Size(), Size(rows=(1000, 3000), K=16, rounds=2, seeds=2)


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


def lloyd(Z: np.ndarray, codebooks: np.ndarray) -> np.ndarray:
    """Assign rows, move the centroids (M, K, d/M) to their means in place; return the rows' new centroids (n, d)."""
    n, d = Z.shape
    codes = assign(Z, codebooks)
    for m, part in enumerate(np.split(np.arange(d), len(codebooks))):
        members = sp.csr_matrix((np.ones(n, np.float32), (codes[:, m], np.arange(n))), shape=(len(codebooks[m]), n))
        counts = np.asarray(members.sum(axis=1)).ravel()
        full = counts > 0  # an empty centroid stays where it is
        codebooks[m][full] = (members @ Z[:, part])[full] / counts[full, None]
    return decode(codes, codebooks)


def start(X: np.ndarray, size: Size, rng: np.random.Generator, *, random: bool) -> tuple[np.ndarray, np.ndarray]:
    """The rotation, the identity or a random one, and codebooks: random rows, five Lloyd rounds."""
    rows, d = X[rng.choice(len(X), size.K, replace=False)], X.shape[1]
    R = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32) if random else np.eye(d, dtype=np.float32)
    codebooks = np.ascontiguousarray(np.stack(np.split(rows @ R, size.M, axis=1)))
    for _ in range(5):
        lloyd(X @ R, codebooks)
    return R, codebooks


def run(X: np.ndarray, size: Size, rule: str, rate: float, seed: int) -> Row:
    """Mean squared error after every round."""
    rng = np.random.default_rng(seed)
    R, codebooks = start(X, size, rng, random="random start" in rule)
    curve, squares = [], float(np.einsum("ij,ij->", X, X, dtype=np.float64)) / len(X)
    for _ in range(size.rounds):
        T = lloyd(X @ R, codebooks)
        moment = X.T @ T / len(X)
        if rule in RULES:
            R = descend(R, moment, rule, rate, rng)
        else:
            left, _, right = np.linalg.svd(moment)
            R = left @ right
        fit = float(np.einsum("ij,ij->", T, T, dtype=np.float64)) / len(X) - 2 * float((R * moment).sum(dtype=float))
        curve.append(squares + fit)
    return {"curve": curve}


@cache
def sift(data: Path) -> np.ndarray:
    """SIFT descriptors as they are, (100,000, 128)."""
    return arrays(data, "sift_bsds", "base")[0].astype(np.float32)


def drawn(data: Path, rows: int, seed: int) -> np.ndarray:
    """So many of the rows, others for every seed."""
    X = sift(data)
    return X[np.sort(np.random.default_rng([seed, 1]).permutation(len(X))[:rows])]


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """GCD, Figure 2 as printed: unscaled SIFT descriptors, all rows or a tenth of them, every line and seed.

    The lines of (b, c) first: a run may end at any time.
    """
    cells = [cell for lines in (MAIN, OTHERS) for cell in product(range(size.seeds), size.rows, lines)]
    for seed, rows, (rule, rate) in cells:
        key = {"rule": rule, "lambda": rate, "rows": rows, "rounds": size.rounds, "seed": seed}
        yield Job(key, partial(measured, data, size, key))


def measured(data: Path, size: Size, key: Row) -> Row:
    return run(drawn(data, key["rows"], key["seed"]), size, key["rule"], key["lambda"], key["seed"])
