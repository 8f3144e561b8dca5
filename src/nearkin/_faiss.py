"""What FAISS's indexes of floats and of bits have in common, which FAISS itself gives no name."""

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
if hasattr(os, "register_at_fork") and _release is not None:
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


def nearest_rows(rows: np.ndarray, queries: np.ndarray, k: int, metric: str = "l2") -> np.ndarray:
    """Numbers (q, min(k, n)) of the rows (n, d) nearest to each query (q, d), exactly in float32, by "l2" or "ip"."""
    exact = faiss.IndexFlat(rows.shape[1], METRIC_TYPES[metric])
    exact.add(np.ascontiguousarray(rows, np.float32))
    return exact.search(np.ascontiguousarray(queries, np.float32), min(k, len(rows)))[1]


def nearest_codes(index: faiss.Index, queries: np.ndarray, k: int, metric: str = "l2") -> np.ndarray:
    """Numbers (q, k) of the rows that a flat `index` of codes finds by `metric` ("l2", "ip") for queries (q, d).

    Rows are decoded once; FAISS decodes each anew for every query where its codes have no tables, tens of times slower.
    """
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexPreTransform):
        for i in range(index.chain.size()):
            queries = index.chain.at(i).apply(np.ascontiguousarray(queries, np.float32))
    inner = innermost(index)
    return nearest_rows(inner.reconstruct_n(0, inner.ntotal), queries, k, metric)
