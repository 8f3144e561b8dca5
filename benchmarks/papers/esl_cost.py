"""ESL, eqs. 15 and 28: CPU milliseconds of one function value and of one gradient, 100 pairs a row, k = 64."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

import nearkin as nk
from benchmarks.harness import median_ms
from benchmarks.jobs import Job, Row


@dataclass(frozen=True)
class Size:
    """Rows of both sides, repetitions."""

    rows: tuple[int, ...] = (2000, 8000)
    repeats: int = 5


FULL, SMALL = Size(), Size((500, 1000), 1)


def jobs(data: Path, size: Size) -> Iterator[Job]:
    del data
    for m in size.rows:
        yield Job({"m": m}, partial(measured, m, size.repeats))


def measured(m: int, repeats: int) -> Row:
    """Random pairs, random tables."""
    rng = np.random.default_rng(0)
    pairs = nk.Interactions.from_pairs(np.repeat(np.arange(m), 100), rng.integers(0, m, 100 * m))
    loss = nk.embedding.AllPairsLoss(pairs.matrix(), omega=0.01, labels=1.0)
    P, Q = (torch.from_numpy(rng.standard_normal((n, 64), dtype=np.float32)) / 8 for n in pairs.matrix().shape)
    functions = {"value": lambda: loss.at(P, Q).value(), "gradient": lambda: loss.gradient(P, Q)}
    return median_ms(functions, repeats)
