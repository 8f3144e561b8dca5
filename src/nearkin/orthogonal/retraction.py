"""Retractions on O(d) and St(d, k): the next point from a point and a descent direction, exact or approximate.

All agree with exp to first order: a step of length 0 is X, and the derivative is minus the tangent gradient. Square
points are multiplied from the right, X <- X f(-t A), A skew. Tall points are multiplied from the left, with the
low-rank skew matrix W = G X^T - X G^T, of which only G (d, k) is kept: formulas in the span of [X, G] form no d x d
matrix.

The Cayley map is (I + A/2)(I - A/2)^-1, with derivative +A at 0. The flows paper prints (I + A/2)^-1 (I - A/2), whose
derivative is -A: its eq. 4 with that map moves opposite to exp.
"""

# pyright: reportConstantRedefinition=false, reportMissingTypeStubs=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from nearkin.linalg.exponential import by_decision, expm1, plus_product
from nearkin.linalg.orthonormal import deviation, nearest_orthogonal, unique_q
from nearkin.linalg.skew import left_skew
from nearkin.orthogonal.optimizer import PRODUCTS

# f(B) = I + B + B^2 / 2 + THIRD B^3 + FOURTH B^4, for which |f(i t)|^2 = 1 + FOURTH^2 t^8
THIRD = (1 - 0.5**0.5) / 2
FOURTH = THIRD**2

RETRACTIONS = ("exp", "cayley", "qr", "polar", "newton-schulz", "taylor")
TOLERANCE = {torch.float32: 5e-7, torch.float64: 1e-11}  # of ||X^T X - I||_F / sqrt(k) after products alone
UNMEASURED = 8  # steps of which one is measured, if each is proved to add at most a 16th of the tolerance
UNSEEN = 0.25  # of ||M^T M - I||: up to here the fixed number of corrections is enough
LONG_PRODUCTS = 16.0  # of ||Q^2||
LONG_TAYLOR = 0.75  # of 2 FOURTH ||B^4||_F: the step leaves the manifold by a tenth at most
LONG_EXP, LONG_CAYLEY = 1.0, 100.0  # norms of t W beyond which the formulas in the span of [X, H] lose digits


def right_step(
    X: Tensor,  # (..., d, d), orthogonal
    A: Tensor,  # (..., d, d), skew
    t: float,
    retraction: str = "exp",
    *,
    measured: bool = True,
) -> Tensor:
    """Return X f(-t A) (..., d, d): `retraction` names f.

    Without `measured` a point that the step can have moved off the manifold by rounding only is not measured.
    """
    if retraction == "taylor":
        return taylor_right_step(X, A, t, measured=measured)
    if retraction in ORTHONORMALIZE:
        return ORTHONORMALIZE[retraction](plus_product(X, X, A, -t))
    if retraction == "cayley" and A.shape[-1] > PRODUCTS:
        return _cayley_by_solve(X, A, t)
    if retraction == "exp":
        point = plus_product(X, X, expm1(-t * A))
    else:
        point = X @ cayley((-t / 2) * A, TOLERANCE[X.dtype] / 64)
    return on_manifold(point) if measured else point


def _cayley_by_solve(X: Tensor, A: Tensor, t: float) -> Tensor:
    half, identity = (t / 2) * A, torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    # (I + A/2)^-1 (I - A/2) with A <- t A is 2 (I + A/2)^-1 - I: one solve, and X (...) by a left division
    solution, singular = torch.linalg.solve_ex(identity + half, X, left=False)

    def moved(failed: int, solution: Tensor, X: Tensor, A: Tensor) -> Tensor:  # so long that rounding removes I
        return right_step(X, A, t, "exp") if failed else on_manifold(2 * solution - X)

    return by_decision(singular.reshape(-1).tolist(), moved, solution, X, A)


