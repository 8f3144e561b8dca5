"""Exact neighbours with their ties.

Copies of a vector, integers and one-hot vectors tie: if forty vectors have the distance of the tenth neighbour, each of
them is correct. Counting by row number would give a lossless code a recall below 1 (.90 of ten neighbours on vectors of
0, 1, 2). `ExactNeighbours` counts each of them. Vectors of equal code scores are in random order: recalls are expected
values.
"""

# pyright: reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.special import gammaln

from nearkin._check import as_array, check_choice, check_magnitude, check_vectors
from nearkin._exact import keys_of_pairs, nearest
from nearkin._faiss import METRIC_TYPES
from nearkin._fields import counted
from nearkin._pairs import as_ids
from nearkin._types import ArrayLike
from nearkin.linalg.orthonormal import unit_rows
from nearkin.metrics.retrieval import as_lists, check_one_kind, is_padding, places_of

_BLOCK = 2**24  # entries of the rows that are gathered at once
_TIED, _FURTHER = 4096, 64  # most rows down to the end of a group of equal scores, also as a multiple of the depth

Distances: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(numbers of queries (m,), ids (m, c)) to exact distances (m, c) float64: smaller is nearer, inf for no vector."""


@dataclass(frozen=True)
class ExactNeighbours:
    """The k nearest vectors of each query; `tied` (q,) marks queries with vectors of equal distance.

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
        """The neighbours among vectors (n, d) in memory, by "l2", "ip", or "cosine" for those of norm 1."""
        scores, ids = nearest(rows, queries, k + 1, metric)

        def distances(numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
            return exact_distances(rows[np.maximum(ids, 0)], queries[numbers], metric, ids >= 0)

        return cls(ids[:, :k], ties(scores), distances, rows.shape[1])

    def take(self, queries: np.ndarray) -> "ExactNeighbours":
        """Those of some queries (m,) by their numbers."""

        def distances(numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
            return self.distances(queries[numbers], ids)

        return replace(self, ids=self.ids[queries], tied=self.tied[queries], distances=distances)

    def ranked(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores and ids (q, k), best first: distances for queries with vectors of equal distance, else places."""
        ids, scores = self.ids.copy(), np.tile(np.arange(self.ids.shape[1], dtype=np.float64), (len(self.ids), 1))
        scores[is_padding(ids)] = np.inf
        for block in self._tied_blocks(ids.shape[1]):
            distances = self.distances(block, ids[block])
            order = np.argsort(distances, axis=1, kind="stable")
            scores[block], ids[block] = (np.take_along_axis(of, order, axis=1) for of in (distances, ids[block]))
        return scores, ids

    def recalls(
        self, found: np.ndarray, cuts: Iterable[tuple[int, int]], scores: np.ndarray | None = None
    ) -> dict[tuple[int, int], np.ndarray]:
        """{(n, depth): share (q,) of the n nearest among the first `depth` of `found` (q, c)}.

        Of vectors at one distance each is correct. Vectors of equal `scores` (q, c), those of `found`, best first, are
        in random order, and shares are expected ones; the last group of equal scores must be complete.
        """
        own, far = self.ranked()[0], places_of(found, self.ids).astype(np.float64)
        far[far < 0] = np.inf
        for block in self._tied_blocks(found.shape[1]):
            distances = self.distances(block, found[block])
            far[block] = np.where(places_of(found[block], found[block]) < 0, np.inf, distances)
        known = np.maximum(np.cumsum(np.isfinite(own), axis=1), 1)
        return {(n, depth): _expected_hits(far, own[:, :n], depth, scores) / known[:, n - 1] for n, depth in cuts}

    def recall(self, found: np.ndarray, scores: np.ndarray | None = None) -> np.ndarray:
        """The share (q,) of the k neighbours among the first k of `found` (q, c), as `recalls`."""
        k = self.ids.shape[1]
        return self.recalls(found, [(k, k)], scores)[k, k]

    def _tied_blocks(self, c: int) -> Iterator[np.ndarray]:
        """Numbers of the queries with rows of equal distance, as many at a time as allow c distances each."""
        numbers, step = np.flatnonzero(self.tied), max(1, _BLOCK // (self.width * max(c, 1)))
        return (numbers[start : start + step] for start in range(0, len(numbers), step))


def distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different rows of (m, d), in the order of their first, and the numbers (m,) of those that make up `rows`."""
    rows = np.ascontiguousarray(rows)
    _, first, again = np.unique(
        rows.view((np.void, rows.itemsize * rows.shape[1])), return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    return rows[first[order]], np.argsort(order)[again.ravel()]


def _expected_hits(far: np.ndarray, own: np.ndarray, depth: int, scores: np.ndarray | None) -> np.ndarray:
    """How many of the exact neighbours at distances `own` (q, n), sorted, are expected among the first `depth` of
    answers at distances `far` (q, c).

    Nearer rows than the n-th neighbour count each; of those at its distance, as many as there are places for. Of the
    group of equal scores at place `depth`, s of its t rows are among the first: of r rows any j with the chance
    C(r, j) C(t - r, s - j) / C(t, s).
    """
    limit = own[:, -1:]
    limit = np.where(np.isfinite(limit), limit, np.finfo(np.float64).max)
    near, level = far < limit, far == limit
    places = (own == limit).sum(axis=1)
    if scores is None:
        return np.minimum(near[:, :depth].sum(axis=1) + np.minimum(level[:, :depth].sum(axis=1), places), own.shape[1])
    group = scores == scores[:, min(depth, scores.shape[1]) - 1 :][:, :1]
    first = group.argmax(axis=1)
    t, s = group.sum(axis=1), np.minimum(depth, scores.shape[1]) - first
    before = np.arange(scores.shape[1]) < first[:, None]
    sure, r = (level & before).sum(axis=1), (level & group).sum(axis=1)
    filled = np.minimum(sure + r * s / t, places)
    few = np.flatnonzero(sure + np.minimum(r, s) > places)  # the mean of a minimum is less than that of its parts
    if len(few):
        T, S, R, free = (of[few, None].astype(np.float64) for of in (t, s, r, np.maximum(places - sure, 0)))
        j = np.arange(int(free.max()) + 1.0)
        with np.errstate(invalid="ignore", over="ignore"):  # impossible numbers
            chance = np.exp(_log_choose(R, j) + _log_choose(T - R, S - j) - _log_choose(T, S))
        possible = (j >= S + R - T) & (j <= np.minimum(R, S))
        filled[few] = places[few] - (np.where(possible, chance, 0) * np.maximum(free - j, 0)).sum(axis=1)
    hits = (near & before).sum(axis=1) + (near & group).sum(axis=1) * s / t + filled
    return np.minimum(hits, own.shape[1])


def _log_choose(n: np.ndarray, k: np.ndarray) -> np.ndarray:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


Search: TypeAlias = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]
"""(numbers of queries (m,), depth) to scores and ids (m, depth), best first."""


Part: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Numbers of some queries (m,), and their scores and ids (m, c), best first."""


def with_ties(search: Search, q: int, depth: int, n: int, block: int = sys.maxsize) -> Iterator[Part]:
    """The answers of q queries to `depth` and on to the last vector of equal score, of n vectors, for a `block` of
    queries at a time. A larger group than 64 times `depth`, and 4,096, is cut off, as k of it hold few neighbours in
    any order."""
    asked, wide, most = np.arange(q), min(depth + 1, n), min(max(_FURTHER * depth, _TIED), n)
    while len(asked):
        step, further = max(1, min(block, _BLOCK // (4 * wide))), [asked[:0]]
        for some in (asked[start : start + step] for start in range(0, len(asked), step)):
            scores, ids = search(some, wide)
            goes_on = (scores[:, -1] == scores[:, min(depth, wide) - 1]) & ~is_padding(ids[:, -1]) & (wide < most)
            if not goes_on.all():
                yield some[~goes_on], scores[~goes_on], ids[~goes_on]
            further.append(some[goes_on])
        asked, wide = np.concatenate(further), min(4 * wide, most)


def drawn_order(scores: np.ndarray, rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Vector numbers (m, k) with those of equal scores (m, k) in an order drawn for each of the `queries` (m,), the
    same at every depth."""
    mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ queries[:, None].astype(np.uint64) << np.uint64(32)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):  # splitmix64
        mixed = (mixed ^ mixed >> np.uint64(shift)) * np.uint64(factor)
    group = np.zeros(scores.shape, np.int64)
    group[:, 1:] = np.cumsum(scores[:, 1:] != scores[:, :-1], axis=1)
    return np.take_along_axis(rows, np.lexsort((mixed, group), axis=1), axis=1)


def ties(scores: np.ndarray) -> np.ndarray:
    """Whether (q,) there are equal ones among exact sorted scores (q, k)."""
    return (scores[:, 1:] == scores[:, :-1]).any(axis=1)


def exact_distances(rows: np.ndarray, queries: np.ndarray, metric: str, there: np.ndarray) -> np.ndarray:
    """`keys_of_pairs` (m, c) of queries (m, d) and vectors (m, c, d); inf if not `there`."""
    return np.where(there, keys_of_pairs(rows, queries[:, None], metric), np.inf)


def knn_recall(
    retrieved: ArrayLike, X: ArrayLike, Q: ArrayLike, metric: str = "l2", *, ids: ArrayLike | None = None
) -> float:
    """Recall@k of vectors: the share of the k exact nearest vectors of X to each query that `retrieved` holds.

    Exact neighbours are computed here; of vectors at equal distance each is correct.

    Parameters
    ----------
    retrieved: (q, k) row numbers or, with `ids`, ids: what `Index.search` returns. -1, or "" among strings: no vector.
    X: (n, d) vectors.
    Q: (q, d) queries.
    metric: "l2", "ip" or "cosine".
    ids: (n,) ids of the vectors, each once.

    Returns
    -------
    recall: float in [0, 1], the mean over queries.

    Examples
    --------
    >>> X = np.repeat(np.eye(3), 20, axis=0)  # twenty copies of three rows
    >>> nk.metrics.knn_recall([[19, 18, 17]], X, X[:1])
    1.0
    >>> nk.metrics.knn_recall([["d"]], np.eye(4), np.eye(4)[3:], ids=["a", "b", "c", "d"])
    1.0
    """
    check_choice(metric, "metric", (*METRIC_TYPES, "cosine"))
    rows = check_magnitude(check_vectors(X))
    queries = check_magnitude(check_vectors(Q, name="Q", n_features=rows.shape[1]), "Q")
    found = as_array(retrieved, "retrieved") if ids is None else as_lists(retrieved, "retrieved")
    if found.ndim != 2 or len(found) != len(queries) or not found.shape[1]:
        raise ValueError(
            f"retrieved has shape {found.shape}; it must be (q, k), one row for each of the "
            f"{counted(len(queries), 'query', 'queries')}"
        )
    numbers = _row_numbers(found, len(rows)) if ids is None else _rows_of_ids(found, as_ids(ids, "ids"), len(rows))
    if metric == "cosine":
        rows, queries = (unit_rows(X.astype(np.float64)).astype(np.float32) for X in (rows, queries))  # as an index
    exact = ExactNeighbours.of(rows, queries, found.shape[1], metric)
    return float(exact.recall(numbers).mean()) if len(queries) else 0.0


def _row_numbers(found: np.ndarray, n: int) -> np.ndarray:
    """`found` (q, k) int64; ValueError for what cannot be numbers of n rows."""
    if found.dtype.kind not in "iu":
        raise ValueError(f"retrieved has dtype {found.dtype}, not row numbers; give the ids of X as ids=")
    wrong = (found < -1) | (found >= n)
    if wrong.any():
        raise ValueError(
            f"retrieved holds {found[wrong][0]}, and X has the vectors 0 to {n - 1}; if these are ids, give "
            "those of X as ids="
        )
    return found.astype(np.int64)


def _rows_of_ids(found: np.ndarray, ids: np.ndarray, n: int) -> np.ndarray:
    """Row numbers (q, k) of the ids `found` among `ids` (n,), -1 for none; ValueError for an unknown id."""
    check_one_kind(found, "retrieved", ids, "ids")
    if ids.shape != (n,) or len(place := dict(zip(ids.tolist(), range(n), strict=True))) != n:
        raise ValueError(f"ids has shape {ids.shape}; it must be ({n},), one id for each vector of X, each once")
    place.setdefault("" if found.dtype.kind == "U" else -1, -1)
    if unknown := set(found.ravel().tolist()) - place.keys():
        raise ValueError(f"retrieved holds {min(unknown)!r}, which ids lacks; ids must be those of the index")
    return np.array([place[name] for name in found.ravel().tolist()], np.int64).reshape(found.shape)
