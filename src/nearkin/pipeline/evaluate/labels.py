"""Judging an index by labels: a found row is right if it has its query's label."""

from collections.abc import Sequence

import faiss
import numpy as np

from nearkin import metrics
from nearkin._check import check_instance
from nearkin.contracts import BitCodes, Callback, ignore
from nearkin.index.index import Index
from nearkin.pipeline.evaluate.neighbours import CUTS

FULL_RANKING = 100_000  # rows up to which the whole index is ranked; of a longer one the first FULL_RANKING // 100
_PLACES = 4_000_000  # ranked in one batch of queries: what bounds memory
_RADIUS = 2


def judge_by_label(
    index: Index, Q: np.ndarray, labels: np.ndarray, query_labels: np.ndarray, callback: Callback = ignore
) -> dict[str, float]:
    """mAP and precision at every cut, batch by batch; `labels` (len(index),) in the rows' order, `query_labels` (n,).

    Bits tie often: they are judged over the whole ranking with ties in expectation, whatever the order of the rows.
    """
    names = np.unique(np.concatenate([labels, query_labels]))
    labels, query_labels = np.searchsorted(names, labels), np.searchsorted(names, query_labels)
    judge = _judge_bits if index.metric == "hamming" else _judge_ranking
    rows = max(1, _PLACES // len(index))
    sums: dict[str, float] = {}
    for start in range(0, len(Q), rows):
        part = slice(start, start + rows)
        for name, value in judge(index, Q[part], labels, query_labels[part]).items():
            sums[name] = sums.get(name, 0.0) + value * len(Q[part])
        callback(min(start + rows, len(Q)), {"total": len(Q)})
    return {name: value / len(Q) for name, value in sums.items()}


def ranking_measures(hits: np.ndarray, totals: np.ndarray, n: int, cuts: Sequence[int] = CUTS) -> dict[str, float]:
    """The measures of rankings `hits` (q, K) bool, where `totals` (q,) of the n rows of the index are right.

    With K < n it is mAP@K, which divides by what K places can hold.
    """
    K = hits.shape[1]
    record = {f"precision@{k}": float(hits[:, :k].mean()) for k in cuts if k <= K}
    value = float(metrics.average_precision(hits, np.minimum(totals, K)).mean())
    return record | {"mAP" if n == K else f"mAP@{K}": value}


def _judge_ranking(index: Index, Q: np.ndarray, labels: np.ndarray, query_labels: np.ndarray) -> dict[str, float]:
    K = len(index) if len(index) <= FULL_RANKING else FULL_RANKING // 100
    _, found = index.search(Q, K)
    rows, missing = found, found == ("" if found.dtype.kind == "U" else -1)
    if index.ids is not None:
        order = np.argsort(index.ids, kind="stable")
        rows = order[np.searchsorted(index.ids[order], found).clip(max=len(order) - 1)]
    hits = metrics.label_relevance(labels[rows], query_labels) & ~missing
    totals = np.bincount(labels, minlength=query_labels.max() + 1)[query_labels]
    return ranking_measures(hits, totals, len(index))


def _judge_bits(index: Index, Q: np.ndarray, labels: np.ndarray, query_labels: np.ndarray) -> dict[str, float]:
    codes = faiss.vector_to_array(index.faiss_index.xb).reshape(len(index), -1)
    asked = check_instance(index.quantizer, "quantizer", BitCodes).encode(Q)
    ranks = metrics.hamming_histograms(asked, codes, query_labels, labels)
    record = {f"precision@{k}": float(ranks.precision_at(k).mean()) for k in CUTS if k <= len(index)}
    record[f"precision within radius {_RADIUS}"] = float(ranks.precision_within(_RADIUS).mean())
    return record | {"mAP": float(ranks.average_precision().mean())}
