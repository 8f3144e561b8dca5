"""The "newton-schulz" and "taylor" steps of small matrices as one compiled call.

A product of them takes no longer than the call of torch that starts it.

The formulas are those of `riemannian_descent`, of `retraction.newton_schulz_orthonormalize` and of
`retraction.taylor_right_step`; tests compare both.
"""

# pyright: reportConstantRedefinition=false, reportMissingTypeStubs=false, reportUnknownMemberType=false

from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nearkin._compile import cached_njit
from nearkin.orthogonal.layout import DEFAULTS

# f(B) = I + B + B^2 / 2 + THIRD B^3 + FOURTH B^4, for which |f(i t)|^2 = 1 + FOURTH^2 t^8
THIRD = (1 - 0.5**0.5) / 2
FOURTH = THIRD**2


def is_small(M: Tensor) -> bool:
    """Whether `orthonormalize_small` and `descend_small` take M (..., d, k)."""
    if M.device.type != "cpu" or M.dtype not in (torch.float32, torch.float64):
        return False
    return M.shape[-2] * M.shape[-1] <= DEFAULTS.compiled and M.is_contiguous()


class Fit(NamedTuple):
    """Inverse roots: (1 + x)^(-1/2) is 1 - x / 2 + x^2 (a + b x + c x^2) for |x| <= reach, up to an error.

    With the polynomial p, |(1 + x) p(x)^2 - 1| <= slack x^2. So a matrix with E = M^T M - I, ||E^2||_F <= reach^2, is
    orthonormal after M <- M p(E) up to ||M^T M - I||_F <= slack ||E^2||_F.
    """

    a: float
    b: float
    c: float
    reach: float
    slack: float


@lru_cache
def inverse_root(dtype: torch.dtype) -> Fit:
    """Return the fit in Chebyshev's nodes that leaves about `retraction.TOLERANCE`; the series reaches less far."""
    reach = 0.12 if dtype == torch.float32 else 0.0145
    # the series over x^2: binom(-1/2, j) = (-1/4)^j binom(2 j, j)
    rest = np.polynomial.Polynomial([(-0.25) ** j * comb(2 * j, j) for j in range(2, 30)])
    a, b, c = np.polynomial.Chebyshev.interpolate(rest, 2, [-reach, reach]).convert(kind=np.polynomial.Polynomial).coef
    x = np.linspace(-reach, reach, 400)  # without 0
    slack = np.abs((1 + x) * (1 - x / 2 + x**2 * (a + b * x + c * x**2)) ** 2 - 1) / x**2
    return Fit(float(a), float(b), float(c), reach, float(slack.max()))


def orthonormalize_small(
    M: Tensor,  # (..., d, k), contiguous; changed
    tolerance: float,  # of ||M^T M - I||_F / sqrt(k)
) -> bool:
    """Bring M onto the manifold by Newton-Schulz steps in place; False if a matrix is too far away for them."""
    if not is_small(M):
        raise ValueError(
            f"M is {M.dtype} {tuple(M.shape)} on {M.device}; it must be contiguous float32 or float64 of at most "
            f"{DEFAULTS.compiled} entries a matrix on the CPU"
        )
    array = M.detach().numpy().reshape(-1, *M.shape[-2:])
    k, fit = M.shape[-1], np.array(inverse_root(M.dtype), array.dtype)
    E, F = np.empty((2, k, k), array.dtype)
    rest = np.empty(array.shape[1:], array.dtype)
    return all(_orthonormalize(matrix, E, F, rest, array.dtype.type(tolerance), fit) for matrix in array)


class Rates(NamedTuple):
    """The numbers of one step: M <- decay M + gain gradient; with beta2, v averages squares, and the direction is
    M / (sqrt(v) / scale + eps); without, scale is 0.
    """

    length: float
    decay: float = 0.0
    gain: float = 1.0
    beta2: float = 0.0
    scale: float = 0.0
    eps: float = 0.0


