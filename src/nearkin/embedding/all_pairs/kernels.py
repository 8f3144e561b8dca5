"""Numba kernels on the observed pairs in CSR order: sampled products, gathered sums, one small system a row.

Nothing of size (nnz, k) exists anywhere: every kernel walks the pairs of a row and meets each q_j where it lies.
All take the rows [start, stop), release the interpreter's lock and write only their own rows: threads share nothing.
"""

import numpy as np

from nearkin._compile import cached_njit
from nearkin.embedding.all_pairs.prefetch import AHEAD, FAR_AHEAD, is_far, prefetch, prefetch_row

_jit = cached_njit(nogil=True, fastmath=True, error_model="numpy")


@_jit
def pair_dots(start, stop, indptr, indices, P, Q, out):
    """out[e] = p_i . q_j for the pairs e = (i, j) of the rows: the sampled dense-dense product."""
    k, last, far = P.shape[1], indptr[stop] - 1, is_far(Q)
    for i in range(start, stop):
        p = P[i]
        for e in range(indptr[i], indptr[i + 1]):
            if far:
                prefetch_row(Q, indices[min(e + AHEAD, last)])
            q = Q[indices[e]]
            total = P.dtype.type(0)
            for c in range(k):
                total += p[c] * q[c]
            out[e] = total


@_jit
def pair_cross_dots(start, stop, indptr, indices, P, Q, W, H, out):
    """out[e] = w_i . q_j + p_i . h_j, the directional derivative of the scores."""
    k, last, far = P.shape[1], indptr[stop] - 1, is_far(Q)
    for i in range(start, stop):
        p, w = P[i], W[i]
        for e in range(indptr[i], indptr[i + 1]):
            if far:
                ahead = indices[min(e + AHEAD, last)]
                prefetch_row(Q, ahead)
                prefetch_row(H, ahead)
            q, h = Q[indices[e]], H[indices[e]]
            total = P.dtype.type(0)
            for c in range(k):
                total += w[c] * q[c] + p[c] * h[c]
            out[e] = total


@_jit
def reorder(start, stop, indptr, order, values, out):
    """out[e] = values[order[e]] for the pairs of the rows, asked for long before: beside a row's work it cost twice."""
    last = indptr[stop] - 1
    for e in range(indptr[start], indptr[stop]):
        prefetch(values, (order[min(e + FAR_AHEAD, last)],))  # pyright: ignore[reportCallIssue]
        out[e] = values[order[e]]


@_jit
def gather_rows(start, stop, indptr, indices, values, Q, out):
    """out[i] = sum over the pairs e = (i, j) of values[e] q_j: the sparse-dense product, four pairs at a time."""
    k, last, far = Q.shape[1], indptr[stop] - 1, is_far(Q)
    for i in range(start, stop):
        row = out[i]
        for c in range(k):
            row[c] = 0
        e, end = indptr[i], indptr[i + 1]
        while e + 4 <= end:
            if far:
                for ahead in range(e + AHEAD, e + AHEAD + 4):
                    prefetch_row(Q, indices[min(ahead, last)])
            q0, q1, q2, q3 = Q[indices[e]], Q[indices[e + 1]], Q[indices[e + 2]], Q[indices[e + 3]]
            v0, v1, v2, v3 = values[e], values[e + 1], values[e + 2], values[e + 3]
            for c in range(k):
                row[c] += v0 * q0[c] + v1 * q1[c] + v2 * q2[c] + v3 * q3[c]
            e += 4
        while e < end:
            q, v = Q[indices[e]], values[e]
            for c in range(k):
                row[c] += v * q[c]
            e += 1


