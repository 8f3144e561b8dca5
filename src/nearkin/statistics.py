"""Sums through which data enters a fit: `update` adds a batch, `merge` what other rows gave, `finalize` ends.

The same record serves rows in memory, rows streamed in chunks, and rows spread over processes, where merging is one
all-reduce of its `totals` (`nearkin._distributed.Group.merge`). Float sums depend on the order in which they are taken,
but only in the last bits of float64: products and sums of a *block* of rows may be float32, what they add up to never.
So parts that are cut where blocks end merge to the whole.
"""

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numba import njit


class AbstractSums(ABC):
    """Sums over rows that merge."""

    @abstractmethod
    def totals(self) -> list[np.ndarray]:
        """The arrays that merging adds up, in place."""

    @abstractmethod
    def finalize(self) -> object:
        """What the sums were taken for."""

    def merge(self, other: Self) -> Self:
        """Add what another part of the data contributed."""
        for mine, theirs in zip(self.totals(), other.totals(), strict=True):
            mine += theirs
        return self


class Mean(AbstractSums):
    """Number of rows and their sum: `finalize` gives the mean (d,) float64."""

    def __init__(self, d: int) -> None:
        self.count = np.zeros(1)
        self.total = np.zeros(d)

    @property
    def n_rows(self) -> int:
        return int(self.count[0])

    def totals(self) -> list[np.ndarray]:
        return [self.count, self.total]

    def update(self, X: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Add rows X (b, d), a row counting as often as its weight (b,) says."""
        self.count += len(X) if weights is None else weights.sum(dtype=np.float64)
        self.total += X.sum(axis=0, dtype=np.float64) if weights is None else weights.astype(np.float64) @ X
        return self

    def finalize(self) -> np.ndarray:
        return self.total / (self.count[0] or 1)


class Gram(AbstractSums):
    """X^T X of rows less a mean (d,) known before, in float64: `finalize` gives the covariance (d, d).

    Two passes, the mean first, because X^T X - n m m^T loses the digits of a variance that is small beside the mean.
    """

    def __init__(self, mean: np.ndarray) -> None:
        self.mean = mean
        self.count = np.zeros(1)
        self.total = np.zeros((len(mean), len(mean)))

    def totals(self) -> list[np.ndarray]:
        return [self.count, self.total]

    def update(self, X: np.ndarray) -> Self:
        """Add rows X (b, d)."""
        centred = X - self.mean
        self.count += len(X)
        self.total += centred.T @ centred  # NumPy calls syrk here: half the work of a product
        return self

    def finalize(self) -> np.ndarray:
        return self.total / max(self.count[0], 1)


class CrossProduct(AbstractSums):
    """X^T B (d, L) of rows X and what stands beside them: signs, or decoded rows. `finalize` divides by n."""

    def __init__(self, d: int, width: int) -> None:
        self.count = np.zeros(1)
        self.total = np.zeros((d, width))

    def totals(self) -> list[np.ndarray]:
        return [self.count, self.total]

    def update(self, X: np.ndarray, B: np.ndarray) -> Self:
        """Add rows X (b, d) with their B (b, L); the product of the block is in their own type."""
        self.count += len(X)
        self.total += X.T @ B
        return self

    def finalize(self) -> np.ndarray:
        return self.total / max(self.count[0], 1)


class SquaredNorm(AbstractSums):
    """Sum of |x|^2 in float64: `finalize` gives the mean over rows."""

    def __init__(self) -> None:
        self.count = np.zeros(1)
        self.total = np.zeros(1)

    def totals(self) -> list[np.ndarray]:
        return [self.count, self.total]

    def update(self, X: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Add rows X (b, d), a row counting as often as its weight (b,) says."""
        if weights is None:
            self.count += len(X)
            self.total += np.einsum("ij,ij->", X, X, dtype=np.float64)
        else:
            self.count += weights.sum(dtype=np.float64)
            self.total += np.einsum("ij,ij,i->", X, X, weights, dtype=np.float64)
        return self

    def finalize(self) -> float:
        return float(self.total[0] / (self.count[0] or 1))


class CellSums(AbstractSums):
    """Sums and counts of rows in cells, of which a row has one in each of M partitions with K cells.

    `sums[m, k]` (d,) is the sum of the rows in cell k of partition m, `counts[m, k]` their number, float64. `finalize`
    gives the cells' means (M, K, d), zero where a cell is empty.
    """

    def __init__(self, n_partitions: int, n_cells: int, d: int) -> None:
        self.sums = np.zeros((n_partitions, n_cells, d))
        self.counts = np.zeros((n_partitions, n_cells))

    def totals(self) -> list[np.ndarray]:
        return [self.sums, self.counts]

    def update(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Add rows X (b, d) with the numbers of their cells, codes (b, M), a row as often as its weight (b,) says.

        Each block of `block_rows` is summed in the type of X, which is twice as fast for float32, and added to the
        float64 totals.
        """
        self._check(X, codes)
        size = block_rows(self.sums.shape[1])
        block = self.sums if X.dtype == self.sums.dtype else np.empty(self.sums.shape, X.dtype)
        counts = self.counts
        if weights is not None:
            X, counts = X * weights[:, None].astype(X.dtype), np.zeros_like(self.counts)
            for m, own in enumerate(self.counts):
                own += np.bincount(codes[:, m], weights, minlength=len(own))
        for first in range(0, len(X), size):
            rows = slice(first, first + size)
            if block is not self.sums:
                block.fill(0)
            _add_rows(X[rows], codes[rows], block, counts)
            if block is not self.sums:
                self.sums += block
        return self

    def finalize(self) -> np.ndarray:
        return self.sums / np.maximum(self.counts, 1)[..., None]

    def _check(self, X: np.ndarray, codes: np.ndarray) -> None:
        """ValueError for what the compiled loop would read or write beyond its arrays."""
        M, K, d = self.sums.shape
        if X.ndim != 2 or X.shape[1] != d or codes.shape != (len(X), M):
            raise ValueError(f"X is {X.shape} and codes {codes.shape}; they must be (b, {d}) and (b, {M})")
        if len(codes) and not 0 <= codes.min() <= codes.max() < K:
            raise ValueError(f"codes go from {codes.min()} to {codes.max()}; they must lie in 0, ..., {K - 1}")


def block_rows(n_cells: int) -> int:
    """Rows that `CellSums` sums at a time: enough that going over all cells in between costs little.

    >>> block_rows(16), block_rows(256), block_rows(1000)
    (2048, 4096, 16384)
    """
    return 2048 * -(-16 * n_cells // 2048) if n_cells > 128 else 2048


@njit(cache=True)
def _add_rows(X, codes, sums, counts):
    n, d = X.shape
    for i in range(n):
        for m in range(codes.shape[1]):
            k = codes[i, m]
            counts[m, k] += 1
            for t in range(d):
                sums[m, k, t] += X[i, t]
