"""Ranking metrics: recall, precision, NDCG and MRR at k over left entities, what was seen left out."""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from collections.abc import Iterable
from typing import Any

import faiss
import numpy as np
import scipy.sparse as sp

from nearkin._check import check_integer, check_vectors
from nearkin.metrics.retrieval import best_gain, discounted_gain
from nearkin.records import Interactions

BLOCK = 1024  # queries that are searched together
METRICS = ("recall", "precision", "ndcg", "mrr")


def recommend(
    left: Any, right: Any, k: int, *, seen: Interactions | sp.spmatrix | None = None, rows: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """The k rights of largest inner product for each left row: scores and numbers, both (rows, k), best first.

    `seen` (m, n) holds the pairs that must not be returned; `rows` chooses left rows, default all. Where fewer than k
    rights are left the number is -1 and the score -inf. FAISS searches in blocks, k + the block's largest number of
    seen rights, and the seen ones are struck out, so memory stays bounded.
    """
    left, right = _two(left, right)
    k = check_integer(k, "k", low=1)
    rows = _rows(rows, len(left))
    structure = None if seen is None else _structure(seen, (len(left), len(right)), "seen")
    counts = np.zeros(len(left), dtype=np.int64) if structure is None else np.diff(structure[0])
    scores, numbers = np.empty((len(rows), k), dtype=left.dtype), np.empty((len(rows), k), dtype=np.int64)
    index = faiss.IndexFlatIP(right.shape[1])
    index.add(np.ascontiguousarray(right, dtype=np.float32))
    order = np.argsort(counts[rows], kind="stable")  # rows with as many seen rights are searched together
    for start in range(0, len(rows), BLOCK):
        block = order[start : start + BLOCK]
        wanted = min(k + int(counts[rows[block]].max()), len(right))
        found = index.search(np.ascontiguousarray(left[rows[block]], dtype=np.float32), wanted)
        scores[block], numbers[block] = _strike_out(*found, rows[block], structure, k, len(right))
    return scores, numbers


def ranking_metrics(
    left: Any,
    right: Any,
    held_out: Interactions | sp.spmatrix,
    *,
    seen: Interactions | sp.spmatrix | None = None,
    k: int | Iterable[int] = (20, 100),
    metrics: Iterable[str] = METRICS,
    rows: Any = None,
) -> dict[str, float]:
    """Mean ranking metrics over the left rows that have held-out pairs, as {"recall@20": ..., "ndcg@100": ...}.

    left (m, d), right (n, d); the score of a pair is the inner product; `seen` pairs are left out of the rankings, and
    `rows` restricts the left rows. ValueError if no left row has a held-out pair.
    """
    depths = sorted({check_integer(depth, "k", low=1) for depth in ([k] if np.isscalar(k) else k)})  # type: ignore[union-attr]
    left, right = _two(left, right)
    indptr, indices = _structure(held_out, (len(left), len(right)), "held_out")
    rows = _rows(rows, len(left))
    rows = rows[np.diff(indptr)[rows] > 0]
    if not len(rows):
        raise ValueError("held_out has no pair of the left rows asked for; there is nothing to measure")
    _, ranked = recommend(left, right, min(max(depths), len(right)), seen=seen, rows=rows)
    hits = _member(ranked, rows, indptr, indices, len(right))
    return metrics_of_hits(hits, np.diff(indptr)[rows], depths, metrics)


def metrics_of_hits(
    hits: np.ndarray, relevant: np.ndarray, depths: Iterable[int], metrics: Iterable[str] = METRICS
) -> dict[str, float]:
    """Mean metrics from hits (rows, depth), True where the r-th answer is relevant, and the counts relevant (rows,).

    recall = hits / relevant, precision = hits / k, mrr = 1 / rank of the first hit, ndcg with gains 1 and discounts
    1 / log2(rank + 1), its ideal having min(k, relevant) hits.
    """
    result = {}
    for depth in depths:
        top = hits[:, :depth]
        first = np.where(top.any(axis=1), top.argmax(axis=1) + 1.0, np.inf)
        values = {
            "recall": top.sum(axis=1) / relevant,
            "precision": top.sum(axis=1) / depth,
            "ndcg": discounted_gain(top) / best_gain(relevant, depth),
            "mrr": 1 / first,
        }
        for name in metrics:
            if name not in values:
                raise ValueError(f"metrics holds {name!r}; it must hold some of {', '.join(map(repr, METRICS))}")
            result[f"{name}@{depth}"] = float(values[name].mean())
    return result


def _strike_out(
    scores: np.ndarray, numbers: np.ndarray, rows: np.ndarray, seen: Any, k: int, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first k answers that were not seen, in order; -inf and -1 where there are none."""
    if seen is not None:
        indptr, indices = seen
        struck = _member(numbers, rows, indptr, indices, n)
        order = np.argsort(struck, axis=1, kind="stable")[:, :k]  # unseen first, otherwise in the order of the scores
        numbers = np.where(struck, -1, numbers)
        scores = np.where(struck, -np.inf, scores)
        numbers, scores = (np.take_along_axis(array, order, axis=1) for array in (numbers, scores))
    missing = k - numbers.shape[1]
    if missing > 0:
        scores = np.pad(scores, ((0, 0), (0, missing)), constant_values=-np.inf)
        numbers = np.pad(numbers, ((0, 0), (0, missing)), constant_values=-1)
    return scores[:, :k], numbers[:, :k]


def _member(numbers: np.ndarray, rows: np.ndarray, indptr: np.ndarray, indices: np.ndarray, n: int) -> np.ndarray:
    """(rows, k) bool: whether the pair (rows[r], numbers[r, c]) is in the CSR structure."""
    counts = np.diff(indptr)[rows]
    starts = np.repeat(indptr[rows] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    places = np.repeat(np.arange(len(rows)), counts) * n + indices[np.arange(counts.sum()) + starts]
    asked = np.arange(len(rows))[:, None] * n + numbers
    places = np.sort(places)
    if not len(places):
        return np.zeros(numbers.shape, dtype=bool)
    found = np.minimum(np.searchsorted(places, asked), len(places) - 1)
    return (places[found] == asked) & (numbers >= 0)


def _rows(rows: Any, n: int) -> np.ndarray:
    """Return the numbers of left rows asked for, all by default; ValueError or TypeError if they are none."""
    if rows is None:
        return np.arange(n)
    asked = np.asarray(rows)
    if asked.ndim != 1 or (asked.size and asked.dtype.kind not in "iu"):
        raise TypeError(f"rows has shape {asked.shape} and dtype {asked.dtype}; it must be a list of row numbers")
    if asked.size and (asked.min() < 0 or asked.max() >= n):
        raise ValueError(f"rows holds {asked.min()}..{asked.max()}; it must hold row numbers within 0..{n - 1}")
    return asked.astype(np.int64)


def _two(left: Any, right: Any) -> tuple[np.ndarray, np.ndarray]:
    left = check_vectors(left, name="left")
    return left, check_vectors(right, name="right", n_features=left.shape[1])


def _structure(pairs: Any, shape: tuple[int, int], name: str) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(pairs, Interactions):
        pairs = sp.csr_matrix(pairs)
    if tuple(pairs.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(pairs.shape)}; it must be {shape}, the rows of left and of right")
    return pairs.indptr.astype(np.int64), pairs.indices