def cayley(Q: Tensor, enough: float = math.inf) -> Tensor:  # Q (..., s, s), skew
    """Return (I + Q)(I - Q)^-1 (..., s, s) = 2 (I + Q) S - I, S = (I - Q^2)^-1, by products of matrices.

    S is a cubic polynomial in Q^2 (`inverse_polynomial`) and Newton's steps S <- S (2 I - (I - Q^2) S), which square
    its error until it is 8 units of rounding and at most `enough`; the result is off O(s) by four times that at most. A
    batch of products takes a tenth of the time of a batch of factorisations (s = 16 to 64, one CPU thread); for ||Q||
    above 4 the steps become too many, and it is a solve. ValueError if Q is not finite.
    """
    square = Q @ Q
    fourth = square @ square
    bound = float(torch.linalg.vector_norm(fourth, dim=(-2, -1)).amax()) ** 0.5
    if not bound <= LONG_PRODUCTS:
        if not bool(torch.isfinite(Q).all()):
            raise ValueError("a skew matrix contains NaN or infinity: it gives no rotation; lower lr")
        return _cayley_by_solve(torch.eye(Q.shape[-1], dtype=Q.dtype, device=Q.device).expand_as(Q), Q, -2.0)
    enough = min(8 * torch.finfo(Q.dtype).eps, enough)
    (a, b, c, d), error = (1.0, 1.0, 1.0, 1.0), bound**4  # near zero the series; the identity is exact
    if error > enough:
        (a, b, c, d), error = inverse_polynomial(math.ceil(2 * math.log2(bound)))
    S = plus_product(plus_identity(b * square, a), fourth, plus_identity(d * square, c))
    while error > enough:
        S = S @ plus_identity(plus_product(-S, square, S), 2)
        error *= error
    return plus_identity(plus_product(2 * S, Q, S, 2), -1)


def plus_identity(M: Tensor, number: float) -> Tensor:
    """M <- M + number I."""
    M.diagonal(dim1=-2, dim2=-1).add_(number)
    return M


@lru_cache
def inverse_polynomial(power: int) -> tuple[tuple[float, ...], float]:
    """Coefficients of a cubic p near 1 / (1 - u) for -2^(power / 2) <= u <= 0, p(0) = 1, and |1 - (1 - u) p(u)|.

    This error is Chebyshev's T_4, its last zero at u = 0, scaled to 1 at u = 1, where (1 - u) p(u) is 0.
    """
    low, zero = -(2.0 ** (power / 2)), math.cos(math.pi / 8)
    high = low - 2 * low / (1 + zero)
    residual = np.polynomial.Chebyshev.basis(4, [low, high]).convert(kind=np.polynomial.Polynomial)
    scale = float(residual(1.0))
    p = (1 - residual / scale) // np.polynomial.Polynomial([1, -1])
    return tuple(float(number) for number in p.coef), 1 / abs(scale)


def taylor_right_step(
    X: Tensor,  # (..., d, d), orthogonal
    A: Tensor,  # (..., d, d), skew
    t: float,
    *,
    measured: bool = True,
) -> Tensor:
    """Return X f(-t A), f a polynomial of degree 2 or 4 that is exp's to second order, corrected when necessary.

    The cheapest of all: three or four products with the one for A and no factorisation. With B = -t A the series of
    degree 2 leaves the manifold by B^4 / 4. In the polynomial of degree 4 the coefficients of B^3 and B^4 are such that
    |f(i x)|^2 has neither x^4 nor x^6: it leaves the manifold by FOURTH^2 B^8 only (exp's series by B^6 / 72). The
    eigenvalues of B^2 are pairs, so ||B^4||_F <= ||B^2||_F^2 / sqrt(2), and likewise ||B^8||_F: these norms bound what
    a step adds. If that is at most a 16th of the tolerance and `measured` is False, the point is not measured. Else its
    whole X^T X - I is, and a Newton-Schulz step (one product more) follows if it is due.
    """
    B = -t * A
    square, enough = B @ B, 2**0.5 * TOLERANCE[X.dtype] / 16 * B.shape[-1] ** 0.5

    def second_order(brief: bool, X: Tensor, B: Tensor, square: Tensor) -> Tensor:
        change = torch.add(B, square, alpha=0.5)
        if brief:
            return moved(True, X, B, change)
        more = square @ (THIRD * B + FOURTH * square)
        sizes = norms(more + more.mT)  # of 2 FOURTH B^4
        keys = [size * size / 4 <= enough if size < LONG_TAYLOR else None for size in sizes]
        return by_decision(keys, moved, X, B, change + more)

    def moved(brief: bool | None, X: Tensor, B: Tensor, change: Tensor) -> Tensor:
        if brief is None:  # so long a step that powers do not help
            change = expm1(B)
        point = plus_product(X, X, change)
        return point if brief and not measured else on_manifold(point)

    return by_decision([size * size / 4 <= enough for size in norms(square)], second_order, X, B, square)


