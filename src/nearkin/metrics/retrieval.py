"""Measures of ranked answers against the relevant ids, and exact neighbours with their ties.

`retrieved` is (n, K): the ids found for each query, best first. `relevant` is (n, T): the ids that should be found, in
order of nearness where the order matters. Ids are integers or strings; lists of different lengths may be given
unpadded, or padded with -1 (strings: ""), which never counts as found or relevant. Every measure is the mean over the
queries that have something relevant, in [0, 1].

Copies of a vector, integers and one-hot vectors tie: if forty vectors have the distance of the tenth neighbour, each of
them is correct. Counting by row number would give a lossless code a recall below 1 (.90 of ten neighbours on vectors of
0, 1, 2). `ExactNeighbours` counts each of them. Vectors of equal code scores are in random order: recalls are expected
values."""

# pyright: reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, TypeAlias

import faiss
import numpy as np
from scipy.special import gammaln

from nearkin._check import check_choice, check_integer, check_labels, check_magnitude, check_same_kind, check_vectors
from nearkin._faiss import METRIC_TYPES, answered
from nearkin._fields import counted
from nearkin._types import ArrayLike
from nearkin.linalg.orthonormal import unit_rows


def relevance(retrieved: ArrayLike, relevant: ArrayLike) -> np.ndarray:
    """Which of the retrieved ids are relevant; an id retrieved twice counts at its first place only.

    Parameters
    ----------
    retrieved: (n, K) ids.
    relevant: (n, T) ids; -1, or "" among strings, pads.

    Returns
    -------
    hits: (n, K) bool.

    Raises
    ------
    ValueError: other shapes.
    TypeError: ids of two kinds.

    Examples
    --------
    >>> nk.metrics.relevance([[3, 1, 1]], [[1, 7]])
    array([[False,  True, False]])
    """
    return places_of(retrieved, relevant) >= 0


def places_of(retrieved: ArrayLike, relevant: ArrayLike) -> np.ndarray:
    """The place of each retrieved id among the relevant ids of its query, (n, K); -1 for no place, and for an id that
    was retrieved before."""
    retrieved, relevant = _as_lists(retrieved, "retrieved"), _as_lists(relevant, "relevant")
    if len(retrieved) != len(relevant):
        raise ValueError(
            f"retrieved has {counted(len(retrieved), 'list')} and relevant {len(relevant)}; one row is one query"
        )
    if (retrieved.dtype.kind == "U") != (relevant.dtype.kind == "U"):
        raise TypeError(f"retrieved holds {retrieved.dtype} and relevant {relevant.dtype}; ids must be of one type")
    n, K = retrieved.shape
    names, numbers = np.unique(np.concatenate([retrieved.ravel(), relevant.ravel()]), return_inverse=True)
    # a (query, id) pair becomes one integer, so that one sorted search serves all rows
    keys = numbers.reshape(-1) + np.repeat(np.tile(np.arange(n), 2), np.repeat([K, relevant.shape[1]], n)) * len(names)
    wanted, first = np.unique(keys[n * K :], return_index=True)
    asked, once = np.unique(keys[: n * K], return_index=True)
    at = np.minimum(np.searchsorted(wanted, asked), len(wanted) - 1)
    found = np.full(n * K, -1)
    found[once] = np.where(wanted[at] == asked, first[at] % relevant.shape[1], -1)
    return np.where(_is_padding(retrieved), -1, found.reshape(n, K))


