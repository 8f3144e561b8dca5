"""FAISS's fast scan of 4-bit codes, whether its rounding matters, and the norms that are stored in additive codes.

The scan rounds a query's tables to 8 bits over their whole range. Where one centroid is far out, as for heavy tails,
all others get nearly the same number, and the scan finds next to nothing.
"""

from dataclasses import dataclass
from typing import Self, TypeAlias

import faiss
import numpy as np

from nearkin._faiss import innermost, nearest_codes, nearest_rows
from nearkin.contracts import VectorCodes
from nearkin.metrics.retrieval import recall_k_at_k
from nearkin.quantization import additive

SCANNED = 16  # centroids of a codebook that FAISS scans fast
MOST_LOST = 0.005  # share of neighbours that a fast scan may lose; it grows with the rows, to .01 at five times as many
_ROWS, _QUERIES, _NEIGHBOURS, _PROBES = 4096, 512, 10, 64  # of the comparison that decides
_LLOYD = 20  # rounds of k-means for values of norms
_SCALED = 1024  # queries for which tables of norms are scaled

ScannedIndex: TypeAlias = (
    faiss.IndexResidualQuantizerFastScan
    | faiss.IndexProductResidualQuantizerFastScan
    | faiss.IndexIVFResidualQuantizerFastScan
    | faiss.IndexIVFProductResidualQuantizerFastScan
)
"""FAISS's fast scans of residual codes, inverted or not."""


@dataclass(frozen=True)
class ScanComparison:
    """Some of the rows that a quantizer was fitted on, queries held out of them, and the exact neighbours."""

    metric: str
    rows: np.ndarray
    queries: np.ndarray
    nearest: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, metric: str, queries: np.ndarray | None = None) -> Self:
        """Every ninth of at most 4608 rows X (n, d) is a query, if no `queries` (q, d) are given."""
        X = X[:: -(-len(X) // (_ROWS + _QUERIES))].astype(np.float32)
        if queries is None:
            held = np.arange(len(X)) % 9 == 8
            X, queries = X[~held], X[held]
        queries = queries[:: -(-max(len(queries), 1) // _QUERIES)].astype(np.float32)
        return cls(metric, X, queries, nearest_rows(X, queries, _NEIGHBOURS, metric))

    def kept(self, quantizer: VectorCodes, index: faiss.Index) -> float:
        """The share of the exact neighbours that an empty `index` of the quantizer finds among these rows."""
        quantizer.add_to(index, self.rows)
        inner, k = innermost(index), self.nearest.shape[1]
        if isinstance(inner, faiss.IndexIVF):
            inner.nprobe = min(inner.nlist, _PROBES)
        if isinstance(inner, faiss.IndexPQ):
            found = nearest_codes(index, self.queries, k, self.metric)  # same order as its scan, five times faster
        else:
            found = index.search(self.queries, k)[1]
        return recall_k_at_k(found, self.nearest, k) if len(found) else 1.0

    def allows(self, exact: float, fast: float) -> bool:
        """Whether a fast scan that keeps `fast` loses few of the neighbours that the exact scan of the codes keeps."""
        return exact - fast <= max(MOST_LOST, 1 / max(len(self.queries), 1))  # fewer queries are noisier


def learn_values(norms: np.ndarray, count: int) -> np.ndarray:
    """Values (count,) float32 near the squared norms (n,), as k-means from their quantiles places them.

    Equal steps between the least and the largest norm, FAISS's qint8, leave heavy tails one or two values for nearly
    all rows: .146 of ten neighbours of Student t(2) were kept instead of .500.
    """
    values = np.quantile(norms, (np.arange(count) + 0.5) / count)
    for _ in range(_LLOYD):
        cells = np.searchsorted((values[1:] + values[:-1]) / 2, norms)
        sizes = np.bincount(cells, minlength=count)
        values = np.where(sizes, np.bincount(cells, norms, count) / np.maximum(sizes, 1), values)
    return values.astype(np.float32)


def fill_values(quantizer: faiss.AdditiveQuantizer, values: np.ndarray) -> None:
    """Give FAISS's quantizer the values (count,) among which it looks for a norm's code."""
    quantizer.qnorm.reset()
    quantizer.qnorm.add(np.ascontiguousarray(values, np.float32).reshape(-1, 1))


def learn_tables(norms: np.ndarray, seed: int) -> np.ndarray:
    """Tables (2, 16) float32 whose sums lie near the squared norms (n,): a residual quantizer of one column."""
    column = np.ascontiguousarray(norms[:, None], np.float32)
    return additive.start(column, 2, SCANNED, seed).reshape(2, SCANNED)


def fill_tables(quantizer: faiss.AdditiveQuantizer, tables: np.ndarray) -> None:
    """Give FAISS's quantizer the tables (2, 16), and all of their sums, among which it looks for a norm's code."""
    faiss.copy_array_to_vector(np.ascontiguousarray(tables, np.float32).ravel(), quantizer.norm_tabs)
    fill_values(quantizer, tables[0][None, :] + tables[1][:, None])


def learned_scale(index: ScannedIndex, X: np.ndarray) -> int:
    """What FAISS divides the norms' tables by before it rounds all tables to bytes, for queries like rows (n, d')."""
    some = np.ascontiguousarray(X[:: -(-len(X) // _SCALED)], np.float32)
    index.estimate_norm_scale(len(some), faiss.swig_ptr(some))
    return int(index.norm_scale)
