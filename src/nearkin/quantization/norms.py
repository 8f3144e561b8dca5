"""The squared norms of decoded rows that additive codes store, with which FAISS searches by "l2" from tables."""

from typing import TypeAlias

import faiss
import numpy as np

from nearkin.quantization import additive
from nearkin.quantization.faiss_bridge import SCANNED

NORMS = {0: "ST_decompress", 4: "ST_norm_qint4", 8: "ST_norm_qint8", 32: "ST_norm_float"}  # bits -> FAISS's search type
LEARNED_NORMS = {4: "ST_norm_cqint4", 8: "ST_norm_cqint8"}
_ITERATIONS = 20  # of k-means for the values of norms
_SCALED = 1024  # queries from which FAISS estimates the divisor of its tables

ScannedIndex: TypeAlias = (
    faiss.IndexResidualQuantizerFastScan
    | faiss.IndexProductResidualQuantizerFastScan
    | faiss.IndexIVFResidualQuantizerFastScan
    | faiss.IndexIVFProductResidualQuantizerFastScan
)
"""FAISS's fast scans of residual codes, inverted or not."""


def learn_values(norms: np.ndarray, count: int) -> np.ndarray:
    """Values (count,) float32 near the squared norms (n,): k-means from their quantiles. FAISS's equal steps kept .146
    of ten neighbours of Student t(2), these .500."""
    values = np.quantile(norms, (np.arange(count) + 0.5) / count)
    for _ in range(_ITERATIONS):
        cells = np.searchsorted((values[1:] + values[:-1]) / 2, norms)
        sizes = np.bincount(cells, minlength=count)
        values = np.where(sizes, np.bincount(cells, norms, count) / np.maximum(sizes, 1), values)
    return values.astype(np.float32)


def fill_values(quantizer: faiss.AdditiveQuantizer, values: np.ndarray) -> None:
    """Set the values (count,) among which FAISS's quantizer finds a norm's code."""
    quantizer.qnorm.reset()
    quantizer.qnorm.add(np.ascontiguousarray(values, np.float32).reshape(-1, 1))


def learn_tables(norms: np.ndarray, seed: int) -> np.ndarray:
    """Tables (2, 16) float32 whose sums lie near the squared norms (n,): a residual quantizer of one column."""
    column = np.ascontiguousarray(norms[:, None], np.float32)
    return additive.start(column, 2, SCANNED, seed).reshape(2, SCANNED)


def fill_tables(quantizer: faiss.AdditiveQuantizer, tables: np.ndarray) -> None:
    """Set the tables (2, 16) and all of their sums, among which FAISS's quantizer finds a norm's code."""
    faiss.copy_array_to_vector(np.ascontiguousarray(tables, np.float32).ravel(), quantizer.norm_tabs)
    fill_values(quantizer, tables[0][None, :] + tables[1][:, None])


def learned_scale(index: ScannedIndex, X: np.ndarray) -> int:
    """FAISS's divisor of the norms' tables, which it rounds to bytes, for queries like rows X (n, d')."""
    some = np.ascontiguousarray(X[:: -(-len(X) // _SCALED)], np.float32)
    index.estimate_norm_scale(len(some), faiss.swig_ptr(some))
    return int(index.norm_scale)
