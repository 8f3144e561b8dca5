"""Losses of ordinal embedding: the loss of one answer d(i, j) < d(l, k), and compiled passes over all answers.

Every loss is a function f(a, b) of the two squared distances a = d_ij^2 (should be small) and b = d_lk^2 (should be
large). With the slopes s_a = df/da and s_b = -df/db, both >= 0, the gradient on the points is

    g_i = 2 s_a (x_i - x_j) = -g_j,        g_l = -2 s_b (x_l - x_k) = -g_k,

and on the Gram matrix G (a = G_ii + G_jj - 2 G_ij) it is s_a W_ij - s_b W_lk. A triplet (i, j, k) is l = i. So one pair
of formulas per loss serves triplets and quadruplets, points and Gram matrix.

Misprints in paper 004 (SVRG-SBB), each corrected here and proved by the tests against central differences:

* eq. 45 must read Delta_q G <= -1 + xi, which gives xi = max(0, 1 + a - b).
* eq. 47, printed for CKL, is STE's eq. 48: after multiplying by exp(-a - b) both are exp(-a) / (exp(-a) + exp(-b)).
  The crowd kernel's own form (Tamuz et al. 2011), used here, is p = (mu + b) / (2 mu + a + b).
* eq. 50 holds for STE only; each loss below is -log p of that loss's model.
* eq. 58 (t-STE) has an extra factor alpha^(-alpha) and the wrong sign in its second block; see `loss_slopes`.
* eq. 60: the rows must be (I 0 I 0), (0 I 0 0), (0 0 0 I): g_i of a triplet adds the parts of i and of l.

Shapes in every pass: x (n, c, 4) holds the points, each row padded with zeros to c blocks of four (padding stays zero,
as every update is a combination of rows); q (m, 3) or (m, 4) uint32 indices; w (m,) weights or (0,) for none. The
passes do not check indices and shapes: `objective` does. The terms are F_q = w_q f_q; the caller applies scale factors.
The order is that of q, which the caller has shuffled once: random access to q is four times slower at 10^6 rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numba.core import config
from numba.core.dispatcher import Dispatcher

from nearkin import _check
from nearkin._compile import cached_njit

GNMDS, STE, CKL, T_STE, SOE = range(5)
LOSSES = {"gnmds": GNMDS, "ckl": CKL, "ste": STE, "t-ste": T_STE, "soe": SOE}
MU, MARGIN = 0.05, 0.1  # of "ckl" (Tamuz et al. 2011) and "soe" (Terada and von Luxburg 2014)

# NaN and infinity stay valid (no nnan, ninf), so that a diverged run is detected.
FASTMATH = {"contract", "reassoc", "nsz", "arcp"}


def kernel(function: Callable) -> Dispatcher:
    """Compile `function` on first call, cached on disk, with numba's SLP vectorizer on and its loop vectorizer off.

    The loop vectorizer would consume the short loop over blocks of four: 13 ns per comparison instead of 21 (p = 10).
    Both switches are global in numba, so they change only while this function compiles. Every inlined function must be
    in this file: numba's cache looks at the kernel's own file only.
    """
    dispatcher = cached_njit(fastmath=FASTMATH, error_model="numpy")(function)
    compile_plainly = dispatcher.compile

    def compile_with_slp(signature: Any) -> object:
        before = config.SLP_VECTORIZE, config.LOOP_VECTORIZE  # type: ignore[attr-defined]
        config.SLP_VECTORIZE, config.LOOP_VECTORIZE = 1, 0  # type: ignore[attr-defined]
        try:
            return compile_plainly(signature)
        finally:
            config.SLP_VECTORIZE, config.LOOP_VECTORIZE = before  # type: ignore[attr-defined]

    dispatcher.compile = compile_with_slp
    return dispatcher


def inlined(function: Callable) -> Dispatcher:
    """Compile a small helper of a kernel so that LLVM must inline it: a call passes every array as seven numbers."""
    options: dict[str, Any] = {"fastmath": FASTMATH, "error_model": "numpy", "forceinline": True}
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # only kernels call it
    return njit(**options)(function)


@dataclass(frozen=True)
class OrdinalLoss:
    """A loss for the kernels: `code` selects the formula, `parameter` is its constant (mu, alpha or margin)."""

    name: str
    code: int
    parameter: float
    has_model: bool  # exp(-f) is the probability of the answer


def get_loss(name: str, n_components: int, parameter: float | None = None) -> OrdinalLoss:
    """The loss called `name` for embeddings in `n_components` dimensions.

    `parameter` is mu > 0 for "ckl" (0.05), alpha > 0 for "t-ste" (max(n_components - 1, 1), SVRG-SBB eq. 49), the
    margin > 0 for "soe" (0.1), and for "ste" the share of random answers r from 0 (the default) to 0.9, with which p
    becomes r / 2 + (1 - r) p, a psychometric function with lapses (Wichmann & Hill 2001); "gnmds" has none. Raises
    ValueError for another name or a bad parameter.
    """
    code = LOSSES[_check.check_choice(name, "loss", LOSSES)]
    value = {CKL: MU, STE: 0.0, T_STE: float(max(n_components - 1, 1)), SOE: MARGIN}.get(code)
    if value is None:
        if parameter is not None:
            raise ValueError(f"loss_parameter is {parameter!r}; loss {name!r} has none, pass loss_parameter=None")
        value = 1.0
    elif code == STE and parameter is not None:
        value = _check.check_real(parameter, "loss_parameter", low=0.0, high=0.9)
    elif parameter is not None:
        value = _check.check_real(parameter, "loss_parameter", above=0.0)
    return OrdinalLoss(name, code, value, code not in (GNMDS, SOE))


@inlined
def loss_value(code: int, a: float, b: float, parameter: float) -> float:
    """f(a, b) in float64, safe against overflow, without an epsilon inside a logarithm."""
    if code == GNMDS:  # eq. 45 corrected
        return max(0.0, 1.0 + a - b)
    if code == STE:  # eq. 48: -log p = log(1 + exp(a - b)), or with a share of random answers
        z = a - b
        if parameter > 0:
            return -np.log(0.5 * parameter + (1.0 - parameter) / (1.0 + np.exp(z)))
        return max(z, 0.0) + np.log1p(np.exp(-abs(z)))
    if code == CKL:  # -log p = log(1 + (mu + a) / (mu + b))
        return np.log1p((parameter + a) / (parameter + b))
    if code == T_STE:  # eq. 49: -log p = log(1 + (s_ij / s_lk)^((alpha + 1) / 2)), s = alpha + d^2
        z = 0.5 * (parameter + 1.0) * (np.log(parameter + a) - np.log(parameter + b))
        return max(z, 0.0) + np.log1p(np.exp(-abs(z)))
    hinge = max(0.0, parameter + np.sqrt(a) - np.sqrt(b))  # SOE (Terada & von Luxburg 2014): on the distances
    return hinge * hinge


@inlined
def loss_slopes(code, a, b, parameter):
    """The slopes (df/da, -df/db) in the precision of `a`."""
    T = type(a)  # constants in the data's own precision: a float64 literal would drag float32 arithmetic to float64
    zero, one = T(0), T(1)
    if code == GNMDS:
        active = one if one + a - b > zero else zero
        return active, active
    if code == STE:
        miss = one / (one + np.exp(b - a))  # 1 - p; exp may overflow to infinity, and 1 / infinity = 0 is right
        if parameter > zero:  # with q = r / 2 + (1 - r) p the slope is (1 - r) p (1 - p) / q
            hit = (one - parameter) * (one - miss)
            miss *= hit / (T(0.5) * parameter + hit)
        return miss, miss
    if code == CKL:
        total = parameter + parameter + a + b
        return one / total, (parameter + a) / ((parameter + b) * total)
    if code == T_STE:  # eq. 58 corrected: with s = alpha + d^2, 1 - p = 1 / (1 + (s_lk / s_ij)^((alpha + 1) / 2)) and
        # the slopes are (alpha + 1) / 2 (1 - p) / s_ij and the same over s_lk
        s_near, s_far, exponent = parameter + a, parameter + b, T(0.5) * (parameter + one)
        ratio, whole = s_far / s_near, np.int32(parameter)
        if whole == parameter:  # as by default; products instead of a logarithm shorten a fit by a tenth to a fifth
            power = np.sqrt(ratio ** (whole + np.int32(1)))
        else:
            power = np.exp(exponent * np.log(ratio))
        weight = exponent / (one + T(power))
        return weight / s_near, weight / s_far
    near, far = np.sqrt(a), np.sqrt(b)
    hinge = parameter + near - far
    if hinge <= zero:
        return zero, zero
    # at coincident points the distance has no derivative; its subgradient 0 is taken
    return (hinge / near if near > zero else zero), (hinge / far if far > zero else zero)


# ---- passes over all answers -------------------------------------------------------------------------------------

# `np.uintp` indices spare numba's test for negative ones, and constant offsets 0..3 let SLP see four neighbours. The
# lines from distances to slopes are repeated in each pass: as a helper they make SGD and SVRG 15 to 30 % slower.


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


@inlined
def add_term(x, i, j, l, k, c, u0, u1, u2, u3, v0, v1, v2, v3):  # noqa: E741
    """x_i += u, x_j -= u, x_l -= v, x_k += v in block c."""
    add_block(x, i, c, u0, u1, u2, u3)
    add_block(x, j, c, -u0, -u1, -u2, -u3)
    add_block(x, l, c, -v0, -v1, -v2, -v3)
    add_block(x, k, c, v0, v1, v2, v3)


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
def sum_gradients(x, q, w, code, parameter, scale, gradient, slopes):
    """gradient += scale grad F_q(x), term after term: with `gradient` = x and a negative scale, a pass of SGD.

    The scaled slopes of every term are written to `slopes` (m, 2) if it is not empty.
    """
    two = x.dtype.type(2)
    for t in range(len(q)):
        i, j, l, k = objects(q, t)  # noqa: E741
        a, b = squared_distances(x, i, j, l, k)
        s_a, s_b = loss_slopes(code, a, b, parameter)
        if len(w):
            s_a, s_b = s_a * w[t], s_b * w[t]
        s_a, s_b = two * scale * s_a, two * scale * s_b
        if len(slopes):
            slopes[t, 0], slopes[t, 1] = s_a, s_b
        if s_a == 0 and s_b == 0:
            continue
        for c in range(x.shape[1]):
            u0, u1, u2, u3 = difference(x, i, j, c, s_a)
            v0, v1, v2, v3 = difference(x, l, k, c, s_b)
            add_term(gradient, i, j, l, k, c, u0, u1, u2, u3, v0, v1, v2, v3)


@inlined
def catch_up(x, gradient, last, row, clock, step):
    """Add to one row its share of the full gradient since `last[row]`: the lazy half of an SVRG update."""
    lag = clock - last[row]
    s = -step * x.dtype.type(lag)
    last[row] = clock
    for c in range(x.shape[1] if lag > 0 else 0):  # an early return would leave reference counts in the loop
        g0, g1, g2, g3 = gradient[row, c, 0], gradient[row, c, 1], gradient[row, c, 2], gradient[row, c, 3]
        add_block(x, row, c, s * g0, s * g1, s * g2, s * g3)


@kernel
def svrg_pass(x, snapshot, gradient, slopes, q, w, code, parameter, first, n_terms, step, scale, batch):
    """One inner loop of SVRG-SBB Algorithm 1 over `n_terms` comparisons from row `first` on, cyclically, in place.

    A batch I does x -= step [scale sum_{q in I} (grad F_q(x) - grad F_q(snapshot)) + |I| gradient], `gradient` the full
    one. Its dense part is applied to a row when that is next touched (`catch_up`), so batch = 1 is as cheap as batch =
    100. `slopes` are those of `sum_gradients` at the snapshot.
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
            s_a, s_b = loss_slopes(code, a, b, parameter)
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
        t = start
        for s in range(size):
            row = np.uintp(s)
            i, j, l, k = objects(q, np.uintp(t))  # noqa: E741
            for c in range(blocks):
                u0, u1, u2, u3 = near[row, c, 0], near[row, c, 1], near[row, c, 2], near[row, c, 3]
                v0, v1, v2, v3 = far[row, c, 0], far[row, c, 1], far[row, c, 2], far[row, c, 3]
                add_term(x, j, i, k, l, c, u0, u1, u2, u3, v0, v1, v2, v3)
            t = t + 1 if t + 1 < m else 0
        clock += size
    for row in range(n):
        catch_up(x, gradient, last, np.uintp(row), n_terms, step)
    return t


