"""Put a module's parameter on the manifold, once, before training."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from nearkin._random import torch_generator
from nearkin._types import Seed
from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.procrustes import nearest_orthogonal
from nearkin.orthogonal.diagnostics import is_orthogonal
from nearkin.orthogonal.layout import as_tall, check_layout, write_back

_FULL_RANK = 1e-6  # of the smallest singular value: below, the nearest orthonormal matrix is arbitrary
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def layout_of(module: nn.Module) -> str:
    """Return "convolution" for a convolution layer, whose kernel is one matrix, and "matrix" for all others."""
    return "convolution" if isinstance(module, _CONVOLUTIONS) else "matrix"


@torch.no_grad()
def orthogonal_(module: nn.Module, name: str = "weight", *, init: str = "haar", random_state: Seed = 0) -> nn.Parameter:
    """Make `module`'s parameter `name` orthonormal in place and return it, ready for an optimizer of this package.

    A tall matrix (d, k) gets orthonormal columns, a wide one orthonormal rows, a convolution kernel is taken as its
    flattened matrix (give its group layout="convolution"). init="haar" draws a uniform random point, "nearest" projects
    the present values.

    Examples
    --------
    >>> import torch, nearkin as nk
    >>> layer = torch.nn.Linear(8, 3)
    >>> weight = nk.orthogonal.orthogonal_(layer, "weight")
    >>> nk.orthogonal.is_orthogonal(weight)
    True
    """
    if init not in ("haar", "nearest"):
        raise ValueError(f"init is {init!r}; it must be one of 'haar', 'nearest'")
    p = getattr(module, name, None)
    if not isinstance(p, nn.Parameter):
        names = ", ".join(n for n, _ in module.named_parameters(recurse=False)) or "none of its own"
        raise ValueError(f"name is {name!r}; it must be a parameter of the {type(module).__name__}, which has: {names}")
    layout = layout_of(module)
    check_layout(p, name, layout)
    X = as_tall(p, layout)
    work = X.double()
    if init == "haar":
        generator = torch_generator(random_state)
        fresh = haar_orthogonal(*X.shape, random_state=generator, dtype=torch.float64).to(p.device)
    else:
        fresh = nearest_orthogonal(work)
    write_back(p, fresh, layout)
    return p


@torch.no_grad()
def reproject_(averaged: nn.Module, model: nn.Module) -> list[str]:
    """Put an average of models back onto the manifold, in place; returns the names of the parameters it projected.

    An average of orthonormal matrices, as `torch.optim.swa_utils.AveragedModel` or an EMA keeps it, is not
    orthonormal. Every parameter of `averaged` that is orthonormal in `model` is replaced by the nearest orthonormal
    one. Do it when the average is used; to go on averaging afterwards, do it to a copy. ValueError if the two have
    other parameters or a matrix that is not of full rank.

    Examples
    --------
    >>> import torch, nearkin as nk
    >>> layer = torch.nn.Linear(3, 3)
    >>> weight = nk.orthogonal.orthogonal_(layer, "weight")
    >>> average = torch.optim.swa_utils.AveragedModel(layer)
    >>> average.update_parameters(layer)
    >>> nk.orthogonal.reproject_(average, layer)
    ['weight']
    """
    inner = averaged.module if isinstance(averaged, AveragedModel) else averaged
    ours, theirs = dict(inner.named_parameters()), dict(model.named_parameters())
    if {name: p.shape for name, p in ours.items()} != {name: p.shape for name, p in theirs.items()}:
        raise ValueError("averaged and model have other parameters; averaged must be an average of this very model")
    layouts = {id(p): layout_of(module) for module in model.modules() for p in module.parameters(recurse=False)}
    projected: list[str] = []
    for name, p in theirs.items():
        layout = layouts[id(p)]
        if p.ndim < 2 or not p.is_floating_point() or not is_orthogonal(as_tall(p, layout)):
            continue
        X = as_tall(ours[name], layout).double()
        if not bool((torch.linalg.svdvals(X) > _FULL_RANK).all()):  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]
            raise ValueError(
                f"{name} of averaged is not of full rank: the models in it lie too far apart to be averaged"
            )
        write_back(ours[name], nearest_orthogonal(X), layout)
        projected.append(name)
    return projected