def on_manifold(
    M: Tensor,
    tolerance: float | None = None,  # of ||M^T M - I||_F / sqrt(k)
    far: Callable[[Tensor], Tensor] | None = None,
    enough: float | None = None,
) -> Tensor:
    """Return M itself, or with each matrix whose error exceeds the tolerance, by default `TOLERANCE`, moved by
    `newton_schulz_orthonormalize` with these arguments."""

    def corrected(near: bool, M: Tensor, E: Tensor) -> Tensor:
        return M if near else newton_schulz_orthonormalize(M, far, enough, E)

    E, limit = deviation(M), (TOLERANCE[M.dtype] if tolerance is None else tolerance) * M.shape[-1] ** 0.5
    return by_decision([size <= limit for size in norms(E)], corrected, M, E)


def left_step(
    X: Tensor,  # (..., d, k), orthonormal columns
    G: Tensor,  # (..., d, k), W = G X^T - X G^T
    t: float,
    retraction: str = "exp",
) -> Tensor:
    """Return f(-t W) X (..., d, k) in O(d k^2 + k^3): `retraction` names f."""
    if retraction in ("exp", "taylor", "cayley"):  # in the span the whole series costs no more than its start
        return _left_span_step(X, G, t, exact=retraction != "cayley")
    moved = plus_product(torch.sub(X, G, alpha=t), X, G.mT @ X, t)  # X minus t times the tangent gradient
    return ORTHONORMALIZE[retraction](moved)


def _left_span_step(X: Tensor, G: Tensor, t: float, *, exact: bool) -> Tensor:
    """Return f(-t W) X, f the exponential or Cayley's map, in the span of [X, H], H = (I - X X^T / 2) Omega X.

    It is X + U phi(V^T U) V^T X for -t W = U V^T, U = [-t H, c X], V = [X, t H / c], phi being (f - 1) / Z.
    H replaces G because W is the same and H has no part normal to the manifold, which may be large and would cancel.
    The number c balances the blocks of V^T U, whose norm is then about that of t W.
    """
    B = X.mT @ G
    skew = (B - B.mT) / 2  # X^T H; G's symmetric part in X^T G drops out of W
    H = G - X @ (B - skew)
    S = H.mT @ H
    root = S.diagonal(dim1=-2, dim2=-1).amax(-1)[..., None, None].sqrt()
    c = t * torch.where(root == 0, 1.0, root)
    c = torch.where(c == 0, torch.finfo(c.dtype).tiny, c)  # t is 0, or so short that it vanishes
    identity = torch.eye(B.shape[-1], dtype=X.dtype, device=X.device).expand_as(B)
    upper, lower = torch.cat([-t * skew, c * identity], -1), torch.cat([(-t / c) * (t * S), -t * skew], -1)
    Z, VtX = torch.cat([upper, lower], -2), torch.cat([identity, (-t / c) * skew], -2)  # H^T X = skew^T

    def moved(size: float | None, X: Tensor, G: Tensor, H: Tensor, Z: Tensor, VtX: Tensor, c: Tensor) -> Tensor:
        if size is None:
            return _left_basis_step(X, G, t, exact=exact)
        if exact:
            inside = _phi1(Z, VtX, size)
        else:  # Cayley's curve by Sherman-Morrison-Woodbury (Wen & Yin 2013)
            identity = torch.eye(Z.shape[-1], dtype=Z.dtype, device=Z.device)
            inside = torch.linalg.solve(identity - Z / 2, VtX)
        on_H, on_X = inside.chunk(2, -2)
        return on_manifold(X + (X @ (c * on_X) - H @ (t * on_H)))  # the formula multiplies what X lacks

    sizes, limit = norms(Z), LONG_EXP if exact else LONG_CAYLEY
    short = max((size for size in sizes if size <= limit), default=0.0)
    return by_decision([short if size <= limit else None for size in sizes], moved, X, G, H, Z, VtX, c)


