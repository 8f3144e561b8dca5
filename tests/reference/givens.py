"""Givens rotations as full matrices, and matchings by sorting all pairs."""

import numpy as np


def givens_matrix(d: int, i: int, j: int, theta: float) -> np.ndarray:
    """R_ij(theta) of GCD, Definition 2, written out."""
    R = np.eye(d)
    R[i, i] = R[j, j] = np.cos(theta)
    R[i, j] = -np.sin(theta)
    R[j, i] = np.sin(theta)
    return R


def product_of_givens(d: int, pairs: np.ndarray, theta: np.ndarray) -> np.ndarray:
    R = np.eye(d)
    for (i, j), angle in zip(pairs, theta, strict=True):
        R = R @ givens_matrix(d, i, j, angle)
    return R


def greedy_matching_by_sorting(W: np.ndarray) -> np.ndarray:
    """GCD, Algorithm 1 as printed: sort all pairs, take each whose axes are free."""
    i, j = np.triu_indices(len(W), 1)
    free = np.ones(len(W), bool)
    pairs = []
    for e in np.argsort(-W[i, j], kind="stable"):
        if free[i[e]] and free[j[e]]:
            free[i[e]] = free[j[e]] = False
            pairs.append((i[e], j[e]))
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def all_matchings(axes: list[int]):
    """Every perfect matching of an even list of axes, one by one."""
    if not axes:
        yield []
        return
    first, rest = axes[0], axes[1:]
    for k, other in enumerate(rest):
        for matching in all_matchings(rest[:k] + rest[k + 1 :]):
            yield [(first, other), *matching]
