"""Judging a saved index: against exact neighbours, against labels, and by how far codes lie from vectors."""

from collections.abc import Sequence

import faiss
import numpy as np

from nearkin import metrics
from nearkin._faiss import METRIC_TYPES
from nearkin._types import Fields, Record
from nearkin._words import counted
from nearkin.contracts import Callback, ignore
from nearkin.data import VectorFile
from nearkin.index.identifiers import positions
from nearkin.index.index import Index
from nearkin.index.rescoring import normalised
from nearkin.metrics.neighbours import ExactNeighbours, exact_distances, ties

CUTS = (1, 10, 100)


def judge_neighbors(retrieved: np.ndarray, truth: np.ndarray, cuts: Sequence[int] = CUTS) -> dict[str, float]:
    """Both recalls at every cut that `retrieved` (n, K) and `truth` (n, T) allow, nearest first."""
    record = {}
    for k in (k for k in sorted(set(cuts)) if k <= retrieved.shape[1]):
        record[f"1-recall@{k}"] = metrics.recall_1_at_k(retrieved, truth, k)
    for k in (k for k in sorted(set(cuts)) if k <= min(retrieved.shape[1], truth.shape[1])):
        if k > 1:  # at 1 both are the same
            record[f"{k}-recall@{k}"] = metrics.recall_k_at_k(retrieved, truth, k)
    return record


def exact_neighbors(
    file: VectorFile,
    Q: np.ndarray,
    k: int,
    metric: str = "l2",
    callback: Callback = ignore,
    *,
    own: np.ndarray | None = None,
) -> ExactNeighbours:
    """The k exact nearest rows of a file by their numbers, or by their ids `own`; the file is read once, in chunks.

    Rows that tie are read again where an answer is judged.
    """
    scores, rows, largest = _nearest(file, Q, min(k + 1, len(file)), metric, callback)

    def distances(numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
        places = positions(own, len(file), ids)
        read, where = np.unique(np.maximum(places, 0), return_inverse=True)
        X = normalised(file.take(read)) if metric == "cosine" else file.take(read)
        kind = "l2" if metric == "l2" else "ip"
        return exact_distances(X[where.reshape(ids.shape)], Q[numbers], kind, places >= 0)

    ids = rows if own is None else own[rows]
    return ExactNeighbours(ids[:, :k], ties(scores, Q, largest), distances, file.shape[1])


def _nearest(
    file: VectorFile, Q: np.ndarray, k: int, metric: str, callback: Callback
) -> tuple[np.ndarray, np.ndarray, float]:
    """Scores and row numbers of the k nearest rows, each (q, k), smallest first, and the largest squared norm."""
    kind = METRIC_TYPES["l2" if metric == "l2" else "ip"]
    sign = 1.0 if metric == "l2" else -1.0  # smaller is nearer
    scores = np.full((len(Q), k), np.inf, np.float32)
    ids = np.full((len(Q), k), -1, np.int64)
    start, largest = 0, 0.0
    for chunk in file.chunks():
        if metric == "cosine":
            chunk = chunk.copy()  # of a table in memory it is the caller's
            faiss.normalize_L2(chunk)
        largest = max(largest, float(np.einsum("nd,nd->n", chunk, chunk).max()))
        values, rows = faiss.knn(np.ascontiguousarray(Q, np.float32), chunk, min(k, len(chunk)), metric=kind)
        scores = np.hstack([scores, sign * values])
        ids = np.hstack([ids, rows + start])
        order = np.argsort(scores, axis=1, kind="stable")[:, :k]
        scores, ids = np.take_along_axis(scores, order, 1), np.take_along_axis(ids, order, 1)
        start += len(chunk)
        callback(start, {"total": len(file)})
    return scores, ids, largest


def search_in_batches(
    index: Index, Q: np.ndarray, k: int, oversample: int | None, callback: Callback, rows: int = 256
) -> tuple[np.ndarray, np.ndarray]:
    """`index.search` over all queries, (scores, ids) each (n, k), in batches so that progress can be shown."""
    scores, ids = [], []
    for start in range(0, len(Q), rows):
        found = index.search(Q[start : start + rows], k, oversample=oversample)
        scores.append(found[0])
        ids.append(found[1])
        callback(min(start + rows, len(Q)), {"total": len(Q)})
    return np.concatenate(scores), np.concatenate(ids)


def judge_searches(
    index: Index, Q: np.ndarray, truth: ExactNeighbours, k: int, oversample: int | None, callback: Callback = ignore
) -> list[Record]:
    """Recall by the codes alone and, with `oversample`, of answers ranked again by kept vectors: one row each.

    Every cut is judged by the answers that a search for so many neighbours gives: with `oversample` these are not the
    first ones of a search for more, which takes more candidates. `bytes_per_vector` are the code's, `bytes_kept` those
    of all vectors kept beside the codes.
    """
    cuts = sorted({cut for cut in (*CUTS, k) if cut <= k})
    found = search_in_batches(index, Q, k, None, callback)[1]
    alone = "exact" if index.quantizer is None else "by code alone"
    code = {"bytes_per_vector": index.bytes_per_vector, "bytes_kept": 0}
    rows = [{"search": alone, "oversample": None, **code, **judge_neighbors(found, truth.beside(found), cuts)}]
    if oversample is not None:
        measures: dict[str, float] = {}
        for cut in cuts:
            found = search_in_batches(index, Q, cut, oversample, callback)[1]
            measures |= judge_neighbors(found, truth.beside(found), [cut])
        kept = {"bytes_per_vector": index.bytes_per_vector, "bytes_kept": 4 * index.n_features * len(index)}
        ordered = dict(sorted(measures.items(), key=lambda item: item[0].partition("-")[0] != "1"))
        rows.append({"search": "rescored by kept vectors", "oversample": oversample, **kept, **ordered})
    return rows


def search_rows(searches: Sequence[Fields]) -> tuple[list[str], Sequence[Sequence[object]]]:
    """Columns and rows of the searches that were judged: by code alone, and rescored, with what each needs."""
    measures = [name for name in searches[-1] if "recall@" in name]
    rows = []
    for row in searches:
        name = row["search"] if row["oversample"] is None else f"{row['search']}, {row['oversample']} × k"
        kept = f" + {row['bytes_kept'] / 1e6:.3g} MB of vectors" if row["bytes_kept"] else ""
        rows.append(
            [name, f"{counted(row['bytes_per_vector'], 'byte')}{kept}", *(row[measure] for measure in measures)]
        )
    return ["search", "needs", *measures], rows
