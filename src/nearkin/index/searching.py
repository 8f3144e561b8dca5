"""The nearest rows by their codes: by FAISS's search, or, where FAISS would decode every row for every query, from
tables for few queries and by one decoding of the rows for many."""

from typing import cast

import faiss
import numpy as np

from nearkin._faiss import innermost
from nearkin._faiss_blocks import BlockIndex, list_codes
from nearkin.index.sum_tables import SumIndex, SumTables

_BLOCK = 1 << 20  # numbers of decoded rows that are compared at a time
_VISITS = 2  # of a list by several queries, from which its decoding once pays
_LOOKED_UP = 128  # entries of tables that queries together add up for a row, up to which that is quicker than decoding

Found = tuple[np.ndarray, np.ndarray]  # scores and positions (q, k)


class Kept:
    """What searches of one index keep for those that follow; `forget` it when rows change."""

    def __init__(self) -> None:
        self._tables: tuple[tuple[int, int], SumTables] | None = None
        self._shift: tuple[int, np.ndarray | None] | None = None

    def tables(self, inner: SumIndex) -> SumTables:
        """Those of the index, made when they are first needed."""
        known, key = self._tables, (int(inner.this), int(inner.ntotal))
        if known is None or known[0] != key:  # who changes FAISS's index by himself gets new ones too
            known = self._tables = key, SumTables(inner)
        return known[1]

    def turned(self, index: faiss.IndexPreTransform, Q: np.ndarray) -> np.ndarray:
        """Queries (q, d) as the index behind the rotation takes them, (q, d'); without a product where the rotation is
        the identity, as that of residual codes is."""
        transform, key = faiss.downcast_VectorTransform(index.chain.at(0)), int(index.this)
        if self._shift is None or self._shift[0] != key:
            self._shift = key, _shift_alone(transform)
        shift = self._shift[1]
        if shift is None:
            return transform.apply(Q)
        moved = np.empty((len(Q), len(shift)), np.float32)
        np.add(Q, shift[: Q.shape[1]], out=moved[:, : Q.shape[1]])
        moved[:, Q.shape[1] :] = shift[Q.shape[1] :]
        return moved

    def forget(self) -> None:
        """Nothing is kept."""
        self._tables = None


def _shift_alone(transform: faiss.VectorTransform) -> np.ndarray | None:
    """The bias (d',) of a transform that adds it, after zero columns behind the d there are; None for any other."""
    if not isinstance(transform, faiss.LinearTransform):
        return None
    A = faiss.vector_to_array(transform.A).reshape(transform.d_out, transform.d_in)
    if not np.array_equal(A, np.eye(*A.shape)):
        return None
    return faiss.vector_to_array(transform.b) if transform.have_bias else np.zeros(len(A), np.float32)


def nearest(index: faiss.Index, Q: np.ndarray, k: int, kept: Kept) -> Found:
    """Scores and positions (q, k) of the nearest rows to queries Q (q, d) float32, nearest first.

    What an inverted file does not find has position -1 and an infinite score.
    """
    one = _one_of(index)
    inner, asked = innermost(one), np.ascontiguousarray(Q, np.float32)
    if isinstance(one, faiss.IndexPreTransform):
        asked = kept.turned(one, asked)
    with np.errstate(over="ignore", invalid="ignore"):  # of centroids beyond float32's squares
        found = None if isinstance(index, faiss.IndexShards) else _without_norms(inner, asked, k, kept)
        own = np.einsum("qd,qd->q", asked, asked)[:, None]
    scores, positions = found or (index.search(Q, k) if one is not index else inner.search(asked, k))
    scanned = isinstance(inner, faiss.IndexAdditiveQuantizerFastScan | faiss.IndexIVFAdditiveQuantizerFastScan)
    by_distance = index.metric_type == faiss.METRIC_L2
    if scanned and by_distance:  # FAISS leaves out what is the same for all rows
        scores = np.maximum(scores + own, 0)
    if isinstance(inner, faiss.IndexFastScan | faiss.IndexIVFFastScan) and one is index:
        failed = _failed(inner, asked, scores, positions)
        if failed.any():
            some = asked[failed]
            exact = _in_lists(inner, some, k) if isinstance(inner, faiss.IndexIVF) else _flat(inner, some, k)
            scores[failed], positions[failed] = exact
    scores[positions < 0] = np.inf if by_distance else -np.inf  # FAISS fills up with the largest float
    return scores, positions


