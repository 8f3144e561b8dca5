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

from nearkin.linalg.exponential import expm1, plus_product
from nearkin.linalg.orthonormal import deviation, nearest_orthogonal, unique_q
from nearkin.linalg.skew import left_skew
from nearkin.orthogonal.optimizer import PRODUCTS

# f(B) = I + B + B^2 / 2 + THIRD B^3 + FOURTH B^4, for which |f(i t)|^2 = 1 + FOURTH^2 t^8
THIRD = (1 - 0.5**0.5) / 2
FOURTH = THIRD**2

RETRACTIONS = ("exp", "cayley", "qr", "polar", "newton-schulz", "taylor")
TOLERANCE = {torch.float32: 5e-7, torch.float64: 1e-11}  # of ||X^T X - I||_F / sqrt(k) after products alone
UNSEEN = 0.25  # of ||M^T M - I||: up to here the fixed number of corrections is enough
LONG_PRODUCTS = 16.0  # of ||Q^2||
LONG_EXP, LONG_CAYLEY = 1.0, 100.0  # norms of t W beyond which the formulas in the span of [X, H] lose digits


def right_step(
    X: Tensor,  # (..., d, d), orthogonal
    A: Tensor,  # (..., d, d), skew
    t: float,
    retraction: str = "exp",
) -> Tensor:
    """Return X f(-t A) (..., d, d): `retraction` names f."""
    if retraction == "exp":
        return plus_product(X, X, expm1(-t * A))
    if retraction == "taylor":
        return taylor_right_step(X, A, t)
    if retraction != "cayley":
        return ORTHONORMALIZE[retraction](plus_product(X, X, A, -t))
    if A.shape[-1] <= PRODUCTS:
        return on_manifold(X @ cayley((-t / 2) * A))
    return _cayley_by_solve(X, A, t)


def _cayley_by_solve(X: Tensor, A: Tensor, t: float) -> Tensor:
    half, identity = (t / 2) * A, torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    # (I + A/2)^-1 (I - A/2) with A <- t A is 2 (I + A/2)^-1 - I: one solve, and X (...) by a left division
    solution, singular = torch.linalg.solve_ex(identity + half, X, left=False)
    if bool(singular.any()):  # so long a step that rounding removes I from I + A/2
        return right_step(X, A, t, "exp")
    return on_manifold(2 * solution - X)


def cayley(Q: Tensor) -> Tensor:  # Q (..., s, s), skew
    """Return (I + Q)(I - Q)^-1 (..., s, s) = 2 (I + Q) S - I, S = (I - Q^2)^-1, by products of matrices.

    S is a cubic polynomial in Q^2 (`inverse_polynomial`) and Newton's steps S <- S (2 I - (I - Q^2) S), which square
    its error. A batch of products takes a tenth of the time of a batch of factorisations (s = 16 to 64, one CPU
    thread); for ||Q|| above 4 the steps become too many, and it is a solve. ValueError if Q is not finite.
    """
    square = Q @ Q
    fourth = square @ square
    bound = largest_norm(fourth) ** 0.5
    if not bound <= LONG_PRODUCTS:
        if not bool(torch.isfinite(Q).all()):
            raise ValueError("a skew matrix contains NaN or infinity: it gives no rotation; lower lr")
        return _cayley_by_solve(torch.eye(Q.shape[-1], dtype=Q.dtype, device=Q.device).expand_as(Q), Q, -2.0)
    enough = 8 * torch.finfo(Q.dtype).eps
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
def inverse_polynomial(power: int, degree: int = 3) -> tuple[tuple[float, ...], float]:
    """Coefficients of a polynomial p near 1 / (1 - u) for -2^(power / 2) <= u <= 0, p(0) = 1, and |1 - (1 - u) p(u)|.

    This error is Chebyshev's T_{degree + 1}, its last zero at u = 0, scaled to 1 at u = 1, where (1 - u) p(u) is 0.
    """
    low, zero = -(2.0 ** (power / 2)), math.cos(math.pi / (2 * degree + 2))
    high = low - 2 * low / (1 + zero)
    residual = np.polynomial.Chebyshev.basis(degree + 1, [low, high]).convert(kind=np.polynomial.Polynomial)
    scale = float(residual(1.0))
    p = (1 - residual / scale) // np.polynomial.Polynomial([1, -1])
    return tuple(float(number) for number in p.coef), 1 / abs(scale)


def taylor_right_step(
    X: Tensor,  # (..., d, d), orthogonal
    A: Tensor,  # (..., d, d), skew
    t: float,
) -> Tensor:
    """Return X f(-t A), f a polynomial of degree 2 or 4 that is exp's to second order, corrected when necessary.

    The cheapest of all: three or four products with the one for A and no factorisation. The series of degree 2 leaves
    the manifold by (t A)^4 / 4. In the polynomial of degree 4 the coefficients of B^3 and B^4 are such that |f(i x)|^2
    has neither x^4 nor x^6: it leaves the manifold by 0.00046 (t A)^8 only (exp's series by (t A)^6 / 72). Products
    with one vector show which one is needed, and whether a Newton-Schulz step (two products) is due.
    """
    B = -t * A
    square, probe = B @ B, probing_signs(B.shape[-1], B.dtype, B.device)
    fourth = _rms(square @ (square @ probe), probe)
    if not fourth <= 1:  # so long a step that powers do not help
        return on_manifold(plus_product(X, X, expm1(B)))
    change = torch.add(B, square, alpha=0.5)
    if fourth / 4 > TOLERANCE[X.dtype] / 4:  # else a correction is due every fourth step at most
        change = plus_product(change, square, THIRD * B + FOURTH * square)
    return on_manifold(plus_product(X, X, change))