def descend_small(
    X: Tensor,  # (b, d, k), as `is_small` has it
    G: Tensor,  # (b, d, k), contiguous
    moments: tuple[Tensor | None, Tensor | None],  # of the skew gradient (b, d, d), or of a tall one (b, d, k); changed
    rates: Rates,
    tolerance: float,
    signs: Tensor | None = None,
) -> tuple[Tensor, bool]:
    """One step: X itself, moved, and True; for too long a step False and a new matrix still to be orthonormalized.

    X is then unchanged. Second moments are for square X only. With `signs`, a probing vector of X's dtype (d,), square
    X move by the polynomial of `retraction.taylor_right_step` and else by Newton-Schulz; if a step is too long for
    the polynomial, the new matrix is not meaningful.
    """
    x, g = X.numpy(), G.numpy()
    empty = x[:0]
    m, v = (empty if moment is None else moment.view(X.shape).numpy() for moment in moments)
    numbers = np.array((*rates, tolerance, *inverse_root(X.dtype)), x.dtype)
    if X.shape[-2] == X.shape[-1]:
        Y, done = _square_step(x, g, m, v, numbers, x[0, 0, :0] if signs is None else signs.numpy())
    else:
        Y, done = _tall_step(x, g, m, v, numbers)
    return (X, True) if done else (torch.from_numpy(Y), False)


@cached_njit(fastmath={"reassoc", "contract", "nsz"})  # NaN and infinity propagate
def _square_step(
    X: np.ndarray, G: np.ndarray, M: np.ndarray, V: np.ndarray, numbers: np.ndarray, signs: np.ndarray
) -> tuple[np.ndarray, bool]:
    d, one, done = X.shape[1], X.dtype.type(1), True
    P, A, Y = np.empty((d, d), X.dtype), np.zeros((d, d), X.dtype), np.empty_like(X)
    for b in range(len(X)):
        np.dot(X[b].T, G[b], P)
        _turn(P, A, M[b : b + 1], V[b : b + 1], numbers)
        if len(signs):
            done &= _follow_series(X[b], A, Y[b], P, signs, numbers[6], numbers[7:])
        else:
            np.dot(X[b], A, P)
            _combine(one, X[b], one, P, Y[b])
            done &= _orthonormalize(Y[b], A, P, P, numbers[6], numbers[7:])
    if done:
        X[:] = Y
    return Y, done


@cached_njit(fastmath={"reassoc", "contract", "nsz"})
def _turn(P: np.ndarray, A: np.ndarray, M: np.ndarray, V: np.ndarray, numbers: np.ndarray) -> None:
    """A <- minus the length times the direction, from P = X^T G and the moments, which are brought up to date."""
    length, decay, gain, beta2, scale, eps = numbers[:6]
    d, one = len(P), P.dtype.type(1)
    for i in range(d):
        A[i, i] = 0
        for j in range(i):
            a = P[i, j] - P[j, i]
            w = a
            if len(M):
                w = decay * M[0, i, j] + gain * a
                M[0, i, j], M[0, j, i] = w, -w
            if len(V):
                square = beta2 * V[0, i, j] + (one - beta2) * a * a
                V[0, i, j] = V[0, j, i] = square
                w = w / (np.sqrt(square) / scale + eps)
            A[i, j], A[j, i] = -length * w, length * w


@cached_njit(fastmath={"reassoc", "contract", "nsz"})
def _follow_series(
    X: np.ndarray,  # (d, d)
    B: np.ndarray,  # (d, d), skew; changed, as all but X
    Y: np.ndarray,  # (d, d): X f(B), for B short enough
    P: np.ndarray,  # (d, d)
    signs: np.ndarray,  # (d,)
    tolerance: float,
    fit: np.ndarray,
) -> bool:
    d, number = len(X), X.dtype.type
    one, half, third, fourth = number(1), number(0.5), number(THIRD), number(FOURTH)
    np.dot(B, B, Y)
    size = _square_sum(Y)
    if not size <= d:
        return False
    if size / 4 > tolerance / 4 * np.sqrt(number(d)):  # left is B^4 / 4 without, and FOURTH^2 B^8 with two more terms
        high = np.empty_like(X)
        _combine(third, B, fourth, Y, P)
        np.dot(Y, P, high)
        _combine(one, B, one, high, B)
    _combine(one, B, half, Y, B)
    np.dot(X, B, P)
    _combine(one, X, one, P, Y)
    w = np.dot(Y.T, np.dot(Y, signs)) - signs
    if np.dot(w, w) <= tolerance * tolerance * d:
        return True
    return _orthonormalize(Y, B, P, P, tolerance, fit)


