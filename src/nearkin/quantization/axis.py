"""Transform coding: principal axes, each rounded to a grid whose size depends on its variance.

Several axes share a byte: with 5, 7 and 7 values they have 245 codes together. Such a code is a product code whose
codebooks are products of grids, so FAISS searches it as one; training takes a decomposition and no k-means."""

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Self

import faiss
import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.utils.validation import check_is_fitted

from nearkin._check import check_choice, check_codes, check_magnitude, has_unit_rows, validate_vectors
from nearkin._estimators import ReconstructingTransformer
from nearkin._faiss import METRIC_TYPES
from nearkin._types import ArrayLike
from nearkin.contracts import Callback, ignore
from nearkin.linalg.batch_free import rounded_product
from nearkin.linalg.orthonormal import principal_axes, reached
from nearkin.quantization.codebooks import check_parts
from nearkin.quantization.faiss_bridge import empty_index
from nearkin.statistics import Shard, far_rows, whole_rows

_CHUNK = 8_192  # rows encoded at a time
_CODES = 256  # codes of a byte


@dataclass(eq=False, repr=False)
class AxisQuantizer(ReconstructingTransformer):
    """Codes of `n_bytes` bytes: principal axes, and on each a Lloyd-Max grid of 1 to 256 values.

    Bits are dealt to axes by reverse water-filling (Cover & Thomas 2006, section 10.3), so an axis of small variance
    may have none. Every grid is trained on the vectors (Lloyd 1982). Fitting takes seconds; the recall is best from 1
    to 4 bits a column. With fewer bits `ProductQuantizer` has a higher recall.

    Parameters
    ----------
    n_bytes: bytes of a code, at most the number of columns. `nk.Index.build` fits one byte less and gives it to the
        norm of each vector, where held-out vectors find more neighbours by that.

    Attributes
    ----------
    rotation_: (d, d') float32, principal axes in the order of the codebooks; zero columns fill up.
    codebooks_: (n_bytes, 256, w) float32, the values of each byte on its w columns of rotated vectors; d' = n_bytes w.
    levels_: (n_bytes, w) int64, values of each grid; their product is at most 256 in a byte.
    normalized_, n_features_in_: as in `ProductQuantizer`.

    References
    ----------
    Cover & Thomas (2006), Elements of information theory, section 10.3; Lloyd (1982), Least squares quantization in
    PCM.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 16)).astype(np.float32)
    >>> nk.quantization.AxisQuantizer(n_bytes=4).fit(X).encode(X).shape
    (500, 4)
    """

    KIND: ClassVar[str] = "axis quantizer"

    n_bytes: int = 32

    def fit(self, X: ArrayLike, y: object = None, *, callback: Callback = ignore) -> Self:
        """Train axes and grids from vectors X (n, d).

        `callback(step, record)` is called at the end. ValueError or TypeError for data that cannot be used.
        """
        X = check_magnitude(whole_rows(self, X))
        check_parts(self.n_bytes, "n_bytes", X.shape[1])
        self.normalized_: bool | None = has_unit_rows(X)
        # random rows: every k-th row may be alike in sorted data
        order = np.random.default_rng(0).permutation(len(X))[:65_536]
        rows = X[order]
        rows = rows[~far_rows(rows, Shard.of(rows), 1, order)[0]].astype(np.float32)
        mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        centred = rows - mean
        size = np.abs(centred).max() or np.float32(1)  # squares of the quotient are float32, whatever the unit
        axes, variances = principal_axes(centred / size)
        # rounding errors of constant columns are not variance
        variances[variances <= variances[0] * len(variances) * np.finfo(np.float32).eps ** 2] = 0
        self._learn(axes, variances, mean, centred[:32_768])  # half of them are enough for grids
        callback(1, {"total": 1})
        return self

    def encode(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, n_bytes) uint8 of vectors X (n, d)."""
        check_is_fitted(self)
        return self._coded(check_magnitude(validate_vectors(self, X)))

    def decode(self, codes: ArrayLike) -> np.ndarray:
        """Vectors (n, d) float32 of codes; ValueError for codes of another width."""
        check_is_fitted(self)
        codes = check_codes(codes, self.n_bytes)
        turned = self.codebooks_[np.arange(self.n_bytes), codes].reshape(len(codes), self.rotation_.shape[1])
        return turned @ self.rotation_.T

    def to_faiss(self, metric: str = "l2") -> faiss.Index:
        """A trained, empty `faiss.IndexPQ` behind the rotation, for the very same codes; `metric` is "l2" or "ip"."""
        check_is_fitted(self)
        check_choice(metric, "metric", METRIC_TYPES)
        return empty_index(self.rotation_, self.codebooks_, None, metric)

    def _learn(self, axes: np.ndarray, variances: np.ndarray, mean: np.ndarray, some: np.ndarray) -> None:
        """Codebooks for the axes, from their variances, the rows' mean (d,) and some centred rows (n, d)."""
        groups = _dealt(variances, self.n_bytes)
        width, centre = max(map(len, groups)), mean @ axes
        self.levels_: np.ndarray = np.ones((self.n_bytes, width), np.int64)
        self.codebooks_: np.ndarray = np.zeros((self.n_bytes, _CODES, width), np.float32)
        self.rotation_: np.ndarray = np.zeros((len(mean), self.n_bytes * width), np.float32)
        for byte, group in enumerate(groups):
            self.levels_[byte, : len(group)] = levels = _levels(variances[group])
            self.rotation_[:, byte * width : byte * width + len(group)] = axes[:, group]
            self.codebooks_[byte, :, : len(group)] = centre[group]  # all that axes of one value have
            used = np.flatnonzero(levels > 1)
            for place, values in zip(used, np.sort(axes[:, group[used]].T @ some.T), strict=True):
                digits = np.arange(_CODES) // np.prod(levels[:place]) % levels[place]
                self.codebooks_[byte, :, place] += learned_grid(values, levels[place])[digits]

    def _check_loaded(self) -> None:
        levels, M, width = self.levels_, self.n_bytes, self.codebooks_.shape[-1]
        shapes = self.codebooks_.shape, self.rotation_.shape, levels.shape
        if shapes != ((M, _CODES, width), (self.n_features_in_, M * width), (M, width)):
            raise ValueError(f"codebooks_, rotation_ and levels_ are {shapes}, which do not belong together")
        if levels.min() < 1 or (np.prod(levels.astype(float), axis=-1) > _CODES).any():
            raise ValueError(f"levels_ begins at {levels.min()}, or has more than 256 codes in a byte")
        super()._check_loaded()

    def _coded(self, X: np.ndarray) -> np.ndarray:
        """Codes (n, n_bytes) of rows X (n, d)."""
        levels, width = self.levels_, self.levels_.shape[-1]
        strides = np.cumprod(levels, axis=1) // levels
        used = np.argwhere(levels > 1)
        rotation = self.rotation_[:, used @ (width, 1)].astype(np.float64)
        parts = []
        for first in range(0, len(X), _CHUNK):
            Z = np.ascontiguousarray(rounded_product(X[first : first + _CHUNK], rotation).T)
            codes = np.zeros((self.n_bytes, Z.shape[1]), np.uint8)
            for z, (byte, place) in zip(Z, used, strict=True):
                stride, count = int(strides[byte, place]), int(levels[byte, place])
                grid = self.codebooks_[byte, np.arange(count) * stride, place]
                codes[byte] += (np.searchsorted((grid[1:] + grid[:-1]) / 2, z) * stride).astype(np.uint8)
            parts.append(codes.T)
        return np.ascontiguousarray(np.concatenate(parts))


