"""Codes and codebooks that minimize a loss by its curvature at every vector, instead of the squared distance.

With everything but the vectors fixed, a squared loss of scores is, in a vector's quantized value c_j, the quadratic
(c_j - t_j)^T H_j (c_j - t_j) / 2: t_j is the value of least loss, H_j the curvature of the loss there
(`records.RowForms`). H_j couples the subspaces, so a code is improved one subspace at a time, and given the codes the
codebooks solve normal equations. Both steps can only lower the loss."""

from typing import Any, NamedTuple

import numpy as np

from nearkin._compile import cached_njit
from nearkin.records import RowForms

_DAMPING = 1e-6  # share of a centroid's mean curvature, for directions that its rows do not determine


class Descended(NamedTuple):
    codes: np.ndarray  # (n, M) int32
    codebooks: np.ndarray  # (M, K, d/M)
    value: float  # the loss minus that of the targets, before the codebook update


def rotated(forms: RowForms, R: np.ndarray) -> RowForms:
    """The forms of vectors X R."""
    return forms._replace(gram=R.T @ forms.gram @ R, points=np.ascontiguousarray(forms.points @ R))


def descend(T: np.ndarray, forms: RowForms, codes: np.ndarray, codebooks: np.ndarray) -> Descended:
    """One round: better codes (n, M) for targets T (n, d), then better codebooks (M, K, d/M); all in rotated space."""
    codes, C = codes.astype(np.int32), codebooks.copy()
    columns = np.ascontiguousarray(C.transpose(0, 2, 1))
    A, B, value = _encode(T, *_arrays(forms), columns, codes)  # pyright: ignore[reportCallIssue]
    direction = _solve(A, B)
    slope = float((B * direction).sum())
    bend = _bend(*_arrays(forms), direction.astype(np.float32), codes)  # pyright: ignore[reportCallIssue]
    # subspaces are updated at once, each for fixed others; the best common step length makes it a descent
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
def _encode(T, gram, ridge, indptr, places, curvature, points, C, codes):
    """Improve `codes` in place; return the codebooks' normal equations A (M, K, w, w), B (M, K, w) and the loss. C (M,
    w, K) has the centroids as columns, so that loops over them read neighbours in memory."""
    n, d = T.shape
    M, w, K = C.shape
    A, B, total = np.zeros((M, K, w, w)), np.zeros((M, K, w)), 0.0
    H, e, costs = np.empty((d, d), np.float32), np.empty(d, np.float32), np.empty((2, K), np.float32)
    for j in range(n):
        _form(H, gram, ridge[j], points, places, curvature, indptr[j], indptr[j + 1])
        for a in range(d):
            e[a] = C[a // w, a % w, codes[j, a // w]] - T[j, a]
        for _ in range(2):  # a second sweep over the subspaces helps ids of several levels, a third changes few codes
            for m in range(M):
                best = _cheapest(C[m], H, T[j], e, m * w, codes[j, m], costs)
                codes[j, m] = best
                for a in range(w):
                    e[m * w + a] = C[m, a, best] - T[j, m * w + a]
        for a in range(d):
            force, m, k = np.float32(0), a // w, codes[j, a // w]
            for b in range(d):
                force += H[a, b] * e[b]
            total += force * e[a]
            B[m, k, a % w] -= force
            for b in range(w):
                A[m, k, a % w, b] += H[a, m * w + b]
    return A, B, total / 2


@cached_njit(fastmath=True)
def _form(H, gram, ridge, points, places, curvature, start, stop):
    """H <- H_j (d, d)."""
    d = len(H)
    for a in range(d):
        for b in range(d):
            H[a, b] = gram[a, b]
        H[a, a] += ridge
    for t in range(start, stop):
        p = points[places[t]]
        for a in range(d):
            bent = curvature[t] * p[a]
            for b in range(d):
                H[a, b] += bent * p[b]


@cached_njit(fastmath=True)
def _cheapest(C, H, t, e, low, start, costs):
    """The column c of C (w, K) of least loss as the entries from `low` on, `start` unless another is cheaper. With the
    other entries fixed the loss is (c - t)^T H (c - t) / 2 + (c - t)^T g and a constant, H one block here."""
    w, K = C.shape
    total, bent = costs[0], costs[1]
    for k in range(K):
        total[k] = 0
    for a in range(w):
        pull = np.float32(0)
        for b in range(len(e)):
            pull += H[low + a, b] * e[b]
        for b in range(w):
            pull -= H[low + a, low + b] * (e[low + b] + t[low + b])
        pull *= 2
        for k in range(K):
            bent[k] = pull
        for b in range(w):
            h, c = H[low + a, low + b], C[b]
            for k in range(K):
                bent[k] += h * c[k]
        c = C[a]
        for k in range(K):
            total[k] += c[k] * bent[k]
    best = start
    for k in range(K):
        if total[k] < total[best]:
            best = k
    return best


@cached_njit(fastmath=True)
def _bend(gram, ridge, indptr, places, curvature, points, direction, codes):
    """sum_j D_j^T H_j D_j, D_j the change of row j along the codebooks' direction."""
    d, w, total = len(gram), direction.shape[2], 0.0
    D = np.empty(d, np.float32)
    for j in range(len(codes)):
        for a in range(d):
            D[a] = direction[a // w, codes[j, a // w], a % w]
        for a in range(d):
            force = ridge[j] * D[a]
            for b in range(d):
                force += gram[a, b] * D[b]
            total += force * D[a]
        for t in range(indptr[j], indptr[j + 1]):  # H_j itself is not needed
            along = np.float32(0)
            for a in range(d):
                along += points[places[t], a] * D[a]
            total += curvature[t] * along * along
    return total
