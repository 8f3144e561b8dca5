"""The norms of an index's rows, a byte each.

A row decoded from centroids is too short, each by another factor, because centroids are means. At the true distance
|x - c| from a centre c, distances and inner products with queries rank the rows better (norm-explicit quantization, Dai
et al., AAAI 2020, who take norms about the origin).
"""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from nearkin.linalg.orthonormal import unit_rows

LEVELS = 256  # values of the byte
_CHUNK = 8_192  # rows whose norms are computed at a time


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of norms."""

    clipped: float = 1e-3  # share of norms beyond either end of the levels


DEFAULTS = Defaults()


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
        low, high = np.quantile(found, [DEFAULTS.clipped, 1 - DEFAULTS.clipped]) if len(found) else (1.0, 1.0)
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
        """Decoded rows Y (m, d) at the norms of rows X (m, d)."""
        return self.centre + unit_rows(Y - self.centre) * self.levels[self.named(X)][:, None]


def _distances(X: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """|x - centre| (n,) float64 of rows X (n, d), independent of the batch."""
    found = np.empty(len(X))
    for first in range(0, len(X), _CHUNK):
        centred = X[first : first + _CHUNK].astype(np.float64) - centre
        np.sqrt(np.square(centred).sum(axis=1), out=found[first : first + _CHUNK])
    return found