def _dealt(variances: np.ndarray, n_bytes: int) -> list[np.ndarray]:
    """Axes of each byte, by descending variance: all d axes, those with bits so that bytes have about 8 each."""
    d = len(variances)
    count, logs = reached(variances, 8 * n_bytes), np.log2(np.maximum(variances, np.finfo(float).tiny))
    water = (logs[:count].sum() - 16 * n_bytes) / count
    bits = np.clip((logs[:count] - water) / 2, 0, 8)
    groups: list[list[int]] = [[] for _ in range(n_bytes)]
    loads = np.zeros(n_bytes)
    for axis in range(count):
        least = int(loads.argmin())
        groups[least].append(axis)
        loads[least] += bits[axis]
    width = max(-(-d // n_bytes), *map(len, groups))
    free = (group for group in groups for _ in range(width - len(group)))
    for axis, group in zip(range(count, d), list(free), strict=False):
        group.append(axis)
    return [np.array(group, np.int64) for group in groups]


def _levels(variances: np.ndarray) -> np.ndarray:
    """Values (w,) of each axis of a byte: one more at a time where a bit lowers the error most, up to 256 codes."""
    levels, gains = [1] * len(variances), _gains()
    while True:
        codes = int(np.prod(levels))
        rates = [
            variance * gains[count - 1] if codes // count * (count + 1) <= _CODES else 0.0
            for variance, count in zip(variances.tolist(), levels, strict=True)
        ]
        if max(rates, default=0.0) <= 0:  # a byte has no axis where rows have few
            return np.array(levels, np.int64)
        levels[int(np.argmax(rates))] += 1


@cache
def _gains() -> list[float]:
    """The decrease of a Gaussian's error by one more value, per bit that it costs, from 1, 2, ... 255 values.
    Values are quantiles of a normal distribution of variance 3, optimal for many values (Panter & Dite 1951)."""
    errors = [1.0]
    for count in range(2, _CODES + 1):
        values = np.sqrt(3) * ndtri((np.arange(count) + 0.5) / count)
        for _ in range(3):
            edges = np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]])
            shares = np.diff(ndtr(edges))
            values = -np.diff(np.exp(-np.square(edges) / 2)) / np.sqrt(2 * np.pi) / shares
        errors.append(float(1 - (shares * np.square(values)).sum()))
    return (-np.diff(errors) / np.log2(np.arange(2, _CODES + 1) / np.arange(1, _CODES))).tolist()


def learned_grid(values: np.ndarray, count: int) -> np.ndarray:
    """The `count` ascending points that round sorted values (n,) with the least squared error (Lloyd 1982)."""
    points = np.quantile(values, (np.arange(count) + 0.5) / count)
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    for _ in range(30):
        ends = np.concatenate([[0], np.searchsorted(values, (points[1:] + points[:-1]) / 2), [len(values)]])
        sizes = np.diff(ends)
        points = np.where(sizes > 0, np.diff(sums[ends]) / np.maximum(sizes, 1), points)
    return points.astype(np.float32)
