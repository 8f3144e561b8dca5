"""Rows and sums of a fit: the rows of this process among those of all, and sums over rows that merge.

`update` adds a batch, `merge` the sums of other rows, `finalize` returns the result. The same record serves rows in
memory, rows streamed in chunks, and rows spread over processes, where merging is one all-reduce of its `totals`
(`nearkin._distributed.Group.merge`). Float sums depend on the order of the terms, but only in the last bits of float64:
products and sums within a *block* of rows may be float32, sums over blocks are float64. So parts that are cut at block
boundaries merge to the result of the whole.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.sparse import csc_matrix

from nearkin._check import draw_seed, numpy_generator, validate_vectors
from nearkin._distributed import ALONE, Group, current
from nearkin._fields import counted

FAR = 100.0  # a row is far if its distance from the middle exceeds this multiple of the 99 % quantile
_SAMPLE = 1024  # rows from which both are estimated, half of them at least
_CHUNK = 8_192  # rows whose distances are computed at a time

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from nearkin._types import ArrayLike, Seed

# ---- sums ------------------------------------------------------------------------------------------------------------


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
        self.count: np.ndarray = np.zeros(1)
        self.total: np.ndarray = np.zeros(shape)

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


class CellSums(AbstractSums):
    """Sums and counts of rows in cells. A row is in one of K cells in each of M partitions.

    `sums[m, k]` (d,) is the sum of the rows in cell k of partition m, `counts[m, k]` their number, float64. `finalize`
    gives the cells' means (M, K, d), zero where a cell is empty.
    """

    def __init__(self, n_partitions: int, n_cells: int, d: int) -> None:
        self.sums: np.ndarray = np.zeros((n_partitions, n_cells, d))
        self.counts: np.ndarray = np.zeros((n_partitions, n_cells))

    def totals(self) -> list[np.ndarray]:
        return [self.sums, self.counts]

    def update(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Add rows X (b, d) to their cells, codes (b, M), each row as often as its weight (b,).

        Each block of `block_rows` is summed in the type of X, twice as fast for float32, and added in float64.
        """
        M, K, d = self.sums.shape
        if X.ndim != 2 or X.shape[1] != d or codes.shape != (len(X), M):
            raise ValueError(f"X is {X.shape} and codes {codes.shape}; they must be (b, {d}) and (b, {M})")
        if len(codes) and not 0 <= codes.min() <= codes.max() < K:
            raise ValueError(f"codes go from {codes.min()} to {codes.max()}; they must lie in 0, ..., {K - 1}")
        places, share = (codes + K * np.arange(M)).astype(np.int32), None  # of the cells; SciPy checks int64 for long
        if weights is not None:
            X, share = X * weights[:, None].astype(X.dtype), np.repeat(weights, M)
        self.counts += np.bincount(places.ravel(), share, minlength=M * K).reshape(M, K)
        size = block_rows(K)
        for first in range(0, len(X), size):
            block, cells = X[first : first + size], places[first : first + size]
            ends = np.arange(0, cells.size + 1, M, dtype=np.int32)
            chosen = csc_matrix((np.ones(cells.size, X.dtype), cells.ravel(), ends), shape=(M * K, len(block)))
            self.sums += (chosen @ block).reshape(M, K, d)
        return self

    def finalize(self) -> np.ndarray:
        return self.sums / np.maximum(self.counts, 1)[..., None]