@_jit
def solve_rows_cg(start, stop, indptr, indices, curvature, Q, spectrum, cost, ridge, gradient, out, steps):
    """Solve (cost_i diag(spectrum) + ridge_i I + sum_e curvature_e q_j q_j^T) d_i = -gradient_i by preconditioned CG.

    The Gramian is diagonal because the caller has turned P and Q into its eigenbasis, so a product costs O(nnz_i k)
    and not O(k^2), and the exact diagonal of the matrix is the preconditioner.
    """
    k = Q.shape[1]
    one = Q.dtype.type(1)
    x, r, s, p, Hp, inverse = _vectors(k, Q)
    for i in range(start, stop):
        for c in range(k):
            inverse[c] = cost[i] * spectrum[c] + ridge[i]
        for e in range(indptr[i], indptr[i + 1]):
            q, h = Q[indices[e]], curvature[e]
            for c in range(k):
                inverse[c] += h * q[c] * q[c]
        rs = Q.dtype.type(0)
        for c in range(k):
            inverse[c] = one / inverse[c] if inverse[c] > 0 else one
            x[c], r[c] = 0, -gradient[i, c]
            p[c] = inverse[c] * r[c]
            rs += r[c] * p[c]
        for _ in range(steps):
            if rs <= 1e-20:
                break
            for c in range(k):
                Hp[c] = (cost[i] * spectrum[c] + ridge[i]) * p[c]
            for e in range(indptr[i], indptr[i + 1]):
                q = Q[indices[e]]
                t = Q.dtype.type(0)
                for c in range(k):
                    t += q[c] * p[c]
                t *= curvature[e]
                for c in range(k):
                    Hp[c] += t * q[c]
            pHp = Q.dtype.type(0)
            for c in range(k):
                pHp += p[c] * Hp[c]
            if pHp <= 0:
                break
            alpha, new = rs / pHp, Q.dtype.type(0)
            for c in range(k):
                x[c] += alpha * p[c]
                r[c] -= alpha * Hp[c]
                s[c] = inverse[c] * r[c]
                new += r[c] * s[c]
            for c in range(k):
                p[c] = s[c] + (new / rs) * p[c]
            rs = new
        for c in range(k):
            out[i, c] = x[c]


@_jit
def solve_rows_exactly(start, stop, indptr, indices, curvature, Q, gram, cost, ridge, gradient, out):
    """Solve (cost_i gram + ridge_i I + sum_e curvature_e q_j q_j^T) d_i = -gradient_i by Cholesky's method, k small."""
    k = Q.shape[1]
    A = np.empty((k, k), Q.dtype)
    for i in range(start, stop):
        for c in range(k):
            for d in range(c + 1):
                A[c, d] = cost[i] * gram[c, d]
            A[c, c] += ridge[i]
        for e in range(indptr[i], indptr[i + 1]):
            q, h = Q[indices[e]], curvature[e]
            for c in range(k):
                t, row = h * q[c], A[c]
                for d in range(c + 1):
                    row[d] += t * q[d]
        _cholesky_solve(A, gradient[i], out[i])


@_jit
def _cholesky_solve(A, gradient, x):
    """x = -A^-1 gradient, A given by its lower triangle and overwritten; a pivot that vanishes leaves its entry 0."""
    k = len(x)
    for c in range(k):
        for d in range(c):
            t = A[c, d]
            for b in range(d):
                t -= A[c, b] * A[d, b]
            A[c, d] = t * A[d, d]  # the diagonal holds the inverse pivots
        t = A[c, c]
        for b in range(c):
            t -= A[c, b] * A[c, b]
        A[c, c] = 1 / np.sqrt(t) if t > 0 else 0
        t = -gradient[c]
        for b in range(c):
            t -= A[c, b] * x[b]
        x[c] = t * A[c, c]
    for c in range(k - 1, -1, -1):
        t = x[c]
        for b in range(c + 1, k):
            t -= A[b, c] * x[b]
        x[c] = t * A[c, c]


@_jit
def _vectors(k, like):
    """Six work vectors of the dtype of `like`, made once for all rows."""
    x = np.empty((6, k), like.dtype)
    return x[0], x[1], x[2], x[3], x[4], x[5]
