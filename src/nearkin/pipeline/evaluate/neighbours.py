"""Judging a saved index: against exact neighbours, against labels, and by how far codes lie from vectors."""

from collections.abc import Sequence
from typing import Any

import faiss
import numpy as np

from nearkin import metrics
from nearkin.data import VectorFile
from nearkin.pipeline.steps import Callback, ignore

CUTS = (1, 10, 100)


def judge_neighbors(retrieved: np.ndarray, truth: np.ndarray, cuts: Sequence[int] = CUTS) -> dict[str, float]:
    """Both recalls at every cut that `retrieved` (n, K) and `truth` (n, T) allow, nearest first."""
    record = {}
    for k in (k for k in cuts if k <= retrieved.shape[1]):
        record[f"1-recall@{k}"] = metrics.recall_1_at_k(retrieved, truth, k)
    for k in (k for k in cuts if k <= min(retrieved.shape[1], truth.shape[1])):
        if k > 1:  # at 1 both are the same
            record[f"{k}-recall@{k}"] = metrics.recall_k_at_k(retrieved, truth, k)
    return record


def exact_neighbors(
    file: VectorFile, Q: np.ndarray, k: int, metric: str = "l2", callback: Callback = ignore
) -> np.ndarray:
    """Row numbers of the k exact nearest rows of a file, (n, k), nearest first; the file is read once, in chunks."""
    kind = faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT
    sign = 1.0 if metric == "l2" else -1.0  # smaller is nearer
    scores = np.full((len(Q), k), np.inf, np.float32)
    ids = np.full((len(Q), k), -1, np.int64)
    start = 0
    for chunk in file.chunks():
        if metric == "cosine":
            faiss.normalize_L2(chunk)
        values, rows = faiss.knn(np.ascontiguousarray(Q, np.float32), chunk, min(k, len(chunk)), metric=kind)
        scores = np.hstack([scores, sign * values])
        ids = np.hstack([ids, rows + start])
        order = np.argsort(scores, axis=1, kind="stable")[:, :k]
        scores, ids = np.take_along_axis(scores, order, 1), np.take_along_axis(ids, order, 1)
        start += len(chunk)
        callback(start, {"total": len(file)})
    return ids


def search_in_batches(
    index: Any, Q: np.ndarray, k: int, oversample: int | None, callback: Callback, rows: int = 256
) -> tuple[np.ndarray, np.ndarray]:
    """`index.search` over all queries, (scores, ids) each (n, k), in batches so that progress can be shown."""
    scores, ids = [], []
    for start in range(0, len(Q), rows):
        found = index.search(Q[start : start + rows], k, oversample=oversample)
        scores.append(found[0])
        ids.append(found[1])
        callback(min(start + rows, len(Q)), {"total": len(Q)})
    return np.concatenate(scores), np.concatenate(ids)
