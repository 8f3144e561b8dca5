"""Passes over comparisons with the loss inlined: full gradient, SVRG, SGD and AdaGrad on points.

Shapes, everywhere: x (n, c, 4) holds the points, each row padded with zeros to c blocks of four (padding stays zero
because every update is a combination of rows); q (m, 3) or (m, 4) uint32 indices; w (m,) weights or (0,) for none. The
kernels do not look whether indices and shapes fit: `objective` checks them first. The terms are F_q = w_q f_q; scale
factors are left to the caller. The walk is in the order of q, which the caller has shuffled once: random access to q
would be four times slower at 10^6 rows.
"""

import numpy as np

from nearkin.embedding.ordinal.compiling import inlined, kernel
from nearkin.embedding.ordinal.losses import loss_slopes, loss_value

# `np.uintp` indices spare numba's test for negative ones, and constant offsets 0..3 let SLP see four neighbours.


@inlined
def objects(q, t):
    """The objects (i, j, l, k) of row t, l = i for triplets: `records.as_quadruplets` without a copy of q."""
    columns = q.shape[1]
    third = 0 if columns == 3 else 2
    return np.uintp(q[t, 0]), np.uintp(q[t, 1]), np.uintp(q[t, third]), np.uintp(q[t, columns - 1])


@inlined
def squared_distances(x, i, j, l, k):  # noqa: E741  the paper's letters
    """(d_ij^2, d_lk^2) in the precision of x."""
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = x.dtype.type(0)
    for c in range(x.shape[1]):
        u0, u1 = x[i, c, 0] - x[j, c, 0], x[i, c, 1] - x[j, c, 1]
        u2, u3 = x[i, c, 2] - x[j, c, 2], x[i, c, 3] - x[j, c, 3]
        v0, v1 = x[l, c, 0] - x[k, c, 0], x[l, c, 1] - x[k, c, 1]
        v2, v3 = x[l, c, 2] - x[k, c, 2], x[l, c, 3] - x[k, c, 3]
        a0, a1, a2, a3 = a0 + u0 * u0, a1 + u1 * u1, a2 + u2 * u2, a3 + u3 * u3
        b0, b1, b2, b3 = b0 + v0 * v0, b1 + v1 * v1, b2 + v2 * v2, b3 + v3 * v3
    return (a0 + a1) + (a2 + a3), (b0 + b1) + (b2 + b3)


@inlined
def add_block(x, row, c, u0, u1, u2, u3):
    """x[row, c] += u, all four read before any is written, so that it becomes one vector instruction."""
    h0, h1, h2, h3 = x[row, c, 0] + u0, x[row, c, 1] + u1, x[row, c, 2] + u2, x[row, c, 3] + u3
    x[row, c, 0] = h0
    x[row, c, 1] = h1
    x[row, c, 2] = h2
    x[row, c, 3] = h3


@inlined
def set_block(x, row, c, u0, u1, u2, u3):
    """x[row, c] = u."""
    x[row, c, 0] = u0
    x[row, c, 1] = u1
    x[row, c, 2] = u2
    x[row, c, 3] = u3


@inlined
def difference(x, i, j, c, s):
    """s (x_i - x_j), block c."""
    return (
        s * (x[i, c, 0] - x[j, c, 0]),
        s * (x[i, c, 1] - x[j, c, 1]),
        s * (x[i, c, 2] - x[j, c, 2]),
        s * (x[i, c, 3] - x[j, c, 3]),
    )


@kernel
def sum_values(x, q, w, code, parameter):
    """sum_q F_q(x) in float64."""
    total = 0.0
    for t in range(len(q)):
        i, j, l, k = objects(q, t)  # noqa: E741
        a, b = squared_distances(x, i, j, l, k)
        value = loss_value(code, np.float64(a), np.float64(b), np.float64(parameter))
        total += value * w[t] if len(w) else value
    return total


