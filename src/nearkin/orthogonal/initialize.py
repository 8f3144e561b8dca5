"""Put a module's parameter on the manifold, once, before training."""

import torch
from torch import nn

from nearkin._random import torch_generator
from nearkin._types import Seed
from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.procrustes import nearest_orthogonal
from nearkin.orthogonal.layout import as_tall, check_layout, write_back

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