@kernel
def adagrad_pass(x, accumulator, q, w, code, parameter, step):
    """Row-wise AdaGrad, in place: accumulator[r] += |g_r|^2, x_r -= step g_r / sqrt(accumulator[r]), per comparison."""
    two = x.dtype.type(2)
    for t in range(len(q)):
        i, j, l, k = objects(q, t)  # noqa: E741
        if j in (l, k):  # pairs have no order: an object in both comes first
            i, j = j, i
        if i == k:
            l, k = k, l  # noqa: E741
        a, b = squared_distances(x, i, j, l, k)
        s_a, s_b = loss_slopes(code, a, b, parameter)
        if len(w):
            s_a, s_b = s_a * w[t], s_b * w[t]
        s_a, s_b = two * s_a, two * s_b
        if s_a == 0 and s_b == 0:
            continue
        near, far = s_a * s_a * a, s_b * s_b * b
        accumulator[j] += near
        accumulator[k] += far
        if i == l:  # |g_i|^2 of a shared object mixes both parts: |s_a u - s_b v|^2 = near + far - 2 s_a s_b <u, v>
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


@kernel
def event_pass(x, q, starts, code, parameter, values, shares):
    """values[e] = -log p of event e, rows starts[e] to starts[e + 1] of q; shares[t] = exp(f_t + log p), float64."""
    for e in range(len(starts) - 1):
        largest = 0.0
        for t in range(starts[e], starts[e + 1]):
            i, j, l, k = objects(q, t)  # noqa: E741
            a, b = squared_distances(x, i, j, l, k)
            shares[t] = loss_value(code, a, b, parameter)
            largest = max(largest, shares[t])
        small = largest < 30.0  # else e^f may overflow, and adding 1 to it has no effect
        odds = 0.0
        for t in range(starts[e], starts[e + 1]):
            odds += np.expm1(shares[t]) if small else np.exp(shares[t] - largest) - np.exp(-largest)
        values[e] = np.log1p(odds) if small else largest + np.log(odds + np.exp(-largest))
        for t in range(starts[e], starts[e + 1]):
            shares[t] = np.exp(shares[t] - values[e])
