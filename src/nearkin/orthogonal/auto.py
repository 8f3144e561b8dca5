"""The optimizer that our measurements recommend, by the shape of the parameters."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from nearkin._check import check_choice
from nearkin._types import Record
from nearkin.orthogonal.diagnostics import is_orthogonal
from nearkin.orthogonal.givens_descent import GivensDescent
from nearkin.orthogonal.initialize import layout_of
from nearkin.orthogonal.layout import as_tall, check_whole
from nearkin.orthogonal.mixed import MixedOptimizer
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
    others: Callable[[list[nn.Parameter]], Optimizer] | None = None,
    **options: Any,
) -> AbstractOrthogonalOptimizer | MixedOptimizer:
    """Return an optimizer for orthonormal parameters, chosen by shape and by what benchmarks/orthogonal/tasks.py
    showed.

    "auto" is RiemannianDescent with the "auto" retraction: "taylor" for square parameters, "newton-schulz" for others,
    the cheapest steps that follow the whole gradient; thin matrices never form a d x d matrix. docs/orthogonal.md has
    the table of the time to a loss, and says where POGO's rule is faster. With `cheap_gradients`, for square parameters
    of side >= 1024 whose gradient costs less than d^3, it is StochasticFlow with s = d / log d, whose steps cost
    O(d^2 s): a cheap step, not a fast method (at d = 256, on a task whose gradient costs d^2, it stayed behind).

    Parameters
    ----------
    params: parameters or groups of them, or a module whose matrices are all to be orthonormal, convolution kernels
        included (each gets its layout); its vectors, such as biases, are left to another optimizer.
    lr: step length, > 0. It means the same for all methods: the flow is not rescaled (scale="none").
    method: "auto", or "riemannian" (the same without looking at sizes), "flow" (s = d / log d), "givens" (greedy).
    cheap_gradients: see above.
    others: makes the optimizer of everything else in a whole network, for example
        `lambda rest: torch.optim.AdamW(rest, lr=1e-3)`. `params` is then the module: the parameters of 2 or more axes
        that are orthonormal now, as `orthogonal_` leaves them, move on the manifold, all the rest is given to
        `others`, and what comes back is one `MixedOptimizer`.
    options: momentum, maximize, stabilize_every, check_finite, random_state, callback and the method's own.

    Examples
    --------
    >>> import torch, nearkin as nk
    >>> layer = torch.nn.Linear(8, 8)
    >>> weight = nk.orthogonal.orthogonal_(layer, "weight")
    >>> nk.orthogonal.orthogonal_optimizer([weight], lr=0.1).param_groups[0]["retraction"]
    'auto'
    """
    check_choice(method, "method", METHODS)
    if others is not None:
        on_manifold, rest = _split(params)
        first = orthogonal_optimizer(on_manifold, lr, method=method, cheap_gradients=cheap_gradients, **options)
        return MixedOptimizer(first, *([others(rest)] if rest else []))
    groups = _groups_of(params)
    if "check_finite" in options:  # an option of groups, which all methods have
        groups = [{"check_finite": options["check_finite"], **group} for group in groups]
        options = {name: value for name, value in options.items() if name != "check_finite"}
    if method == "auto":
        large = cheap_gradients and all(_is_large_square(p) for group in groups for p in group["params"])
        method = "flow" if large else "riemannian"
    if method == "flow":
        options = {"component_size": "d/log d", "scale": "none", **options}
        return StochasticFlow(groups, lr, **options)
    if method == "givens":
        return GivensDescent(groups, lr, **options)
    options.pop("random_state", None)  # nothing is drawn
    options.setdefault("retraction", "auto")
    return RiemannianDescent(groups, lr, **options)


def _groups_of(params: Any) -> list[Record]:
    if isinstance(params, nn.Module):
        groups = _by_layout(_matrices_of(params))
        if not groups:
            raise ValueError(
                f"params is a {type(params).__name__} without matrices; it needs a parameter of 2 or more axes"
            )
        return groups
    if isinstance(params, str):
        raise TypeError(f"params is {params!r}; it must be a module, parameters or groups of them")
    params = list(params)
    return params if params and isinstance(params[0], dict) else [{"params": params}]


def _matrices_of(net: nn.Module) -> dict[nn.Parameter, str]:
    """The parameters of 2 or more axes with their layouts."""
    layouts: dict[nn.Parameter, str] = {}
    for module in net.modules():
        for name, p in module.named_parameters(recurse=False):
            check_whole(p, name)
            if p.ndim >= 2:
                layouts.setdefault(p, layout_of(module))
    return layouts


def _by_layout(layouts: Mapping[nn.Parameter, str]) -> list[Record]:
    """One group of parameters for each layout."""
    names = dict.fromkeys(layouts.values())
    return [{"params": [p for p in layouts if layouts[p] == name], "layout": name} for name in names]


def _split(net: Any) -> tuple[list[Record], list[nn.Parameter]]:
    """The groups of the matrices that are orthonormal, and all other parameters that are trained."""
    if not isinstance(net, nn.Module):
        raise TypeError(
            f"params is a {type(net).__name__}; with others= it must be the module, or type MixedOptimizer("
            "orthogonal_optimizer(matrices, lr), torch.optim.AdamW(rest))"
        )
    matrices = {p: layout for p, layout in _matrices_of(net).items() if p.requires_grad}
    own = {p: layout for p, layout in matrices.items() if _is_on_manifold(p, layout)}
    if not own:
        raise ValueError(
            f"none of the {len(matrices)} matrices of the {type(net).__name__} is orthonormal; put those on the "
            "manifold that are to stay there, by nearkin.orthogonal.orthogonal_(module, 'weight'), before you make the "
            "optimizer"
        )
    return _by_layout(own), [p for p in net.parameters() if p.requires_grad and p not in own]


def _is_on_manifold(p: Tensor, layout: str) -> bool:
    return p.is_floating_point() and not p.is_meta and is_orthogonal(as_tall(p.detach(), layout))


def _is_large_square(p: Any) -> bool:
    return p.shape[-1] == p.shape[-2] >= LARGE
