"""Helpers for FAISS's indexes of floats and of bits."""

import ctypes
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TypeAlias, overload

import faiss
import numpy as np

FaissIndex: TypeAlias = faiss.Index | faiss.IndexBinary
"""An index of floats or of bits."""

_HARD_PAUSE = 2  # OpenMP's omp_pause_hard


def _thread_release() -> Callable[[int], int] | None:
    """`omp_pause_resource_all` of the OpenMP library that FAISS loaded, or None."""
    try:
        library = next(module for name, module in sys.modules.items() if name.startswith("faiss._swigfaiss"))
        return ctypes.CDLL(library.__file__).omp_pause_resource_all
    except (StopIteration, OSError, AttributeError):
        return None


_release = _thread_release()


if _release is not None and hasattr(os, "register_at_fork"):
    # GNU's OpenMP keeps its threads; a forked process does not have them, and its first parallel loop would wait for
    # them without end. Without threads, parent and child start new ones.
    os.register_at_fork(before=partial(_release, _HARD_PAUSE))


METRIC_TYPES = {"l2": faiss.METRIC_L2, "ip": faiss.METRIC_INNER_PRODUCT}


@overload
def innermost(index: faiss.Index) -> faiss.Index: ...
@overload
def innermost(index: FaissIndex) -> FaissIndex: ...
def innermost(index: FaissIndex) -> FaissIndex:
    """The FAISS index behind the rotation."""
    if isinstance(index, faiss.IndexBinary):
        return faiss.downcast_IndexBinary(index)
    index = faiss.downcast_index(index)
    return faiss.downcast_index(index.index) if isinstance(index, faiss.IndexPreTransform) else index


def linear_transform(A: np.ndarray, origin: np.ndarray | None = None) -> faiss.LinearTransform:
    """x -> x A - origin (d',) for FAISS, A (d, d'); FAISS stores A^T and computes A^T x + b."""
    transform = faiss.LinearTransform(A.shape[0], A.shape[1], origin is not None)
    faiss.copy_array_to_vector(np.ascontiguousarray(A.T, np.float32).ravel(), transform.A)
    if origin is not None:
        faiss.copy_array_to_vector(np.ascontiguousarray(-origin, np.float32), transform.b)
    transform.is_trained = True
    return transform


def answered(scores: np.ndarray) -> np.ndarray:
    """Mask (q, k) of places with an answer; others have an infinite score, or for bits the largest int32."""
    return scores < np.iinfo(np.int32).max if scores.dtype.kind == "i" else np.isfinite(scores)


def compared(index: faiss.Index, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The decoded rows (n, d') of a flat `index` of codes, and the queries (q, d') behind its rotation. Rows are
    decoded once, not for every query as FAISS does without tables."""
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexPreTransform):
        for i in range(index.chain.size()):
            queries = index.chain.at(i).apply(np.ascontiguousarray(queries, np.float32))
    inner = innermost(index)
    return inner.reconstruct_n(0, inner.ntotal), queries


def add_codes(index: FaissIndex, codes: np.ndarray) -> None:
    """Add rows by their codes (n, bytes) uint8; in an inverted file each begins with the number of its list. An exact
    index takes rows (n, d) float32."""
    inner = innermost(index)
    if isinstance(inner, faiss.IndexBinary | faiss.IndexFlat):
        inner.add(codes)
    else:
        inner.add_sa_codes(codes)
    index.ntotal = inner.ntotal
