"""Products and nearest points of rows that do not depend on the batch or the number of threads.

BLAS rounds a row's product differently for other batch sizes and numbers of threads. This rarely changes a result; the
few results that it may change are computed again here in float64, in a fixed order.
"""

# pyright: reportConstantRedefinition=false

import numpy as np

from nearkin._compile import cached_njit

_CHUNK = 8_192  # rows at a time: what is formed of them stays in the cache


def rounded_product(X: np.ndarray, R: np.ndarray) -> np.ndarray:
    """X R (n, k) float32 for rows X (n, d) and R (d, k) float64, formed in float64 and rounded once."""
    X = X.astype(np.float64, copy=False)
    R = np.ascontiguousarray(R, np.float64)
    longest = float(np.sqrt(np.square(R).sum(axis=0).max(initial=0.0)))
    norms = np.sqrt(np.einsum("nd,nd->n", X, X))
    doubt = 2.0 * (X.shape[1] + 4) * np.finfo(np.float64).eps * longest * norms  # twice the error of any order
    out = np.empty((len(X), R.shape[1]), np.float32)
    _round(X, np.ascontiguousarray(R.T), X @ R, doubt, out)
    return out


@cached_njit()
def _round(X: np.ndarray, columns: np.ndarray, product: np.ndarray, doubt: np.ndarray, out: np.ndarray) -> None:
    """Round `product`, forming again what lies so near the middle of two float32 numbers that either might result, from
    `columns` (k, d) in one piece each."""
    for i in range(len(X)):
        for k in range(len(columns)):
            low, high = np.float32(product[i, k] - doubt[i]), np.float32(product[i, k] + doubt[i])
            out[i, k] = low
            if low != high:
                total = 0.0
                for j in range(X.shape[1]):
                    total += X[i, j] * columns[k, j]
                out[i, k] = np.float32(total)


def nearest(X: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Number (n,) int64 of the point (K, w) nearest to each row of X (n, w); ties of float32 decided in float64."""
    points = np.ascontiguousarray(points, np.float32)
    middle = points.mean(axis=0, dtype=np.float64)  # |x - p|^2 is expanded about it, so that no offset costs digits
    near = (points - middle).astype(np.float32)
    half_norms = np.einsum("kw,kw->k", near, near) / 2
    reach = float(np.sqrt(2 * half_norms.max()))
    found = np.empty(len(X), np.int64)
    for first in range(0, len(X), _CHUNK):
        rows = np.require(X[first : first + _CHUNK], requirements=["C", "W"])  # one layout to compile
        centred = (rows - middle).astype(np.float32)
        lengths = np.sqrt(np.einsum("nw,nw->n", centred, centred)).astype(np.float64)
        doubt = 4.0 * (X.shape[1] + 8) * np.finfo(np.float32).eps * reach * (lengths + reach)
        scores = centred @ near.T - half_norms
        _decide(rows, points, scores, doubt, found[first : first + _CHUNK])
    return found


@cached_njit()
def _decide(X: np.ndarray, points: np.ndarray, scores: np.ndarray, doubt: np.ndarray, found: np.ndarray) -> None:
    """The best score, or among those within `doubt` of it the smallest distance in float64."""
    for i in range(len(X)):
        best = 0
        for k in range(scores.shape[1]):
            if scores[i, k] > scores[i, best]:
                best = k
        found[i], floor, rivals = best, scores[i, best] - doubt[i], 0
        for k in range(scores.shape[1]):
            rivals += scores[i, k] >= floor
        if rivals == 1:
            continue
        closest = np.inf
        for k in range(scores.shape[1]):
            if not scores[i, k] < floor:
                distance = 0.0
                for t in range(X.shape[1]):
                    distance += (np.float64(X[i, t]) - np.float64(points[k, t])) ** 2
                if distance < closest:
                    found[i], closest = k, distance
