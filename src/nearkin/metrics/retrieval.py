"""Measures of ranked answers against the relevant ids, or against their grades (as in TREC's and BEIR's qrels).

`retrieved` is (n, K): the ids found for each query, best first. `relevant` is (n, T): the ids that should be found, in
order of nearness where the order matters. Ids are integers or strings; lists of different lengths may be given
unpadded, or padded with -1 (strings: ""), which never counts as found or relevant. Every measure is the mean over the
queries that have something relevant, in [0, 1].
"""

# pyright: reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from nearkin._check import as_array, check_integer, check_labels, check_same_kind, each_once, from_tensor
from nearkin._fields import counted
from nearkin._types import ArrayLike

NDCG, RECALL, MRR = "NDCG@10", "Recall@100", "MRR@10"
DEPTH = 100  # answers that the measures need
_TOP = 10


def relevance(retrieved: ArrayLike, relevant: ArrayLike) -> np.ndarray:
    """Which of the retrieved ids (n, K) are relevant, (n, K) bool; an id retrieved twice counts at its first place."""
    return places_of(retrieved, relevant) >= 0


def places_of(retrieved: ArrayLike, relevant: ArrayLike) -> np.ndarray:
    """The place of each retrieved id among the relevant ids of its query, (n, K); -1 for no place, and for an id that
    was retrieved before."""
    retrieved, relevant = as_lists(retrieved, "retrieved"), as_lists(relevant, "relevant")
    if len(retrieved) != len(relevant):
        raise ValueError(
            f"retrieved has {counted(len(retrieved), 'list')} and relevant {len(relevant)}; one row is one query"
        )
    if is_padding(retrieved).all() or is_padding(relevant).all():
        return np.full(retrieved.shape, -1)
    check_one_kind(retrieved, "retrieved", relevant, "relevant")
    n, K = retrieved.shape
    names, numbers = np.unique(np.concatenate([retrieved.ravel(), relevant.ravel()]), return_inverse=True)
    # a (query, id) pair becomes one integer, so that one sorted search serves all rows
    keys = numbers.reshape(-1) + np.repeat(np.tile(np.arange(n), 2), np.repeat([K, relevant.shape[1]], n)) * len(names)
    wanted, first = np.unique(keys[n * K :], return_index=True)
    asked, once = np.unique(keys[: n * K], return_index=True)
    at = np.minimum(np.searchsorted(wanted, asked), len(wanted) - 1)
    found = np.full(n * K, -1)
    found[once] = np.where(wanted[at] == asked, first[at] % relevant.shape[1], -1)
    return np.where(is_padding(retrieved), -1, found.reshape(n, K))