def _left_basis_step(X: Tensor, G: Tensor, t: float, *, exact: bool) -> Tensor:
    """Return f(-t W) X for a long step, f the exponential or Cayley's map, in an orthonormal basis Q of [X, G].

    There W is the skew matrix Q^T W Q of side 2 k at most, whose f is a rotation whatever its length.
    """
    largest = G.abs().amax((-2, -1), keepdim=True)
    largest = torch.where(largest == 0, 1.0, largest)
    Q = torch.linalg.qr(torch.cat([X, G / largest], -1)).Q
    Y, F = Q.mT @ X, Q.mT @ G
    skew = left_skew(Y, F)
    if exact:
        turned = plus_product(Y, expm1(-t * skew), Y)
    else:
        identity = torch.eye(Y.shape[-2], dtype=Y.dtype, device=Y.device)
        turned = 2 * torch.linalg.solve(identity + (t / 2) * skew, Y) - Y
    return newton_schulz_orthonormalize(Q @ turned)


def _phi1(Z: Tensor, Y: Tensor, size: float) -> Tensor:
    """Return ((e^Z - 1) / Z) Y by its series, for Z of norm `size` <= 1."""
    term, total, order, bound = Y, Y.clone(), 1, 1.0
    while bound > torch.finfo(Y.dtype).eps / 4:
        order += 1
        bound *= size / order
        term = (Z @ term) / order
        total += term
    return total


# ---- back onto the manifold -----------------------------------------------------------------------------------------


def qr_orthonormalize(M: Tensor) -> Tensor:
    """Return the Q factor (..., d, k) of M with R's diagonal positive.

    By Cholesky's factor of M^T M: after a tangent step M^T M = I + t^2 xi^T xi, so it is well conditioned unless the
    step is huge; then Householder's QR.
    """

    def factor(short: bool, M: Tensor, lower: Tensor) -> Tensor:
        if short:
            return torch.linalg.solve_triangular(lower.mT, M, upper=True, left=False)
        _check_finite(M)
        return unique_q(M)

    gram = M.mT @ M
    lower, failed = torch.linalg.cholesky_ex(gram)
    short = (gram.diagonal(dim1=-2, dim2=-1).amax(-1) < 10) & (failed == 0)
    return by_decision(short.reshape(-1).tolist(), factor, M, lower)


def polar_orthonormalize(M: Tensor, tolerance: float = 0.0) -> Tensor:
    """Return the polar factor M (M^T M)^(-1/2) (..., d, k), the nearest orthonormal matrix, to rounding.

    Newton-Schulz steps converge to it; after a long step it comes from the singular vectors of M. Matrices within the
    tolerance are returned unchanged: if all are, M itself.
    """
    return on_manifold(M, tolerance, _by_singular_vectors, 4 * torch.finfo(M.dtype).eps)