def label_relevance(retrieved_labels: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """Which retrieved vectors have their query's label.

    Parameters
    ----------
    retrieved_labels: (n, K) classes, or (n, K, c) rows of 0 and 1, which are alike if they share one.
    labels: (n,), or (n, c).

    Returns
    -------
    hits: (n, K) bool.

    Raises
    ------
    ValueError: shapes that do not agree, missing labels.
    TypeError: text against numbers.

    Examples
    --------
    >>> nk.metrics.label_relevance([[1, 2], [2, 2]], [1, 2])
    array([[ True, False],
           [ True,  True]])
    """
    retrieved = np.asarray(retrieved_labels)
    labels = check_labels(labels, "labels", len(np.atleast_1d(retrieved)))
    if retrieved.ndim != labels.ndim + 1 or retrieved.shape[2:] != labels.shape[1:]:
        raise ValueError(
            f"retrieved_labels has shape {retrieved.shape} and labels {labels.shape}; they must be (n, K) and (n,), "
            "or (n, K, c) and (n, c) rows of 0 and 1"
        )
    flat = retrieved.reshape(-1, *labels.shape[1:])
    found = check_labels(flat, "retrieved_labels", len(flat)).reshape(retrieved.shape)
    check_same_kind(found, labels, "retrieved_labels", "labels")
    return found == labels[:, None] if labels.ndim == 1 else np.any(found & labels[:, None], axis=2)


def recall(retrieved: ArrayLike, relevant: ArrayLike, k: int | None = None, n_relevant: int | None = None) -> float:
    """Share of the relevant ids that are among the first `k` retrieved.

    Papers call two measures "recall@k"; here they are `recall_1_at_k` (n_relevant=1) and `recall_k_at_k`
    (n_relevant=k).

    Parameters
    ----------
    retrieved, relevant, k: as in `mean_average_precision`.
    n_relevant: only the first columns of `relevant` count; default all.

    Returns
    -------
    recall: float in [0, 1], the mean over queries with something relevant.

    Raises
    ------
    ValueError: other shapes, k below 1, n_relevant above the columns of `relevant`.
    TypeError: ids of two kinds.

    Examples
    --------
    >>> nk.metrics.recall([[3, 1, 2]], [[1, 7]], k=2)
    0.5
    """
    relevant = _as_lists(relevant, "relevant")
    if n_relevant is not None:
        n_relevant = check_integer(n_relevant, "n_relevant", low=1)
        if n_relevant > relevant.shape[1]:
            raise ValueError(f"n_relevant is {n_relevant}; relevant has only {counted(relevant.shape[1], 'column')}")
        relevant = relevant[:, :n_relevant]
    hits = relevance(_first(retrieved, k), relevant)
    return _mean_ratio(hits.sum(axis=1), _count(relevant))


def recall_1_at_k(retrieved: ArrayLike, neighbors: ArrayLike, k: int) -> float:
    """ "1-recall@k": share of queries whose single nearest neighbour is among the first k retrieved.

    Parameters
    ----------
    retrieved: (n, K) ids, best first.
    neighbors: (n, T) ids of exact neighbours, nearest first.
    k: places that count.

    Returns
    -------
    recall: float in [0, 1].

    Raises
    ------
    ValueError, TypeError: as in `recall`.

    Examples
    --------
    >>> nk.metrics.recall_1_at_k([[3, 1, 2], [4, 5, 6]], [[1, 2], [6, 4]], k=2)
    0.5
    """
    return recall(retrieved, neighbors, k, n_relevant=1)


def recall_k_at_k(retrieved: ArrayLike, neighbors: ArrayLike, k: int) -> float:
    """ "k-recall@k", recall@k of vector search: share of the k nearest neighbours that are among the first k retrieved.

    Ids are compared. Where vectors lie at one distance (copies, integers) see `knn_recall`.

    Parameters
    ----------
    retrieved: (n, K) ids, best first.
    neighbors: (n, T) ids of exact neighbours, nearest first, T at least k.
    k: places and neighbours that count.

    Returns
    -------
    recall: float in [0, 1].

    Raises
    ------
    ValueError, TypeError: as in `recall`.

    Examples
    --------
    >>> nk.metrics.recall_k_at_k([[3, 1, 2]], [[1, 7, 3]], k=2)
    0.5
    """
    return recall(retrieved, neighbors, k, n_relevant=k)


def precision(retrieved: ArrayLike, relevant: ArrayLike, k: int | None = None) -> float:
    """Share of the first places that hold a relevant id; an empty place counts as a miss.

    Parameters
    ----------
    retrieved, relevant, k: as in `mean_average_precision`.

    Returns
    -------
    precision: float in [0, 1], the mean over queries.

    Raises
    ------
    ValueError, TypeError: as in `mean_average_precision`.

    Examples
    --------
    >>> nk.metrics.precision([[3, 1, 2, 9]], [[1, 2]], k=2)
    0.5
    """
    retrieved = _as_lists(retrieved, "retrieved")
    k = retrieved.shape[1] if k is None else check_integer(k, "k", low=1)
    hits = relevance(_first(retrieved, k), relevant)
    return _mean_ratio(hits.sum(axis=1), np.full(len(hits), k))


def average_precision(hits: ArrayLike, n_relevant: ArrayLike | None = None) -> np.ndarray:
    """Average precision of every ranking: the mean of precision@i over the places i of the relevant ids.

    Ties must have been broken by the ranking.

    Parameters
    ----------
    hits: (n, K) bool, best first, as from `relevance` or `label_relevance`.
    n_relevant: a number or (n,), how many could have been found; by default those within the K places, which is right
        for a full ranking only.

    Returns
    -------
    values: (n,) float64 in [0, 1]; 0 for a query with nothing relevant.

    Raises
    ------
    ValueError: hits that are not (n, K) bool; n_relevant below the number of hits.

    Examples
    --------
    >>> nk.metrics.average_precision([[True, False, True], [False, False, True]])
    array([0.83333333, 0.33333333])
    """
    hits = np.asarray(hits)
    if hits.ndim != 2 or hits.dtype != np.bool_:
        raise ValueError(f"hits has shape {hits.shape} and dtype {hits.dtype}; it must be (n, K) bool, see `relevance`")
    n_found = hits.sum(axis=1)
    wanted = n_found if n_relevant is None else np.broadcast_to(n_relevant, n_found.shape)
    if (wanted < n_found).any():
        raise ValueError(f"n_relevant is {wanted[wanted < n_found][0]} where more were found; it counts all")
    precisions = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    return (precisions * hits).sum(axis=1) / np.maximum(wanted, 1)


def mean_average_precision(retrieved: ArrayLike, relevant: ArrayLike, k: int | None = None) -> float:
    """mAP@k of ranked ids: a query's precisions at its hits within `k`, over min(k, number of relevant ids).

    For relevance by label see `label_mean_average_precision`.

    Parameters
    ----------
    retrieved: (n, K) ids, best first.
    relevant: (n, T) ids; -1, or "" among strings, pads.
    k: places that count; None for whole lists, where each relevant id that was not retrieved costs.

    Returns
    -------
    map: float in [0, 1], the mean over queries with something relevant.

    Raises
    ------
    ValueError: other shapes, k below 1.
    TypeError: ids of two kinds.

    Examples
    --------
    >>> nk.metrics.mean_average_precision([[3, 1, 2]], [[1, 2]])
    0.5833333333333333
    """
    retrieved = _first(retrieved, k)
    counts = _count(_as_lists(relevant, "relevant"))
    hits = relevance(retrieved, relevant)
    best = counts if k is None else np.minimum(counts, min(k, int(counts.max(initial=0))))
    return (
        float(average_precision(hits, np.maximum(best, hits.sum(axis=1)))[counts > 0].mean()) if counts.any() else 0.0
    )


def label_mean_average_precision(
    retrieved_labels: ArrayLike, labels: ArrayLike, n_relevant: ArrayLike | None = None
) -> float:
    """mAP where a vector is relevant to a query of its label.

    Parameters
    ----------
    retrieved_labels, labels: as in `label_relevance`, in ranked order.
    n_relevant: as in `average_precision`; give it unless every vector of the database was ranked.

    Returns
    -------
    map: float in [0, 1].

    Raises
    ------
    ValueError, TypeError: as in `label_relevance` and `average_precision`.

    Examples
    --------
    >>> nk.metrics.label_mean_average_precision([["cat", "dog", "cat"]], ["cat"])
    0.8333333333333333
    """
    return float(average_precision(label_relevance(retrieved_labels, labels), n_relevant).mean())


def ndcg(retrieved: ArrayLike, relevant: ArrayLike, k: int | None = None) -> float:
    """Normalized discounted cumulative gain at `k`: gain 1 for a relevant id, discount 1 / log2(1 + place).

    Parameters
    ----------
    retrieved, relevant, k: as in `mean_average_precision`.

    Returns
    -------
    ndcg: float in [0, 1], the mean over queries with something relevant.

    Raises
    ------
    ValueError, TypeError: as in `mean_average_precision`.

    Examples
    --------
    >>> nk.metrics.ndcg([["a", "b"]], [["b"]], k=2)
    0.6309297535714575
    """
    retrieved = _first(retrieved, k)
    counts = _count(_as_lists(relevant, "relevant"))
    hits = relevance(retrieved, relevant)
    return _mean_ratio(discounted_gain(hits), best_gain(counts, hits.shape[1] if k is None else k))


def discounted_gain(gains: ArrayLike) -> np.ndarray:
    """Discounted cumulative gain of every ranking, (n,), from its gains (n, K), best place first."""
    gains = np.asarray(gains, dtype=np.float64)
    return gains @ (1.0 / np.log2(np.arange(2, gains.shape[1] + 2)))


def best_gain(n_relevant: np.ndarray, k: int) -> np.ndarray:
    """The discounted cumulative gain (n,) of rankings whose first `k` places hold all that is relevant, gain 1 each."""
    return discounted_gain(np.arange(k) < n_relevant[:, None])


def reciprocal_rank(hazard: np.ndarray) -> np.ndarray:
    """Expected 1 / place of the first hit of every ranking, (n,); `hazard` (n, K) are chances of a hit if none was
    before."""
    none = np.cumprod(1 - hazard, axis=1)
    return (hazard * np.column_stack([np.ones(len(none)), none[:, :-1]])) @ (1 / np.arange(1, none.shape[1] + 1))


def tie_groups(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every place of rankings (n, K): the number of its group of equal scores, and its place in the group. `new`
    (n, K) bool marks the first of each group; numbers of different rankings differ."""
    n, K = new.shape
    first = np.maximum.accumulate(np.where(new, np.arange(K), 0), axis=1)
    return first + K * np.arange(n)[:, None], np.arange(K) - first


def _as_lists(ids: Any, name: str) -> np.ndarray:
    if isinstance(ids, list | tuple) and len({np.size(row) for row in ids}) > 1:
        text = any(isinstance(name, str) for row in ids for name in row)
        ids = [*zip(*zip_longest(*ids, fillvalue="" if text else -1), strict=True)]
    array = np.asarray(ids)
    if array.dtype.kind not in "iuUSb" or array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"{name} has shape {array.shape} and dtype {array.dtype}; it must be (n, k) ids, integers or strings, "
            "one row a query"
        )
    return array.astype(str) if array.dtype.kind in "US" else array.astype(np.int64)


def _first(retrieved: ArrayLike, k: int | None) -> np.ndarray:
    retrieved = _as_lists(retrieved, "retrieved")
    return retrieved if k is None else retrieved[:, : check_integer(k, "k", low=1)]


def _is_padding(ids: np.ndarray) -> np.ndarray:
    return ids == "" if ids.dtype.kind == "U" else ids == -1


def _count(relevant: np.ndarray) -> np.ndarray:
    """How many different ids every row names, (n,)."""
    ordered = np.sort(relevant, axis=1)
    new = np.ones(ordered.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return (new & ~_is_padding(ordered)).sum(axis=1)


def _mean_ratio(part: np.ndarray, whole: np.ndarray) -> float:
    """Mean of part / whole over the queries that have a whole."""
    asked = whole > 0
    return float((part[asked] / whole[asked]).mean()) if asked.any() else 0.0


ROUNDING = 1e-6  # float32 rounding error of a distance or product, in units of the squared norms
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
        """The neighbours among vectors (n, d) in memory, by Euclidean distance or inner product ("ip")."""
        rows, queries = np.ascontiguousarray(rows, np.float32), np.ascontiguousarray(queries, np.float32)
        k = min(k, len(rows))
        if not len(queries):
            return cls.given(np.empty((0, k), np.int64))
        scores, ids = faiss.knn(queries, rows, min(k + 1, len(rows)), metric=METRIC_TYPES[metric])
        tied = ties(scores, queries, float(np.einsum("nd,nd->n", rows, rows).max()))

        def distances(numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
            return exact_distances(rows[np.maximum(ids, 0)], queries[numbers], metric, ids >= 0)

        return cls(ids[:, :k], tied, distances, rows.shape[1])

    def take(self, queries: np.ndarray) -> "ExactNeighbours":
        """Those of some queries (m,) by their numbers."""

        def distances(numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
            return self.distances(queries[numbers], ids)

        return replace(self, ids=self.ids[queries], tied=self.tied[queries], distances=distances)

    def ranked(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores and ids (q, k), best first: distances for queries with vectors of equal distance, else places."""
        ids, scores = self.ids.copy(), np.tile(np.arange(self.ids.shape[1], dtype=np.float64), (len(self.ids), 1))
        scores[_is_padding(ids)] = np.inf
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
            goes_on = (scores[:, -1] == scores[:, min(depth, wide) - 1]) & answered(scores)[:, -1] & (wide < most)
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


def without_self(ids: np.ndarray, own: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
    """Retrieved ids without the query itself, in their order; without the last if the query is not among them.

    Parameters
    ----------
    ids: (q, k) retrieved ids.
    own: (q,) id of each query.
    of: (q, k) values at the same places, returned instead of ids.

    Returns
    -------
    others: (q, k - 1), of the type of ids or of.

    Raises
    ------
    ValueError: own or of of another shape.

    Examples
    --------
    >>> nk.metrics.without_self(np.array([[4, 7, 9], [1, 2, 3]]), np.array([7, 8]))
    array([[4, 9],
           [1, 2]])
    """
    ids, own = _as_lists(ids, "ids"), np.asarray(own)
    if own.shape != ids.shape[:1]:
        raise ValueError(f"own has shape {own.shape}; it must be ({len(ids)},), one id for each row of ids")
    if of is not None and np.shape(of) != ids.shape:
        raise ValueError(f"of has shape {np.shape(of)}; it must be that of ids, {ids.shape}")
    order = np.argsort(ids == own[:, None], axis=1, kind="stable")
    return np.take_along_axis(ids if of is None else of, order, axis=1)[:, :-1]


def ties(scores: np.ndarray, queries: np.ndarray, largest: float) -> np.ndarray:
    """Whether (q,) queries (q, d) have equal sorted scores (q, k), up to rounding for squared norms to `largest`."""
    gaps = np.abs(np.diff(scores, axis=1)).min(axis=1, initial=np.inf)
    return gaps <= ROUNDING * (np.einsum("qd,qd->q", queries, queries) + largest)


def exact_distances(rows: np.ndarray, queries: np.ndarray, metric: str, there: np.ndarray) -> np.ndarray:
    """Squared distances, or minus products, (m, c) float64 of (m, d) and vectors (m, c, d); inf if not `there`."""
    X, Q = rows.astype(np.float64), queries.astype(np.float64)[:, None, :]
    found = np.square(X - Q).sum(axis=2) if metric == "l2" else -(X * Q).sum(axis=2)
    return np.where(there, found, np.inf)


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

    Raises
    ------
    ValueError: other shapes, an unknown metric, a number or an id that X lacks.
    TypeError: ids of two kinds.

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
    found = np.asarray(retrieved)
    if found.ndim != 2 or len(found) != len(queries) or not found.shape[1]:
        raise ValueError(
            f"retrieved has shape {found.shape}; it must be (q, k), one row for each of the "
            f"{counted(len(queries), 'query', 'queries')}"
        )
    numbers = _row_numbers(found, len(rows)) if ids is None else _rows_of_ids(found, np.asarray(ids), len(rows))
    if metric == "cosine":
        rows, queries, metric = unit_rows(rows), unit_rows(queries), "ip"
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
    if (found.dtype.kind == "U") != (ids.dtype.kind == "U"):
        raise TypeError(f"retrieved has dtype {found.dtype} and ids {ids.dtype}; both must be integers or both strings")
    if ids.shape != (n,) or len(place := dict(zip(ids.tolist(), range(n), strict=True))) != n:
        raise ValueError(f"ids has shape {ids.shape}; it must be ({n},), one id for each vector of X, each once")
    place.setdefault("" if found.dtype.kind == "U" else -1, -1)
    if unknown := set(found.ravel().tolist()) - place.keys():
        raise ValueError(f"retrieved holds {min(unknown)!r}, which ids lacks; ids must be those of the index")
    return np.array([place[name] for name in found.ravel().tolist()], np.int64).reshape(found.shape)
