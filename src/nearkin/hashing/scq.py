"""SCQ's two encoders: OnE, with orthonormal columns, and OgE, with orthogonal ones; with labels both are a regression.

The scale decides what the codes keep. A larger one flattens the spectrum, which on features of a network brings vectors
of one class together at the price of neighbours. Where classes are known, codes of the classes replace that."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from nearkin._check import check_choice, check_labels
from nearkin._types import Seed
from nearkin.contracts import Callback
from nearkin.hashing import columns
from nearkin.hashing.linear import AbstractSpectralHasher
from nearkin.hashing.spectrum import scale_of
from nearkin.linalg.signs import row_blocks
from nearkin.statistics import RowMean, shared_generator

_DRAWN, _COMMON = 32, 1000  # directions drawn for a bit of classes' codes, classes that choose among them


class AbstractEncoder(AbstractSpectralHasher):
    """One projection that compresses and quantizes at once: its columns are free to leave the top principal axes.

    A subclass has `_step` and the parameters `n_bits`, `scale`, `n_components`, `tol`, `max_iter` and `random_state`.
    """

    scale: str | float
    n_components: int | None
    tol: float
    max_iter: int

    @abstractmethod
    def _step(self, c: np.ndarray, n: int) -> columns.AbstractColumnStep:
        """The step of the columns for n scaled vectors whose principal coordinates have variances c (m,)."""

    def _scale(self, rows: columns.CentredRows) -> float:
        return scale_of(self.scale, rows.spectrum.variances, self.n_bits)

    def _learn(
        self, rows: columns.CentredRows, dtype: DTypeLike, callback: Callback | None, y: object, usual: np.ndarray
    ) -> Self:
        """Regress on codes of the classes if labels tell vectors apart, else train without labels."""
        if y is None or rows.group.size > 1:  # several processes number labels apart
            return super()._learn(rows, dtype, callback, None, usual)
        marks = _marks(check_labels(y, "y", len(usual))[usual])  # pyright: ignore[reportArgumentType]
        if not marks.nnz:
            return super()._learn(rows, dtype, callback, None, usual)
        c, generator = rows.spectrum.variances, shared_generator(self.random_state)
        rows.spectrum.check_rank(1, len(rows.spectrum.mean))
        W, spread, error = class_regression(rows.coordinates, marks, c)
        if callback is not None:
            callback(1, {"objective": error, "total": 1})
        share = marks.mean(axis=0)
        codes = class_codes(W / share / np.sqrt(spread), share, self.n_bits, generator)
        V = W / spread @ codes
        mean, axes = rows.spectrum.mean.astype(dtype), (rows.spectrum.axes @ V).astype(dtype)
        # a bit's threshold is midway between the means of the values of both groups of classes: by that of the
        # regression rare classes get the common ones' bits; threes among other digits mAP .911 to .957, no set less
        values = (W / share).T @ V
        groups = [np.where(own, values, 0).sum(0) / np.maximum(own.sum(0), 1) for own in (codes > 0, codes < 0)]
        return self._keep(mean, axes, 1.0, np.array([error]), -np.mean(groups, axis=0).astype(dtype))

    def _columns(
        self, rows: columns.CentredRows, generator: np.random.Generator, callback: Callback | None
    ) -> tuple[np.ndarray, np.ndarray]:
        c = self.scale_**2 * rows.spectrum.variances
        return columns.learn_columns(
            lambda V: self.scale_ * rows.sign_moment(V),
            self._step(c, rows.spectrum.n_rows),
            columns.random_columns(len(c), self.n_bits, generator),
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback,
        )


def class_regression(Z: np.ndarray, marks: sp.csr_array, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Ridge regression of the `marks` (n, k) of rows' classes on centred rows Z (n, m) of variances c (m,).

    Returns the moments W (m, k) of rows and classes, the spread (m, 1), by which they are divided for coefficients,
    and the error by generalized cross-validation (Golub et al. 1979). The covariance is diagonal, so all ridges are
    compared without a pass over the rows.
    """
    share: np.ndarray = marks.mean(axis=0)
    moment = RowMean(Z.shape[1], len(share))
    for start, rows in zip(range(0, len(Z), columns.BLOCK), row_blocks(Z, columns.BLOCK), strict=True):
        moment.update((marks[start : start + len(rows)].T @ rows).T, len(rows))
    W = moment.finalize()
    squares, variance = (W**2).sum(axis=1), float((share * (1 - share)).sum())

    def score(ridge: float) -> float:
        error = variance - float((squares * (c + 2 * ridge) / (c + ridge) ** 2).sum())
        return error / (1 - (1 + float((c / (c + ridge)).sum())) / len(Z)) ** 2

    ridge = min(np.logspace(-6, 1, 29) * c.mean(), key=score)
    return W, (c + ridge)[:, None], score(ridge)


