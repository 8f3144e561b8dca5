"""SGDG, the field's optimizer of learned rotations: Cayley SGD with momentum.

From the formulas of Li, Fuxin & Todorovic, "Efficient Riemannian Optimization on the Stiefel Manifold via the Cayley
Transform" (ICLR 2020), Algorithm 1, which SpinQuant (Liu et al. 2024, eq. 3 and 4) uses. Their code differs from the
algorithm in three things, which are followed here: five fixed-point steps for two, ||W|| as the largest column sum, and
a QR factorisation before about one step in a hundred, since the fixed point is not reached and the point drifts.
"""

from typing import Any

import torch
from torch import Tensor

LOOPS = 5  # the paper: s = 2
CONTRACTION = 0.5  # the paper's q
QR_SHARE = 0.01  # of the steps


class SGDG(torch.optim.Optimizer):
    """X <- Y, Y = X + a/2 W (X + Y) by fixed-point steps, a = min(lr, 2 q / ||W||), W from the momentum; square X."""

    def __init__(self, params: Any, lr: float, momentum: float = 0.0, seed: int = 0) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})
        self.generator = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._move(p, group["lr"], group["momentum"])

    def _move(self, X: Tensor, lr: float, momentum: float) -> None:
        if torch.rand((), generator=self.generator) < QR_SHARE:
            Q, R = torch.linalg.qr(X)
            X.copy_(Q * R.diagonal(dim1=-2, dim2=-1).sign()[..., None, :])
        M = self.state[X].get("momentum")
        M = -X.grad if M is None else momentum * M - X.grad  # type: ignore[operator]
        MXt = M @ X.mT
        half = MXt - 0.5 * X @ (X.mT @ MXt)
        W = half - half.mT
        M = self.state[X]["momentum"] = W @ X
        size = W.abs().sum(-2).amax(-1)[..., None, None]
        a = (2 * CONTRACTION / (size + 1e-8)).clamp_max(lr)
        Y = X + a * M
        for _ in range(LOOPS):
            Y = X + (a / 2) * (W @ (X + Y))
        X.copy_(Y)
