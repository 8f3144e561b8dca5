"""How large the components of a stochastic flow should be: as noisy as the gradient already is, and no noisier.

Sampling components of s axes multiplies the squared error of the direction by 1 + (d - s) / (s - 1) (Lemma 9.5). If the
gradient is itself random, with variance rho times its squared mean, nothing is gained by a sampling error below it:
(d - s) / (s - 1) = rho gives s = 1 + (d - 1) / (1 + rho). A gradient without noise gets the exact step, s = d; one that
is nearly all noise gets pairs. Not from the papers.
"""

import torch
from torch import Tensor

from nearkin._types import Record

BETA = 0.9  # of the running means: about the last ten gradients
FIRST = 3  # steps before the variance means anything


def measured_component_size(
    X: Tensor,  # (b, d, k)
    G: Tensor,  # (b, d, k)
    state: Record,  # keeps "sketch_mean" (b, d) and "sketch_square" ()
) -> int:
    """Return s, a power of two or d, from the noise of Omega v over the last steps; v is fixed, the cost O(b d k)."""
    d = X.shape[-2]
    v = torch.ones(d, 1, dtype=X.dtype, device=X.device)
    v[1::2] = -1
    sketch = (G @ (X.mT @ v) - X @ (G.mT @ v)).squeeze(-1)
    if "sketch_mean" not in state:
        state["sketch_mean"], state["sketch_square"] = torch.zeros_like(sketch), torch.zeros_like(sketch[0, 0])
    mean = state["sketch_mean"].mul_(BETA).add_(sketch, alpha=1 - BETA)
    square = state["sketch_square"].mul_(BETA).add_(sketch.square().sum(), alpha=1 - BETA)
    step = state["step"]
    return component_size_for(noise_ratio(float(mean.square().sum()), float(square), step), d) if step >= FIRST else d


def noise_ratio(mean_square: float, square: float, step: int) -> float:
    """Return rho = variance / squared mean from ||running mean||^2 and the running mean of the squared norms.

    Weights w_i of the two means sum to 1 - BETA^step; the mean's own variance is sum(w_i^2) sigma^2.
    """
    total = 1 - BETA**step
    share = (1 - BETA) / (1 + BETA) * (1 - BETA ** (2 * step)) / total**2
    m, q = mean_square / total**2, square / total
    variance = max(q - m, 0.0) / (1 - share)
    signal = q - variance
    return variance / signal if signal > 0 else float("inf")


def component_size_for(rho: float, d: int) -> int:
    """Return the power of two in [2, d) next below 1 + (d - 1) / (1 + rho), or d where rho is small."""
    s = 1 + (d - 1) / (1 + rho)
    if s > 0.75 * d:
        return d
    return max(2, 1 << (int(s).bit_length() - 1))
