"""The optimizer that our measurements recommend, by the shape of the parameters."""

from typing import Any

from torch import nn

from nearkin._check import check_choice
from nearkin._types import Record
from nearkin.orthogonal.givens_descent import GivensDescent
from nearkin.orthogonal.initialize import layout_of
from nearkin.orthogonal.optimizer import AbstractOrthogonalOptimizer
from nearkin.orthogonal.riemannian_descent import RiemannianDescent
from nearkin.orthogonal.stochastic_flow import StochasticFlow

METHODS = ("auto", "riemannian", "flow", "givens")
LARGE = 1024  # square matrices from this side on are "large": a d^3 product takes tens of milliseconds


def orthogonal_optimizer(
    params: Any,
    lr: float,
    *,
    method: str = "auto",
    cheap_gradients: bool = False,
    **options: Any,
) -> AbstractOrthogonalOptimizer:
    """Return an optimizer for orthonormal parameters, chosen by shape and by what benchmarks/orthogonal/tasks.py
    showed.

    "auto" is RiemannianDescent with the "newton-schulz" retraction: the cheapest step that follows the whole gradient
    on nearly every shape, and about level with "qr" in the time to a loss (25 % ahead to 11 % behind); thin matrices
    never form a d x d matrix. docs/orthogonal.md has the table, and says where POGO's rule is faster (matrices of side
    about 100 and less). With `cheap_gradients`, for square parameters of side >= 1024 whose gradient costs less than
    d^3, it is StochasticFlow with s = d / log d, whose steps cost O(d^2 s): a cheap step, not a fast method (at
    d = 256, on a task whose gradient costs d^2, it stayed behind).

    Parameters
    ----------
    params: parameters or groups of them, or a module whose matrices are all to be orthonormal, convolution kernels
        included (each gets its layout); its vectors, such as biases, are left to another optimizer.
    lr: step length, > 0. It means the same for all methods: the flow is not rescaled (scale="none").
    method: "auto", or "riemannian" (newton-schulz), "flow" (s = d / log d), "givens" (greedy).
    cheap_gradients: see above.
    options: momentum, maximize, stabilize_every, random_state, callback and the method's own.

    Examples
    --------
    >>> import torch, nearkin as nk
    >>> layer = torch.nn.Linear(8, 8)
    >>> weight = nk.orthogonal.orthogonal_(layer, "weight")
    >>> nk.orthogonal.orthogonal_optimizer([weight], lr=0.1).param_groups[0]["retraction"]
    'newton-schulz'
    """
    check_choice(method, "method", METHODS)
    groups = _groups_of(params)
    if method == "auto":
        large = cheap_gradients and all(_is_large_square(p) for group in groups for p in group["params"])
        method = "flow" if large else "riemannian"
    if method == "flow":
        return StochasticFlow(groups, lr, **{"component_size": "d/log d", "scale": "none", **options})
    if method == "givens":
        return GivensDescent(groups, lr, **options)
    options.pop("random_state", None)  # nothing is drawn
    return RiemannianDescent(groups, lr, **{"retraction": "newton-schulz", **options})


def _groups_of(params: Any) -> list[Record]:
    if isinstance(params, nn.Module):
        groups = [
            {"params": [p], "layout": layout_of(module)}
            for module in params.modules()
            for p in module.parameters(recurse=False)
            if p.ndim >= 2
        ]
        if not groups:
            raise ValueError(
                f"params is a {type(params).__name__} without matrices; it needs a parameter of 2 or more axes"
            )
        return groups
    params = list(params)
    return params if params and isinstance(params[0], dict) else [{"params": params}]


def _is_large_square(p: Any) -> bool:
    return p.shape[-1] == p.shape[-2] >= LARGE
