"""exp(A) - I for matrices near zero, where adding the identity would round away the digits that matter."""

# pyright: reportConstantRedefinition=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import math
from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

# (degree, largest norm): the series cut after this degree is right to a unit of rounding, relative to its result
_SERIES = {torch.float32: ((2, 8e-4), (4, 6e-2), (8, 0.66)), torch.float64: ((2, 3e-8), (4, 4e-4), (8, 5e-2))}
LONG = 8.0  # the norm from which the squarings are corrected
HUGE = 1e15  # the norm from which A is halved before it is squared
_ROOT = 177**0.5  # the degree-8 polynomial by two products besides A^2: Bader, Blanes & Casas (2019), Table 2
_X = (
    (1 + _ROOT) / 132,
    (1 + _ROOT) / 528,
    2 / 3,
    (-271 + 29 * _ROOT) / 210,
    11 * (-1 + _ROOT) / 840,
    11 * (-9 + _ROOT) / 3360,
    (89 - _ROOT) / 2240,
)
_Y = (857 - 58 * _ROOT) / 630


def expm1(A: Tensor) -> Tensor:
    """Return exp(A) - I (..., n, n) for skew A in float32 or float64, by the Taylor series with scaling and squaring.

    X + expm1(A) X keeps long products of small rotations on the manifold: rounding is relative to the step. Squaring is
    D <- 2 D + D^2. The norm that chooses the degree is sqrt(||A^2||_1), at least the spectral norm of a skew matrix.

    Where the norm exceeds `LONG`, a Newton-Schulz step D <- D - (I + D) (D + D^T + D^T D) / 2 follows each squaring.
    The matrices of one leading index are scaled together, and long ones apart from the others.
    """
    A2 = A @ A
    rows = A2.abs().sum(-1)
    sizes: list[float] = (rows.flatten(1) if rows.ndim > 1 else rows).amax(-1).reshape(-1).sqrt().tolist()
    short = max((size for size in sizes if size <= LONG), default=0.0)
    keys = [short if size <= LONG else size if size < HUGE else math.inf for size in sizes]
    return by_decision(keys, _expm1_of_size, A, A2)


def _expm1_of_size(size: float, A: Tensor, A2: Tensor) -> Tensor:
    for degree, limit in _SERIES[A.dtype]:
        if size <= limit:
            return _series(A, A2, degree)
    if not size < HUGE:  # A^2 may have overflowed
        if not bool(torch.isfinite(A).all()):
            raise ValueError("A contains NaN or infinity: it has no exponential; take a shorter step")
        return _squared(expm1(A * 2.0**-40), 40, long=True)
    degree, limit = _SERIES[A.dtype][-1]
    halvings = math.ceil(math.log2(size / limit))
    return _squared(_series(A / 2.0**halvings, A2 / 4.0**halvings, degree), halvings, long=size > LONG)


def by_decision(keys: Sequence[Hashable], act: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """Return act(key, *tensors), where each matrix of the batch has its own key: it moves as it would alone.

    `keys` has an entry for each matrix (..., n, m) of the tensors, or for each of their leading indices. What has one
    key is computed together, and has the shape of its part of the first tensor.
    """
    if len(set(keys)) == 1:
        return act(keys[0], *tensors)
    flat = [T if len(T) == len(keys) else T.flatten(0, -3) for T in tensors]
    out = torch.empty_like(flat[0])
    for key in dict.fromkeys(keys):
        places = torch.tensor([n for n, other in enumerate(keys) if other == key], device=out.device)
        out[places] = act(key, *(T[places] for T in flat))
    return out.view(tensors[0].shape)


def _squared(D: Tensor, halvings: int, *, long: bool) -> Tensor:
    """Return exp(2^h A) - I from D = exp(A) - I."""
    for _ in range(halvings):
        D = 2 * D + D @ D
        if long:
            E = D + D.mT + D.mT @ D
            D = D - (E + D @ E) / 2
    return D


def _series(A: Tensor, A2: Tensor, degree: int) -> Tensor:
    """Return the Taylor polynomial of exp(A) - I of degree 2, 4 or 8, by 0, 1 or 2 products besides A2 = A A."""
    if degree == 2:
        return torch.add(A, A2, alpha=0.5)
    if degree == 4:
        return plus_product(torch.add(A, A2, alpha=0.5), A2, (A / 6).add_(A2, alpha=1 / 24))
    x1, x2, x3, x4, x5, x6, x7 = _X
    A4 = A2 @ (A * x1).add_(A2, alpha=x2)
    right = (A * x5).add_(A2, alpha=x6).add_(A4, alpha=x7)
    right.diagonal(dim1=-2, dim2=-1).add_(x4)
    return plus_product(torch.add(A, A2, alpha=_Y), A4.add_(A2, alpha=x3), right)


def plus_product(C: Tensor, A: Tensor, B: Tensor, alpha: float = 1.0) -> Tensor:
    """Return C + alpha A B, for C (..., n, m), A (..., n, p) and B (..., p, m)."""
    return torch.add(C, A @ B, alpha=alpha)
