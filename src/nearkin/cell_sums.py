"""Sums and counts of rows in cells, for learning codebooks; not in `statistics`, because it loads numba."""

from typing import Self

import numpy as np

from nearkin._compile import cached_njit
from nearkin.statistics import AbstractSums


class CellSums(AbstractSums):
    """Sums and counts of rows in cells. A row is in one of K cells in each of M partitions.

    `sums[m, k]` (d,) is the sum of the rows in cell k of partition m, `counts[m, k]` their number, float64. `finalize`
    gives the cells' means (M, K, d), zero where a cell is empty.
    """

    def __init__(self, n_partitions: int, n_cells: int, d: int) -> None:
        self.sums = np.zeros((n_partitions, n_cells, d))
        self.counts = np.zeros((n_partitions, n_cells))

    def totals(self) -> list[np.ndarray]:
        return [self.sums, self.counts]

    def update(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Add rows X (b, d) to their cells, codes (b, M), each row as often as its weight (b,).

        Each block of `block_rows` is summed in the type of X, twice as fast for float32, and added in float64.
        """
        self._check(X, codes)
        size, counts = block_rows(self.sums.shape[1]), self.counts
        if weights is not None:
            X, counts = X * weights[:, None].astype(X.dtype), np.zeros_like(self.counts)
            for m, own in enumerate(self.counts):
                own += np.bincount(codes[:, m], weights, minlength=len(own))
        for first in range(0, len(X), size):
            block = np.zeros(self.sums.shape, X.dtype)
            _add_rows(X[first : first + size], codes[first : first + size], block, counts)
            self.sums += block
        return self

    def finalize(self) -> np.ndarray:
        return self.sums / np.maximum(self.counts, 1)[..., None]

    def _check(self, X: np.ndarray, codes: np.ndarray) -> None:
        """ValueError for codes with which the compiled loop would access memory beyond its arrays."""
        M, K, d = self.sums.shape
        if X.ndim != 2 or X.shape[1] != d or codes.shape != (len(X), M):
            raise ValueError(f"X is {X.shape} and codes {codes.shape}; they must be (b, {d}) and (b, {M})")
        if len(codes) and not 0 <= codes.min() <= codes.max() < K:
            raise ValueError(f"codes go from {codes.min()} to {codes.max()}; they must lie in 0, ..., {K - 1}")


def block_rows(n_cells: int) -> int:
    """Rows that `CellSums` sums at a time: enough that the pass over all cells after each block costs little.

    >>> block_rows(16), block_rows(256), block_rows(1000)
    (2048, 4096, 16384)
    """
    return 2048 * max(1, -(-n_cells // 128))


@cached_njit()
def _add_rows(X, codes, sums, counts):
    n, d = X.shape
    for i in range(n):
        for m in range(codes.shape[1]):
            k = codes[i, m]
            counts[m, k] += 1
            for t in range(d):
                sums[m, k, t] += X[i, t]
