"""Uniform (Haar) random points on O(d), SO(d) and the Stiefel manifold."""

# pyright: reportConstantRedefinition=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

import torch
from torch import Tensor

from nearkin._check import torch_generator
from nearkin._types import Seed
from nearkin.linalg.orthonormal import unique_q


def haar_orthogonal(
    *shape: int, special: bool = False, random_state: Seed | torch.Generator = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Return uniform random orthonormal matrices of `shape` = (..., d, k), k <= d: the QR factor of a Gaussian matrix
    with the signs of R's diagonal made positive (Mezzadri 2007). `special` (square): of determinant +1."""
    if len(shape) < 2 or shape[-2] < shape[-1] or min(shape) < 1:
        raise ValueError(f"shape is {shape}; it must be (..., d, k) with k <= d, for instance (64, 64) or (128, 16)")
    if special and shape[-2] != shape[-1]:
        raise ValueError(f"shape is {shape}; special=True needs a square matrix, only those have a determinant")
    generator = torch_generator(random_state)
    gaussian = torch.randn(*shape, generator=generator, dtype=torch.float64, device=generator.device)
    Q = unique_q(gaussian)
    if special:
        sign = torch.where(torch.linalg.det(Q) < 0, -1.0, 1.0)
        Q = torch.cat([Q[..., :1] * sign[..., None, None], Q[..., 1:]], -1)
    return Q.to("cpu", dtype).contiguous()  # LAPACK answers in column order
