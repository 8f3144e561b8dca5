"""Sums over the rows of a fit: `update` adds a batch, `merge` the sums of other rows, `finalize` returns the result.

The same record serves rows in memory, rows streamed in chunks, and rows spread over processes, where merging is one
all-reduce of its `totals` (`nearkin._distributed.Group.merge`). Float sums depend on the order of the terms,
but only in the last bits of float64: products and sums within a *block* of rows may be float32, sums over blocks are
float64. So parts that are cut at block boundaries merge to the result of the whole.
"""

from abc import ABC, abstractmethod
from typing import Self

import numpy as np


class AbstractSums(ABC):
    """Sums over rows that merge."""

    @abstractmethod
    def totals(self) -> list[np.ndarray]:
        """The arrays that merging adds up, in place."""

    def merge(self, other: Self) -> Self:
        """Add the sums of another part of the data."""
        for mine, theirs in zip(self.totals(), other.totals(), strict=True):
            mine += theirs
        return self


class RowMean(AbstractSums):
    """The mean over rows of a number, a vector or a matrix of that shape: how many rows, and a total over them.

    Callers compute the totals: (X - mean).T @ (X - mean) for a covariance, X.T @ B for the product with partners B. A
    covariance takes two passes, because X^T X - n m m^T loses the digits of a variance that is small against the mean.
    """

    def __init__(self, *shape: int) -> None:
        self.count = np.zeros(1)
        self.total = np.zeros(shape)

    def totals(self) -> list[np.ndarray]:
        return [self.count, self.total]

    def update(self, total: np.ndarray | float, count: float) -> Self:
        """Add the total over `count` rows."""
        self.count += count
        self.total += total
        return self

    def finalize(self) -> np.ndarray:
        """The total divided by the number of rows, zeros without rows."""
        return self.total / (self.count[0] or 1)


def row_mean(X: np.ndarray, weights: np.ndarray | None = None) -> RowMean:
    """The mean (d,) of rows X (b, d), each counted as often as its weight (b,)."""
    if weights is None:
        return RowMean(X.shape[1]).update(X.sum(axis=0, dtype=np.float64), len(X))
    return RowMean(X.shape[1]).update(weights.astype(np.float64) @ X, weights.sum(dtype=np.float64))


def squared_norm(X: np.ndarray, weights: np.ndarray | None = None) -> RowMean:
    """The mean of |x|^2 over rows X (b, d), each counted as often as its weight (b,)."""
    if weights is None:
        return RowMean().update(np.einsum("ij,ij->", X, X, dtype=np.float64), len(X))
    return RowMean().update(np.einsum("ij,ij,i->", X, X, weights, dtype=np.float64), weights.sum(dtype=np.float64))
