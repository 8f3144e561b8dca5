"""Rows so far out that sums, distances and a rotation would follow them alone: found, set aside, given centroids.

One entry of 1e8 among 2,000 rows of size 1 takes the digits of the mean and of every float32 distance, and the largest
part of X^T Y. Such rows are learned apart: rotation and codebooks come from the others, and then the least used
centroids move to where the far rows are.
"""

import warnings
from typing import NamedTuple

import numpy as np

from nearkin._distributed import ALONE, Group
from nearkin._shards import Shard
from nearkin.quantization.codebooks import assign, centroids_of

FAR = 100.0  # times as far from the middle as 99 rows in 100
_SAMPLE = 1024  # rows that the middle and the usual distance are taken from
_SHARE = 32  # of so many centroids one may move to far rows
_CALM = (2.0**-40, 2.0**40)  # float32 squares and their sums are safe for numbers within


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


def extent(X: np.ndarray, shard: Shard) -> Extent:
    """Median of each column and the 99 % quantile of distances, from at most about 2,000 rows of all processes."""
    sample = shard.rows(X, np.arange(0, shard.total, max(1, shard.total // _SAMPLE))).astype(np.float64)
    middle = np.median(sample, axis=0)
    squares = np.square(sample - middle).sum(axis=1)
    return Extent(middle, float(np.sqrt(np.quantile(squares, 0.99, method="lower"))))


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
    """The power of two that brings these numbers near 1; 1.0 where float32 squares of them are safe as they are.

    >>> [calming_scale(np.array([x, 0.0])) for x in (3.0, 0.0, 2.0**-83)]
    [1.0, 1.0, 9.671406556917033e+24]
    """
    sizes = np.abs(values)
    largest = sizes.max(initial=0)
    if largest == 0 or _CALM[0] <= largest <= _CALM[1]:
        return 1.0
    usual = float(np.median(sizes[sizes > 0]))  # a few far ones do not count
    return 1.0 if _CALM[0] <= usual <= _CALM[1] else 2.0 ** (1 - int(np.frexp(usual)[1]))


def make_room(codebooks: np.ndarray, Z: np.ndarray, far: np.ndarray, seed: int, group: Group = ALONE) -> np.ndarray:
    """Codebooks (M, K, w) whose least used centroids moved to the far rows (m, d); Z (n, d) are the usual ones.

    All of it is centred and rotated, and `far` are those of all processes. At most one centroid in 32 of a subspace
    moves, and none where the far rows' part of that subspace is not far.
    """
    M, K, width = codebooks.shape
    codes, codebooks = assign(Z, codebooks), codebooks.copy()
    used = np.stack([np.bincount(codes[:, m], minlength=K) for m in range(M)])
    group.all_reduce(used)
    for m, centroids in enumerate(codebooks):
        block = far[:, m * width : (m + 1) * width]
        reach = np.square(centroids.astype(np.float64)).sum(axis=1).max()
        block = np.unique(block[np.square(block.astype(np.float64)).sum(axis=1) > 4 * reach], axis=0)
        room = min(len(block), max(1, K // _SHARE))
        if room:
            least = np.argsort(used[m], kind="stable")[:room]
            centroids[least] = block if room == len(block) else centroids_of(block, room, 10, seed)
    return codebooks
