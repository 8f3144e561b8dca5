"""Paired comparison of two candidates by their values for the same held-out queries."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from nearkin._types import ArrayLike

CONFIDENCE = 0.95  # of the intervals
FEWEST = 6  # queries; even if all differ in one direction, a sign test of fewer does not reach 5 %


class Difference(NamedTuple):
    """The mean of differences over queries, its standard error, and the ends of its 95 % interval."""

    mean: float
    error: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0; if not, the two are a tie."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        tie = "" if self.clear else "a tie, "
        return f"{tie}{self.mean:+.4f} (95 % interval {self.low:+.4f} to {self.high:+.4f})"


def paired_difference(one: ArrayLike, other: ArrayLike) -> Difference:
    """The mean of `one - other` (q,), values for the same queries, which removes the differences between queries.

    The interval is Student's. With fewer than six queries it always includes 0, and the standard error of a single
    difference is its size. ValueError without queries, and for values of different queries.

    >>> str(paired_difference([0.5, 0.6, 0.7, 0.4, 0.5, 0.6], [0.4, 0.5, 0.5, 0.3, 0.4, 0.4]))
    '+0.1333 (95 % interval +0.0791 to +0.1875)'
    """
    first, second = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if first.ndim != 1 or first.shape != second.shape or not len(first):
        raise ValueError(f"values have shapes {first.shape} and {second.shape}; they must be (q,), one for each query")
    differences, n = first - second, len(first)
    mean = float(differences.mean())
    error = float(differences.std(ddof=1)) / n**0.5 if n > 1 else abs(mean)
    half = error * float(stdtrit(max(n - 1, 1), (1 + CONFIDENCE) / 2))
    low, high = mean - half, mean + half
    return Difference(mean, error, *((low, high) if n >= FEWEST else (min(low, 0.0), max(high, 0.0))))
