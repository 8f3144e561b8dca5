"""Better rows of one side while the other side is fixed: each row is a small, separate least-squares problem."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from nearkin._distributed import ALONE, Group
from nearkin.embedding.all_pairs.loss import SQUARED, AllPairsLoss, AllPairsPoint
from nearkin.embedding.all_pairs.products import by_blocks, compiled, gathered
from nearkin.solvers.newton import armijo

FEW_COLUMNS = 64  # up to this k, exact solves are as fast as conjugate gradients
CG_STEPS = 16  # to .001 of the way to the minimum for larger k


def solve_left(loss: AllPairsLoss, P: Tensor, Q: Tensor, group: Group = ALONE) -> Tensor:
    """(m, k) the exact minimiser of a squared loss over P for fixed Q; of another loss one Newton step from P."""
    return improve_left(loss.part(group), P, Q, block_size=P.shape[1])[1]


def descend_left(loss: AllPairsLoss, P: Tensor, Q: Tensor, group: Group = ALONE) -> Tensor:
    """(m, k) `solve_left` to a thousandth: exactly up to 64 columns, else by conjugate gradients from P."""
    if P.shape[1] <= FEW_COLUMNS:
        return solve_left(loss, P, Q, group)
    part = loss.part(group)
    spectrum, turn = eigenbasis(part, P, Q)
    return improve_left(part, P @ turn, Q @ turn, spectrum=spectrum, cg_steps=CG_STEPS)[1] @ turn.T


def eigenbasis(loss: AllPairsLoss, P: Tensor, Q: Tensor) -> tuple[Tensor, Tensor]:
    """Spectrum (k,) float64 and eigenvectors (k, k) of omega Q^T B Q: a basis that changes no score."""
    spectrum, turn = torch.linalg.eigh(loss.omega * loss.at(P[loss.rows], Q).right_gram)
    loss.group.broadcast(spectrum.numpy(), turn.numpy())  # machines may round differently
    return spectrum, turn.to(P)


def improve_left(
    loss: AllPairsLoss,
    P: Tensor,
    Q: Tensor,
    *,
    spectrum: Tensor | None = None,
    cg_steps: int = 2,
    block_size: int | None = None,
    mean: Tensor | None = None,
) -> tuple[AllPairsPoint, Tensor]:
    """A Newton step on every row of P (m, k): the point before it, of the rows of `loss`, and all rows after it.

    With `spectrum`, of tables rotated into the `eigenbasis`, by `cg_steps` of conjugate gradients; with `block_size`
    exactly, in blocks of columns. Rows shrink towards `mean` (rows, k), by default 0. A loss that is not quadratic gets
    an Armijo search.
    """
    before = point = loss.at(P[loss.rows], Q)
    if spectrum is None:
        solve, blocks = _exactly, torch.arange(P.shape[1]).split(block_size or P.shape[1])
    else:
        solve, blocks = _by_conjugate_gradients(spectrum.clamp(min=0).to(P), cg_steps), (slice(None),)
        if loss.omega:
            before.right_gram = torch.diag(spectrum.double()) / loss.omega  # known, so not summed again
    for columns in blocks:
        point = loss.at(_improved(loss, point, solve, columns, mean), Q)
    return before, gathered(point.P, loss.group)


def _improved(
    loss: AllPairsLoss, point: AllPairsPoint, solve: Callable, columns: Tensor | slice, mean: Tensor | None
) -> Tensor:
    """P after a Newton step on some of its columns; full for a quadratic, else cut by Armijo's rule."""
    gradient = point.left_gradient()
    if mean is not None:
        gradient -= point.constants.ridge_left * mean
    P = point.P.clone()
    if loss.loss == SQUARED:
        P[:, columns] += solve(point, gradient, columns)
        return P
    direction = torch.zeros_like(P)
    direction[:, columns] = solve(point, gradient, columns)

    towards = 0.0 if mean is None else float((point.constants.ridge_left * mean * direction).sum())
    sums = np.array([towards, float((gradient * direction).sum(dtype=torch.float64))])
    loss.group.all_reduce(sums)

    def along(t: float) -> float:
        return loss.value(point.P + t * direction, point.Q) - t * float(sums[0])

    slope = min(float(sums[1]), 0.0)
    return P.add_(direction, alpha=armijo(along, point.value(), slope).step_size)


def _by_conjugate_gradients(spectrum: Tensor, steps: int) -> Callable:
    def solve(point: AllPairsPoint, gradient: Tensor, columns: slice) -> Tensor:
        return _by_rows(solve_rows_cg, point, point.Q, spectrum, gradient, steps)

    return solve


def _exactly(point: AllPairsPoint, gradient: Tensor, columns: Tensor) -> Tensor:
    Q = point.Q[:, columns].contiguous()
    gram = (point.omega * point.right_gram[columns][:, columns]).to(Q)
    return _by_rows(solve_rows_exactly, point, Q, gram, gradient[:, columns].contiguous())


def _by_rows(kernel: Callable, point: AllPairsPoint, Q: Tensor, gram: Tensor, gradient: Tensor, *extra: int) -> Tensor:
    """Directions of all rows by one of the compiled solvers."""
    c, out = point.constants, torch.empty_like(gradient)
    arrays = (point.curvature, Q, gram, c.a.reshape(-1), c.ridge_left.reshape(-1), gradient, out)
    by_blocks(
        kernel, point.pairs.indptr, point.pairs.indices, *(array.contiguous().numpy() for array in arrays), *extra
    )
    return out


@compiled
def solve_rows_cg(start, stop, indptr, indices, curvature, Q, spectrum, cost, ridge, gradient, out, steps):
    """Solve (cost_i diag(spectrum) + ridge_i I + sum_e curvature_e q_j q_j^T) d_i = -gradient_i by CG, preconditioned
    by the exact diagonal; P and Q are in the eigenbasis, so a product costs O(nnz_i k)."""
    k = Q.shape[1]
    one = Q.dtype.type(1)
    x, r, s = np.empty(k, Q.dtype), np.empty(k, Q.dtype), np.empty(k, Q.dtype)
    p, Hp, inverse = np.empty(k, Q.dtype), np.empty(k, Q.dtype), np.empty(k, Q.dtype)
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


@compiled
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


@compiled
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