def _by_singular_vectors(M: Tensor) -> Tensor:
    _check_finite(M)
    values = torch.linalg.svdvals(M)
    if not bool((values.amin(-1) > torch.finfo(M.dtype).eps * values.amax(-1)).all()):
        raise ValueError(
            f"a matrix of shape {tuple(M.shape)} is not of full rank, so no orthonormal matrix is nearest to it; "
            "lower the learning rate, or start from nearkin.orthogonal.orthogonal_(module, name)"
        )
    return nearest_orthogonal(M)


def _check_finite(M: Tensor) -> None:
    if not bool(torch.isfinite(M).all()):
        raise ValueError(
            "the step is not finite: lr times the gradient is too large for the parameter's dtype; lower lr or scale "
            "the loss"
        )


def newton_schulz_orthonormalize(
    M: Tensor, far: Callable[[Tensor], Tensor] | None = None, enough: float | None = None, E: Tensor | None = None
) -> Tensor:
    """Return M after as many steps M <- M - M (M^T M - I) / 2 as bring it onto the manifold.

    One step, enough if M came from a short one, is POGO's rule; it squares the error: E = M^T M - I becomes
    (E^3 - 3 E^2) / 4. If E^2 is too large, the next term of the series, M <- M - M (E / 2 - 3 E^2 / 8), leaves 5 E^3
    / 8 for one small product more, again and again after a long step. A step so long that the iteration might not
    converge (||E^2||_F >= 1, which bounds E's eigenvalues) is made by `far`, by default QR. `enough` is the error at
    the end, by default `TOLERANCE`; E is given if it is known.
    """
    left = (enough or TOLERANCE[M.dtype]) * M.shape[-1] ** 0.5

    def first_order(last: bool, M: Tensor, E: Tensor) -> Tensor:
        if last:
            return plus_product(M, M, E, -0.5)
        square = E @ E  # 5 E^3 / 8 + ... is below 0.78 ||E^3||, and ||E^3|| <= ||E^2||^(3/2)
        keys = [0.75 * rest**1.5 <= left if rest < 1 else None for rest in norms(square)]
        return by_decision(keys, second_order, M, E, square)

    def second_order(last: bool | None, M: Tensor, E: Tensor, square: Tensor) -> Tensor:
        if last is None:
            return (far or qr_orthonormalize)(M)
        M = plus_product(M, M, torch.add(E, square, alpha=-0.75), -0.5)
        return M if last else newton_schulz_orthonormalize(M, far, enough)

    E = deviation(M) if E is None else E
    return by_decision([size * size <= left for size in norms(E)], first_order, M, E)


def newton_schulz_unseen(
    X: Tensor,  # (..., d, k), orthonormal
    M: Tensor,  # (..., d, k), X plus a tangent step
) -> Tensor:
    """Return M back on the manifold, without reading a number from the device.

    A step so long that E = M^T M - I could exceed `UNSEEN` in norm is shortened: E is t^2 times a matrix that does not
    depend on t, and its largest sum of a row bounds the norm. Each correction leaves 5 E^3 / 8 of it, so that two are
    enough for float32 and three for float64.
    """
    E = deviation(M)
    size = E.abs().sum(-1, keepdim=True).amax(-2, keepdim=True)
    share = (UNSEEN / size).clamp_max(1.0)
    M, E = torch.lerp(X, M, share.sqrt()), E * share
    M = plus_product(M, M, plus_product(E, E, E, -0.75), -0.5)
    for _ in range(1 if M.dtype == torch.float32 else 2):
        E = deviation(M)
        M = plus_product(M, M, plus_product(E, E, E, -0.75), -0.5)
    return M


def norms(E: Tensor) -> list[float]:
    """Return the Frobenius norm of each matrix E (..., k, k)."""
    return torch.linalg.vector_norm(E, dim=(-2, -1)).reshape(-1).tolist()


ORTHONORMALIZE: dict[str, Callable[[Tensor], Tensor]] = {
    "qr": qr_orthonormalize,
    "polar": polar_orthonormalize,
    "newton-schulz": newton_schulz_orthonormalize,
}
