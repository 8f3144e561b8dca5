"""Exact neighbours, and the share of them that answers keep, where rows may lie at one distance.

Copies of a row, integers and one-hot rows tie: of forty rows at the distance of the tenth neighbour any is as right an
answer as the others, and counting by row number would take a lossless code for a bad one (.90 of ten neighbours on rows
of 0, 1, 2). Here the rows found count first among those at one distance.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import faiss
import numpy as np

from nearkin._check import check_choice, check_magnitude, check_vectors
from nearkin._faiss import METRIC_TYPES
from nearkin._types import ArrayLike
from nearkin.metrics.retrieval import recall_k_at_k

ROUNDING = 1e-6  # of a distance or product in float32, in units of the squared norms
_BLOCK = 2**24  # entries of the rows that are gathered at once

Distances: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(numbers of queries (m,), ids (m, c)) to exact distances (m, c) float64: smaller is nearer, inf for no row."""


@dataclass(frozen=True)
class ExactNeighbours:
    """The k nearest rows of each query, and what is as near: `tied` (q,) says which queries have rows at one distance.

    `ids` (q, k), nearest first, are row numbers or whatever `distances` takes.
    """

    ids: np.ndarray
    tied: np.ndarray
    distances: Distances
    width: int = 1
    """Entries that `distances` gathers for an id."""

    @classmethod
    def given(cls, ids: np.ndarray) -> "ExactNeighbours":
        """Neighbours (q, k) that somebody else found: their order is taken as it is."""
        return cls(ids, np.zeros(len(ids), bool), lambda _, ids: np.zeros(ids.shape))

    @classmethod
    def of(cls, rows: np.ndarray, queries: np.ndarray, k: int, metric: str = "l2") -> "ExactNeighbours":
        """Of rows (n, d) in memory, by Euclidean distance or inner product ("ip")."""
        rows, queries = np.ascontiguousarray(rows, np.float32), np.ascontiguousarray(queries, np.float32)
        k = min(k, len(rows))
        if not len(queries):
            return cls.given(np.empty((0, k), np.int64))
        scores, ids = faiss.knn(queries, rows, min(k + 1, len(rows)), metric=METRIC_TYPES[metric])
        tied = ties(scores, queries, float(np.einsum("nd,nd->n", rows, rows).max()))

        def distances(numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
            return exact_distances(rows[np.maximum(ids, 0)], queries[numbers], metric, ids >= 0)

        return cls(ids[:, :k], tied, distances, rows.shape[1])

    def beside(self, found: np.ndarray) -> np.ndarray:
        """The ids (q, k) again, where of rows at one distance those `found` (q, c) come first, in their order."""
        settled, k = self.ids.copy(), self.ids.shape[1]
        numbers, c = np.flatnonzero(self.tied), found.shape[1]
        step = max(1, _BLOCK // (self.width * (c + k)))
        for block in (numbers[start : start + step] for start in range(0, len(numbers), step)):
            ids = np.hstack([found[block], self.ids[block]])
            distances = self.distances(block, ids)
            again = (ids[:, c:, None] == ids[:, None, :c]).any(axis=2)
            distances[:, c:][again] = np.inf
            order = np.argsort(distances, axis=1, kind="stable")[:, :k]
            settled[block] = np.take_along_axis(ids, order, axis=1)
        return settled

    def kept(self, found: np.ndarray) -> float:
        """The share of the k neighbours that are among the first k of `found` (q, c), mean over the queries."""
        return recall_k_at_k(found, self.beside(found), self.ids.shape[1])


def ties(scores: np.ndarray, queries: np.ndarray, largest: float) -> np.ndarray:
    """Which queries (q, d) have two of their scores (q, k), in order, at one value as far as float32 tells, (q,) bool.

    `largest` is the largest squared norm of a row.
    """
    gaps = np.abs(np.diff(scores, axis=1)).min(axis=1, initial=np.inf)
    return gaps <= ROUNDING * (np.einsum("qd,qd->q", queries, queries) + largest)


def exact_distances(rows: np.ndarray, queries: np.ndarray, metric: str, there: np.ndarray) -> np.ndarray:
    """Distances (m, c) in float64 of rows (m, c, d) from queries (m, d), equal for equal rows; inf where not `there`.

    Squared Euclidean distances, or inner products with a minus.
    """
    X, Q = rows.astype(np.float64), queries.astype(np.float64)[:, None, :]
    found = np.square(X - Q).sum(axis=2) if metric == "l2" else -(X * Q).sum(axis=2)
    return np.where(there, found, np.inf)


def neighbours_kept(retrieved: ArrayLike, X: ArrayLike, Q: ArrayLike, metric: str = "l2") -> float:
    """The share of the k nearest rows of X (n, d) to each query in Q (q, d) that `retrieved` (q, k) row numbers hold.

    `recall_k_at_k` with the neighbours found here, by exact search, and ties settled: of rows at one distance each is
    as right as the others. `metric` is "l2" or "ip". Raises ValueError or TypeError for what cannot be compared.

    >>> X = np.repeat(np.eye(3), 20, axis=0)  # twenty copies of three rows
    >>> neighbours_kept([[19, 18, 17]], X, X[:1])
    1.0
    """
    check_choice(metric, "metric", ("l2", "ip"))
    rows = check_magnitude(check_vectors(X))
    queries = check_magnitude(check_vectors(Q, name="Q", n_features=rows.shape[1]), "Q")
    found = np.asarray(retrieved)
    if found.ndim != 2 or found.dtype.kind not in "iu" or len(found) != len(queries) or not found.shape[1]:
        raise ValueError(
            f"retrieved has shape {found.shape} and dtype {found.dtype}; it must be (q, k) row numbers, one row for "
            f"each of the {len(queries)} queries"
        )
    if found.max() >= len(rows):
        raise ValueError(f"retrieved holds the row number {found.max()}, and X has {len(rows)} rows")
    return ExactNeighbours.of(rows, queries, found.shape[1], metric).kept(found.astype(np.int64))
