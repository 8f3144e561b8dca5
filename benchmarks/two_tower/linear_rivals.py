"""Rivals that weigh rights by each other: EASE, a sparse form for many rights, and a filter on the graph of pairs."""

import numpy as np
import scipy.sparse as sp

import nearkin as nk
from benchmarks.two_tower.rivals import few_users
from nearkin.data import Parts
from nearkin.embedding.baselines import sparse_ease
from nearkin.records import Interactions

MOST = 5000  # rights whose (n, n) matrix EASE inverts
EASE_RIDGES = (30.0, 100.0, 300.0, 1000.0)
SPARSE_RIDGES = (3.0, 10.0, 30.0, 100.0, 300.0)
BLOCK = 512  # lefts ranked at a time


def ease(pairs: Interactions, k: int, ridge: float) -> np.ndarray:
    """(m, k) lists of EASE (Steck 2019)."""
    X = (pairs.matrix() > 0).astype(np.float64)
    inverse = np.linalg.inv((X.T @ X).toarray() + ridge * np.eye(pairs.shape[1]))
    B = -inverse / np.diag(inverse)
    np.fill_diagonal(B, 0)
    scores = X @ B
    scores[X.nonzero()] = -np.inf
    return np.argsort(-scores, axis=1)[:, :k]


def of_neighbours(pairs: Interactions, k: int, ridge: float) -> np.ndarray:
    """(m, k) lists of its sparse form."""
    return sparse_ease(pairs, k, ridge=ridge)[1]


def graph_filter(pairs: Interactions, k: int, powers: tuple[float, float] = (0.5, 0.5)) -> np.ndarray:
    """(m, k) lists of two steps on the graph of pairs, the linear filter of GF-CF (Shen et al. 2021).

    score_ij = sum over the history h of d_h^-a (R^T R)_hj d_j^b with R = D_left^-1/2 X D_right^-1/2, d the numbers of
    pairs of the rights and (a, b) the `powers`, 1/2 in the paper; smaller ones favour popular rights more.
    """
    X = sp.csr_matrix(pairs.matrix() > 0, dtype=np.float32)
    left, right = (np.maximum(np.asarray(X.sum(axis)).ravel(), 1) for axis in (1, 0))
    R = sp.diags(left**-0.5) @ X @ sp.diags(right**-0.5)
    weighed, near = sp.csr_matrix(X @ sp.diags(right ** -powers[0])), sp.csr_matrix(R.T @ R)
    lists = []
    for first in range(0, len(left), BLOCK):
        scores = (weighed[first : first + BLOCK] @ near).toarray() * right ** powers[1]
        scores[X[first : first + BLOCK].nonzero()] = -np.inf
        lists.append(np.argsort(-scores, axis=1)[:, :k])
    return np.concatenate(lists)


def chosen_ridge(inner: Parts, k: int) -> float:
    """The ridge of largest NDCG of the validation pairs of a few lefts."""
    ways, ridges = (ease, EASE_RIDGES) if inner.train.shape[1] <= MOST else (of_neighbours, SPARSE_RIDGES)
    valid = few_users(inner.valid)
    judged = {}
    for ridge in ridges:
        judged[ridge] = nk.metrics.list_metrics(ways(inner.train, k, ridge), valid, k=k)[f"ndcg@{k}"]
        print(f"    ridge {ridge}: NDCG@{k} {judged[ridge]:.4f}", flush=True)
    return max(judged, key=lambda ridge: judged[ridge])
