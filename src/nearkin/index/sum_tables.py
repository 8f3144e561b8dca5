"""Few queries answered from tables where codes are sums of centroids without a norm, which FAISS decodes row by row.

Of a query q and a row that is a list's centre c plus the sum r of its centroids, the squared distance is
|q - c|^2 - 2 <q, r> + (|r|^2 + 2 <c, r>). The inner product adds up entries of one table for each codebook; what stands
in brackets is the same for all queries, and is kept: four bytes a row. A flat index has one list.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import faiss
import numpy as np

_DECODED = 1 << 20  # numbers of decoded rows at a time
_ROWS = 65_536  # whose codes are unpacked at a time

SumIndex: TypeAlias = faiss.IndexAdditiveQuantizer | faiss.IndexIVFAdditiveQuantizer


class _Rows(NamedTuple):
    """Some rows: codes (n, bytes), what is kept of each (n,), positions (n,), and the number of its list (n,)."""

    codes: np.ndarray
    rest: np.ndarray
    ids: np.ndarray
    lists: np.ndarray


class SumTables:
    """Tables for the rows of one index, and what is kept of them between searches; made anew when rows change.

    Centroids are taken less the first one of their codebook, and centres and queries less the middle of the centres, so
    that no offset costs digits.
    """

    def __init__(self, inner: SumIndex) -> None:
        self._inner, self._bits = inner, int(faiss.vector_to_array(inner.aq.nbits)[0])
        first = inner.aq.decode(np.zeros((1, inner.aq.code_size), np.uint8))
        quantizer = faiss.downcast_AdditiveQuantizer(inner.aq)
        parts = quantizer.nsplits if isinstance(quantizer, faiss.ProductAdditiveQuantizer) else 1
        books = faiss.vector_to_array(inner.aq.codebooks).reshape(inner.aq.M, -1, inner.d // parts)
        self._books = (books - books[:, :1]).reshape(parts, -1, inner.d // parts)
        inverted = isinstance(inner, faiss.IndexIVFAdditiveQuantizer)
        centres = inner.quantizer.reconstruct_n(0, inner.nlist) + first if inverted else first
        self._first, self._middle = first, centres.mean(axis=0)
        self._centres = centres - self._middle
        self._rest: dict[int, np.ndarray] = {}

    def search(self, Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Squared distances and positions (q, k) of the nearest rows to queries (q, d), nearest first; -1 for none."""
        inner, asked, best = self._inner, Q - self._middle, faiss.ResultHeap(len(Q), k)
        parts, _, width = self._books.shape
        products = np.matmul(self._books, asked.reshape(len(Q), parts, width).transpose(1, 2, 0))
        tables = products.reshape(inner.aq.M, -1, len(Q)).transpose(2, 0, 1).copy()
        visited = np.zeros((len(Q), 1), np.int64)
        if isinstance(inner, faiss.IndexIVFAdditiveQuantizer):
            visited = np.sort(inner.quantizer.search(Q, min(inner.nprobe, inner.nlist))[1], axis=1)
        for lists in np.unique(visited, axis=0):
            together = np.flatnonzero((visited == lists).all(axis=1))
            for rows in self._rows(lists[lists >= 0]):
                numbers = faiss.unpack_bitstrings(rows.codes, inner.aq.M, self._bits).T.astype(np.intp)
                for query in together.tolist():
                    away = np.square(asked[query] - self._centres).sum(axis=1)
                    scores = rows.rest + away[rows.lists]
                    for table, own in zip(tables[query], numbers, strict=True):
                        scores -= 2 * table.take(own, mode="clip")
                    best.add_result_subset(np.array([query]), np.maximum(scores, 0)[None], rows.ids[None])
        best.finalize()
        return best.D, best.I

    def _rows(self, lists: np.ndarray) -> Iterator[_Rows]:
        """Rows of these lists, about `_ROWS` at a time."""
        found: list[_Rows] = []
        for number in lists.tolist():
            found.extend(self._parts(number))
            if sum(len(rows.ids) for rows in found) >= _ROWS:
                yield from _joined(found)
                found = []
        yield from _joined(found)

    def _parts(self, number: int) -> Iterator[_Rows]:
        codes, ids = self._codes(number)
        if number not in self._rest:
            self._rest[number] = self._kept(codes, self._centres[number])
        for first in range(0, len(codes), _ROWS):
            some = slice(first, first + _ROWS)
            rest = self._rest[number][some]
            yield _Rows(codes[some], rest, ids[some], np.full(len(rest), number))

    def _codes(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """FAISS's own memory of the codes (n, bytes) of a list, and their positions (n,)."""
        inner = self._inner
        if isinstance(inner, faiss.IndexIVFAdditiveQuantizer):
            size = inner.invlists.list_size(number)
            if not size:
                return np.empty((0, inner.code_size), np.uint8), np.empty(0, np.int64)
            codes = faiss.rev_swig_ptr(inner.invlists.get_codes(number), size * inner.code_size)
            return codes.reshape(size, -1), faiss.rev_swig_ptr(inner.invlists.get_ids(number), size)
        codes = faiss.rev_swig_ptr(inner.codes.data(), inner.ntotal * inner.code_size)
        return codes.reshape(inner.ntotal, -1), np.arange(inner.ntotal)

    def _kept(self, codes: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """|r|^2 + 2 <c, r> of each row, (n,) float32."""
        rest, step = np.empty(len(codes), np.float32), max(1, _DECODED // self._inner.d)
        for first in range(0, len(codes), step):
            decoded = self._inner.aq.decode(np.ascontiguousarray(codes[first : first + step])) - self._first
            rest[first : first + step] = np.einsum("nd,nd->n", decoded, decoded + 2 * centre)
        return rest


def _joined(parts: list[_Rows]) -> Iterator[_Rows]:
    if len(parts) == 1:
        yield parts[0]
    elif parts:
        yield _Rows(*(np.concatenate(column) for column in zip(*parts, strict=True)))
