"""The gradient of the canonical metric, written out."""

import torch
from torch import Tensor


def tangent_gradient(X: Tensor, G: Tensor) -> Tensor:
    """Omega X = G - X G^T X (..., d, k), in O(d k^2)."""
    return G - X @ (G.mT @ X)


def random_skew(*shape: int, generator: torch.Generator | None = None, dtype: torch.dtype | None = None) -> Tensor:
    """Return a Gaussian skew matrix (..., d, d): entries above the diagonal are independent standard normal."""
    upper = torch.randn(*shape, generator=generator, dtype=dtype).triu(1)
    return upper - upper.mT
