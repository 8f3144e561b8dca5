"""exp(A) - I for matrices near zero, where the identity would swallow the digits that matter."""

import torch
from torch import Tensor

# (degree, largest norm): the series cut after this degree is right to a unit of rounding, relative to its result
_SERIES = {
    torch.float32: ((2, 8e-4), (4, 6e-2), (6, 0.28), (9, 0.9)),
    torch.float64: ((2, 3e-8), (4, 4e-4), (6, 1e-2), (9, 0.1)),
}


def expm1(A: Tensor) -> Tensor:
    """Return exp(A) - I (..., n, n) for skew A in float32 or float64, by the Taylor series with scaling and squaring.

    X + expm1(A) X instead of exp(A) X keeps long products of small rotations on the manifold: rounding then is relative
    to the step and not to the identity (cos t rounds with a bias near 1, the same that Rutishauser's form of a Givens
    rotation avoids). torch.matrix_exp is off by 1e-11 in float64 besides. Squaring is D <- 2 D + D^2, because
    exp(2 A) - I = 2 D + D^2. The norm that chooses the degree is sqrt(||A^2||_1): for a skew matrix at least the
    spectral norm, and near it where ||A||_1 is sqrt(n) times larger.
    """
    if A.shape[-1] == 0:
        return A
    A2 = A @ A
    size = float(A2.abs().sum(-1).amax()) ** 0.5
    for degree, limit in _SERIES[A.dtype]:
        if size <= limit:
            return _series(A, A2, degree)
    degree, limit = _SERIES[A.dtype][-1]
    halvings = 0
    while size > limit and halvings < 60:
        size, halvings = size / 2, halvings + 1
    D = _series(A / 2**halvings, A2 / 4**halvings, degree)
    for _ in range(halvings):
        D = 2 * D + D @ D
    return D


def _series(A: Tensor, A2: Tensor, degree: int) -> Tensor:
    """Return the Taylor polynomial of exp(A) - I of degree 2, 4, 6 or 9, by 0, 1, 2 or 3 products besides A2 = A A."""
    if degree == 2:
        return A + A2 / 2
    if degree == 4:
        return A + A2 / 2 + A2 @ (A / 6 + A2 / 24)
    A3 = A2 @ A
    high = A / 24 + A2 / 120 + A3 / 720
    if degree == 9:
        high += A3 @ (A / 5040 + A2 / 40320 + A3 / 362880)
    return A + A2 / 2 + A3 / 6 + A3 @ high
