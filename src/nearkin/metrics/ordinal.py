"""Judging an embedding by the comparisons that it satisfies."""

from typing import Any

import numpy as np
from numba import njit

from nearkin import _check
from nearkin.records import Comparisons, as_indices


def triplet_error(X: Any, comparisons: Any) -> float:
    """The share of comparisons that X (n, p) violates: those without d(i, j) < d(l, k); ties and NaN are violations.

    `comparisons` is a `Comparisons` whose object r is row r of X, or an integer array (m, 3) / (m, 4). Votes weigh.
    Distances are summed in float64 and without fast-math, under which a comparison with NaN may come out true. Raises
    ValueError for indices outside X.

    >>> triplet_error([[0.0], [1.0], [3.0]], [[0, 1, 2], [2, 0, 1]])
    0.5
    """
    X = np.ascontiguousarray(np.asarray(X, dtype=np.float64))
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}; it must be 2-D (n, p), one row per object")
    weights = comparisons.weights if isinstance(comparisons, Comparisons) else None
    indices = comparisons.indices if isinstance(comparisons, Comparisons) else as_indices(comparisons, "comparisons")
    if len(indices) == 0:
        raise ValueError("comparisons is empty; at least one is needed")
    good = satisfied(X, indices)
    return float(1.0 - (good.mean() if weights is None else np.average(good, weights=weights)))


def satisfied(
    X: np.ndarray,  # (n, p) float64
    q: np.ndarray,  # (m, 3) or (m, 4) integers
) -> np.ndarray:
    """Return whether X satisfies each comparison: bool (m,). ValueError for shapes or indices that do not fit."""
    if X.ndim != 2 or q.ndim != 2 or q.shape[1] not in (3, 4):
        raise ValueError(f"X has shape {X.shape} and q {q.shape}; they must be (n, p) and (m, 3) or (m, 4)")
    if len(q):
        _check.check_integer(int(q.min()), "the smallest index in comparisons", low=0)
        _check.check_integer(int(q.max()), "the largest index in comparisons", high=len(X) - 1)
    return _satisfied(X, q)


@njit(cache=True)
def _satisfied(X, q):
    columns = q.shape[1]
    third = 0 if columns == 3 else 2
    out = np.empty(len(q), np.bool_)
    for t in range(len(q)):
        i, j, l, k = q[t, 0], q[t, 1], q[t, third], q[t, columns - 1]  # noqa: E741
        a = b = 0.0
        for c in range(X.shape[1]):
            a += (X[i, c] - X[j, c]) ** 2
            b += (X[l, c] - X[k, c]) ** 2
        out[t] = a < b
    return out
