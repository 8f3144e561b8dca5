"""Flows, Figure 4 as printed: a tanh network on MNIST whose hidden 100 x 100 layer alone is kept orthogonal.

Table 1's note counts a 100 x 100 matrix, so the first layer is free. Two learning rates, of the free part and of the
hidden layer as a multiple of it, climb a lattice (factors of 3, from .1 and 1, which the paper's grid is around) until
no neighbour is better, so that the best is never at an edge. They are chosen on 12,000 of the training images, judged
on 2,000 others; then all 60,000 are learned with three seeds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

import nearkin as nk
from benchmarks.harness import arrays
from benchmarks.jobs import Job, Row
from benchmarks.two_tower.rivals import Axis, climbed
from examples.orthogonal_mlp import accuracy, network

HIDDEN, BATCH, MOMENTUM = 2, 128, 0.9


@dataclass(frozen=True)
class Size:
    """Images, epochs and seeds; images to learn from and to judge by, and epochs, of a choice of rates."""

    images: int = 60_000
    epochs: int = 5
    seeds: tuple[int, ...] = (1, 2, 3)
    trial: tuple[int, int, int] = (12_000, 2_000, 3)


FULL, SMALL = Size(), Size(400, 1, (1,), (200, 100, 1))
METHODS: dict[str, Callable[..., Any] | None] = {
    "vanilla SGD": None,
    "exact": lambda p, lr: nk.orthogonal.RiemannianDescent(p, lr, momentum=MOMENTUM),
    "flow, s = 2": lambda p, lr: nk.orthogonal.StochasticFlow(p, lr, scale="none", momentum=MOMENTUM),
    "flow, s = d / log d": lambda p, lr: nk.orthogonal.StochasticFlow(
        p, lr, "d/log d", scale="none", momentum=MOMENTUM
    ),
    "Givens greedy": lambda p, lr: nk.orthogonal.GivensDescent(p, lr, "greedy", momentum=MOMENTUM),
    "vanilla SGD, orthogonal start": None,
}


def train(method: str, rates: tuple[float, float], data: tuple[Tensor, ...], epochs: int, seed: int) -> list[Any]:
    """[training, test] accuracy after each epoch; the hidden layer learns by the product of both rates."""
    X, y, fresh, asked = data
    net, build = network(X.shape[1], seed), METHODS[method]
    if build or "orthogonal" in method:
        nk.orthogonal.orthogonal_(net[HIDDEN], "weight", random_state=seed)
    hidden = net[HIDDEN].weight
    rest = [p for p in net.parameters() if p is not hidden]
    lr, of_hidden = rates[0], rates[0] * rates[1]
    optimizers = [torch.optim.SGD(rest, lr=lr, momentum=MOMENTUM)]
    optimizers.append(build([hidden], of_hidden) if build else torch.optim.SGD([hidden], of_hidden, momentum=MOMENTUM))
    generator, found = torch.Generator().manual_seed(seed), []
    for _ in range(epochs):
        for rows in torch.randperm(len(X), generator=generator).split(BATCH):
            for optimizer in optimizers:
                optimizer.zero_grad()
            F.cross_entropy(net(X[rows]), y[rows]).backward()
            for optimizer in optimizers:
                optimizer.step()
        found.append([accuracy(net, X, y), accuracy(net, fresh, asked)])
    return found


@cache
def read(data: Path) -> tuple[Tensor, ...]:
    """MNIST's training and test images, centred as in the example, and labels."""
    X, y, fresh, asked = arrays(data, "mnist", "X_train", "y_train", "X_test", "y_test")
    images = [torch.from_numpy(A.astype(np.float32) / 255) - 0.2 for A in (X, fresh)]
    labels = [torch.from_numpy(b.astype(np.int64)) for b in (y, asked)]
    return images[0], labels[0], images[1], labels[1]


def measured(data: Path, size: Size, method: str) -> Row:
    """Rates from a trial, then the curves of all seeds on all images."""
    X, y, fresh, asked = read(data)
    X, y = X[: size.images], y[: size.images]
    few, judged, epochs = size.trial
    trial = (X[:few], y[:few], X[few : few + judged], y[few : few + judged])
    tried = list[tuple[float, float]]()

    def judge(values: dict[str, float]) -> float:
        tried.append((values["lr"], values["of the hidden layer"]))
        return train(method, tried[-1], trial, epochs, 0)[-1][1]

    found = climbed({"lr": Axis(0.1), "of the hidden layer": Axis(1.0)}, judge)
    rates = found["lr"], found["of the hidden layer"]
    runs = np.array([train(method, rates, (X, y, fresh, asked), size.epochs, seed) for seed in size.seeds])
    last = runs[:, -1]
    row: Row = {"images": len(X), "epochs": size.epochs, **found}
    row |= {"tried": len(tried), "train": float(last[:, 0].mean()), "test": float(last[:, 1].mean())}
    return row | {"test std": float(last[:, 1].std()), "curve": runs.mean(axis=0).round(4).tolist()}


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """Flows, Figure 4 as printed."""
    for method in METHODS:
        yield Job({"method": method}, partial(measured, data, size, method))
