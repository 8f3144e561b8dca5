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

    @abstractmethod
    def finalize(self) -> object:
        """The result of the sums."""

    def merge(self, other: Self) -> Self:
        """Add the sums of another part of the data."""
        for mine, theirs in zip(self.totals(), other.totals(), strict=True):
            mine += theirs
        return self


class AbstractMean(AbstractSums):
    """A number of rows and a total over them: `finalize` divides, by 1 without rows."""

    def __init__(self, *shape: int) -> None:
        self.count = np.zeros(1)
        self.total = np.zeros(shape)

    @property
    def n_rows(self) -> int:
        return int(self.count[0])

    def totals(self) -> list[np.ndarray]:
        return [self.count, self.total]

    def finalize(self) -> np.ndarray:
        return self.total / (self.count[0] or 1)


class Mean(AbstractMean):
    """Number of rows and their sum, `Mean(d)`: `finalize` gives the mean (d,) float64."""

    def update(self, X: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Add rows X (b, d), each counted as often as its weight (b,)."""
        self.count += len(X) if weights is None else weights.sum(dtype=np.float64)
        self.total += X.sum(axis=0, dtype=np.float64) if weights is None else weights.astype(np.float64) @ X
        return self


class Gram(AbstractMean):
    """X^T X of rows less a mean (d,) known before, in float64: `finalize` gives the covariance (d, d).

    Two passes, the mean first, because X^T X - n m m^T loses the digits of a variance that is small against the mean.
    """

    def __init__(self, mean: np.ndarray) -> None:
        super().__init__(len(mean), len(mean))
        self.mean = mean

    def update(self, X: np.ndarray) -> Self:
        """Add rows X (b, d)."""
        centred = X - self.mean
        self.count += len(X)
        self.total += centred.T @ centred  # NumPy calls syrk here: half the work of a product
        return self


class CrossProduct(AbstractMean):
    """X^T B of rows X and their partners B, signs or decoded rows, `CrossProduct(d, L)`. `finalize` divides by n."""

    def update(self, X: np.ndarray, B: np.ndarray) -> Self:
        """Add rows X (b, d) with their B (b, L); the product of the block is in their own type."""
        self.count += len(X)
        self.total += X.T @ B
        return self


class SquaredNorm(AbstractMean):
    """Sum of |x|^2 in float64, `SquaredNorm()`: `finalize` gives the mean over rows."""

    def update(self, X: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Add rows X (b, d), each counted as often as its weight (b,)."""
        if weights is None:
            self.count += len(X)
            self.total += np.einsum("ij,ij->", X, X, dtype=np.float64)
        else:
            self.count += weights.sum(dtype=np.float64)
            self.total += np.einsum("ij,ij,i->", X, X, weights, dtype=np.float64)
        return self
