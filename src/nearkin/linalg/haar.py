"""Uniform (Haar) random points on O(d), SO(d) and the Stiefel manifold, exact and by random walks."""

from typing import Any

import torch
from torch import Tensor

from nearkin._check import check_choice, check_integer, check_real
from nearkin._random import torch_generator
from nearkin.linalg.skew import random_skew


def haar_orthogonal(
    *shape: int,
    special: bool = False,
    random_state: Any = None,
    dtype: torch.dtype = torch.float32,
    device: Any = "cpu",
) -> Tensor:
    """Return uniform random orthonormal matrices of `shape` = (..., d, k), k <= d: the Haar law on O(d), St(d, k).

    The QR factor of a Gaussian matrix with the signs of R's diagonal made positive (Mezzadri 2007); without that step
    the law is not uniform. `special` (square) turns the first column where needed, so that the determinant is +1.
    """
    if len(shape) < 2 or shape[-2] < shape[-1] or min(shape) < 1:
        raise ValueError(f"shape is {shape}; it must be (..., d, k) with k <= d, for instance (64, 64) or (128, 16)")
    if special and shape[-2] != shape[-1]:
        raise ValueError(f"shape is {shape}; special=True needs a square matrix, only those have a determinant")
    generator = torch_generator(random_state)
    gaussian = torch.randn(*shape, generator=generator, dtype=torch.float64, device=generator.device)
    Q, R = torch.linalg.qr(gaussian)
    Q = Q * torch.where(R.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0)[..., None, :]
    if special:
        sign = torch.where(torch.linalg.det(Q) < 0, -1.0, 1.0)
        Q = torch.cat([Q[..., :1] * sign[..., None, None], Q[..., 1:]], -1)
    return Q.to(device=device, dtype=dtype).contiguous()  # LAPACK answers in column order


def random_walk(
    d: int,
    n_steps: int,
    *,
    kind: str = "givens",
    scale: float = 1.0,
    random_state: Any = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return the end (d, d) of a random walk on SO(d) from the identity; its law tends to Haar's (flows, section 9.9).

    kind="givens": each step turns all pairs of a random perfect matching by uniform angles, in O(d^2). An entry can
    reach every axis after log2(d) steps, so a few times that many are needed; at d = 8 twelve steps bring E tr(X)^2
    from 64 to Haar's 1 as closely as 400 walks can tell.
    kind="skew": each step multiplies by exp(scale W / sqrt(d)), W a Gaussian skew matrix (flows, eq. 29), in O(d^3).
    """
    check_integer(d, "d", low=2)
    check_integer(n_steps, "n_steps", low=0)
    check_choice(kind, "kind", ("givens", "skew"))
    check_real(scale, "scale", above=0)
    generator = torch_generator(random_state)
    X = torch.eye(d, dtype=dtype)
    for _ in range(n_steps):
        if kind == "skew":
            X = torch.matrix_exp(scale / d**0.5 * random_skew(d, d, generator=generator, dtype=dtype)) @ X
        else:
            X = _turn_random_pairs(X, generator)
    return X


def _turn_random_pairs(X: Tensor, generator: torch.Generator) -> Tensor:
    d = len(X)
    order = torch.randperm(d, generator=generator)
    i, j = order[: d // 2], order[d // 2 : 2 * (d // 2)]
    theta = 2 * torch.pi * torch.rand(d // 2, 1, generator=generator, dtype=X.dtype)
    turned = X.clone()
    turned[i] = theta.cos() * X[i] - theta.sin() * X[j]
    turned[j] = theta.sin() * X[i] + theta.cos() * X[j]
    return turned
