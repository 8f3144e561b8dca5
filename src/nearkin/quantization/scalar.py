"""Scalar quantization by FAISS: every column is rounded to 4, 6, 8 or 16 bits, for high recall without rescoring."""

from dataclasses import dataclass
from typing import ClassVar, Self

import faiss
import numpy as np
from sklearn.utils.validation import check_is_fitted

from nearkin._check import check_choice, check_codes, check_rounding, has_unit_rows, validate_vectors
from nearkin._estimators import ReconstructingTransformer
from nearkin._faiss import METRIC_TYPES
from nearkin._types import ArrayLike
from nearkin.contracts import Callback, ignore
from nearkin.statistics import Shard, far_rows, whole_rows

_TYPES = {
    4: faiss.ScalarQuantizer.QT_4bit,
    6: faiss.ScalarQuantizer.QT_6bit,
    8: faiss.ScalarQuantizer.QT_8bit,
    16: faiss.ScalarQuantizer.QT_fp16,
}
_HALF = np.finfo(np.float16)
_EIGHT = "type n_bits=8, of nearkin compress method='sq8'"


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of scalar codes."""

    clipped: tuple[float, ...] = (0.0, 1e-4, 1e-3, 5e-3, 1e-2, 2e-2)  # shares of the rows beyond either end, tried


DEFAULTS = Defaults()


@dataclass(eq=False, repr=False)
class ScalarQuantizer(ReconstructingTransformer):
    """Round every column to `n_bits` bits: n_bits * d / 8 bytes a vector.

    Up to 8 bits a column's range, from one quantile of the training vectors to the other, is cut into equal steps;
    values beyond it are clipped. All columns use the same share of clipped vectors, the one with the smallest
    distortion. With 16 bits the values are half-precision floats and nothing is trained.

    Parameters
    ----------
    n_bits: 4, 6, 8 or 16 bits a column.

    Attributes
    ----------
    ranges_: (2, d) float32, the ends of each column, as sentence-transformers takes them; empty (0,) with 16 bits.
    scale_: (2, d) float32, the least value and the width, as FAISS keeps them.
    clipped_: the share of vectors beyond either end.
    normalized_, n_features_in_: as in `ProductQuantizer`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 6)).astype(np.float32)
    >>> nk.quantization.ScalarQuantizer(n_bits=4).fit(X).encode(X).shape
    (100, 3)
    """

    KIND: ClassVar[str] = "scalar quantizer"
    normalized_ = None  # not known for one that was not fitted here

    n_bits: int = 8

    def fit(self, X: ArrayLike, y: object = None, *, callback: Callback = ignore) -> Self:
        """Train the ranges of the columns from vectors X (n, d).

        `callback(step, record)` is called after each share of clipped vectors with its "distortion". ValueError or
        TypeError for data that cannot be used; with 16 bits also for values outside half precision.
        """
        check_choice(self.n_bits, "n_bits", _TYPES)
        X = whole_rows(self, X)
        self.normalized_: bool | None = has_unit_rows(X)
        self.clipped_, self.scale_ = 0.0, np.empty(0, np.float32)
        every = -(-len(X) // 65_536)
        if self.n_bits == 16:
            _check_half(X, float(_HALF.tiny))
            check_rounding(X[::every], np.float16, f"take X.mean(axis=0) off data and queries, or {_EIGHT}")
            return self
        X = X[::every].astype(np.float32)
        X = X[~far_rows(X, Shard.of(X), 1, every * np.arange(len(X)))[0]]
        best = np.inf
        for step, share in enumerate(DEFAULTS.clipped, 1):
            low, high = np.quantile(X, [share, 1 - share], axis=0)
            ranges = np.stack([low, high - low]).astype(np.float32)
            error = _error(X, ranges, 2**self.n_bits - 1) * X.shape[1]
            if error < best:
                self.clipped_: float
                self.scale_: np.ndarray
                best, self.scale_, self.clipped_ = error, ranges, share
            callback(step, {"total": len(DEFAULTS.clipped), "objective": error, "distortion": error})
        return self

    @property
    def ranks_by(self) -> tuple[str, ...]:
        """Rounding to 8 bits and more moves a norm less than the 0.5 % by which norms taken as one differ; 8 bits of
        vectors of norm 1 gain by that norm."""
        return ("l2", "ip") if self.n_bits == 16 or (self.n_bits == 8 and not self.normalized_) else ()

    @property
    def ranges_(self) -> np.ndarray:
        check_is_fitted(self)
        return self.scale_ if self.n_bits == 16 else np.stack([self.scale_[0], self.scale_.sum(0)])

    def encode(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, ceil(n_bits d / 8)) uint8 of vectors X (n, d), as FAISS packs them.

        ValueError for values beyond half precision, with 16 bits.
        """
        check_is_fitted(self)
        X = validate_vectors(self, X)
        if self.n_bits == 16:
            _check_half(X)
        return self.to_faiss().sa_encode(np.ascontiguousarray(X, np.float32))

    def decode(self, codes: ArrayLike) -> np.ndarray:
        """Vectors (n, d) float32 of codes, as `encode` gives them; ValueError for another width or type."""
        check_is_fitted(self)
        index = self.to_faiss()
        return index.sa_decode(check_codes(codes, index.sa_code_size()))

    def to_faiss(self, metric: str = "l2") -> faiss.Index:
        """A trained, empty `faiss.IndexScalarQuantizer` with the very same codes; `metric` is "l2" or "ip"."""
        check_is_fitted(self)
        check_choice(metric, "metric", METRIC_TYPES)
        index = faiss.IndexScalarQuantizer(self.n_features_in_, _TYPES[self.n_bits], METRIC_TYPES[metric])
        wanted = (0,) if self.n_bits == 16 else (2, self.n_features_in_)
        if self.scale_.shape != wanted:  # an edited folder: FAISS would read beyond the array
            raise ValueError(f"scale_ has shape {self.scale_.shape}; it must be {wanted}")
        faiss.copy_array_to_vector(self.scale_.ravel(), index.sq.trained)
        index.is_trained = True
        return index


def _check_half(X: np.ndarray, least: float = 0.0) -> None:
    """ValueError if half precision would make an entry of X (n, d) infinite, or if the largest, not 0, is below
    `least`: few digits would be left."""
    largest = max(float(X.max()), -float(X.min()))
    if largest > float(_HALF.max) or 0 < largest < least:
        raise ValueError(
            f"n_bits is 16, and the largest value of X is {largest:.6g}; half precision has full digits from "
            f"{_HALF.tiny:.2g} to {_HALF.max:.0f}: scale vectors and queries alike, for example by {1 / largest:.0e}, "
            f"or {_EIGHT}"
        )


def _error(X: np.ndarray, ranges: np.ndarray, levels: int) -> float:
    """Mean squared error of X (n, d) after FAISS's rounding: `levels` equal steps of `ranges` (2, d), one above."""
    low, width = ranges
    width = np.where(width > 0, width, 1)
    steps = np.clip(np.floor((X - low) / width * levels), 0, levels)
    return float(((low + (steps + 0.5) / levels * width - X) ** 2).mean(dtype=np.float64))
