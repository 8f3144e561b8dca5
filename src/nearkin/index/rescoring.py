"""Exact vectors kept beside the codes, and the re-ranking of the codes' candidates by them."""

from pathlib import Path

import faiss
import numpy as np

from nearkin._check import check_instance
from nearkin._storage import MappedRows
from nearkin._types import ArrayLike
from nearkin.linalg.orthonormal import unit_rows

_CHUNK = 65_536  # rows written at a time
_QUERIES = 256  # queries re-ranked at a time


class KeptVectors:
    """The rows of an index, in the blocks in which they were added; a block may be a mapped file.

    `order` (n,) says which of the blocks' rows are the index's, None for all of them in their order: rows that were
    removed stay in memory until the index is saved and loaded again.
    """

    def __init__(self, blocks: list[np.ndarray | MappedRows], order: np.ndarray | None = None) -> None:
        self.blocks = blocks
        self.order = order

    @classmethod
    def wanted(cls, keep_vectors: bool, d: int) -> "KeptVectors | None":
        """None, or no rows of width d yet; TypeError unless `keep_vectors` is a bool."""
        wanted = check_instance(keep_vectors, "keep_vectors", bool, np.bool_, int)
        return cls([np.empty((0, d), np.float32)]) if wanted else None

    def __len__(self) -> int:
        return self._stored() if self.order is None else len(self.order)

    def with_rows(self, X: np.ndarray) -> "KeptVectors":
        """These rows and behind them a copy of X (m, d): the caller may change X afterwards."""
        order = self.order
        if order is not None:
            order = np.concatenate([order, np.arange(self._stored(), self._stored() + len(X))])
        before = self.blocks if self._stored() else []
        return KeptVectors([*before, np.array(X, np.float32, order="C")], order)

    def without(self, positions: np.ndarray) -> "KeptVectors":
        """These rows but for those at `positions`."""
        order = np.arange(self._stored()) if self.order is None else self.order
        return KeptVectors(self.blocks, np.delete(order, positions))

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Rows (..., d) float32 at positions of any shape; each block is read once."""
        flat = positions.ravel()
        flat = flat if self.order is None else self.order[flat]
        out = np.empty((len(flat), self.blocks[0].shape[1]), np.float32)
        first = 0
        for block in self.blocks:
            here = np.flatnonzero((flat >= first) & (flat < first + len(block)))
            out[here] = block[flat[here] - first]
            first += len(block)
        if len(flat) and (flat.min() < 0 or flat.max() >= first):
            raise ValueError(f"positions reach from {flat.min()} to {flat.max()}; the index keeps {first} vectors")
        return out.reshape(*positions.shape, -1)

    def in_one_piece(self, positions: np.ndarray) -> np.ndarray | None:
        """All rows (n, d) float32 where they lie as one array, None where they do not; of a mapped file the rows at
        `positions`, of any shape, are verified."""
        if self.order is not None or len(self.blocks) != 1:
            return None
        block = self.blocks[0]
        rows = block.verified(positions) if isinstance(block, MappedRows) else block
        return rows if rows.dtype == np.float32 and rows.flags.c_contiguous else None

    def save(self, path: Path) -> None:
        """Write one float32 .npy file as a stream: a full disk is an OSError there, and the process's end in a map."""
        header = {"descr": "<f4", "fortran_order": False, "shape": (len(self), self.blocks[0].shape[1])}
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for first in range(0, len(self), _CHUNK):
                chunk = self.rows(np.arange(first, min(first + _CHUNK, len(self))))
                file.write(np.ascontiguousarray(chunk, "<f4").data)

    def _stored(self) -> int:
        return sum(map(len, self.blocks))

    @classmethod
    def load(cls, path: Path, n_rows: int, d: int) -> "KeptVectors":
        """Map the file; ValueError unless it holds float32 rows (n_rows, d)."""
        rows = MappedRows(path)
        if rows.dtype != np.float32 or rows.shape != (n_rows, d):
            raise ValueError(
                f"{path} has {rows.dtype} vectors of shape {rows.shape}, the index needs float32 {(n_rows, d)}; "
                "the folder is damaged, or the file is of another index"
            )
        return cls([rows])


def rescore(
    Q: np.ndarray, candidates: np.ndarray, kept: KeptVectors, k: int, metric: str
) -> tuple[np.ndarray, np.ndarray]:
    """The best k of each query's candidates (n, c) by exact scores: (scores (n, k), positions (n, k)).

    Scores are squared L2 distances for "l2", inner products for "ip" and "cosine" (Q already normalised, rows are
    normalised here). Candidates of -1 (none) sort last. Equal scores keep the order of the codes.
    """
    scores = np.empty(candidates.shape, np.float32)
    for first in range(0, len(Q), _QUERIES):
        some = slice(first, first + _QUERIES)
        numbers = np.maximum(candidates[some], 0)
        rows = kept.in_one_piece(numbers) if metric != "cosine" else None
        if rows is None:
            rows = kept.rows(numbers.ravel())
            rows = normalised(rows) if metric == "cosine" else rows
            numbers = np.arange(numbers.size).reshape(numbers.shape)
        scores[some] = _scores(Q[some], rows, numbers, metric)
    worst = np.float32(np.inf if metric == "l2" else -np.inf)
    scores[candidates < 0] = worst
    order = _order(scores if metric == "l2" else -scores, min(k, candidates.shape[1]))
    return np.take_along_axis(scores, order, 1), np.take_along_axis(candidates, order, 1)


def _order(scores: np.ndarray, k: int) -> np.ndarray:
    """Places (n, k) of the k lowest scores (n, c) float32 of each row, lowest first, equal ones in their order; where
    fewer are finite, the last places follow."""
    n, width = len(scores), int(scores.shape[1])
    best, places = faiss.ResultHeap(n, k), np.arange(min(n, _QUERIES) * width).reshape(-1, width) % width
    for first in range(0, n, _QUERIES):
        some = scores[first : first + _QUERIES]
        best.add_result_subset(np.arange(first, first + len(some)), some, places[: len(some)])
    best.finalize()
    return best.I  # FAISS's -1 is the last place, where a candidate is missing


def _scores(Q: np.ndarray, rows: np.ndarray, numbers: np.ndarray, metric: str) -> np.ndarray:
    """Squared distances, or inner products, of queries (q, d) to the rows (n, d) that `numbers` (q, c) names."""
    queries, ids = np.ascontiguousarray(Q, np.float32), np.ascontiguousarray(numbers, np.int64)
    scores = np.empty(ids.shape, np.float32)
    measure = faiss.fvec_L2sqr_by_idx if metric == "l2" else faiss.fvec_inner_products_by_idx
    out, asked, of, which = (faiss.swig_ptr(array) for array in (scores, queries, rows, ids))
    measure(out, asked, of, which, queries.shape[1], *ids.shape)
    return scores


def normalised(X: ArrayLike) -> np.ndarray:
    """Rows divided by their norms, as float32; rows of zeros stay."""
    return unit_rows(np.asarray(X)).astype(np.float32)