def _failed(inner: BlockIndex, Q: np.ndarray, scores: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Queries (q,) that the fast scan could not answer.

    FAISS (1.15.1) divides by the range of its table, which is 0 where rows are equal, and by inner products leaves out
    rows of the lowest value.
    """
    missing = (positions < 0).any(axis=1)
    if isinstance(inner, faiss.IndexIVF) and missing.any():
        sizes = [inner.invlists.list_size(number) for number in range(inner.nlist)]
        rows = np.array([*sizes, 0])[_visited(inner, Q)].sum(axis=1)  # the 0 is that of list -1, for none
        missing = (positions >= 0).sum(axis=1) < np.minimum(rows, positions.shape[1])
    return np.logical_or(missing, np.isnan(scores).any(axis=1))


def _one_of(index: faiss.Index) -> faiss.Index:
    """The first of shards, without its map of ids; any other index itself."""
    if not isinstance(index, faiss.IndexShards):
        return index
    shard = faiss.downcast_index(index.at(0))
    return faiss.downcast_index(shard.index) if isinstance(shard, faiss.IndexIDMap) else shard


def _without_norms(inner: faiss.Index, Q: np.ndarray, k: int, kept: Kept) -> Found | None:
    """What `nearest` gives for queries (q, d') and sums of centroids without a norm, by "l2".

    None for other codes, and where FAISS has tables itself.
    """
    if not isinstance(inner, faiss.IndexAdditiveQuantizer | faiss.IndexIVFAdditiveQuantizer):
        return None
    if inner.metric_type != faiss.METRIC_L2 or inner.aq.search_type != faiss.AdditiveQuantizer.ST_decompress:
        return None
    inverted = isinstance(inner, faiss.IndexIVFAdditiveQuantizer)
    if inverted and not inner.by_residual:
        return None
    if len(Q) * inner.aq.M > _LOOKED_UP:
        if not inverted:
            return _flat(inner, Q, k)
        lists = _visited(inner, Q)
        if lists.size >= _VISITS * len(np.unique(lists)):
            return _in_lists(inner, Q, k)
    return kept.tables(inner).search(Q, k)


def _flat(inner: faiss.Index, Q: np.ndarray, k: int) -> Found:
    """Of all rows, decoded block by block."""
    by_distance = inner.metric_type == faiss.METRIC_L2
    best, rows = faiss.ResultHeap(len(Q), k, keep_max=not by_distance), max(1, _BLOCK // inner.d)
    # about one row, products of squares round less
    middle = inner.reconstruct(0) if by_distance else np.zeros(inner.d, np.float32)
    asked = Q - middle
    for first in range(0, inner.ntotal, rows):
        block = inner.reconstruct_n(first, min(rows, inner.ntotal - first)) - middle
        distances, numbers = faiss.knn(asked, block, min(k, len(block)), metric=inner.metric_type)
        best.add_result(distances, numbers + first)
    best.finalize()
    return best.D, best.I


def _visited(inner: faiss.IndexIVF, Q: np.ndarray) -> np.ndarray:
    """Numbers (q, n_probe) of the lists that queries (q, d') visit."""
    return inner.quantizer.search(Q, min(inner.nprobe, inner.nlist))[1]


def _in_lists(inner: faiss.IndexIVF, Q: np.ndarray, k: int) -> Found:
    """Of the rows in the lists that the queries (q, d') visit, each list decoded once."""
    by_distance, visited = inner.metric_type == faiss.METRIC_L2, _visited(inner, Q)
    order = np.argsort(visited, axis=None, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(visited.ravel()[order])) + 1)
    best = faiss.ResultHeap(len(Q), k, keep_max=not by_distance)
    for group in groups:
        number = int(visited.flat[group[0]])
        if number < 0 or not inner.invlists.list_size(number):
            continue
        some, (ids, rows) = group // visited.shape[1], _decoded_list(inner, number)
        asked, centre = Q[some], inner.quantizer.reconstruct(number)
        if inner.by_residual:
            asked, rows = (asked - centre, rows) if by_distance else (asked, rows + centre)
        scores, numbers = faiss.knn(asked, rows, min(k, len(rows)), metric=inner.metric_type)
        best.add_result_subset(some, scores, ids[numbers])
    best.finalize()
    return best.D, best.I


def _decoded_list(inner: faiss.IndexIVF, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions (n,) of the rows of a list, and what their codes stand for (n, d'), less its centre."""
    codec = cast(faiss.IndexIVFPQ, inner).pq if hasattr(inner, "pq") else cast(SumIndex, inner).aq
    if isinstance(inner, faiss.IndexIVFFastScan):
        ids, codes = list_codes(inner, number)
    else:
        size = inner.invlists.list_size(number)
        codes = faiss.rev_swig_ptr(inner.invlists.get_codes(number), size * inner.code_size).reshape(size, -1)
        ids = faiss.rev_swig_ptr(inner.invlists.get_ids(number), size)
    return ids, codec.decode(codes)
