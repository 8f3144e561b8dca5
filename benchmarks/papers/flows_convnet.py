"""Flows, Figure 5 in small: what orthogonal kernels give by their start, and what by staying orthogonal.

Sixteen plain 3 x 3 tanh convolutions on scikit-learn's digits (the paper: 110 on CIFAR-10's images, which are not at
hand). Each method climbs over its own learning rate, by factors of 3, on seed 0 until no neighbour is better.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import nearkin as nk
from benchmarks.jobs import Job, Row
from benchmarks.two_tower.rivals import Axis, climbed
from examples.plain_convnet import digits, learn, network


@dataclass(frozen=True)
class Size:
    """Layers, channels, epochs, seeds, training images at most."""

    depth: int = 16
    channels: int = 16
    epochs: int = 6
    seeds: tuple[int, ...] = (1, 2, 3)
    images: int = 2000


FULL, SMALL = Size(), Size(4, 4, 1, (1,), 128)
METHODS = {  # name -> (orthogonal start, optimizer of the kernels)
    "SGD": (False, None),
    "SGD, orthogonal start": (True, None),
    "exact": (True, lambda p, lr: nk.orthogonal.RiemannianDescent(p, lr, momentum=0.9, layout="convolution")),
    "flow, s = 2": (
        True,
        lambda p, lr: nk.orthogonal.StochasticFlow(p, lr, scale="none", momentum=0.9, layout="convolution"),
    ),
    "flow, s = d / log d": (
        True,
        lambda p, lr: nk.orthogonal.StochasticFlow(p, lr, "d/log d", scale="none", momentum=0.9, layout="convolution"),
    ),
    **{  # d = 144: ceil(log d) and sqrt d, which the paper says do not train properly
        f"flow, s = {s}": (
            True,
            lambda p, lr, s=s: nk.orthogonal.StochasticFlow(p, lr, s, scale="none", momentum=0.9, layout="convolution"),
        )
        for s in (5, 12)
    },
}


def train(method: str, lr: float, data: list[Tensor], size: Size, seed: int) -> list[float]:
    """Test accuracy after each epoch; `lr` is that of the kernels, .05 of the rest."""
    start, build = METHODS[method]
    net = network(size.depth, size.channels)  # seeds torch with 0; the kernels below are drawn by `seed`
    torch.manual_seed(seed)
    for layer in net:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.reset_parameters()
    inner = [layer for layer in net if isinstance(layer, nn.Conv2d) and layer.in_channels > 1]
    if start:
        for i, layer in enumerate(inner):
            nk.orthogonal.orthogonal_(layer, "weight", random_state=100 * seed + i)
    kernels = [layer.weight for layer in inner]
    rest = [p for p in net.parameters() if not any(p is kernel for kernel in kernels)]
    optimizers = [torch.optim.SGD(rest, lr=0.05, momentum=0.9)]
    optimizers.append(build(kernels, lr) if build else torch.optim.SGD(kernels, lr=lr, momentum=0.9))
    return learn(net, optimizers, rest, data, size.epochs, torch.Generator().manual_seed(seed))


def measured(method: str, size: Size) -> Row:
    """The learning rate from a climb, then the curves of the seeds."""
    X, fresh, y, asked = digits()
    data = [X[: size.images], fresh, y[: size.images], asked]

    tried = list[float]()

    def judge(values: dict[str, float]) -> float:
        tried.append(values["lr"])
        return train(method, values["lr"], data, size, 0)[-1]

    lr = climbed({"lr": Axis(0.1)}, judge)["lr"]
    runs = np.array([train(method, lr, data, size, seed) for seed in size.seeds])
    row: Row = {"lr": lr, "tried": len(tried), "test": float(runs[:, -1].mean()), "tests": runs[:, -1].tolist()}
    return row | {"test std": float(runs[:, -1].std()), "curve": runs.mean(axis=0).round(4).tolist()}


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """Flows, Figure 5 in small."""
    del data
    for method in METHODS:
        yield Job({"method": method}, partial(measured, method, size))
