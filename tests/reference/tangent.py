"""The gradient of the canonical metric, written out."""

from torch import Tensor


def tangent_gradient(X: Tensor, G: Tensor) -> Tensor:
    """Omega X = G - X G^T X (..., d, k), in O(d k^2)."""
    return G - X @ (G.mT @ X)