def label_relevance(retrieved_labels: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """Which retrieved vectors have their query's label.

    Parameters
    ----------
    retrieved_labels: (n, K) classes, or of several labels a vector a mask (n, K, c) of dtype bool. Those that share a
        label are alike.
    labels: (n,), or a mask (n, c), dense or sparse.

    Returns
    -------
    hits: (n, K) bool.

    Examples
    --------
    >>> nk.metrics.label_relevance([[1, 2], [2, 2]], [1, 2])
    array([[ True, False],
           [ True,  True]])
    """
    retrieved = as_array(retrieved_labels, "retrieved_labels")
    labels = check_labels(labels, "labels", len(np.atleast_1d(retrieved)))
    if retrieved.ndim != labels.ndim + 1 or retrieved.shape[2:] != labels.shape[1:]:
        raise ValueError(
            f"retrieved_labels has shape {retrieved.shape} and labels {labels.shape}; they must be (n, K) and (n,), "
            "or masks (n, K, c) and (n, c)"
        )
    flat = retrieved.reshape(-1, *labels.shape[1:])
    found = check_labels(flat, "retrieved_labels", len(flat)).reshape(retrieved.shape)
    check_same_kind(found, labels, "retrieved_labels", "labels")
    return found == labels[:, None] if labels.ndim == 1 else np.any(found & labels[:, None], axis=2)


def recall(retrieved: ArrayLike, relevant: ArrayLike, k: int | None = None, n_relevant: int | None = None) -> float:
    """Share of the relevant ids that are among the first `k` retrieved.

    Papers call two measures "recall@k": 1-recall@k, the share of queries whose nearest neighbour is among the first k,
    with n_relevant=1, and k-recall@k, `recall_k_at_k`, with n_relevant=k.

    Parameters
    ----------
    retrieved, relevant, k: as in `mean_average_precision`.
    n_relevant: only the first columns of `relevant` count; default all.

    Returns
    -------
    recall: float in [0, 1], the mean over queries with something relevant.

    Examples
    --------
    >>> nk.metrics.recall([[3, 1, 2]], [[1, 7]], k=2)
    0.5
    """
    relevant = as_lists(relevant, "relevant")
    if n_relevant is not None:
        n_relevant = check_integer(n_relevant, "n_relevant", low=1)
        if n_relevant > relevant.shape[1]:
            raise ValueError(f"n_relevant is {n_relevant}; relevant has only {counted(relevant.shape[1], 'column')}")
        relevant = relevant[:, :n_relevant]
    hits = relevance(_first(retrieved, k), relevant)
    return _mean_ratio(hits.sum(axis=1), _count(relevant))


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
    precision: float in [0, 1], the mean over queries with something relevant.

    Examples
    --------
    >>> nk.metrics.precision([[3, 1, 2, 9]], [[1, 2]], k=2)
    0.5
    """
    retrieved = as_lists(retrieved, "retrieved")
    depth: int = retrieved.shape[1] if k is None else check_integer(k, "k", low=1)
    relevant = as_lists(relevant, "relevant")
    hits, asked = relevance(_first(retrieved, depth), relevant), _count(relevant) > 0
    return _mean_ratio(hits.sum(axis=1), depth * asked)


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

    Examples
    --------
    >>> nk.metrics.average_precision([[True, False, True], [False, False, True]])
    array([0.83333333, 0.33333333])
    """
    hits = as_array(hits, "hits")
    if hits.ndim != 2 or hits.dtype != np.bool_:
        raise ValueError(f"hits has shape {hits.shape} and dtype {hits.dtype}; it must be (n, K) bool, see `relevance`")
    n_found = hits.sum(axis=1)
    wanted = n_found if n_relevant is None else as_array(n_relevant, "n_relevant")
    if wanted.shape not in ((), n_found.shape):
        raise ValueError(f"n_relevant has shape {wanted.shape}; it must be a number or {n_found.shape}")
    if (few := ~(wanted >= n_found)).any():  # also NaN
        raise ValueError(
            f"n_relevant is {np.broadcast_to(wanted, few.shape)[few][0]} where more were found; it counts all"
        )
    precisions = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    return (precisions * hits).sum(axis=1) / np.maximum(wanted, 1)


def mean_average_precision(retrieved: ArrayLike, relevant: ArrayLike, k: int | None = None) -> float:
    """mAP@k of ranked ids: a query's precisions at its hits within `k`, over min(k, number of relevant ids).

    For relevance by label: `average_precision(label_relevance(...)).mean()`.

    Parameters
    ----------
    retrieved: (n, K) ids, best first.
    relevant: (n, T) ids; -1, or "" among strings, pads.
    k: places that count; None for whole lists, where each relevant id that was not retrieved costs.

    Returns
    -------
    map: float in [0, 1], the mean over queries with something relevant.

    Examples
    --------
    >>> nk.metrics.mean_average_precision([[3, 1, 2]], [[1, 2]])
    0.5833333333333333
    """
    retrieved = _first(retrieved, k)
    counts = _count(as_lists(relevant, "relevant"))
    hits = relevance(retrieved, relevant)
    best = counts if k is None else np.minimum(counts, min(k, int(counts.max(initial=0))))
    return (
        float(average_precision(hits, np.maximum(best, hits.sum(axis=1)))[counts > 0].mean()) if counts.any() else 0.0
    )


def ndcg(retrieved: ArrayLike, relevant: ArrayLike, k: int | None = None) -> float:
    """Normalized discounted cumulative gain at `k`: gain 1 for a relevant id, discount 1 / log2(1 + place).

    Parameters
    ----------
    retrieved, relevant, k: as in `mean_average_precision`.

    Returns
    -------
    ndcg: float in [0, 1], the mean over queries with something relevant.

    Examples
    --------
    >>> nk.metrics.ndcg([["a", "b"]], [["b"]], k=2)
    0.6309297535714575
    """
    retrieved = _first(retrieved, k)
    counts = _count(as_lists(relevant, "relevant"))
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


def as_lists(ids: Any, name: str) -> np.ndarray:
    """Lists of ids (n, k), int64 or text; shorter ones end in -1 or "". ValueError for other types and
    shapes."""
    if not isinstance(ids, list | tuple):
        ids = as_array(ids, name)
        ids = ids.tolist() if ids.dtype.kind == "O" else ids  # as pandas holds text, and lists
    if isinstance(ids, list | tuple):
        ids = [from_tensor(row) for row in ids]  # pyright: ignore[reportArgumentType]
        width = max(map(np.size, ids), default=0)
        if all(np.ndim(row) == 1 for row in ids) and (not width or any(np.size(row) < width for row in ids)):
            pad = "" if any(isinstance(name, str) for row in ids for name in row) else -1
            ids = [[*row, *[pad] * (max(width, 1) - len(row))] for row in ids]
    array = as_array(ids, name)
    whole = array.dtype.kind in "iu" and array.max(initial=0) < 2**63
    if not (whole or array.dtype.kind in "US") or array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"{name} has shape {array.shape} and dtype {array.dtype}; it must be (n, k) ids, integers below 2^63 or "
            "strings, one row a query"
        )
    if name == "relevant":
        ordered = np.sort(array, axis=1)
        again = (ordered[:, 1:] == ordered[:, :-1]) & ~is_padding(ordered[:, 1:])
        for row in ordered[again.any(axis=1)]:
            each_once(row[~is_padding(row)], name)
    return array.astype(str) if array.dtype.kind in "US" else array.astype(np.int64)