@cached_njit(fastmath={"reassoc", "contract", "nsz"})
def _tall_step(
    X: np.ndarray, G: np.ndarray, M: np.ndarray, V: np.ndarray, numbers: np.ndarray
) -> tuple[np.ndarray, bool]:
    length, decay, gain, tolerance = numbers[0], numbers[1], numbers[2], numbers[6]
    d, k = X.shape[1:]
    P, F, Q, Y = np.empty((k, k), X.dtype), np.empty((k, k), X.dtype), np.empty((d, k), X.dtype), np.empty_like(X)
    done = True
    for b in range(len(X)):
        D = G[b]
        if len(M):
            D = M[b]
            for i in range(d):
                for j in range(k):
                    D[i, j] = decay * D[i, j] + gain * G[b, i, j]
        np.dot(D.T, X[b], P)
        np.dot(X[b], P, Q)
        for i in range(d):
            for j in range(k):
                Y[b, i, j] = X[b, i, j] - length * (D[i, j] - Q[i, j])
        done &= _orthonormalize(Y[b], P, F, Q, tolerance, numbers[7:])
    if done:
        X[:] = Y
    return Y, done


@cached_njit(fastmath={"reassoc", "contract", "nsz"})
def _orthonormalize(
    M: np.ndarray,  # (d, k), changed
    E: np.ndarray,  # (k, k), and the next two: memory to work in
    F: np.ndarray,  # (k, k)
    rest: np.ndarray,  # (d, k), may be F
    tolerance: float,
    fit: np.ndarray,
) -> bool:
    d, k = M.shape
    one = M.dtype.type(1)
    left = tolerance * np.sqrt(M.dtype.type(k))  # of ||M^T M - I||_F at the end
    while True:
        np.dot(M.T, M, E)
        for i in range(k):
            E[i, i] -= one
        size = _square_sum(E)
        if not size < one:
            return False
        last = _root_less_one(E, F, size, left, fit)
        np.dot(M, E, rest)
        for i in range(d):
            for j in range(k):
                M[i, j] += rest[i, j]
        if last:
            return True


@cached_njit(fastmath={"reassoc", "contract", "nsz"})
def _square_sum(E: np.ndarray) -> float:
    total = E.dtype.type(0)
    for i in range(len(E)):
        for j in range(E.shape[1]):
            total += E[i, j] * E[i, j]
    return total


@cached_njit(fastmath={"reassoc", "contract", "nsz"})
def _root_less_one(E: np.ndarray, F: np.ndarray, size: float, left: float, fit: np.ndarray) -> bool:
    """E <- (I + E)^(-1/2) - I by the fewest terms; whether at most `left` is left. `size` is ||E||_F^2."""
    a, b, c, reach, slack = fit
    half, quarter = E.dtype.type(0.5), E.dtype.type(0.25)
    three_quarters, three_eighths = E.dtype.type(0.75), E.dtype.type(0.375)
    if size <= left:  # a Newton-Schulz step, which leaves 3 E^2 / 4
        _combine(-half, E, E.dtype.type(0), E, E)
        return True
    np.dot(E, E, F)
    square = np.sqrt(_square_sum(F))
    # left is 5 E^3 / 8 + ..., whose norm is below 0.78 ||E^3|| for ||E|| < 1/2; ||E^3|| <= ||E^2||^(3/2)
    if size <= quarter and three_quarters * square * np.sqrt(square) <= left:
        _combine(-half, E, three_eighths, F, E)
        return True
    high, product = np.empty_like(E), np.empty_like(E)
    _combine(b, E, c, F, high)
    np.dot(F, high, product)
    _combine(-half, E, a, F, E)
    _combine(E.dtype.type(1), E, E.dtype.type(1), product, E)
    return square <= reach * reach and slack * square <= left


@cached_njit(fastmath={"reassoc", "contract", "nsz"})
def _combine(a: float, E: np.ndarray, b: float, F: np.ndarray, result: np.ndarray) -> None:
    """result <- a E + b F."""
    for i in range(len(E)):
        for j in range(E.shape[1]):
            result[i, j] = a * E[i, j] + b * F[i, j]
