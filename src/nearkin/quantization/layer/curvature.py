"""Codes and codebooks chosen by a loss's own curvature at every row, instead of by the plain distance.

With everything but the rows fixed, a squared loss of scores is, in a row's quantized value c_j, the quadratic
(c_j - t_j)^T H_j (c_j - t_j) / 2: t_j is the value of least loss, H_j the curvature of the loss there
(`records.RowForms`). H_j couples the subspaces, so a code is improved one subspace at a time, and given the codes the
codebooks solve normal equations. Both steps can only lower the loss.
"""

from typing import Any, NamedTuple

import numpy as np

from nearkin._compile import cached_njit
from nearkin.records import RowForms

SWEEPS = 2  # over the subspaces of a code; a third changes few codes
_DAMPING = 1e-6  # of a centroid's mean curvature, where its rows leave a direction free


class Descended(NamedTuple):
    codes: np.ndarray  # (n, M) int32
    codebooks: np.ndarray  # (M, K, d/M)
    value: float  # the loss above that of the targets, before the codebooks moved


def rotated(forms: RowForms, R: np.ndarray) -> RowForms:
    """The forms of rows X R."""
    return forms._replace(gram=R.T @ forms.gram @ R, points=np.ascontiguousarray(forms.points @ R))


def descend(T: np.ndarray, forms: RowForms, codes: np.ndarray, codebooks: np.ndarray) -> Descended:
    """One round: better codes (n, M) for targets T (n, d), then better codebooks (M, K, d/M); all in rotated space."""
    codes, C = codes.astype(np.int32), codebooks.copy()
    A, B, value = _encode(T, *_arrays(forms), C, codes, SWEEPS)  # pyright: ignore[reportCallIssue]
    direction = _solve(A, B)
    slope = float((B * direction).sum())
    bend = _bend(*_arrays(forms), direction.astype(np.float32), codes)  # pyright: ignore[reportCallIssue]
    # all subspaces moved at once, each as if the others stood still: the best common length makes it a descent
    return Descended(codes, C + np.float32(slope / bend if bend > 0 else 0.0) * direction.astype(np.float32), value)


def _arrays(forms: RowForms) -> Any:
    """The fields as the kernels take them."""
    types = (np.float32, np.float32, np.int64, np.int64, np.float32, np.float32)
    return tuple(np.ascontiguousarray(array, dtype) for array, dtype in zip(forms, types, strict=True))


def _solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A^-1 B for every centroid (M, K); 0 where no row chose it."""
    width = B.shape[-1]
    size = np.trace(A, axis1=2, axis2=3)[..., None, None] / width
    A = A + np.where(size > 0, _DAMPING * size, 1.0) * np.eye(width)
    return np.linalg.solve(A, B[..., None])[..., 0]


@cached_njit(fastmath=True)
def _form(j, gram, ridge, indptr, places, curvature, points):
    """H_j (d, d)."""
    start, stop = indptr[j], indptr[j + 1]
    d = points.shape[1]
    X = np.empty((stop - start, d), np.float32)
    W = np.empty((stop - start, d), np.float32)
    for t in range(stop - start):
        for a in range(d):
            X[t, a] = points[places[start + t], a]
            W[t, a] = curvature[start + t] * X[t, a]
    H = gram + np.dot(X.T, W)
    for a in range(d):
        H[a, a] += ridge[j]
    return H


@cached_njit(fastmath=True)
def _encode(T, gram, ridge, indptr, places, curvature, points, C, codes, sweeps):
    """Improve `codes` in place; return the codebooks' normal equations A (M, K, w, w), B (M, K, w) and the loss."""
    n, d = T.shape
    M, K, w = C.shape
    A, B, total = np.zeros((M, K, w, w)), np.zeros((M, K, w)), 0.0
    e = np.empty(d, np.float32)
    for j in range(n):
        H = _form(j, gram, ridge, indptr, places, curvature, points)
        for m in range(M):
            e[m * w : (m + 1) * w] = C[m, codes[j, m]] - T[j, m * w : (m + 1) * w]
        for _ in range(sweeps):
            moved = False
            for m in range(M):
                o = slice(m * w, (m + 1) * w)
                block = np.ascontiguousarray(H[o, o])
                # with the other subspaces fixed: (c - t)^T block (c - t) + 2 (c - t)^T g
                g = np.dot(H[o], e) - np.dot(block, e[o])
                pull = 2 * (g - np.dot(block, T[j, o]))
                best = _cheapest(C[m], np.dot(C[m], block), pull, codes[j, m])
                if best != codes[j, m]:
                    codes[j, m], moved = best, True
                    e[o] = C[m, best] - T[j, o]
            if not moved:
                break
        He = np.dot(H, e)
        total += np.dot(He, e)
        for m in range(M):
            k = codes[j, m]
            for a in range(w):
                B[m, k, a] -= He[m * w + a]
                for b in range(w):
                    A[m, k, a, b] += H[m * w + a, m * w + b]
    return A, B, total / 2


@cached_njit(fastmath=True)
def _cheapest(centroids, bent, pull, start):
    """The centroid c of smallest c^T (H c + pull), `start` unless another is cheaper."""
    K, w = centroids.shape
    best, lowest = start, 0.0
    for a in range(w):
        lowest += centroids[start, a] * (bent[start, a] + pull[a])
    for k in range(K):
        cost = 0.0
        for a in range(w):
            cost += centroids[k, a] * (bent[k, a] + pull[a])
        if cost < lowest:
            best, lowest = k, cost
    return best


@cached_njit(fastmath=True)
def _bend(gram, ridge, indptr, places, curvature, points, direction, codes):
    """sum_j D_j^T H_j D_j, D_j what the codebooks' direction moves row j by."""
    M, _, w = direction.shape
    D, total = np.empty(M * w, np.float32), 0.0
    for j in range(len(codes)):
        for m in range(M):
            D[m * w : (m + 1) * w] = direction[m, codes[j, m]]
        total += np.dot(np.dot(gram, D), D) + ridge[j] * np.dot(D, D)
        for t in range(indptr[j], indptr[j + 1]):  # H_j itself is not needed
            along = np.float32(0)
            p = points[places[t]]
            for a in range(M * w):
                along += p[a] * D[a]
            total += curvature[t] * along * along
    return total
