"""From a point and a descent direction to the next point: exact curves and cheap retractions on O(d) and St(d, k).

All of them agree with exp to first order: `step(X, direction, 0)` is X and the derivative is minus the tangent
gradient. Square points move from the right by a skew matrix, X <- X f(-t A). Tall points move from the left by the
low-rank skew matrix W = G X^T - X G^T, of which only G (d, k) is kept: every formula is written in the span of [X, G],
so that no d x d matrix is ever formed.

The Cayley map is (I + A/2)(I - A/2)^-1, with derivative +A at 0. The flows paper prints (I + A/2)^-1 (I - A/2), whose
derivative is -A: its eq. 4 with that map runs the other way than with exp.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from nearkin.linalg.skew import tangent_gradient

RETRACTIONS = ("exp", "cayley", "qr", "polar", "newton-schulz")


def right_step(
    X: Tensor,  # (..., d, d), orthogonal
    A: Tensor,  # (..., d, d), skew
    t: float,
    retraction: str = "exp",
) -> Tensor:
    """Return X f(-t A) (..., d, d): `retraction` names f."""
    if retraction == "exp":
        return X @ torch.matrix_exp(-t * A)
    if retraction == "cayley":
        half, identity = (t / 2) * A, torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        # (I + A/2)^-1 (I - A/2) with A <- t A is 2 (I + A/2)^-1 - I: one solve, and X (...) by a left division
        return 2 * torch.linalg.solve(identity + half, X, left=False) - X
    return ORTHONORMALIZE[retraction](X - t * (X @ A))


def left_step(
    X: Tensor,  # (..., d, k), orthonormal columns
    G: Tensor,  # (..., d, k), W = G X^T - X G^T
    t: float,
    retraction: str = "exp",
) -> Tensor:
    """Return f(-t W) X (..., d, k) in O(d k^2 + k^3): `retraction` names f."""
    if retraction == "exp":
        return _left_span_step(X, G, t, _phi1)
    if retraction == "cayley":
        return _left_span_step(X, G, t, _cayley_phi)
    return ORTHONORMALIZE[retraction](X - t * tangent_gradient(X, G))


def _left_span_step(X: Tensor, G: Tensor, t: float, phi: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return X + U phi(V^T U) V^T X for -t W = U V^T, U = [-t H, t X], V = [X, H], with H = (I - X X^T / 2) Omega X.

    H replaces G because W is the same and H has no part normal to the manifold, which may be large and would cancel.
    """
    B = X.mT @ G
    k = B.shape[-1]
    skew = (B - B.mT) / 2  # X^T H; G's symmetric part in X^T G drops out of W
    H = G - X @ (B - skew)
    S = H.mT @ H
    identity = torch.eye(k, dtype=X.dtype, device=X.device).expand_as(B)
    VtU = torch.cat([torch.cat([-t * skew, t * identity], -1), torch.cat([-t * S, t * skew.mT], -1)], -2)
    VtX = torch.cat([identity, skew.mT], -2)  # H^T X = skew^T
    coefficients = phi(VtU, VtX)
    return X @ (identity + t * coefficients[..., k:, :]) - t * (H @ coefficients[..., :k, :])


def _phi1(Z: Tensor, Y: Tensor) -> Tensor:
    """Return ((e^Z - 1) / Z) Y: the upper right block of exp([[Z, Y], [0, 0]])."""
    n, k = Y.shape[-2:]
    block = torch.zeros(*Z.shape[:-2], n + k, n + k, dtype=Z.dtype, device=Z.device)
    block[..., :n, :n], block[..., :n, n:] = Z, Y
    return torch.matrix_exp(block)[..., :n, n:]


def _cayley_phi(Z: Tensor, Y: Tensor) -> Tensor:
    """Return (I - Z / 2)^-1 Y: with it X + U (...) is Cayley's curve (Wen & Yin 2013, by Sherman-Morrison-Woodbury)."""
    return torch.linalg.solve(torch.eye(Z.shape[-1], dtype=Z.dtype, device=Z.device) - Z / 2, Y)


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
    Q, R = torch.linalg.qr(M)
    return Q * torch.where(R.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(M.dtype)[..., None, :]


def polar_orthonormalize(M: Tensor) -> Tensor:
    """Return the polar factor M (M^T M)^(-1/2) (..., d, k), the nearest orthonormal matrix."""
    values, vectors = torch.linalg.eigh(M.mT @ M)
    return M @ ((vectors / values.clamp_min(torch.finfo(M.dtype).tiny).sqrt()[..., None, :]) @ vectors.mT)


def newton_schulz_orthonormalize(M: Tensor) -> Tensor:
    """Return M after as many steps M <- M - M (M^T M - I) / 2 as bring it onto the manifold: one if the step is small.

    One step is POGO's rule. Its error is 3/4 e^2 for e = ||M^T M - I||_F, known from the step's own product, so that
    further steps cost nothing when they are not needed. A step too long for the iteration (e >= 1) is made by QR.
    """
    tolerance = torch.finfo(M.dtype).eps ** 0.75
    identity = torch.eye(M.shape[-1], dtype=M.dtype, device=M.device)
    while True:
        deviation = M.mT @ M - identity
        error = float(deviation.square().sum((-2, -1)).amax()) ** 0.5
        if not error < 1:
            return qr_orthonormalize(M)
        M = M - M @ (deviation / 2)
        if 0.75 * error**2 <= tolerance:
            return M


ORTHONORMALIZE: dict[str, Callable[[Tensor], Tensor]] = {
    "qr": qr_orthonormalize,
    "polar": polar_orthonormalize,
    "newton-schulz": newton_schulz_orthonormalize,
}
