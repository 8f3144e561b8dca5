"""The problems that are measured, and small tools that all parts share."""

import numpy as np

from nearkin.data import comparisons_from_vectors
from nearkin.records import Comparisons

TARGET = 0.15  # SVRG-SBB section 5.1: time until the held-out error is this


def synthetic(n: int, m: int, seed: int, *, p: int = 10, noise: float = 0.0) -> tuple[Comparisons, Comparisons]:
    """SVRG-SBB section 5.1: n points ~ N(0, I / 20) in R^p, m answers to learn from and 10,000 to judge by."""
    points = np.random.default_rng([seed, 1]).normal(0, np.sqrt(1 / 20), (n, p))
    train = comparisons_from_vectors(points, m, noise=noise, random_state=np.random.default_rng([seed, 2]))
    return train, comparisons_from_vectors(points, 10_000, random_state=np.random.default_rng([seed, 3]))
