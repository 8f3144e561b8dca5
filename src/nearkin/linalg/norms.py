"""The norms of an index's rows: one for all of them, or a byte each.

A row y decoded from centroids is too short, each by another factor, because centroids are means. With the true distance
L = |x - c| from a centre c it ranks better, by distances and inner products (norm-explicit quantization, Dai et al.,
AAAI 2020, who take norms about the origin). y - c becomes (L / |y - c|)^p (y - c), and what is left of L is a further
column, of which queries have 0. With p < 1 directions in which rows differ most from their codes count less.

Rows that all have one norm about the origin need no byte. Then p = 1, and nothing is left.
"""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from nearkin.statistics import Shard, far_rows

LEVELS = 256  # values of the byte
_CHUNK = 8_192  # rows whose norms are computed at a time
_CLIPPED = 1e-3  # share of norms beyond either end of the levels
_OUTER = 8  # levels of far rows
# p where norms differ: residual codes and a norm, 16 bytes, keep .647 of GIST, with p = 1 .637, with .5 .647 (2026-11);
# rows of one norm have p = 1: product codes of SIFT .719, with p = .8 .712, of sentences .528 and .526
POWER = 0.8
# largest difference of norms that count as one, a share of the norm; for first rows, of their distance from their mean
EQUAL = 1e-2


