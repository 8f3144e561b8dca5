"""The source of an export: an index's vectors in batches, test queries, and checks of the engine's answers."""

from collections.abc import Iterator
from typing import NamedTuple, cast

import faiss
import numpy as np

from nearkin._check import check_vectors
from nearkin._storage import digest
from nearkin._types import ArrayLike
from nearkin.contracts import BitCodes, Callback, ignore
from nearkin.index import Index
from nearkin.index.faiss_index import flat_codes, inverted_file
from nearkin.index.identifiers import RowIds
from nearkin.index.kept_vectors import KeptVectors
from nearkin.index.searching import Kept, Scan, normalised, rows_as_searched
from nearkin.linalg.norms import widened
from nearkin.metrics.neighbours import exact_distances

BATCH = 8_192  # rows handed over at a time


class RowBatch(NamedTuple):
    """Some vectors: ids (b,), packed codes (b, bytes) for bits or None, vectors (b, d) float32 or None."""

    ids: np.ndarray
    codes: np.ndarray | None
    vectors: np.ndarray | None


class Source:
    """The vectors of a finished index in order, read only.

    Parameters
    ----------
    index: `Index` with vectors.

    Attributes
    ----------
    d: columns of the vectors.
    n_bits: bits of a code, None where the index does not search by Hamming distance.
    codes: (n, bytes) uint8, packed bits: FAISS's own memory, not a copy. Bit order as in `nearkin.hashing.bits`.

    Examples
    --------
    >>> index = nk.Index.build(np.eye(3, dtype=np.float32), ids=["a", "b", "c"])
    >>> [batch.ids.tolist() for batch in nk.export.Source(index).batches(2)]
    [['a', 'b'], ['c']]
    """

    def __init__(self, index: Index) -> None:
        if not len(index):
            raise ValueError("the index has no vectors; add some first")
        self.index: Index = index
        self.d: int = index.n_features
        self._kept = Kept()
        quantizer = index.quantizer if index.metric == "hamming" else None  # others stay unopened
        self.n_bits: int | None = quantizer.n_bits if isinstance(quantizer, BitCodes) else None
        self.has_text_ids: bool = index.ids is not None and index.ids.dtype.kind == "U"

    def __len__(self) -> int:
        return len(self.index)

    def ids(self, first: int = 0, last: int | None = None) -> np.ndarray:
        """Ids of the vectors first..last, int64 or text."""
        if self.index.ids is None:
            return np.arange(first, len(self) if last is None else min(last, len(self)))
        return self.index.ids[first:last]

    @property
    def codes(self) -> np.ndarray:
        """Packed bits (n, bytes) uint8: FAISS's own memory, not a copy. Bit order as in `nearkin.hashing.bits`."""
        return flat_codes(self.index.faiss_index)

    def decoded(self, positions: np.ndarray) -> np.ndarray:
        """Decoded codes of vectors, (b, d) float32 (of normalised vectors for "cosine")."""
        return self.index.decoded(positions)

    def as_searched(self, positions: np.ndarray) -> np.ndarray:
        """Decoded codes of rows (b, d + 1), as `Index.search` compares them: at their norms if the index knows these,
        the last column one of which queries have 0."""
        return rows_as_searched(self._scan(), positions)

    def _scan(self) -> Scan:
        return self._kept.scan(cast(faiss.Index, self.index.faiss_index), self.index.norms)

    def vectors(self, positions: np.ndarray) -> np.ndarray | None:
        """Exact vectors if the index keeps them, else decoded codes; None for bits alone."""
        if self.index.kept is not None:
            return self.as_compared(self.index.kept.rows(positions))
        return None if self.n_bits is not None else self.decoded(positions)

    def batches(self, rows: int = BATCH, callback: Callback = ignore) -> Iterator[RowBatch]:
        """All vectors in order, `rows` at a time; `callback(rows_done, {"total": n})` is called after each batch."""
        for first in range(0, len(self), rows):
            positions = np.arange(first, min(first + rows, len(self)))
            codes = None if self.n_bits is None else self.codes[first : first + rows]
            yield RowBatch(self.ids(first, first + rows), codes, self.vectors(positions))
            callback(first + len(positions), {"total": len(self)})

    def fingerprint(self) -> str:
        """A name for the contents, 16 hex digits: equal for equal codes (or decoded vectors), ids, and kept vectors."""
        about, norms = f"{self.index.metric} {self.d} {self.n_bits} {len(self)}", self.index.norms
        parts = (part for batch in self.batches() for part in (batch.ids, batch.codes, batch.vectors))
        return digest(about, None if norms is None else norms.codes, parts)

    def test_queries(self, n: int) -> np.ndarray:
        """Queries near the vectors, in the engine's form: codes (n, bytes) with a twentieth of their bits flipped,
        or mixtures (n, d) of nine parts of one vector and one of another."""
        rng = np.random.default_rng(0)
        positions = rng.integers(0, len(self), (2, n))
        if self.n_bits is not None:
            turned = np.packbits(rng.random((n, self.n_bits)) < 0.05, axis=1, bitorder="little")
            return self.codes[positions[0]] ^ turned
        one, other = (np.asarray(self.vectors(some)) for some in positions)
        return self.as_compared(0.9 * one + 0.1 * other)

    def engine_queries(self, Q: ArrayLike) -> np.ndarray:
        """Queries Q (q, d) in the engine's form: encoded for bits, normalised for "cosine"."""
        Q = check_vectors(Q, name="queries", n_features=self.d)
        quantizer = self.index.quantizer
        return quantizer.encode(Q) if isinstance(quantizer, BitCodes) else self.as_compared(Q)

    def distances(self, asked: np.ndarray, positions: np.ndarray, *, as_searched: bool = False) -> np.ndarray:
        """Distances of queries from codes at `positions` (q, k), `as_searched` by `Index.search`; inf at -1."""
        safe = np.maximum(positions, 0)
        if self.n_bits is not None:
            far = np.bitwise_count(self.codes[safe] ^ asked[:, None]).sum(axis=2, dtype=np.int64)
            return np.where(positions < 0, np.inf, far)
        rows = (self.as_searched if as_searched else self.decoded)(safe.ravel()).reshape(*safe.shape, -1)
        metric = self._scan().ranks_by(self.index.metric) if as_searched else self.index.metric
        far = exact_distances(rows, widened(asked, rows.shape[-1]), "l2" if metric == "l2" else "ip", positions >= 0)
        return far if metric == self.index.metric else far / 2 - 1  # minus the cosine, of a distance

    def hits(self, asked: np.ndarray, nearest: np.ndarray, found: np.ndarray, rounding: float = 0.0) -> np.ndarray:
        """How many (q,) of the `nearest` vectors (q, k) of queries are `found` (q, c), both positions, -1 for none. A
        vector as near as the farthest of these, up to a relative `rounding`, counts too; one that is named twice,
        once."""
        own = self.distances(asked, nearest)
        there = np.isfinite(own)
        limit = np.where(there, own, -np.inf).max(axis=1)
        again = (found[:, :, None] == found[:, None, :]) & np.tri(found.shape[1], k=-1, dtype=bool)
        far = self.distances(asked, np.where(again.any(axis=2), -1, found))
        return np.minimum((far <= (limit + rounding * np.abs(limit))[:, None]).sum(axis=1), there.sum(axis=1))

    def lists(self) -> np.ndarray | None:
        """The list (n,) of the inverted file that holds each vector, None without one."""
        return None if inverted_file(self.index.faiss_index) is None else self._scan().places[:, 0]

    def positions(self, ids: ArrayLike) -> np.ndarray:
        """Positions of ids of any shape; -1 for one that the index does not have."""
        return RowIds(self.index.ids, len(self)).positions(np.asarray(ids))

    def as_compared(self, X: np.ndarray) -> np.ndarray:
        """Vectors or queries (b, d) as the metric compares them: of norm 1 for "cosine"."""
        return normalised(X) if self.index.metric == "cosine" else np.ascontiguousarray(X, np.float32)

    def exact(self) -> "Source":
        """The kept vectors in exact search, under the same ids; those of bits by L2 distance."""
        exact = Index.empty(self.d, None, "l2" if self.index.metric == "hamming" else self.index.metric)
        for first in range(0, len(self), BATCH):
            exact.add(cast(KeptVectors, self.index.kept).rows(np.arange(first, min(first + BATCH, len(self)))))
        exact.ids = self.index.ids
        return Source(exact)