@kernel
def sum_gradients(x, q, w, code, parameter, halves, gradient, slopes):
    """gradient += sum_q grad F_q(x); the slopes of every term are written to `slopes` (m, 2) if it is not empty."""
    two = x.dtype.type(2)
    for t in range(len(q)):
        i, j, l, k = objects(q, t)  # noqa: E741
        a, b = squared_distances(x, i, j, l, k)
        s_a, s_b = loss_slopes(code, a, b, parameter, halves)
        if len(w):
            s_a, s_b = s_a * w[t], s_b * w[t]
        s_a, s_b = two * s_a, two * s_b
        if len(slopes):
            slopes[t, 0], slopes[t, 1] = s_a, s_b
        if s_a == 0 and s_b == 0:
            continue
        for c in range(x.shape[1]):
            u0, u1, u2, u3 = difference(x, i, j, c, s_a)
            v0, v1, v2, v3 = difference(x, l, k, c, s_b)
            add_block(gradient, i, c, u0, u1, u2, u3)
            add_block(gradient, j, c, -u0, -u1, -u2, -u3)
            add_block(gradient, l, c, -v0, -v1, -v2, -v3)
            add_block(gradient, k, c, v0, v1, v2, v3)


@inlined
def catch_up(x, gradient, last, row, clock, step):
    """Add to one row its share of the full gradient since `last[row]`: the lazy half of an SVRG update."""
    lag = clock - last[row]
    s = -step * x.dtype.type(lag)
    last[row] = clock
    for c in range(x.shape[1] if lag > 0 else 0):  # not an early return: that would leave reference counts in the loop
        g0, g1, g2, g3 = gradient[row, c, 0], gradient[row, c, 1], gradient[row, c, 2], gradient[row, c, 3]
        add_block(x, row, c, s * g0, s * g1, s * g2, s * g3)


@kernel
def svrg_pass(x, snapshot, gradient, slopes, q, w, code, parameter, halves, first, n_terms, step, scale, batch):
    """One inner loop of SVRG-SBB Algorithm 1 over `n_terms` comparisons from row `first` on, cyclically, in place.

    A batch I at clock c (terms used so far) does x -= step [scale sum_{q in I} (grad F_q(x) - grad F_q(snapshot))
    + |I| gradient], where `gradient` is the full one; so the whole pass moves along it by n_terms x step, whatever the
    batch. The dense second part is applied to a row when it is next touched (`catch_up`), which makes batch = 1 as
    cheap as batch = 100. `slopes` are those of `sum_gradients` at the snapshot: they spare its distances and its exp.
    """
    n, blocks, m = x.shape[0], x.shape[1], len(q)
    two = x.dtype.type(2)
    factor = step * scale
    last = np.zeros(n, np.int64)
    near = np.empty((batch, blocks, 4), x.dtype)  # moves of a batch's terms, all evaluated before any is applied
    far = np.empty((batch, blocks, 4), x.dtype)
    clock, t = 0, first
    while clock < n_terms:
        size = min(batch, n_terms - clock)
        start = t
        for s in range(size):
            row, r = np.uintp(s), np.uintp(t)
            i, j, l, k = objects(q, r)  # noqa: E741
            catch_up(x, gradient, last, i, clock, step)
            catch_up(x, gradient, last, j, clock, step)
            catch_up(x, gradient, last, l, clock, step)
            catch_up(x, gradient, last, k, clock, step)
            a, b = squared_distances(x, i, j, l, k)
            s_a, s_b = loss_slopes(code, a, b, parameter, halves)
            if len(w):
                s_a, s_b = s_a * w[r], s_b * w[r]
            s_a, s_b = factor * two * s_a, factor * two * s_b
            r_a, r_b = factor * slopes[r, 0], factor * slopes[r, 1]
            for c in range(blocks):
                u0, u1, u2, u3 = difference(x, i, j, c, s_a)
                y0, y1, y2, y3 = difference(snapshot, i, j, c, r_a)
                v0, v1, v2, v3 = difference(x, l, k, c, s_b)
                z0, z1, z2, z3 = difference(snapshot, l, k, c, r_b)
                set_block(near, row, c, u0 - y0, u1 - y1, u2 - y2, u3 - y3)
                set_block(far, row, c, v0 - z0, v1 - z1, v2 - z2, v3 - z3)
            t = t + 1 if t + 1 < m else 0
        apply_moves(x, near, far, q, start, size)
        clock += size
    for row in range(n):
        catch_up(x, gradient, last, np.uintp(row), n_terms, step)
    return t


