"""Exact neighbours and recall, with ties: several rows may have the same distance.

Copies of a row, integers and one-hot rows tie: if forty rows have the distance of the tenth neighbour, each of them is
correct. Counting by row number would give a lossless code a recall below 1 (.90 of ten neighbours on rows of 0, 1, 2).
Here, among rows of equal distance, retrieved ones count first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import faiss
import numpy as np

from nearkin._check import check_choice, check_magnitude, check_vectors
from nearkin._faiss import METRIC_TYPES, nearest_rows
from nearkin._types import ArrayLike
from nearkin.linalg.orthonormal import unit_rows
from nearkin.metrics.retrieval import recall_k_at_k, relevance

ROUNDING = 1e-6  # float32 rounding error of a distance or product, in units of the squared norms
_BLOCK = 2**24  # entries of the rows that are gathered at once

Distances: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(numbers of queries (m,), ids (m, c)) to exact distances (m, c) float64: smaller is nearer, inf for no row."""


@dataclass(frozen=True)
class ExactNeighbours:
    """The k nearest rows of each query; `tied` (q,) marks queries with rows of equal distance.

    `ids` (q, k), nearest first, are row numbers or whatever `distances` takes.
    """

    ids: np.ndarray
    tied: np.ndarray
    distances: Distances
    width: int = 1
    """Entries that `distances` gathers for an id."""

    @classmethod
    def given(cls, ids: np.ndarray) -> "ExactNeighbours":
        """Neighbours (q, k) from outside: their order is kept."""
        return cls(ids, np.zeros(len(ids), bool), lambda _, ids: np.zeros(ids.shape))

    @classmethod
    def of(cls, rows: np.ndarray, queries: np.ndarray, k: int, metric: str = "l2") -> "ExactNeighbours":
        """The neighbours among rows (n, d) in memory, by Euclidean distance or inner product ("ip")."""
        rows, queries = np.ascontiguousarray(rows, np.float32), np.ascontiguousarray(queries, np.float32)
        k = min(k, len(rows))
        if not len(queries):
            return cls.given(np.empty((0, k), np.int64))
        scores, ids = faiss.knn(queries, rows, min(k + 1, len(rows)), metric=METRIC_TYPES[metric])
        tied = ties(scores, queries, float(np.einsum("nd,nd->n", rows, rows).max()))

        def distances(numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
            return exact_distances(rows[np.maximum(ids, 0)], queries[numbers], metric, ids >= 0)

        return cls(ids[:, :k], tied, distances, rows.shape[1])

    def matched(self, found: np.ndarray) -> np.ndarray:
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
        return recall_k_at_k(found, self.matched(found), self.ids.shape[1])

    def shares(self, found: np.ndarray, oversamples: Sequence[int] = (1,)) -> dict[int, np.ndarray]:
        """{oversample: share (q,) of the k neighbours among the first oversample * k of `found` (q, c)}."""
        k, hits = self.ids.shape[1], relevance(found, self.matched(found))
        return {o: hits[:, : o * k].sum(axis=1) / k for o in oversamples}


@dataclass(frozen=True)
class Judge:
    """Rows (n, d), queries (q, d) and their exact neighbours: measures the recall of decoded rows."""

    rows: np.ndarray
    queries: np.ndarray
    metric: str
    truth: ExactNeighbours = field(repr=False)

    @classmethod
    def of(cls, rows: np.ndarray, queries: np.ndarray, k: int = 10, metric: str = "l2") -> "Judge":
        """Compute the k nearest rows by "l2" or "ip"."""
        return cls(rows, queries, metric, ExactNeighbours.of(rows, queries, k, metric))

    @property
    def k(self) -> int:
        """Neighbours that count, fewer than asked for if there are fewer rows."""
        return self.truth.ids.shape[1]

    def kept(self, decoded: np.ndarray, queries: np.ndarray | None = None) -> float:
        """The recall of the decoded rows (n, d'), with `queries` (q, d') or the judge's."""
        return self.truth.kept(nearest_rows(decoded, self.queries if queries is None else queries, self.k, self.metric))


def without_own(ids: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Ids (q, k - 1) of `ids` (q, k) without `own` (q,), in their order; without the last if `own` is not there."""
    order = np.argsort(ids == own[:, None], axis=1, kind="stable")
    return np.take_along_axis(ids, order, axis=1)[:, :-1]


def ties(scores: np.ndarray, queries: np.ndarray, largest: float) -> np.ndarray:
    """Whether (q,) queries (q, d) have equal sorted scores (q, k), up to rounding for squared norms to `largest`."""
    gaps = np.abs(np.diff(scores, axis=1)).min(axis=1, initial=np.inf)
    return gaps <= ROUNDING * (np.einsum("qd,qd->q", queries, queries) + largest)


def exact_distances(rows: np.ndarray, queries: np.ndarray, metric: str, there: np.ndarray) -> np.ndarray:
    """Squared distances, or minus products, (m, c) float64 of (m, d) and rows (m, c, d); inf if not `there`."""
    X, Q = rows.astype(np.float64), queries.astype(np.float64)[:, None, :]
    found = np.square(X - Q).sum(axis=2) if metric == "l2" else -(X * Q).sum(axis=2)
    return np.where(there, found, np.inf)


def neighbours_kept(
    retrieved: ArrayLike, X: ArrayLike, Q: ArrayLike, metric: str = "l2", *, ids: ArrayLike | None = None
) -> float:
    """The share of the k nearest rows of X (n, d) to each query in Q (q, d) that `retrieved` (q, k) holds.

    `retrieved` are row numbers or, with `ids` (n,), ids of the rows: what `Index.search` returns for an index that was
    built with these ids. -1, or "" among strings, means no row. `metric`: "l2", "ip" or "cosine".

    Exact neighbours are computed here; of rows at equal distance each is correct.
    Raises ValueError or TypeError for what cannot be compared.

    >>> X = np.repeat(np.eye(3), 20, axis=0)  # twenty copies of three rows
    >>> neighbours_kept([[19, 18, 17]], X, X[:1])
    1.0
    >>> neighbours_kept([["d"]], np.eye(4), np.eye(4)[3:], ids=["a", "b", "c", "d"])
    1.0
    """
    check_choice(metric, "metric", (*METRIC_TYPES, "cosine"))
    rows = check_magnitude(check_vectors(X))
    queries = check_magnitude(check_vectors(Q, name="Q", n_features=rows.shape[1]), "Q")
    found = np.asarray(retrieved)
    if found.ndim != 2 or len(found) != len(queries) or not found.shape[1]:
        raise ValueError(
            f"retrieved has shape {found.shape}; it must be (q, k), one row for each of the {len(queries)} queries"
        )
    numbers = _row_numbers(found, len(rows)) if ids is None else _rows_of_ids(found, np.asarray(ids), len(rows))
    if metric == "cosine":
        rows, queries, metric = unit_rows(rows), unit_rows(queries), "ip"
    return ExactNeighbours.of(rows, queries, found.shape[1], metric).kept(numbers)


def _row_numbers(found: np.ndarray, n: int) -> np.ndarray:
    """`found` (q, k) int64; ValueError for what cannot be numbers of n rows."""
    if found.dtype.kind not in "iu":
        raise ValueError(f"retrieved has dtype {found.dtype}, not row numbers; give the ids of the rows of X as ids=")
    wrong = (found < -1) | (found >= n)
    if wrong.any():
        raise ValueError(
            f"retrieved holds {found[wrong][0]}, and X has the rows 0 to {n - 1}; if these are ids, give those of the "
            "rows of X as ids="
        )
    return found.astype(np.int64)


def _rows_of_ids(found: np.ndarray, ids: np.ndarray, n: int) -> np.ndarray:
    """Row numbers (q, k) of the ids `found` among `ids` (n,), -1 for none; ValueError for an unknown id."""
    if (found.dtype.kind == "U") != (ids.dtype.kind == "U"):
        raise TypeError(f"retrieved has dtype {found.dtype} and ids {ids.dtype}; both must be integers or both strings")
    if ids.shape != (n,) or len(place := dict(zip(ids.tolist(), range(n), strict=True))) != n:
        raise ValueError(f"ids has shape {ids.shape}; it must be ({n},), one id for each row of X, each once")
    place.setdefault("" if found.dtype.kind == "U" else -1, -1)
    if unknown := set(found.ravel().tolist()) - place.keys():
        raise ValueError(f"retrieved holds {min(unknown)!r}, which ids lacks; ids must be those of the index")
    return np.array([place[name] for name in found.ravel().tolist()], np.int64).reshape(found.shape)
