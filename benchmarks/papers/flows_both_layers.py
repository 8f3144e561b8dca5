"""Flows, Figure 4, both layers orthogonal: the example's network and its one grid of step lengths, in our setting."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.papers.jobs import Job, Row
from examples import orthogonal_mlp


@dataclass(frozen=True)
class Size:
    """Images, epochs, seeds."""

    images: int = 10_000
    epochs: int = 6
    seeds: tuple[int, ...] = (1, 2, 3)


FULL, SMALL = Size(), Size(300, 1, (1,))


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """Accuracy on MNIST of a tanh network whose layers are kept orthogonal, or not."""
    for method in orthogonal_mlp.METHODS:
        yield Job({"method": method}, partial(measured, data, size, method))


def measured(data: Path, size: Size, method: str) -> Row:
    """The learning rate that the grid's trial chooses, and the accuracies at the end."""
    X, y, fresh, asked, name = orthogonal_mlp.read(data)
    arrays, build = (X[: size.images], y[: size.images], fresh, asked), orthogonal_mlp.METHODS[method]
    lr = orthogonal_mlp.choose(build, arrays, size.epochs)
    runs = np.array([orthogonal_mlp.train(build, lr, arrays, size.epochs, seed) for seed in size.seeds])
    row: Row = {"data": name, "images": len(arrays[0]), "epochs": size.epochs, "lr": lr}
    last = runs[:, -1]
    return row | {
        "train": float(last[:, 0].mean()),
        "test": float(last[:, 1].mean()),
        "test std": float(last[:, 1].std()),
    }
