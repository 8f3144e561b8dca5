"""Measures of ranked answers against the relevant ids.

`retrieved` is (n, K): the ids found for each query, best first. `relevant` is (n, T): the ids that should be found, in
order of nearness where the order matters. Ids are integers or strings; lists of different lengths may be given
unpadded, or padded with -1 (strings: ""), which never counts as found or relevant. Every measure is the mean over the
queries that have something relevant, in [0, 1].
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from itertools import zip_longest
from typing import Any

import numpy as np

from nearkin._check import check_integer
from nearkin._types import ArrayLike


def relevance(retrieved: ArrayLike, relevant: ArrayLike) -> np.ndarray:
    """Which of the retrieved ids are relevant, (n, K) bool; an id retrieved twice counts at its first place only."""
    retrieved, relevant = _as_lists(retrieved, "retrieved"), _as_lists(relevant, "relevant")
    if len(retrieved) != len(relevant):
        raise ValueError(f"retrieved has {len(retrieved)} rows and relevant {len(relevant)}; one row is one query")
    if (retrieved.dtype.kind == "U") != (relevant.dtype.kind == "U"):
        raise TypeError(f"retrieved holds {retrieved.dtype} and relevant {relevant.dtype}; ids must be of one type")
    n, K = retrieved.shape
    names, numbers = np.unique(np.concatenate([retrieved.ravel(), relevant.ravel()]), return_inverse=True)
    # a (query, id) pair becomes one integer, so that one sorted search serves all rows
    keys = numbers.reshape(-1) + np.repeat(np.tile(np.arange(n), 2), np.repeat([K, relevant.shape[1]], n)) * len(names)
    asked, wanted = keys[: n * K], keys[n * K :]
    found = np.isin(asked, wanted) & ~_is_padding(retrieved).ravel()
    first = np.zeros(n * K, dtype=bool)
    first[np.unique(asked, return_index=True)[1]] = True
    return (found & first).reshape(n, K)


def label_relevance(retrieved_labels: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """Which retrieved rows have their query's label, (n, K) bool; `retrieved_labels` is (n, K) and `labels` (n,)."""
    retrieved_labels, labels = np.asarray(retrieved_labels), np.asarray(labels)
    if retrieved_labels.ndim != 2 or labels.shape != retrieved_labels.shape[:1]:
        raise ValueError(
            f"retrieved_labels has shape {retrieved_labels.shape} and labels {labels.shape}; "
            "they must be (n, K) and (n,)"
        )
    return retrieved_labels == labels[:, None]


def recall(retrieved: ArrayLike, relevant: ArrayLike, k: int | None = None, n_relevant: int | None = None) -> float:
    """Share of the relevant ids that are among the first `k` retrieved (all of them by default).

    Only the first `n_relevant` columns of `relevant` count (all by default). The two measures of the
    nearest-neighbour literature have separate names, since papers call both "recall@k": `recall_1_at_k`
    (n_relevant=1) and `recall_k_at_k` (n_relevant=k).
    """
    relevant = _as_lists(relevant, "relevant")
    if n_relevant is not None:
        n_relevant = check_integer(n_relevant, "n_relevant", low=1)
        if n_relevant > relevant.shape[1]:
            raise ValueError(f"n_relevant is {n_relevant}; relevant has only {relevant.shape[1]} columns")
        relevant = relevant[:, :n_relevant]
    hits = relevance(_first(retrieved, k), relevant)
    return _mean_ratio(hits.sum(axis=1), _count(relevant))


def recall_1_at_k(retrieved: ArrayLike, neighbors: ArrayLike, k: int) -> float:
    """ "1-recall@k": share of queries whose single nearest neighbour is among the first k retrieved."""
    return recall(retrieved, neighbors, k, n_relevant=1)


def recall_k_at_k(retrieved: ArrayLike, neighbors: ArrayLike, k: int) -> float:
    """ "k-recall@k": share of the k nearest neighbours that are among the first k retrieved ("intersection").

    Ids are compared. Where rows lie at one distance (copies, integers) see `neighbours_kept`.
    """
    return recall(retrieved, neighbors, k, n_relevant=k)


def precision(retrieved: ArrayLike, relevant: ArrayLike, k: int | None = None) -> float:
    """Share of the first `k` places (all by default) that hold a relevant id; an empty place counts as a miss."""
    retrieved = _as_lists(retrieved, "retrieved")
    k = retrieved.shape[1] if k is None else check_integer(k, "k", low=1)
    hits = relevance(_first(retrieved, k), relevant)
    return _mean_ratio(hits.sum(axis=1), np.full(len(hits), k))


def average_precision(hits: ArrayLike, n_relevant: ArrayLike | None = None) -> np.ndarray:
    """Average precision of every ranking, (n,): the mean of precision@i over the places i of the relevant ids.

    `hits` is (n, K) bool, best first, as from `relevance` or `label_relevance`. `n_relevant`, a number or (n,), is how
    many could have been found; by default those within the K places, which is right for a full ranking only. Queries
    with nothing relevant get 0. Ties must have been broken by the ranking.
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
    """mAP@k of ranked ids: a query's precisions at its hits within `k`, over min(k, how many are relevant).

    With k None the whole lists count and every relevant id that was not retrieved costs. For relevance by label see
    `label_mean_average_precision`.
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
    """mAP where a row is relevant to a query of its label; `retrieved_labels` (n, K) in ranked order, `labels` (n,).

    `n_relevant` as in `average_precision`: give it unless every row of the database was ranked.
    """
    return float(average_precision(label_relevance(retrieved_labels, labels), n_relevant).mean())


def ndcg(retrieved: ArrayLike, relevant: ArrayLike, k: int | None = None) -> float:
    """Normalized discounted cumulative gain at `k`, gain 1 for a relevant id, discount 1 / log2(1 + place)."""
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


def reciprocal_rank(hits: np.ndarray) -> np.ndarray:
    """1 / place of the first hit of every ranking (n, K) bool, (n,); 0 for none."""
    return np.where(hits.any(axis=1), 1 / (hits.argmax(axis=1) + 1), 0.0)


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
