"""The rows that a fit learns from, and what makes them ready: no far rows, and numbers whose squares float32 holds.

One entry of 1e8 among 2,000 rows of size 1 takes the digits of the mean and of every float32 distance, and the largest
part of X^T Y. Rows so far out are learned apart: rotation and codebooks come from the others, and then the least used
centroids move to where the far rows are.
"""

import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from nearkin._check import check_magnitude, check_queries, check_row_weights
from nearkin._shards import Shard
from nearkin._types import ArrayLike

FAR = 100.0  # times as far from the middle as 99 rows in 100
_SAMPLE = 1024  # rows that the middle and the usual distance are taken from
_CALM = (2.0**-40, 2.0**40)  # float32 squares and their sums are safe for numbers within
_JUDGES = 1000  # queries given, at most, by which starts are judged


class Extent(NamedTuple):
    """Where rows usually lie: `middle` (d,) float64, and the distance from it that 99 in 100 keep to."""

    middle: np.ndarray
    radius: float

    def far(self, X: np.ndarray) -> np.ndarray:
        """Which rows of X (n, d) lie `FAR` radii out, (n,) bool; none where the radius is 0."""
        limit = (FAR * self.radius) ** 2
        none = np.zeros(len(X), bool)
        if not len(X) or not limit:
            return none
        ends = np.maximum(X.max(axis=0) - self.middle, self.middle - X.min(axis=0))
        if np.square(ends).sum() <= limit:  # no row can: two cheap passes instead of the distances
            return none
        return np.square(X - self.middle).sum(axis=1) > limit


@dataclass(frozen=True)
class TrainingRows:
    """This process's rows X (n, d), and what goes with them."""

    X: np.ndarray
    shard: Shard  # where they stand among those of all processes
    weights: np.ndarray | None = None  # (n,)
    queries: np.ndarray | None = None  # (m, d) that the rows will be searched by; the same on every process

    @classmethod
    def checked(cls, X: np.ndarray, shard: Shard, weights: ArrayLike | None, queries: ArrayLike | None) -> Self:
        """Rows X as `_shards.training_rows` gives them; ValueError or TypeError for what cannot be learned from."""
        check_magnitude(X)
        if queries is not None:
            queries = check_queries(queries, X.shape[1])
            queries = queries[:: -(-len(queries) // _JUDGES)].astype(np.float32)
        return cls(X, shard, None if weights is None else check_row_weights(weights, len(X)), queries)

    def only(self, chosen: np.ndarray) -> Self:
        """The rows that a mask or numbers choose."""
        X = self.X[chosen]
        weights = None if self.weights is None else self.weights[chosen]
        return replace(self, X=X, shard=Shard.of(X, self.shard.group), weights=weights)

    def drawn(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows and weights of these numbers, counted over all processes, on every process."""
        weights = None if self.weights is None else self.shard.rows(self.weights, numbers)
        return self.shard.rows(self.X, numbers), weights

    def extent(self) -> Extent:
        """Median of each column and the 99 % quantile of distances, from at most about 2,000 rows of all processes."""
        numbers = np.arange(0, self.shard.total, max(1, self.shard.total // _SAMPLE))
        sample = self.drawn(numbers)[0].astype(np.float64)
        middle = np.median(sample, axis=0)
        squares = np.square(sample - middle).sum(axis=1)
        return Extent(middle, float(np.sqrt(np.quantile(squares, 0.99, method="lower"))))


@dataclass(frozen=True)
class Prepared:
    """Rows (n, d') ready to be learned from, the far rows (m, d') of all processes, and how they were changed."""

    rows: TrainingRows
    apart: np.ndarray
    places: np.ndarray  # (d,) of the columns among the d'
    scale: float  # a power of two by which all was multiplied


def prepare(rows: TrainingRows, n_subspaces: int, fewest: int, most: int, generator: np.random.Generator) -> Prepared:
    """Draw at most `most` rows, pad their columns to a multiple of `n_subspaces`, set far rows aside, and scale what
    float32 could not square.

    No row is far if fewer than `fewest` would be left.
    """
    numbers, d = np.arange(len(rows.X)), rows.X.shape[1]  # what the user calls the rows
    if rows.shard.total > most:
        numbers = rows.shard.here(np.sort(generator.choice(rows.shard.total, most, replace=False)))
        rows = rows.only(numbers)
    places = spread_columns(d, n_subspaces)
    width = n_subspaces * -(-d // n_subspaces)
    X = _spread(rows.X, places, width)
    queries = None if rows.queries is None else _spread(rows.queries, places, width)
    rows = replace(rows, X=X, queries=queries)
    where = rows.extent()
    scale = calming_scale(np.array([where.radius]))
    far = where.far(X)
    m = sum(rows.shard.group.exchange(int(far.sum())))
    apart = X[:0]
    if m and rows.shard.total - m >= fewest:
        warn_of(numbers[far], where)
        rows, apart = rows.only(~far), rows.shard.whole(X[far])
    if scale != 1:
        queries = None if queries is None else queries * np.float32(scale)
        rows, apart = replace(rows, X=rows.X * np.float32(scale), queries=queries), apart * np.float32(scale)
    return Prepared(rows, apart, places, scale)


def spread_columns(d: int, n_subspaces: int) -> np.ndarray:
    """Places (d,) of d columns among d' = M ceil(d / M), so that the zeros between fall to as many subspaces as can be.

    >>> spread_columns(7, 3)
    array([0, 1, 2, 3, 4, 6, 7])
    """
    width = -(-d // n_subspaces)
    sizes = np.diff(np.arange(n_subspaces + 1) * d // n_subspaces)[::-1]
    return np.concatenate([width * m + np.arange(size) for m, size in enumerate(sizes)])


def _spread(X: np.ndarray, places: np.ndarray, width: int) -> np.ndarray:
    """Rows X (n, d) as float32 with their columns at `places` of `width`."""
    if width == len(places):
        return X.astype(np.float32)
    spread = np.zeros((len(X), width), np.float32)
    spread[:, places] = X
    return spread


def warn_of(rows: np.ndarray, where: Extent) -> None:
    """Say which rows are learned apart; `rows` (m,) are their numbers."""
    if len(rows):
        which = f"row {rows[0]} lies" if len(rows) == 1 else f"row {rows[0]} and {len(rows) - 1} more lie"
        warnings.warn(
            f"X has far rows: {which} more than {FAR:g} times as far from the middle as 99 rows in "
            f"100 ({where.radius:.3g}). Rotation and codebooks are learned without them; remove them if they are "
            "errors or mark missing values",
            stacklevel=4,
        )


def calming_scale(values: np.ndarray) -> float:
    """The power of two that brings these numbers near 1; 1.0 if float32 squares of them are safe already.

    >>> [calming_scale(np.array([x, 0.0])) for x in (3.0, 0.0, 2.0**-83)]
    [1.0, 1.0, 9.671406556917033e+24]
    """
    sizes = np.abs(values)
    largest = sizes.max(initial=0)
    if largest == 0 or _CALM[0] <= largest <= _CALM[1]:
        return 1.0
    usual = float(np.median(sizes[sizes > 0]))  # a few far ones do not count
    return (
        1.0 if _CALM[0] <= usual <= _CALM[1] else 2.0 ** min(126, 1 - int(np.frexp(usual)[1]))
    )  # float32 ends at 2**128
