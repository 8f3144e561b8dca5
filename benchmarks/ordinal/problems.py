"""The problems that are measured, and small tools that all parts share."""

import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import commit
from benchmarks.options import RESULTS
from benchmarks.stored import write_json
from nearkin._types import Seed
from nearkin.data import comparisons_from_vectors, flip_answers
from nearkin.records import Comparisons

TARGET = 0.15  # SVRG-SBB section 5.1: time until the held-out error is this


def synthetic(n: int, m: int, seed: int, *, p: int = 10, noise: float = 0.0) -> tuple[Comparisons, Comparisons]:
    """SVRG-SBB section 5.1: n points ~ N(0, I / 20) in R^p, m answers to learn from and 10,000 to judge by."""
    points = np.random.default_rng([seed, 1]).normal(0, np.sqrt(1 / 20), (n, p))
    train = comparisons_from_vectors(points, m, noise=noise, random_state=np.random.default_rng([seed, 2]))
    return train, comparisons_from_vectors(points, 10_000, random_state=np.random.default_rng([seed, 3]))


def comparisons_from_labels(y: np.ndarray, count: int, *, noise: float = 0.0, random_state: Seed = None) -> Comparisons:
    """Random triplets (i, j, k) with i and j of one class and k of another (SVRG-SBB section 5.4).

    y (n,) are labels of objects 0 ... n - 1; `noise` is the share with j and k exchanged.
    """
    _, label, size = np.unique(y, return_inverse=True, return_counts=True)
    rng = np.random.default_rng(random_state)
    order = np.argsort(label, kind="stable")
    starts = np.concatenate([[0], np.cumsum(size)])
    rank = np.empty(len(y), np.int64)  # of an object within its class
    rank[order] = np.arange(len(y)) - starts[label[order]]
    i = rng.choice(np.flatnonzero(size[label] >= 2), count)
    other = (rank[i] + rng.integers(1, size[label[i]])) % size[label[i]]
    j = order[starts[label[i]] + other]
    far = rng.integers(0, len(y) - size[label[i]])  # counts the objects outside the class, in `order`
    k = order[np.where(far < starts[label[i]], far, far + size[label[i]])]
    return flip_answers(Comparisons(np.stack([i, j, k], axis=1), np.arange(len(y))), noise, random_state=rng)


def seconds(run: Callable[[], Any], repeats: int = 5) -> float:
    """The median processor time of `run` (one thread, on a machine that others use), after one uncounted call."""
    run()
    times = []
    for _ in range(repeats):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return statistics.median(times)


def machine() -> dict[str, Any]:
    return {
        "clock": "processor time, one thread",
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": 1,
        "commit": commit(),
    }


def write(name: str, record: dict[str, Any]) -> None:
    """Write benchmarks/results/ordinal_<name>.json."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"ordinal_{name}.json"
    write_json(path, {"machine": machine(), **record})
    print(f"wrote {path}")
