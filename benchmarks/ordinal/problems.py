"""The problems that are measured, and small tools that all parts share."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from nearkin.data import comparisons_from_vectors
from nearkin.records import Comparisons

TARGET = 0.15  # SVRG-SBB section 5.1: time until the held-out error is this


def synthetic(n: int, m: int, seed: int, *, p: int = 10, noise: float = 0.0) -> tuple[Comparisons, Comparisons]:
    """SVRG-SBB section 5.1: n points ~ N(0, I / 20) in R^p, m answers to learn from and 10,000 to judge by."""
    points = np.random.default_rng([seed, 1]).normal(0, np.sqrt(1 / 20), (n, p))
    train = comparisons_from_vectors(points, m, noise=noise, random_state=np.random.default_rng([seed, 2]))
    return train, comparisons_from_vectors(points, 10_000, random_state=np.random.default_rng([seed, 3]))


def seconds(run: Callable[[], Any], repeats: int = 5) -> float:
    """The median processor time of `run` (one thread, on a machine that others use), after one uncounted call."""
    run()
    times = []
    for _ in range(repeats):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return statistics.median(times)
