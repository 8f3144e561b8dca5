"""How do I learn a rotation so that a network loses less when it is rounded to few bits?

    python examples/rotate_before_rounding.py

A small character model with a residual stream. An orthogonal R turns the stream, and R' the weights that read and
write it: the function is unchanged, but the error of rounding is not (SpinQuant, Liu et al. 2024). R is one parameter
that `nearkin.orthogonal` keeps orthogonal while it is learned through the rounding.
"""

import inspect

import torch
from scipy.linalg import hadamard
from torch import Tensor, nn
from torch.nn import functional as F

import nearkin as nk

D, HIDDEN, LAYERS, CONTEXT, BITS, STEPS = 64, 128, 2, 8, 3, 200


def text() -> Tensor:
    """The source of a module of Python's as numbers of characters."""
    return torch.tensor([min(ord(letter), 127) for letter in inspect.getsource(inspect)])


def batch(letters: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Contexts (count, CONTEXT) and the letters after them."""
    starts = torch.randint(len(letters) - CONTEXT - 1, (count, 1), generator=generator)
    return letters[starts + torch.arange(CONTEXT)], letters[starts[:, 0] + CONTEXT]


def rounded(x: Tensor, dim: int) -> Tensor:
    """x on 2^BITS - 1 levels; the derivative is that of x (straight-through)."""
    step = x.detach().abs().amax(dim, keepdim=True).clamp_min(1e-9) / (2 ** (BITS - 1) - 1)
    return x + ((x / step).round() * step - x).detach()


def loss(weights: dict[str, Tensor], x: Tensor, y: Tensor, R: Tensor | None = None, round_it: bool = False) -> Tensor:
    """Cross-entropy of the network, its stream turned by R, its layers rounded or not."""
    R = torch.eye(D) if R is None else R
    quantize = rounded if round_it else (lambda values, dim: values)
    stream = sum(weights["embed"][place][x[:, place]] for place in range(CONTEXT)) @ R
    for layer in range(LAYERS):
        up, down = quantize(R.T @ weights["up"][layer], 0), quantize(weights["down"][layer] @ R, 0)
        normed = stream * (stream.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        stream = stream + quantize(F.silu(quantize(normed, -1) @ up), -1) @ down
    return F.cross_entropy(stream @ (R.T @ weights["head"]), y)


def train(letters: Tensor) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = {"embed": (CONTEXT, 128, D), "up": (LAYERS, D, HIDDEN), "down": (LAYERS, HIDDEN, D), "head": (D, 128)}
    weights = {
        name: nn.Parameter(torch.randn(shape, generator=generator) * shape[-2] ** -0.5)
        for name, shape in shapes.items()
    }
    optimizer = torch.optim.AdamW(weights.values(), lr=3e-3)
    for _ in range(2 * STEPS):
        optimizer.zero_grad()
        loss(weights, *batch(letters, 256, generator)).backward()
        optimizer.step()
    return {name: weight.detach() for name, weight in weights.items()}


def main() -> None:
    letters = text()
    weights = train(letters)
    generator = torch.Generator().manual_seed(1)
    judge = batch(letters, 4000, generator)

    signs = torch.randint(2, (D, 1), generator=generator) * 2.0 - 1
    R = nn.Parameter(signs * torch.from_numpy(hadamard(D)).float() / D**0.5)  # a random Hadamard matrix to start from
    start = R.detach().clone()
    optimizer = nk.orthogonal.orthogonal_optimizer([R], lr=0.1)  # radians, whatever the loss
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss(weights, *batch(letters, 256, generator), R, round_it=True).backward()
        optimizer.step()
        schedule.step()

    with torch.no_grad():
        print(f"not rounded               {loss(weights, *judge):.3f}")
        for name, turn in (("no rotation", None), ("random Hadamard matrix", start), ("learned rotation", R.detach())):
            print(f"{BITS} bits, {name:24}{loss(weights, *judge, turn, round_it=True):.3f}")
    print(f"|R'R - I| at the end: {torch.linalg.matrix_norm(R.T @ R - torch.eye(D)) / D**0.5:.1e}")


if __name__ == "__main__":
    main()