def class_codes(means: np.ndarray, share: np.ndarray, n_bits: int, generator: np.random.Generator) -> np.ndarray:
    """Codes (k, L) of signs for k classes of whitened `means` (m, k), in which near means have near codes.

    Each bit is the sign of a random direction: of `_DRAWN`, the one that separates most pairs of classes, weighted by
    exp(-t) if their codes are at distance t, as in boosting. mAP of held-out rows, 16 and 32 bits, with the first
    drawn: kinds of entries .837, .885 to .860, .901, digits .814, .882 to .852, .883, GIST .285, .308 to .297, .322;
    8 and 128 drawn are level with 32 (2026-11-27).
    """
    codes = np.empty((means.shape[1], n_bits))
    common = np.argsort(-share, kind="stable")[:_COMMON]
    weights = np.outer(share[common], share[common])
    for bit in range(n_bits):
        drawn = np.where(means.T @ generator.standard_normal((len(means), _DRAWN)) >= 0, 1.0, -1.0)
        alike = ((weights @ drawn[common]) * drawn[common]).sum(axis=0)
        codes[:, bit] = drawn[:, alike.argmin()]
        weights *= np.exp(np.minimum(np.outer(codes[common, bit], codes[common, bit]), 0))
    return codes


def _marks(labels: np.ndarray) -> sp.csr_array:
    """Which classes each row has, (n, k) of 0 and 1, from classes (n,) or rows of several (n, c): without the classes
    that all rows have, or none."""
    if labels.ndim == 1:
        classes, labels = np.unique(labels, return_inverse=True)
        marks = sp.csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)), (len(labels), len(classes)))
    else:
        marks = sp.csr_array(labels, dtype=np.float64)
    counts = marks.sum(axis=0)
    return marks[:, (counts > 0) & (counts < len(labels))]


@dataclass(eq=False, repr=False)
class OnE(AbstractEncoder):
    """Orthonormal Encoder: min |B - s X V|^2 / n over signs B and V^T V = I, d x L (SCQ, eq. 1 and 17).

    Unlike ITQ, V is free to leave the top principal axes: less variance kept, much less quantization loss.

    Parameters
    ----------
    n_bits : code length L.
    scale : the factor s, "eq25" as in the paper, "top-eigenvalue" as in the authors' demo, or a number.
    solver : "columns" is the paper's, one column at a time, each the global optimum given those before it. "stiefel" is
        our own, all columns at once by majorise-minimise.
    n_inner : steps of "stiefel" per update of the codes.
    n_components : principal components to train in without labels (n_bits if that is more), 512 as in the paper; None
        for all, as with labels. An iteration costs n * n_components * L, so skipping PCA on 4096 columns makes it 8
        times dearer.
    tol, max_iter : stop at a relative change of the loss of at most `tol`, or after `max_iter` iterations.
    random_state : of the first, random orthonormal V.

    Attributes
    ----------
    mean_, projection_, scale_, intercept_, history_: as in `ITQ`.

    References
    ----------
    Hoang et al. (2020), Simultaneous compression and quantization (SCQ), arXiv:1802.06645.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 32))
    >>> nk.OnE(16, max_iter=5, random_state=0).fit(X).encode(X).shape
    (200, 2)
    """

    n_bits: int = 32
    _: KW_ONLY
    scale: str | float = "eq25"
    solver: str = "columns"
    n_inner: int = 1
    n_components: int | None = 512
    tol: float = 1e-4
    max_iter: int = 100
    random_state: Seed = None

    def _check_params(self) -> None:
        super()._check_params()
        check_choice(self.solver, "solver", ("columns", "stiefel"))

    def _step(self, c: np.ndarray, n: int) -> columns.AbstractColumnStep:
        return columns.OrthonormalColumns(c) if self.solver == "columns" else columns.StiefelColumns(c, self.n_inner)


@dataclass(eq=False, repr=False)
class OgE(AbstractEncoder):
    """Orthogonal Encoder: min |B - s X V|^2 / n + mu |V|^2 over signs B and v_i^T v_j = 0, V d x L (SCQ, eq. 19).

    Only the ridge mu / s^2 matters to the bits: a large one keeps to the top principal axes (and to neighbours), a
    small one flattens the spectrum, which on features of a network buys labels at the price of neighbours.

    Parameters
    ----------
    n_bits, scale, n_components, tol, max_iter, random_state : as in `OnE`.
    mu : least penalty on the norm of the columns, 0.02 in the paper. It is more for fewer than 18 vectors a component:
        the ridge of Hoerl, Kennard & Baldwin (1975) for signs and unit columns.
    ridge : None, or mu / s^2 as a share of the mean variance of the top L principal components: it replaces mu, and
        then the result does not depend on `scale`. With "eq25" the two are the same number.

    Attributes
    ----------
    mean_, projection_, scale_, intercept_, history_: as in `ITQ`.

    References
    ----------
    Hoang et al. (2020), as in `OnE`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 32))
    >>> hasher = nk.OgE(16, random_state=0).fit(X)
    >>> distances, ids = hasher.search(X[:2], hasher.encode(X), k=3)
    >>> ids.shape
    (2, 3)
    """

    n_bits: int = 32
    _: KW_ONLY
    scale: str | float = "eq25"
    mu: float = 0.02
    ridge: float | None = None
    n_components: int | None = 512
    tol: float = 1e-4
    max_iter: int = 100
    random_state: Seed = None

    def _step(self, c: np.ndarray, n: int) -> columns.AbstractColumnStep:
        variance = float(c[: self.n_bits].mean())
        # signs deviate from the linear part of normal values by 1 - 2 / pi; without this, axes of noise make the bits
        # of few vectors: 1,500 images of MNIST mAP .32, with it .39, 1,590 sentences .24 and .47
        noise = (1 - 2 / np.pi) * len(c) / n * variance
        return columns.OrthogonalColumns(c, max(self.mu, noise) if self.ridge is None else self.ridge * variance)
