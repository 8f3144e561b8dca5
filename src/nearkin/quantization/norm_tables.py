"""Norms in a byte of two 4-bit numbers, which FAISS's fast scan of additive codes adds up from two tables."""

from typing import TypeAlias

import faiss
import numpy as np

from nearkin.quantization import additive

SCANNED = 16  # centroids of a codebook that FAISS scans fast
_ROWS = 1024  # rows that stand for queries where tables are scaled

ScannedIndex: TypeAlias = (
    faiss.IndexResidualQuantizerFastScan
    | faiss.IndexProductResidualQuantizerFastScan
    | faiss.IndexIVFResidualQuantizerFastScan
    | faiss.IndexIVFProductResidualQuantizerFastScan
)
"""FAISS's fast scans of residual codes, inverted or not."""


def learn_tables(norms: np.ndarray, seed: int) -> np.ndarray:
    """Tables (2, 16) float32 whose sums lie near the squared norms (n,): a residual quantizer of one column."""
    column = np.ascontiguousarray(norms[:, None], np.float32)
    return additive.start(column, 2, SCANNED, seed).reshape(2, SCANNED)


def fill_tables(quantizer: faiss.AdditiveQuantizer, tables: np.ndarray) -> None:
    """Give FAISS's quantizer the tables (2, 16), and all of their sums, among which it looks for a norm's code."""
    faiss.copy_array_to_vector(np.ascontiguousarray(tables, np.float32).ravel(), quantizer.norm_tabs)
    sums = tables[0][None, :] + tables[1][:, None]
    quantizer.qnorm.reset()
    quantizer.qnorm.add(np.ascontiguousarray(sums, np.float32).reshape(-1, 1))


def learned_scale(index: ScannedIndex, X: np.ndarray) -> int:
    """What FAISS divides the norms' tables by before it rounds all tables to bytes, for queries like rows (n, d')."""
    some = np.ascontiguousarray(X[:: -(-len(X) // _ROWS)], np.float32)
    index.estimate_norm_scale(len(some), faiss.swig_ptr(some))
    return int(index.norm_scale)