def check_one_kind(ids: np.ndarray, name: str, others: np.ndarray, other: str) -> None:
    """TypeError where one of two arrays of ids is text and the other numbers, which nothing would match."""
    if (ids.dtype.kind in "OU") != (others.dtype.kind in "OU"):
        raise TypeError(f"{name} holds {ids.dtype} and {other} {others.dtype}; ids must be of one type")


def _first(retrieved: ArrayLike, k: int | None) -> np.ndarray:
    retrieved = as_lists(retrieved, "retrieved")
    return retrieved if k is None else retrieved[:, : check_integer(k, "k", low=1)]


def is_padding(ids: np.ndarray) -> np.ndarray:
    return ids == "" if ids.dtype.kind == "U" else ids == -1


def _count(relevant: np.ndarray) -> np.ndarray:
    """How many different ids every row names, (n,)."""
    return (~is_padding(relevant)).sum(axis=1)


def _mean_ratio(part: np.ndarray, whole: np.ndarray) -> float:
    """Mean of part / whole over the queries that have a whole."""
    asked = whole > 0
    return float((part[asked] / whole[asked]).mean()) if asked.any() else 0.0


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

    Examples
    --------
    >>> nk.metrics.without_self(np.array([[4, 7, 9], [1, 2, 3]]), np.array([7, 8]))
    array([[4, 9],
           [1, 2]])
    """
    ids, own = as_lists(ids, "ids"), as_array(own, "own")
    if own.shape != ids.shape[:1]:
        raise ValueError(f"own has shape {own.shape}; it must be ({len(ids)},), one id for each row of ids")
    check_one_kind(ids, "ids", own, "own")
    values = ids if of is None else as_array(of, "of")
    if values.shape != ids.shape:
        raise ValueError(f"of has shape {values.shape}; it must be that of ids, {ids.shape}")
    order = np.argsort(ids == own[:, None], axis=1, kind="stable")
    return np.take_along_axis(values, order, axis=1)[:, :-1]


def graded_values(
    found: np.ndarray, grades: sp.csr_matrix, scores: np.ndarray | None = None, depth: int = DEPTH
) -> Mapping[str, np.ndarray]:
    """NDCG@10, Recall@100 and MRR@10 (q,) of rankings `found` (q, K), best first, each as trec_eval defines it.

    found: numbers of vectors, -1 for none. grades (q, n): one at least above 0 for each query. Vectors of such a grade
    are relevant, and it is their gain; others gain 0. Vectors of equal `scores` (q, K) are in random order, so that
    values are expected ones. Places from `depth` on do not count, but complete groups of equal scores.
    """
    grades = sp.csr_matrix(grades.multiply(grades > 0))
    gains = np.where(found < 0, 0, grades[np.arange(len(found))[:, None], np.maximum(found, 0)].toarray())
    ideal = np.zeros((len(found), _TOP))
    for row, first, last in zip(ideal, grades.indptr, grades.indptr[1:], strict=False):
        best = np.sort(grades.data[first:last])[::-1][:_TOP]
        row[: len(best)] = best
    new = np.ones(found.shape, bool)
    if scores is not None:
        new[:, 1:] = scores[:, 1:] != scores[:, :-1]
    group, place = tie_groups(new)
    size, hits, gain = (
        np.bincount(group.ravel(), of, group.size)[group][:, :depth]
        for of in (None, (gains > 0).ravel(), gains.ravel())
    )
    hazard = np.minimum(hits / np.maximum(size - place[:, :depth], 1), 1)
    return {
        NDCG: discounted_gain((gain / size)[:, :_TOP]) / discounted_gain(ideal),
        RECALL: (hits / size)[:, :DEPTH].sum(axis=1) / np.diff(grades.indptr),
        MRR: reciprocal_rank(hazard[:, :_TOP]),
    }
