"""Scores of codes by a query's tables of inner products with the centroids: of all codes, or of candidates.

Of a query q and a vector that is a list's centre c plus the sum r of its centroids, the squared distance is
|q - c|^2 - 2 <q, r> + (|r|^2 + 2 <c, r>). The inner product adds up entries of one table for each codebook; the term in
brackets is the same for all queries and is cached: four bytes a vector. A flat index has one list.
"""

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import faiss
import numpy as np

from nearkin._exact import nearest_lists
from nearkin._faiss import byte_codes
from nearkin._guard import cached_property
from nearkin.index.faiss_index import codes_of_list
from nearkin.index.identifiers import Found

_DECODED = 1 << 20  # numbers of decoded rows at a time
_SCORES = 1 << 20  # of candidates at a time
TableIndex: TypeAlias = faiss.IndexAdditiveQuantizer | faiss.IndexIVFAdditiveQuantizer | faiss.IndexIVFPQ


class CodeTables:
    """Tables for the vectors of one index of codes, cached between searches; rebuilt when vectors change. To save
    digits, the first centroid is subtracted from its codebook, and by distance the centres' mean from centres and
    queries."""

    def __init__(self, inner: TableIndex, places: np.ndarray | None = None) -> None:
        self._inner, self._lists = inner, inner if isinstance(inner, faiss.IndexIVF) else None
        self._codec = inner.pq if isinstance(inner, faiss.IndexIVFPQ) else inner.aq
        self._by_distance, self._places = inner.metric_type == faiss.METRIC_L2, places
        if isinstance(inner, faiss.IndexIVFPQ):
            self._bits, parts, flat = inner.pq.nbits, inner.pq.M, inner.pq.centroids
        else:
            quantizer = faiss.downcast_AdditiveQuantizer(inner.aq)
            parts = quantizer.nsplits if isinstance(quantizer, faiss.ProductAdditiveQuantizer) else 1
            self._bits, flat = int(faiss.vector_to_array(inner.aq.nbits)[0]), inner.aq.codebooks
        books = faiss.vector_to_array(flat).reshape(self._codec.M, -1, inner.d // parts)
        self._books = (books - books[:, :1]).reshape(parts, -1, inner.d // parts)
        first = self._codec.decode(np.zeros((1, inner.code_size), np.uint8))
        centres = first if self._lists is None else self._lists.quantizer.reconstruct_n(0, self._lists.nlist) + first
        self._first, self._middle = first, centres.mean(axis=0) * self._by_distance
        self._centres = centres - self._middle
        sizes = [inner.ntotal]
        if self._lists is not None:
            sizes = [self._lists.invlists.list_size(number) for number in range(self._lists.nlist)]
        self._begins = np.cumsum([0, *sizes])
        self._rest = np.zeros(inner.ntotal, np.float32)
        self._squared = np.full(len(centres), not self._by_distance)

    def _of(self, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Queries (q, d) about the middle, and their tables (q, M, K)."""
        asked = np.ascontiguousarray(Q - self._middle)
        products = asked.reshape(len(Q), len(self._books), -1).transpose(1, 0, 2) @ self._books.transpose(0, 2, 1)
        return asked, np.ascontiguousarray(products.transpose(1, 0, 2)).reshape(len(Q), self._codec.M, -1)

    def compare(self, Q: np.ndarray, k: int, candidates: np.ndarray, visited: np.ndarray) -> Found:
        """Scores and positions (q, k), best first, of candidates (q, c) in the lists (q, p) that queries Q (q, d)
        visit, by their whole codes; -1 for none."""
        return best_of(self._scores(Q, candidates, visited), candidates, k, self._by_distance)

    def _scores(self, Q: np.ndarray, candidates: np.ndarray, visited: np.ndarray) -> np.ndarray:
        from nearkin.index.compiled import candidate_sums  # numba: product codes without lists need none

        asked, tables = self._of(Q)
        away = compared(asked, self._centres, visited, self._by_distance)
        if not self._by_distance:
            tables, away = tables / 2, -away
        if not self._squared.all():
            for number in np.setdiff1d(visited, np.flatnonzero(self._squared)).tolist():
                self._square(number)
        codes, lists = self._memory
        places = np.empty((0, 2), np.int32) if self._places is None else self._places

        def sums(some: np.ndarray) -> np.ndarray:
            own = tables[some], self._rest, visited[some], away[some], candidates[some]
            return candidate_sums(codes, lists, self._inner.code_size, self._bits, places, *own)

        scores = np.concatenate(in_threads(sums, len(Q)))
        return np.maximum(scores, 0) if self._by_distance else -scores

    def search(self, Q: np.ndarray, k: int) -> Found:
        """Squared distances and positions (q, k) of the nearest vectors to queries (q, d), nearest first; -1 for
        none."""
        best, step = faiss.ResultHeap(len(Q), k), max(1, _SCORES // self._inner.ntotal)
        for first in range(0, len(Q), step):
            some = np.arange(first, min(first + step, len(Q)))
            candidates, visited = self._visited(Q[some])
            scores = self._scores(Q[some], candidates, visited)
            best.add_result_subset(some, np.where(candidates < 0, np.float32(np.inf), scores), candidates)
        best.finalize()
        return best.D, best.I

    def _visited(self, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The positions (q, c) of all vectors in the lists that queries (q, d) visit, -1 behind them, and these lists
        (q, p)."""
        if self._lists is None:
            return np.tile(np.arange(self._inner.ntotal), (len(Q), 1)), np.zeros((len(Q), 1), np.int64)
        visited = probed(self._lists, Q)
        rows = {number: codes_of_list(self._lists, number)[1] for number in np.unique(visited).tolist()}
        own = [np.concatenate([rows[number] for number in some]) for some in visited.tolist()]
        candidates = np.full((len(Q), max(map(len, own))), -1)
        for place, some in zip(candidates, own, strict=True):
            place[: len(some)] = some
        return candidates, visited

    def _square(self, number: int) -> None:
        """Fill in |r|^2 + 2 <c, r> of the vectors in a list."""
        codes = byte_codes(self._inner) if self._lists is None else codes_of_list(self._lists, number)[0]
        step = max(1, _DECODED // self._inner.d)
        for first in range(0, len(codes), step):
            rows = self._codec.decode(np.ascontiguousarray(codes[first : first + step])) - self._first
            sums = np.einsum("nd,nd->n", rows, rows + 2 * self._centres[number])
            self._rest[self._begins[number] + first :][: len(rows)] = sums
        self._squared[number] = True

    @cached_property
    def _memory(self) -> tuple[np.ndarray, np.ndarray]:
        """FAISS's own memory of all codes (bytes,), with what lies between them; at which byte each list begins, and at
        which of `_rest`, (L, 2)."""
        if self._lists is None:
            return byte_codes(self._inner).ravel(), np.zeros((1, 2), np.int64)
        filled = np.flatnonzero(np.diff(self._begins))
        at = np.zeros(len(self._centres), np.int64)
        at[filled] = [codes_of_list(self._lists, number)[0].ctypes.data for number in filled.tolist()]
        low, high = int(at[filled].min()), int((at + np.diff(self._begins) * self._inner.code_size).max())
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))
        return memory, np.column_stack([at - low, self._begins[:-1]])


def in_threads(work: Callable[[np.ndarray], np.ndarray], n_queries: int) -> list[np.ndarray]:
    """What `work` makes of the numbers of the queries, shared among FAISS's threads; the compiled loops release
    Python's lock."""
    threads, queries = min(n_queries, faiss.omp_get_max_threads()), np.arange(n_queries)
    if threads <= 1:
        return [work(queries)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, np.array_split(queries, threads)))


def probed(inner: faiss.IndexIVF, Q: np.ndarray) -> np.ndarray:
    """Numbers (q, n_probe) of the lists that queries (q, d') visit."""
    return nearest_lists(inner, Q, inner.nprobe)[1]


def best_of(scores: np.ndarray, candidates: np.ndarray, k: int, by_distance: bool) -> Found:
    """The best k of each query's candidates (n, c) by their scores (n, c), best first; candidates of -1 are last.

    Equal scores keep their order, except about the k-th.
    """
    scores[candidates < 0] = np.float32(np.inf if by_distance else -np.inf)
    keys, rows, c = scores if by_distance else -scores, np.arange(len(scores))[:, None], scores.shape[1]
    if 2 * k < c:
        few = np.sort(keys.argpartition(k - 1, axis=1)[:, :k], axis=1) + c * rows
        order = few.take(keys.take(few).argsort(axis=1, kind="stable") + k * rows)
    else:
        order = keys.argsort(axis=1, kind="stable")[:, :k] + c * rows
    return scores.take(order), candidates.take(order)


def compared(Q: np.ndarray, rows: np.ndarray, numbers: np.ndarray, by_distance: bool) -> np.ndarray:
    """Squared distances, or inner products, of queries (q, d) to the vectors (n, d) that `numbers` (q, c) names."""
    queries, ids = np.ascontiguousarray(Q, np.float32), np.ascontiguousarray(numbers, np.int64)
    scores = np.empty(ids.shape, np.float32)
    measure = faiss.fvec_L2sqr_by_idx if by_distance else faiss.fvec_inner_products_by_idx
    out, asked, of, which = (faiss.swig_ptr(array) for array in (scores, queries, rows, ids))
    measure(out, asked, of, which, queries.shape[1], *ids.shape)
    return scores
