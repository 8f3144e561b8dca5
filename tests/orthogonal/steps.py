"""Points of every shape, and one step of an optimizer on a random problem, as its tests look at it."""

from collections.abc import Callable

import torch
from torch import nn

from nearkin.linalg.haar import haar_orthogonal
from nearkin.orthogonal.optimizer import seed_of_step


def point(shape: tuple[int, ...], seed: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """A random point of batches of matrices, tall or wide."""
    *batch, d, k = shape
    X = haar_orthogonal(*batch, max(d, k), min(d, k), random_state=seed, dtype=torch.float64)
    return (X if d >= k else X.mT.contiguous()).to(dtype)


def gradient(shape: tuple[int, ...], seed: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def problem(d: int, k: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """A random point (d, k), k = d by default, and a gradient, float64."""
    k = d if k is None else k
    G = torch.randn(d, k, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    return haar_orthogonal(d, k, random_state=0, dtype=torch.float64), G


def descend_along(optimizer: torch.optim.Optimizer, params: list[nn.Parameter], steps: int) -> None:
    """Steps by random gradients, of which the first parameter lacks the second."""
    for step in range(steps):
        for number, p in enumerate(params):
            p.grad = gradient(p.shape, 100 * step + number, p.dtype)
            if step == 1 and number == 0 and len(params) > 1:
                p.grad = None  # one step behind the others from here on
        optimizer.step()


def stepped(
    optimizer: Callable[..., torch.optim.Optimizer], X: torch.Tensor, G: torch.Tensor, *given: object, **options: object
) -> torch.Tensor:
    """X after one step of `optimizer([X], *given, **options)` with the gradient G."""
    p = nn.Parameter(X.clone())
    p.grad = G
    optimizer([p], *given, **options).step()
    return p.detach()


def first_draws(random_state: int) -> torch.Generator:
    """What an optimizer of this seed draws from in its first step."""
    return torch.Generator().manual_seed(seed_of_step(random_state, 1))
