"""Rivals that learn weights between rights: EASE, and a sparse form where there are too many rights for it."""

import numpy as np
import scipy.sparse as sp
from numba import njit

import nearkin as nk
from benchmarks.two_tower.choosing import few_users
from nearkin.data import Parts
from nearkin.embedding.baselines import _item_cosines, _lists
from nearkin.records import Interactions

MOST = 5000  # rights whose (n, n) matrix EASE inverts
EASE_RIDGES = (30.0, 100.0, 300.0, 1000.0)
SPARSE_RIDGES = (3.0, 10.0, 30.0, 100.0)
NEIGHBOURS = 100


def ease(pairs: Interactions, k: int, ridge: float) -> np.ndarray:
    """(m, k) lists of EASE (Steck 2019)."""
    X = (pairs.matrix() > 0).astype(np.float64)
    inverse = np.linalg.inv((X.T @ X).toarray() + ridge * np.eye(pairs.shape[1]))
    B = -inverse / np.diag(inverse)
    np.fill_diagonal(B, 0)
    scores = X @ B
    scores[X.nonzero()] = -np.inf
    return np.argsort(-scores, axis=1)[:, :k]


def sparse_ease(pairs: Interactions, k: int, ridge: float) -> np.ndarray:
    """(m, k) lists of ridge regressions of every right on the rights of largest cosine with it.

    EASE with the weights of all others held at 0: the neighbourhoods of fsSLIM (Ning and Karypis 2011), with a ridge
    and without the l1 penalty and the sign.
    """
    X = sp.csr_matrix((pairs.matrix() > 0).astype(np.float32))
    near = _item_cosines(pairs, NEIGHBOURS).tocsr()
    near.sort_indices()
    gram = sp.csr_matrix(X.T @ X)
    weights = np.zeros(near.nnz, np.float32)
    _regress(near.indptr, near.indices, gram.indptr, gram.indices, gram.data, ridge, weights)
    into = sp.csr_matrix((weights, near.indices, near.indptr), near.shape)  # row j: the weights that rank j
    ones = np.ones(pairs.shape[1], np.float32)
    return _lists(pairs, ones, sp.csr_matrix(into.T), ones, k, True)[1]


@njit(cache=True, nogil=True)
def _regress(starts, others, gram_starts, gram_columns, gram, ridge, weights):
    """weights[j's neighbours N] = (G_NN + ridge)^-1 G_Nj."""
    n = len(starts) - 1
    place = np.full(n, -1)
    for j in range(n):
        near = others[starts[j] : starts[j + 1]]
        if len(near) == 0:
            continue
        place[near] = np.arange(len(near))
        A, b = np.zeros((len(near), len(near))), np.zeros(len(near))
        for s in range(len(near)):
            for e in range(gram_starts[near[s]], gram_starts[near[s] + 1]):
                column = gram_columns[e]
                if place[column] >= 0:
                    A[s, place[column]] = gram[e]
                if column == j:
                    b[s] = gram[e]
            A[s, s] += ridge
        weights[starts[j] : starts[j + 1]] = np.linalg.solve(A, b)
        place[near] = -1


def chosen_ridge(inner: Parts, k: int) -> float:
    """The ridge of largest NDCG of the validation pairs of a few lefts."""
    ways, ridges = (ease, EASE_RIDGES) if inner.train.shape[1] <= MOST else (sparse_ease, SPARSE_RIDGES)
    valid = few_users(inner.valid)
    judged = {}
    for ridge in ridges:
        judged[ridge] = nk.metrics.list_metrics(ways(inner.train, k, ridge), valid, k=k)[f"ndcg@{k}"]
        print(f"    ridge {ridge}: NDCG@{k} {judged[ridge]:.4f}", flush=True)
    return max(judged, key=lambda ridge: judged[ridge])
