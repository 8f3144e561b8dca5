"""Rivals that learn weights between rights: EASE, and a sparse form where there are too many rights for it."""

import numpy as np

import nearkin as nk
from benchmarks.two_tower.choosing import few_users
from nearkin.data import Parts
from nearkin.embedding import sparse_ease
from nearkin.records import Interactions

MOST = 5000  # rights whose (n, n) matrix EASE inverts
EASE_RIDGES = (30.0, 100.0, 300.0, 1000.0)
SPARSE_RIDGES = (3.0, 10.0, 30.0, 100.0)


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


def chosen_ridge(inner: Parts, k: int) -> float:
    """The ridge of largest NDCG of the validation pairs of a few lefts."""
    ways, ridges = (ease, EASE_RIDGES) if inner.train.shape[1] <= MOST else (of_neighbours, SPARSE_RIDGES)
    valid = few_users(inner.valid)
    judged = {}
    for ridge in ridges:
        judged[ridge] = nk.metrics.list_metrics(ways(inner.train, k, ridge), valid, k=k)[f"ndcg@{k}"]
        print(f"    ridge {ridge}: NDCG@{k} {judged[ridge]:.4f}", flush=True)
    return max(judged, key=lambda ridge: judged[ridge])