def block_rows(n_cells: int) -> int:
    """Rows that `CellSums` sums at a time: enough that the pass over all cells after each block costs little.

    >>> block_rows(16), block_rows(256), block_rows(1000)
    (2048, 4096, 16384)
    """
    return 2048 * max(1, -(-n_cells // 128))


# ---- rows of one process ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shard:
    """This process holds the rows `first`, ... , `first + own - 1` of `total`; alone it holds all."""

    group: Group
    first: int
    own: int
    total: int

    @classmethod
    def of(cls, X: np.ndarray, group: Group = ALONE) -> Shard:
        """The position of the rows X (own, d) in the order of ranks; ValueError if ranks differ in width or type."""
        about = group.exchange([len(X), X.shape[1], X.dtype.name])
        for rank, (_, width, dtype) in enumerate(about):
            if [width, dtype] != about[0][1:]:
                raise ValueError(
                    f"rank {rank} has rows of {width} columns, {dtype}; rank 0 has {counted(about[0][1], 'column')}, "
                    f"{about[0][2]}; all ranks need the same"
                )
        lengths = [length for length, *_ in about]
        return cls(group, sum(lengths[: group.rank]), lengths[group.rank], sum(lengths))

    def here(self, numbers: np.ndarray) -> np.ndarray:
        """The rows of X that increasing `numbers`, counted over all processes, name here."""
        low, high = np.searchsorted(numbers, [self.first, self.first + self.own])
        return numbers[low:high] - self.first

    def rows(self, X: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """The rows of X (own, d) or (own,) of those numbers, in their order, on every process."""
        found = np.zeros((len(numbers), *X.shape[1:]), X.dtype)
        mine = (numbers >= self.first) & (numbers < self.first + self.own)
        found[mine] = X[numbers[mine] - self.first]
        self.group.all_reduce(found)  # every row comes from one process, the others add zeros
        return found

    def whole(self, X: np.ndarray) -> np.ndarray:
        """The rows of all processes, (total, d) or (total,), on every process."""
        return X if self.group.size == 1 else np.concatenate(self.group.gather(X))

    def check_varies(self, X: np.ndarray) -> None:
        """ValueError if all rows of all processes are equal."""
        ends = [[X.min(axis=0).tolist(), X.max(axis=0).tolist()]] if len(X) else []
        found = np.array([end for part in self.group.exchange(ends) for end in part])  # (parts, 2, d)
        if (found[:, 0].min(axis=0) == found[:, 1].max(axis=0)).all():
            raise ValueError(f"X is constant: all rows are equal, {self.total} of them; give data that vary")


def training_rows(
    estimator: BaseEstimator, X: ArrayLike, *, min_rows: int = 1, parameter: str = "", reset: bool = True
) -> tuple[np.ndarray, Shard]:
    """`validate_vectors` of this process's rows, and their place; ValueError if all processes together have fewer than
    `min_rows`, which `parameter` of the estimator requires."""
    X = validate_vectors(estimator, X, reset=reset, min_rows=0)
    shard = Shard.of(X, current())
    if shard.total < min_rows:
        of = f"{parameter}={getattr(estimator, parameter)}" if parameter else type(estimator).__name__
        less = f" or a smaller {parameter}=..." if parameter else ""
        raise ValueError(f"X has n_samples={shard.total} vectors; {of} needs at least {min_rows}, give more{less}")
    return X, shard


def far_rows(
    X: np.ndarray, shard: Shard, fewest: int = 1, numbers: np.ndarray | None = None, level: int = 3
) -> tuple[np.ndarray, float]:
    """Mask (n,) of this process's rows X (n, d) too far from the middle to train on, none if fewer than `fewest` of all
    would be left, and the usual distance from the middle. A warning at that stack level has the user's `numbers` (n,).

    From about 2,000 rows, at most: the median of each column, and of the distances the quantile below which 99 % lie.
    No row is far if that is 0.
    """
    sample = shard.rows(X, np.arange(0, shard.total, max(1, shard.total // _SAMPLE))).astype(np.float64)
    middle, far = np.median(sample, axis=0), np.zeros(len(X), bool)
    with np.errstate(over="ignore"):  # of float64: an infinite limit leaves no row out
        square = np.quantile(np.square(sample - middle).sum(axis=1), 0.99, method="lower")
        for first in range(0, len(X) if square else 0, _CHUNK):
            rows = slice(first, first + _CHUNK)
            far[rows] = np.square(X[rows] - middle).sum(axis=1) > FAR**2 * square
    radius = float(np.sqrt(square))
    if shard.total - sum(shard.group.exchange(int(far.sum()))) < fewest:
        far[:] = False
    if numbers is not None and far.any():
        named = numbers[far]
        which = f"vector {named[0]} lies" if len(named) == 1 else f"vector {named[0]} and {len(named) - 1} more lie"
        warnings.warn(
            f"X has far vectors: {which} more than {FAR:g} times as far from the middle as 99 in 100 ({radius:.3g}). "
            "Training leaves them out; remove them if they are errors or mark missing values",
            stacklevel=level,
        )
    return far, radius


def whole_rows(estimator: BaseEstimator, X: ArrayLike, *, min_rows: int = 1, parameter: str = "") -> np.ndarray:
    """The rows of all processes on every process, for fits that are not sums: each process then does all the work."""
    X, shard = training_rows(estimator, X, min_rows=min_rows, parameter=parameter)
    return shard.whole(X)


def shared_generator(random_state: Seed, group: Group | None = None) -> np.random.Generator:
    """`numpy_generator` that draws the same on every process, even where the seed is None."""
    group = current() if group is None else group
    if random_state is not None or group.size == 1:
        return numpy_generator(random_state)
    return np.random.default_rng(group.exchange(draw_seed(np.random.default_rng()))[0])
