"""Random walks on SO(d) whose law tends to Haar's (flows, section 9.9)."""

import torch
from torch import Tensor

from nearkin._check import torch_generator
from nearkin.linalg.skew import random_skew


def random_walk(
    d: int,
    n_steps: int,
    *,
    kind: str = "givens",
    scale: float = 1.0,
    random_state: object = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return the end (d, d) of a random walk on SO(d) from the identity; its law tends to Haar's (flows, section 9.9).

    kind="givens": each step turns all pairs of a random perfect matching by uniform angles, in O(d^2). An entry can
    reach every axis after log2(d) steps, so a few times that many are needed; at d = 8 twelve steps bring E tr(X)^2
    from 64 to Haar's 1 as closely as 400 walks can tell.
    kind="skew": each step multiplies by exp(scale W / sqrt(d)), W a Gaussian skew matrix (flows, eq. 29), in O(d^3).
    """
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