def on_manifold(M: Tensor) -> Tensor:
    """Return M, corrected if one vector shows that it has left the manifold."""
    return M if orthogonality_probe(M) <= TOLERANCE[M.dtype] else newton_schulz_orthonormalize(M)


@lru_cache(maxsize=64)
def probing_signs(k: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A fixed random vector of signs (k, 1)."""
    return (torch.rand(k, 1, generator=torch.Generator().manual_seed(k)) < 0.5).to(dtype).mul_(2).sub_(1).to(device)


def _rms(w: Tensor, probe: Tensor) -> float:
    return largest_norm(w) / len(probe) ** 0.5


def orthogonality_probe(M: Tensor) -> float:
    """Return ||(M^T M - I) v|| / ||v|| for one fixed random v of signs, the largest over a batch; O(d k).

    Its mean square over v is ||M^T M - I||_F^2 / k, the square of `orthogonality_error`. In float64: at d = 2048 the
    rounding of two products with a float32 vector is twice the tolerance.
    """
    wide = M.double()
    probe = probing_signs(M.shape[-1], wide.dtype, M.device)
    return _rms(wide.mT @ (wide @ probe) - probe, probe)


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
    c = t * (float(S.diagonal(dim1=-2, dim2=-1).amax()) ** 0.5 or 1.0)
    if c == 0:  # t is 0, or so short that it vanishes
        return X
    identity = torch.eye(B.shape[-1], dtype=X.dtype, device=X.device).expand_as(B)
    upper, lower = torch.cat([-t * skew, c * identity], -1), torch.cat([(-t * t / c) * S, -t * skew], -1)
    Z, VtX = torch.cat([upper, lower], -2), torch.cat([identity, (-t / c) * skew], -2)  # H^T X = skew^T
    size = largest_norm(Z)
    if not size <= (LONG_EXP if exact else LONG_CAYLEY):
        return _left_basis_step(X, G, t, exact=exact)
    if exact:
        inside = _phi1(Z, VtX, size)
    else:  # Cayley's curve by Sherman-Morrison-Woodbury (Wen & Yin 2013)
        identity = torch.eye(Z.shape[-1], dtype=Z.dtype, device=Z.device)
        inside = torch.linalg.solve(identity - Z / 2, VtX)
    on_H, on_X = inside.chunk(2, -2)
    return on_manifold(X + (X @ (c * on_X) - H @ (t * on_H)))  # the formula multiplies what X lacks


def _left_basis_step(X: Tensor, G: Tensor, t: float, *, exact: bool) -> Tensor:
    """Return f(-t W) X for a long step, f the exponential or Cayley's map, in an orthonormal basis Q of [X, G].

    There W is the skew matrix Q^T W Q of side 2 k at most, whose f is a rotation whatever its length.
    """
    largest = float(G.abs().amax()) or 1.0
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
    gram = M.mT @ M
    if float(gram.diagonal(dim1=-2, dim2=-1).amax()) < 10:
        factor, failed = torch.linalg.cholesky_ex(gram)
        if not bool(failed.any()):
            return torch.linalg.solve_triangular(factor.mT, M, upper=True, left=False)
    _check_finite(M)
    return unique_q(M)


def polar_orthonormalize(M: Tensor) -> Tensor:
    """Return the polar factor M (M^T M)^(-1/2) (..., d, k), the nearest orthonormal matrix, to rounding.

    Newton-Schulz steps converge to it; after a long step it comes from the singular vectors of M.
    """
    return newton_schulz_orthonormalize(M, _by_singular_vectors, 4 * torch.finfo(M.dtype).eps)


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
    M: Tensor, far: Callable[[Tensor], Tensor] | None = None, enough: float | None = None
) -> Tensor:
    """Return M after as many steps M <- M - M (M^T M - I) / 2 as bring it onto the manifold.

    One step, enough if M came from a short one, is POGO's rule; it squares the error: E = M^T M - I becomes
    (E^3 - 3 E^2) / 4. If E^2 is too large, the next term of the series, M <- M - M (E / 2 - 3 E^2 / 8), leaves 5 E^3
    / 8 for one small product more, again and again after a long step. A step so long that the iteration might not
    converge (||E^2||_F >= 1, which bounds E's eigenvalues) is made by `far`, by default QR. `enough` is the error at
    the end, by default `TOLERANCE`.
    """
    left = (enough or TOLERANCE[M.dtype]) * M.shape[-1] ** 0.5
    while True:
        E = deviation(M)
        size = largest_norm(E)
        if size**2 <= left:
            return plus_product(M, M, E, -0.5)
        square = E @ E
        rest = largest_norm(square)
        if not rest < 1:
            return (far or qr_orthonormalize)(M)
        M = plus_product(M, M, torch.add(E, square, alpha=-0.75), -0.5)
        # 5 E^3 / 8 + ... is below 0.78 ||E^3|| for ||E|| < 1/2, and ||E^3|| <= ||E^2||^(3/2)
        if size <= 0.5 and 0.75 * rest**1.5 <= left:
            return M


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


def largest_norm(E: Tensor) -> float:
    """Return the largest Frobenius norm of the matrices E (..., k, k)."""
    return float(torch.linalg.vector_norm(E, dim=(-2, -1)).amax())


ORTHONORMALIZE: dict[str, Callable[[Tensor], Tensor]] = {
    "qr": qr_orthonormalize,
    "polar": polar_orthonormalize,
    "newton-schulz": newton_schulz_orthonormalize,
}
