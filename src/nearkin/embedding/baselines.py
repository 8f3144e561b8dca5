"""Recommendations that learn nothing or little: what any embedding must beat."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from nearkin._check import check_integer
from nearkin.metrics.ranking import keep_unseen
from nearkin.records import Interactions

BLOCK = 512  # left entities whose scores of all rights are held at a time


def popularity(interactions: Interactions, k: int = 100, *, exclude_seen: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The k rights with most pairs for each left entity: counts and numbers, both (m, k), best first.

    Where fewer than k unseen rights are left the number is -1 and the score -inf.
    """
    m, n = interactions.shape
    k = check_integer(k, "k", low=1)
    counts = np.bincount(interactions.indices, minlength=n).astype(np.float32)
    order = np.argsort(-counts, kind="stable")
    scores, numbers = np.full((m, k), -np.inf, np.float32), np.full((m, k), -1)
    for start in range(0, m, BLOCK):
        rows = np.arange(start, min(start + BLOCK, m))
        most = int(np.diff(interactions.indptr)[rows].max()) if exclude_seen else 0
        first = order[: k + most]
        near, found = (np.broadcast_to(x, (len(rows), len(first))) for x in (counts[first], first))
        scores[rows], numbers[rows] = _unseen(near, found, rows, interactions, k, exclude_seen)
    return scores, numbers


def item_knn(
    interactions: Interactions, k: int = 100, *, n_neighbours: int = 100, exclude_seen: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The k rights whose pairs resemble those of a left entity's history: scores and numbers, both (m, k), best first.

    A right's score is the sum, over the history, of its cosines with the rights there (of the columns of observed
    pairs); each right keeps its `n_neighbours` largest cosines with others (Sarwar et al. 2001; Deshpande and Karypis
    2004). A right without a common pair scores -inf, and its number is -1.
    """
    m, n = interactions.shape
    k = check_integer(k, "k", low=1)
    cosines = _item_cosines(interactions, check_integer(n_neighbours, "n_neighbours", low=1))
    history = _ones(interactions)
    scores, numbers = np.full((m, k), -np.inf, np.float32), np.full((m, k), -1)
    for start in range(0, m, BLOCK):
        rows = np.arange(start, min(start + BLOCK, m))
        found = (history[rows[0] : rows[-1] + 1] @ cosines).toarray()
        deepest = min(n, k + int(np.diff(interactions.indptr)[rows].max()))
        best = np.argpartition(-found, deepest - 1, axis=1)[:, :deepest]
        near = np.take_along_axis(found, best, axis=1)
        order = np.argsort(-near, axis=1, kind="stable")
        near, best = np.take_along_axis(near, order, axis=1), np.take_along_axis(best, order, axis=1)
        best = np.where(near > 0, best, -1)
        scores[rows], numbers[rows] = _unseen(near, best, rows, interactions, k, exclude_seen)
    return scores, numbers


def _item_cosines(interactions: Interactions, n_neighbours: int) -> sp.csr_matrix:
    """(n, n) the largest cosines of each right's column with the others', in blocks of rights."""
    n = interactions.shape[1]
    columns = _ones(interactions).T.tocsr()
    lengths = np.sqrt(np.maximum(np.diff(columns.indptr), 1)).astype(np.float32)
    columns = sp.diags(1 / lengths).astype(np.float32) @ columns
    other, parts = columns.T.tocsr(), []
    for start in range(0, n, BLOCK):
        block = (columns[start : start + BLOCK] @ other).tolil()
        block.setdiag(0, k=start)
        parts.append(_largest(sp.csr_matrix(block), n_neighbours))
    return sp.csr_matrix(sp.vstack(parts))


def _largest(matrix: sp.csr_matrix, count: int) -> sp.csr_matrix:
    """The `count` largest entries of each row."""
    numbers = np.arange(len(matrix.indptr) - 1)
    order = np.lexsort((-np.asarray(matrix.data, np.float64), np.repeat(numbers, np.diff(matrix.indptr))))
    starts = np.asarray(matrix.indptr, dtype=np.int64)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts[:-1], np.diff(starts))
    kept = sp.csr_matrix((np.where(rank < count, matrix.data, 0), matrix.indices, matrix.indptr), matrix.shape)
    kept.eliminate_zeros()
    return kept


def _ones(interactions: Interactions) -> sp.csr_matrix:
    values = np.ones(len(interactions), np.float32)
    return sp.csr_matrix((values, interactions.indices, interactions.indptr), shape=interactions.shape)


def _unseen(
    near: Any, found: Any, rows: np.ndarray, seen: Interactions, k: int, exclude_seen: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The first k answers of each row, without those seen."""
    scores, numbers = np.full((len(rows), k), -np.inf, np.float32), np.full((len(rows), k), -1)
    indptr = seen.indptr if exclude_seen else np.zeros_like(seen.indptr)
    keep_unseen(np.ascontiguousarray(near), np.ascontiguousarray(found), rows, indptr, seen.indices, scores, numbers)
    return scores, numbers