@inlined
def apply_moves(x, near, far, q, first, size):
    """x_i -= u, x_j += u, x_l += v, x_k -= v for the `size` comparisons from row `first` on."""
    m = len(q)
    t = first
    for s in range(size):
        row, r = np.uintp(s), np.uintp(t)
        i, j, l, k = objects(q, r)  # noqa: E741
        for c in range(x.shape[1]):
            u0, u1, u2, u3 = near[row, c, 0], near[row, c, 1], near[row, c, 2], near[row, c, 3]
            v0, v1, v2, v3 = far[row, c, 0], far[row, c, 1], far[row, c, 2], far[row, c, 3]
            add_block(x, i, c, -u0, -u1, -u2, -u3)
            add_block(x, j, c, u0, u1, u2, u3)
            add_block(x, l, c, v0, v1, v2, v3)
            add_block(x, k, c, -v0, -v1, -v2, -v3)
        t = t + 1 if t + 1 < m else 0


@kernel
def sgd_pass(x, q, w, code, parameter, halves, step):
    """x -= step grad F_q(x) for every comparison in turn, in place."""
    two = x.dtype.type(2)
    for t in range(len(q)):
        i, j, l, k = objects(q, t)  # noqa: E741
        a, b = squared_distances(x, i, j, l, k)
        s_a, s_b = loss_slopes(code, a, b, parameter, halves)
        if len(w):
            s_a, s_b = s_a * w[t], s_b * w[t]
        s_a, s_b = two * step * s_a, two * step * s_b
        if s_a == 0 and s_b == 0:
            continue
        for c in range(x.shape[1]):
            u0, u1, u2, u3 = difference(x, i, j, c, s_a)
            v0, v1, v2, v3 = difference(x, l, k, c, s_b)
            add_block(x, i, c, -u0, -u1, -u2, -u3)
            add_block(x, j, c, u0, u1, u2, u3)
            add_block(x, l, c, v0, v1, v2, v3)
            add_block(x, k, c, -v0, -v1, -v2, -v3)


@kernel
def adagrad_pass(x, accumulator, q, w, code, parameter, halves, step):
    """Row-wise AdaGrad, in place: accumulator[r] += |g_r|^2, x_r -= step g_r / sqrt(accumulator[r]), per comparison."""
    two = x.dtype.type(2)
    for t in range(len(q)):
        i, j, l, k = objects(q, t)  # noqa: E741
        a, b = squared_distances(x, i, j, l, k)
        s_a, s_b = loss_slopes(code, a, b, parameter, halves)
        if len(w):
            s_a, s_b = s_a * w[t], s_b * w[t]
        s_a, s_b = two * s_a, two * s_b
        if s_a == 0 and s_b == 0:
            continue
        near, far = s_a * s_a * a, s_b * s_b * b
        accumulator[j] += near
        accumulator[k] += far
        if i == l:  # |g_i|^2 of a triplet mixes both parts: |s_a u - s_b v|^2 = near + far - 2 s_a s_b <u, v>
            bc, _ = squared_distances(x, j, k, j, k)  # 2 <u, v> = a + b - d_jk^2
            accumulator[i] += max(near + far - s_a * s_b * (a + b - bc), x.dtype.type(0))
        else:
            accumulator[i] += near
            accumulator[l] += far
        e_i, e_j = step / np.sqrt(accumulator[i]), step / np.sqrt(accumulator[j])
        e_l, e_k = step / np.sqrt(accumulator[l]), step / np.sqrt(accumulator[k])
        for c in range(x.shape[1]):
            u0, u1, u2, u3 = difference(x, i, j, c, s_a)
            v0, v1, v2, v3 = difference(x, l, k, c, s_b)
            add_block(x, i, c, -e_i * u0, -e_i * u1, -e_i * u2, -e_i * u3)
            add_block(x, j, c, e_j * u0, e_j * u1, e_j * u2, e_j * u3)
            add_block(x, l, c, e_l * v0, e_l * v1, e_l * v2, e_l * v3)
            add_block(x, k, c, -e_k * v0, -e_k * v1, -e_k * v2, -e_k * v3)