@dataclass(frozen=True)
class Norms:
    """Distances of rows from a `centre` (d,) float32: one for all of them, `levels` (1,), or each rounded to one of the
    ascending `levels` (256,) float32. `codes` (n,) uint8 are the numbers of the rows' levels, none (0,) for one level.

    >>> norms = Norms.learned(np.array([[0.0, 1.0], [0.0, 3.0], [0.0, 8.0]]))
    >>> norms.with_rows(np.array([[3.0, 8.0]])).of(np.array([0])).round(2)
    array([4.], dtype=float32)
    """

    centre: np.ndarray
    levels: np.ndarray
    codes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint8), repr=False)

    @classmethod
    def learned(cls, X: np.ndarray) -> Self:
        """The mean of rows X (n, d), and levels in equal ratios; the first is for a row at the mean, the last eight for
        far rows, if there are any. No rows yet."""
        far, _ = far_rows(X, Shard.of(X))
        usual = X[~far] if far.any() else X
        centre = usual.mean(axis=0, dtype=np.float64).astype(np.float32)
        found, outer = _distances(usual, centre), np.empty(0)
        found = found[found > 0]
        low, high = np.quantile(found, [_CLIPPED, 1 - _CLIPPED]) if len(found) else (1.0, 1.0)
        if far.any():
            outer = np.quantile(_distances(X[far], centre), np.linspace(0, 1, _OUTER), method="nearest")
        return cls(centre, np.r_[0, np.geomspace(low, high, LEVELS - 1 - len(outer)), outer].astype(np.float32))

    @classmethod
    def one(cls, norm: float, d: int) -> Self:
        """A norm about the origin that all rows of d columns have."""
        return cls(np.zeros(d, np.float32), np.array([norm], np.float32))

    @classmethod
    def shared(cls, X: np.ndarray, unit: bool = False) -> Self | None:
        """The norm that all rows X (n, d) have; None for rows of different norms. `unit` for rows that should have 1.

        Norms must differ far less than rows do: rows about a far point have nearly one norm too.
        """
        norm, share = 1.0, 1.0
        if not unit:
            norms, middle = _norms(X), X.mean(axis=0, dtype=np.float64)
            norm = float(norms.mean())
            share = np.sqrt(max(np.square(norms).mean() - np.square(middle).sum(), 0)) / norm if norm else 0.0
        return cls.one(norm, X.shape[1]) if (unit or len(X) > 1) and _have(X, norm, float(share)) else None

    @classmethod
    def checked(cls, centre: np.ndarray, levels: np.ndarray, codes: np.ndarray, shape: tuple[int, int]) -> Self:
        """Norms of `shape` rows and columns; ValueError for arrays that cannot be theirs."""
        (n, d), sizes = shape, (levels.shape, codes.shape)
        fits = centre.shape == (d,) and codes.dtype == np.uint8 and sizes in (((LEVELS,), (n,)), ((1,), (0,)))
        if not fits or not np.isfinite(centre).all() or not (np.isfinite(levels).all() and (levels >= 0).all()):
            raise ValueError(
                f"{codes.shape} norms about {centre.shape}, of {levels.shape} levels, cannot be of {n} rows"
            )
        return cls(centre.astype(np.float32), levels.astype(np.float32), codes)

    @property
    def n_bytes(self) -> int:
        """Bytes for each row, 0 or 1."""
        return int(len(self.levels) > 1)

    def named(self, X: np.ndarray) -> np.ndarray:
        """The numbers (m,) uint8 of the levels nearest to the norms of rows X (m, d), independent of the batch."""
        return np.searchsorted((self.levels[1:] + self.levels[:-1]) / 2, _distances(X, self.centre)).astype(np.uint8)

    def with_rows(self, X: np.ndarray) -> Self | None:
        """These norms followed by those of rows X (m, d); None if all rows had one norm and X have others."""
        if self.n_bytes:
            return replace(self, codes=np.concatenate([self.codes, self.named(X)]))
        norm = float(self.levels[0])
        if _have(X, norm):
            return self
        mean = float(np.linalg.norm(X, axis=1).mean())
        if not 0.1 < mean / norm < 10:
            norms = f"of norm {mean:.3g} on average, and all rows of the index have {norm:.3g}"
            raise ValueError(f"X has rows {norms}; these are vectors of another type: bring them to one scale")
        return None

    def joined(self, other: Self) -> Self | None:
        """These norms followed by others of the same levels; None for two different norms."""
        if self.n_bytes:
            return replace(self, codes=np.concatenate([self.codes, other.codes]))
        return self if _have(other.levels[:, None], float(self.levels[0])) else None

    def without(self, positions: np.ndarray) -> Self:
        """These norms but those at `positions`."""
        return replace(self, codes=np.delete(self.codes, positions)) if self.n_bytes else self

    def alone(self) -> Self:
        """Centre and levels, without rows."""
        return replace(self, codes=self.codes[:0])

    def turned(self, A: np.ndarray) -> Self:
        """The norms of rows multiplied by A (d, d') of orthonormal rows."""
        return replace(self, centre=(self.centre @ A).astype(np.float32))

    def of(self, positions: np.ndarray) -> np.ndarray:
        """The norms float32 of the rows at `positions` (m,)."""
        return self.levels[self.codes[positions]] if self.n_bytes else np.repeat(self.levels, len(positions))

    def same(self, other: Self) -> bool:
        """Whether a code means the same norm in both."""
        return np.array_equal(self.centre, other.centre) and np.array_equal(self.levels, other.levels)

    def restored(self, Y: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Decoded rows Y (m, d) at the norms of rows X (m, d): (m, d + 1), with the column that queries lack."""
        return self.applied(Y, self.levels[self.named(X)])

    def applied(self, Y: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Decoded rows Y (m, d) at the norms `wanted` (m,): (m, d + 1), with the column that queries lack."""
        centred = Y - self.centre
        factors, left = self.stretches(np.linalg.norm(centred, axis=1), wanted)
        return np.column_stack([self.centre + centred * factors[:, None], np.sqrt(left)]).astype(np.float32)

    def stretches(self, sizes: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The factors (L / |y - c|)^p (m,) of rows of these sizes |y - c| and norms L, and the squares of what is
        left."""
        factors = np.divide(wanted, sizes, out=np.ones_like(wanted), where=sizes > 0)
        factors = factors**POWER if self.n_bytes else factors
        return factors, np.maximum(np.square(wanted) - np.square(sizes * factors), 0)


def _have(X: np.ndarray, norm: float, share: float = 1.0) -> bool:
    """Whether all rows X (n, d) have that norm, to `share` of `EQUAL`."""
    return norm > 0 and bool((np.abs(_norms(X) - norm) <= EQUAL * share * norm).all())


def _norms(X: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("nd,nd->n", X, X, dtype=np.float64))


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
