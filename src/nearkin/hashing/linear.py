"""Hashers whose code is the sign of a linear map; most of them train in principal coordinates."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import orth
from sklearn.utils.validation import check_is_fitted

from nearkin._check import check_integer, validate_vectors
from nearkin._distributed import Group
from nearkin._threads import serial_products
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback
from nearkin.hashing.base import AbstractHasher
from nearkin.hashing.columns import CentredRows, principal_coordinates, random_columns
from nearkin.hashing.spectrum import principal_axes, scale_of
from nearkin.linalg.signs import affine_values, row_blocks
from nearkin.statistics import RowMean, far_rows, row_mean, shared_generator, squared_norm, training_rows

SMALL = 500_000_000  # multiply-adds of a pass: below, BLAS threads wait for each other longer than they work


class AbstractLinearHasher(AbstractHasher):
    """project(X) = scale_ * (X - mean_) @ projection_ + intercept_.

    Fitted: `mean_` (d,), `projection_` (d, n_bits), `scale_` (a number that leaves the bits unchanged and brings the
    values near -1 and +1), `intercept_` (n_bits,), `n_iter_`, `history_` (loss after each iteration).
    """

    mean_: np.ndarray
    projection_: np.ndarray
    scale_: float
    intercept_: np.ndarray
    n_iter_: int
    history_: np.ndarray

    def _project(self, X: np.ndarray) -> np.ndarray:
        return affine_values(X, self.mean_, self.projection_, self.scale_, self.intercept_)

    def _keep(
        self, mean: np.ndarray, projection: np.ndarray, scale: float, history: np.ndarray, intercept: ArrayLike = 0
    ) -> Self:
        """Set the fitted values."""
        self.mean_, self.projection_, self.scale_ = mean, projection, scale
        self.intercept_ = np.zeros(projection.shape[1], projection.dtype) + intercept
        self.history_, self.n_iter_ = history, len(history)
        return self

    def retained_variance(self, X: ArrayLike) -> float:
        """Return the variance of X in the span of `projection_` as a share of what top-L PCA keeps (Table 3)."""
        check_is_fitted(self)
        X = validate_vectors(self, X)
        spectrum = principal_axes(X)
        inside = orth(self.projection_.astype(np.float64)).T @ spectrum.axes
        return float(((inside**2) @ spectrum.variances).sum() / spectrum.variances[: self.n_bits].sum())


class AbstractSpectralHasher(AbstractLinearHasher):
    """A linear hasher that trains on second moments and sign moments only."""

    random_state: Seed = None

    def fit(self, X: ArrayLike, y: object = None, *, callback: Callback | None = None) -> Self:
        """Train on X (n, d), n > n_bits; `callback(step, record)` runs after each iteration.

        With labels `y` of the vectors, classes (n,) or several a vector, the columns of OnE and OgE are a regression
        on codes of the classes, of any number of bits; other hashers ignore labels, and so do several processes.

        Among several processes X is this one's part of the vectors, and all end with the same columns. Raises
        ValueError if n_bits exceeds the rank of X (or `n_components`), for constant data, NaN and infinity.
        """
        self._check_params()
        X, shard = training_rows(self, X, min_rows=self.n_bits + 1, parameter="n_bits")
        far, _ = far_rows(X, shard, self.n_bits + 1, np.arange(len(X)))
        return self._fit_rows(X[~far] if far.any() else X, shard.group, callback, y, ~far)

    def _fit_rows(self, X: np.ndarray, group: Group, callback: Callback | None, y: object, usual: np.ndarray) -> Self:
        """Train on this process's checked rows X, which are the `usual` ones (n,) of those that `y` is for."""
        spectrum = principal_axes(X, self._n_components(y is not None and group.size == 1), group)
        rows = CentredRows(spectrum, principal_coordinates(X, spectrum), group)
        return self._learn(rows, X.dtype, callback, y, usual)

    @abstractmethod
    def _columns(
        self, rows: CentredRows, generator: np.random.Generator, callback: Callback | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return columns V (m, L) in principal coordinates and the history of the loss; `scale_` is set before."""

    def _scale(self, rows: CentredRows) -> float:
        """The factor on the data."""
        return scale_of("eq25", rows.spectrum.variances, self.n_bits)

    def _learn(
        self, rows: CentredRows, dtype: DTypeLike, callback: Callback | None, y: object, usual: np.ndarray
    ) -> Self:
        """Train on rows, which are the `usual` ones (n,) of those that the labels `y` are for."""
        del y, usual
        spectrum = rows.spectrum
        spectrum.check_rank(self.n_bits, len(spectrum.mean))
        self.scale_: float = self._scale(rows)
        with serial_products(spectrum.n_rows * spectrum.rank * self.n_bits, SMALL):
            V, history = self._columns(rows, shared_generator(self.random_state), callback)
        return self._keep(spectrum.mean.astype(dtype), (spectrum.axes @ V).astype(dtype), self.scale_, history)


@dataclass(eq=False, repr=False)
class PCAHash(AbstractSpectralHasher):
    """PCA hashing: bit k is the sign of principal coordinate k.

    It keeps the most variance of all projections, but each axis gets one bit, whatever its variance.

    Parameters
    ----------
    n_bits : code length L, at most the rank of X.
    random_state : not used, as nothing is random.

    Attributes
    ----------
    mean_, projection_, scale_, intercept_: as in `ITQ`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 32))
    >>> nk.PCAHash(8).fit(X).retained_variance(X) > 8 / 32
    True
    """

    n_bits: int = 32
    _: KW_ONLY
    random_state: Seed = None

    def _columns(
        self, rows: CentredRows, generator: np.random.Generator, callback: Callback | None
    ) -> tuple[np.ndarray, np.ndarray]:
        return np.eye(self.n_bits), np.zeros(0)


@dataclass(eq=False, repr=False)
class Signs(AbstractLinearHasher):
    """Bit k is the sign of column k; nothing is trained.

    sentence-transformers' precisions "binary" and "ubinary", but for entries of exactly 0, which are 1 here and 0
    there. Packed bits are unpacked by `nearkin.hashing.unpack_signs`, and come back unchanged.

    Parameters
    ----------
    n_bits : code length L, of the first L columns.
    random_state : not used, as nothing is random.

    Attributes
    ----------
    projection_: (d, n_bits), the first columns of the identity.

    Examples
    --------
    >>> X = np.array([[1.0, -1.0, 1.0, 0.0, -2.0, -2.0, -2.0, -2.0]])
    >>> nk.Signs(8).fit(X).encode(X)  # bits from the lowest: 1 + 4 + 8
    array([[13]], dtype=uint8)
    """

    n_bits: int = 32
    _: KW_ONLY
    random_state: Seed = None

    def fit(self, X: ArrayLike, y: object = None, *, callback: Callback | None = None) -> Self:
        """Note the width of X (n, d); ValueError for more bits than columns."""
        X = validate_vectors(self, X, reset=True)
        d = X.shape[1]
        if check_integer(self.n_bits, "n_bits", low=1) > d:
            raise ValueError(f"n_bits is {self.n_bits}, and X has n_features = {d}, a bit for each; type n_bits={d}")
        return self._keep(np.zeros(d, X.dtype), np.eye(d, self.n_bits, dtype=X.dtype), 1.0, np.zeros(0))

    def _project(self, X: np.ndarray) -> np.ndarray:
        return X[:, : self.n_bits]


MOST_BITS = 2**20  # 128 KiB a row; the hyperplanes of more would not fit in memory


@dataclass(eq=False, repr=False)
class RandomHyperplanes(AbstractLinearHasher):
    """Locality-sensitive hashing by random hyperplanes through the mean (Charikar 2002).

    The share of equal bits of two vectors estimates 1 - angle / pi. `orthogonal` draws the normals orthonormal in
    groups of d (a random rotation, then signs), which lowers the variance of that estimate (Ji et al. 2012). All n_bits
    up to 2^20 will do, also more than d.

    Parameters
    ----------
    n_bits : code length L.
    orthogonal : see above.
    random_state : seed of the normals.

    Attributes
    ----------
    mean_, projection_, scale_, intercept_: as in `ITQ`.

    References
    ----------
    Charikar (2002), Similarity estimation techniques from rounding algorithms; Ji et al. (2012), Super-bit LSH.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 32))
    >>> nk.RandomHyperplanes(64, orthogonal=True, random_state=0).fit(X).encode(X).shape
    (200, 8)
    """

    n_bits: int = 32
    _: KW_ONLY
    orthogonal: bool = False
    random_state: Seed = None

    def fit(self, X: ArrayLike, y: object = None, *, callback: Callback | None = None) -> Self:
        """Draw the hyperplanes for the width of X (n, d); of the data only mean and total variance are used."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1, high=MOST_BITS)
        X, shard = training_rows(self, X, min_rows=2)
        d, generator = X.shape[1], shared_generator(self.random_state)
        shard.check_varies(X)
        far, _ = far_rows(X, shard, 2, np.arange(len(X)))
        X = X[~far] if far.any() else X
        mean = shard.group.merge(row_mean(X)).finalize()
        spread = RowMean()
        for block in row_blocks(X):
            spread.merge(squared_norm(block - mean))
        variance = float(shard.group.merge(spread).finalize()) / d
        if self.orthogonal:
            normals = random_columns(d, n_bits, generator)
        else:
            normals = generator.standard_normal((d, n_bits))
            normals /= np.linalg.norm(normals, axis=0)
        scale = float(1 / np.sqrt(variance))  # values of unit variance on average, as eq. 25 does for SCQ
        return self._keep(mean.astype(X.dtype), normals.astype(X.dtype), scale, np.zeros(0))
