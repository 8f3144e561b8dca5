"""C + alpha A B with the sum made inside the product: one pass over memory and one temporary matrix less."""

import torch
from torch import Tensor


def plus_product(
    C: Tensor,  # (..., n, m)
    A: Tensor,  # (..., n, p)
    B: Tensor,  # (..., p, m)
    alpha: float = 1.0,
) -> Tensor:
    """Return C + alpha A B (..., n, m)."""
    if C.ndim == 2:
        return torch.addmm(C, A, B, alpha=alpha)
    if A.ndim == B.ndim == C.ndim == 3:
        return torch.baddbmm(C, A, B, alpha=alpha)
    C3, A3, B3 = (T.expand(*C.shape[:-2], *T.shape[-2:]).reshape(-1, *T.shape[-2:]) for T in (C, A, B))
    return torch.baddbmm(C3, A3, B3, alpha=alpha).view(C.shape)
