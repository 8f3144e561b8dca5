"""The norms of an index's rows, a byte each.

A row y decoded from centroids is too short, each by another factor, because centroids are means. With the true distance
L = |x - c| from a centre c it ranks better, by distances and inner products (norm-explicit quantization, Dai et al.,
AAAI 2020, who take norms about the origin). y - c becomes (L / |y - c|)^p (y - c), and what is left of L is a further
column, of which queries have 0. With p < 1 directions in which rows differ most from their codes count less.
"""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

LEVELS = 256  # values of the byte
_CHUNK = 8_192  # rows whose norms are computed at a time
_CLIPPED = 1e-3  # share of norms beyond either end of the levels
POWER = 0.8  # p: residual codes and a norm, 16 bytes, keep .647 of GIST, with p = 1 .637, with .5 .647 (2026-11)


@dataclass(frozen=True)
class Norms:
    """Distances of rows from a `centre` (d,) float32, each rounded to one of the ascending `levels` (256,) float32;
    `codes` (n,) uint8 are the numbers of the rows' levels.

    >>> norms = Norms.learned(np.array([[0.0, 1.0], [0.0, 3.0], [0.0, 8.0]]))
    >>> norms.with_rows(np.array([[3.0, 8.0]])).of(np.array([0])).round(2)
    array([4.], dtype=float32)
    """

    centre: np.ndarray
    levels: np.ndarray
    codes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint8), repr=False)

    @classmethod
    def learned(cls, X: np.ndarray) -> Self:
        """The mean of rows X (n, d), and levels in equal ratios; the first is for a row at the mean. No rows yet."""
        centre = X.mean(axis=0, dtype=np.float64).astype(np.float32)
        found = _distances(X, centre)
        found = found[found > 0]
        low, high = np.quantile(found, [_CLIPPED, 1 - _CLIPPED]) if len(found) else (1.0, 1.0)
        return cls(centre, np.r_[0, np.geomspace(low, high, LEVELS - 1)].astype(np.float32))

    @classmethod
    def checked(cls, centre: np.ndarray, levels: np.ndarray, codes: np.ndarray, shape: tuple[int, int]) -> Self:
        """Norms of `shape` rows and columns; ValueError for arrays that cannot be theirs."""
        n, d = shape
        fits = (centre.shape, levels.shape, codes.shape, codes.dtype) == ((d,), (LEVELS,), (n,), np.uint8)
        if not fits or not np.isfinite(centre).all() or not (np.isfinite(levels).all() and (levels >= 0).all()):
            raise ValueError(
                f"{codes.shape} norms about {centre.shape}, of {levels.shape} levels, cannot be of {n} rows"
            )
        return cls(centre.astype(np.float32), levels.astype(np.float32), codes)

    def named(self, X: np.ndarray) -> np.ndarray:
        """The numbers (m,) uint8 of the levels nearest to the norms of rows X (m, d), independent of the batch."""
        return np.searchsorted((self.levels[1:] + self.levels[:-1]) / 2, _distances(X, self.centre)).astype(np.uint8)

    def with_rows(self, X: np.ndarray) -> Self:
        """These norms followed by those of rows X (m, d)."""
        return self.joined(self.named(X))

    def joined(self, codes: np.ndarray) -> Self:
        """These norms followed by those of `codes` (m,)."""
        return replace(self, codes=np.concatenate([self.codes, codes]))

    def without(self, positions: np.ndarray) -> Self:
        """These norms but those at `positions`."""
        return replace(self, codes=np.delete(self.codes, positions))

    def alone(self) -> Self:
        """Centre and levels, without rows."""
        return replace(self, codes=self.codes[:0])

    def of(self, positions: np.ndarray | slice) -> np.ndarray:
        """The norms float32 of the rows at `positions`."""
        return self.levels[self.codes[positions]]

    def same(self, other: Self) -> bool:
        """Whether a code means the same norm in both."""
        return np.array_equal(self.centre, other.centre) and np.array_equal(self.levels, other.levels)

    def restored(self, Y: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Decoded rows Y (m, d) at the norms of rows X (m, d): (m, d + 1), as `at_norms`."""
        return at_norms(Y, self.centre, self.levels[self.named(X)])


def stretches(sizes: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The factors (L / |y - c|)^p (m,) of rows of these sizes |y - c| and norms L, and the squares of what is left."""
    factors = np.divide(wanted, sizes, out=np.ones_like(wanted), where=sizes > 0) ** POWER
    return factors, np.maximum(np.square(wanted) - np.square(sizes * factors), 0)


def at_norms(Y: np.ndarray, centre: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Decoded rows Y (m, d) at their norms (m,) about the centre: (m, d + 1), with the column that queries lack."""
    centred = Y - centre
    factors, left = stretches(np.linalg.norm(centred, axis=1), wanted)
    return np.column_stack([centre + centred * factors[:, None], np.sqrt(left)]).astype(np.float32)


def widened(Q: np.ndarray, d: int) -> np.ndarray:
    """Queries (q, w) with zeros in the columns up to d that they lack."""
    return np.pad(Q, ((0, 0), (0, d - Q.shape[1])))


def _distances(X: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """|x - centre| (n,) float64 of rows X (n, d), independent of the batch."""
    found = np.empty(len(X))
    for first in range(0, len(X), _CHUNK):
        centred = X[first : first + _CHUNK].astype(np.float64) - centre
        np.sqrt(np.square(centred).sum(axis=1), out=found[first : first + _CHUNK])
    return found
