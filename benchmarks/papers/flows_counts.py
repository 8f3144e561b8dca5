"""Flows, Table 1: arithmetic of one step, counted while it runs, from a given gradient.

Matrix products are torch's count (a multiplication and an addition each). What it does not see is added: rotations and
their entries, which are our own kernels. MNIST is the hidden 100 x 100 layer alone, CIFAR the 108 inner kernels of
PlainNet-110 as (9 c, c) matrices, c = 16, 32, 64.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.jobs import Job, Row
from nearkin.linalg.haar import haar_orthogonal
from nearkin.orthogonal import RiemannianDescent, StochasticFlow

SETTINGS: dict[str, list[tuple[int, int, int]]] = {  # (d, k, how many)
    "ES-200": [(200, 200, 1)],
    "ES-400": [(400, 400, 1)],
    "MNIST": [(100, 100, 1)],
    "CIFAR": [(9 * c, c, 36) for c in (16, 32, 64)],
}
METHODS = {
    "exact": lambda p: RiemannianDescent(p, 1e-4, "exp"),
    "s = 2": lambda p: StochasticFlow(p, 1e-4, scale="none"),
    "s = r*": lambda p: StochasticFlow(p, 1e-4, "d/log d", scale="none"),
}
FULL = SMALL = None


def counted(name: str, d: int, k: int) -> int:
    p = nn.Parameter(haar_orthogonal(d, k, random_state=0))
    p.grad = torch.randn(d, k, generator=torch.Generator().manual_seed(1))
    optimizer = METHODS[name]([p])
    with FlopCounterMode(display=False) as counter:
        optimizer.step()
    pairs = d // 2 * (8 + 4) * k if name == "s = 2" else 0  # each rotates 2 k numbers and has an entry
    return counter.get_total_flops() + pairs


def measured(shapes: list[tuple[int, int, int]]) -> Row:
    return {name: sum(n * counted(name, d, k) for d, k, n in shapes) for name in METHODS}


def jobs(data: Path, size: None) -> Iterator[Job]:
    """Operations a step by setting and method."""
    del data, size
    for setting, shapes in SETTINGS.items():
        yield Job({"setting": setting}, partial(measured, shapes))
