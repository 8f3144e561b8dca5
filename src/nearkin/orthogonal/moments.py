"""Momentum and the Adam-like step size of methods that turn rows or columns by a known rotation.

The buffer M has the gradient's shape and is turned with the point: X <- R X, M <- R M. The rotation is an isometry that
maps tangent vectors at X to tangent vectors at R X, so nothing is lost or projected and the skew form of M is carried
along exactly: Omega(R X, R M) = R Omega(X, M) R^T. The second moment is one number per matrix, since a single basis
would be singled out by more, and this one does not change when axes are turned.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nearkin._types import Record


@dataclass(frozen=True)
class Adam:
    """Adam's two moments, for `momentum=` of the optimizers: averages of gradients over about 1 / (1 - beta) steps.

    betas: two numbers in [0, 1), for the gradient and for its square; eps keeps the division from zero.
    """

    betas: tuple[float, float] = (0.9, 0.99)
    eps: float = 1e-8

    def group_options(self) -> Record:
        """As flat entries of a parameter group, which schedulers change and `state_dict` saves."""
        return {"momentum": 0.0, "betas": self.betas, "eps": self.eps}


def first_moment(G: Tensor, group: Record, state: Record) -> Tensor:
    """Return the direction-giving matrix M (b, d, k): G itself, heavy-ball momentum, or Adam's average of gradients."""
    if group.get("betas") is None and not group["momentum"]:
        return G
    if "momentum" not in state:
        state["momentum"] = torch.zeros_like(G)
    if group.get("betas") is None:
        return state["momentum"].mul_(group["momentum"]).add_(G)
    beta = group["betas"][0]
    return state["momentum"].mul_(beta).add_(G, alpha=1 - beta)


def step_length(
    entries: Sequence[Tensor],  # for each of the b matrices, the raw gradient's skew entries
    group: Record,
    state: Record,
) -> Tensor | float:
    """Return lr, or Adam's lr / (sqrt(v) + eps) (b,) with both bias corrections; v averages the entries' squares."""
    if group.get("betas") is None:
        return group["lr"]
    beta1, beta2 = group["betas"]
    mean_square = torch.stack([raw.square().mean() for raw in entries])
    if "second_moment" not in state:
        state["second_moment"] = torch.zeros_like(mean_square)
    v = state["second_moment"].mul_(beta2).add_(mean_square, alpha=1 - beta2)
    unbiased = v / (1 - beta2 ** state["step"])
    return group["lr"] / (1 - beta1 ** state["step"]) / (unbiased.sqrt() + group["eps"])


def angles(
    values: Tensor,  # (p,)
    length: Tensor | float,  # a number, or a tensor ()
) -> Tensor:
    """Return length * values (p,), in float64 where the product is too large for the dtype of the values.

    A rotation by any finite angle is a rotation, so a far too long step stays on the manifold.
    """
    theta = values * length
    if theta.device.type == "cpu" and not bool(torch.isfinite(theta).all()):
        return values.double() * length
    return theta
