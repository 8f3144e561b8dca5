"""Codes whose last byte may hold the length of the row: what `AxisQuantizer` and `NormExplicitQuantizer` share.

A row y decoded from centroids is too short, each row by another factor, because centroids are means. At the true
distance |x - mu| from the mean mu, distances and inner products with queries rank the rows better (norm-explicit
quantization, Dai et al., AAAI 2020, who take lengths about the origin).
"""

import faiss
import numpy as np
from sklearn.utils.validation import check_is_fitted

from nearkin._check import check_choice, check_codes
from nearkin._estimators import ReconstructingTransformer
from nearkin._faiss import METRIC_TYPES, at_length, nearest_rows
from nearkin._types import ArrayLike
from nearkin.linalg.orthonormal import unit_rows
from nearkin.metrics import recall_k_at_k
from nearkin.quantization.faiss_bridge import SCANNED, empty_index

LEVELS = 256  # values of the byte
_QUERIES, _JUDGED, NEAR = 1_000, 4_096, 10  # rows that judge a fit, rows they are compared with, neighbours of each
_CLIPPED = 1e-3  # share of lengths beyond either end of the levels
_CHUNK = 8_192  # rows whose lengths are taken at a time


class AbstractLengthCodes(ReconstructingTransformer):
    """A product code (n, n_bytes) uint8 in a rotated space whose last byte names a length where `lengths_` has any."""

    n_bytes: int
    n_features_in_: int
    normalized_: bool | None
    rotation_: np.ndarray
    codebooks_: np.ndarray
    mean_: np.ndarray
    length_: float | None
    lengths_: np.ndarray

    def decode(self, codes: ArrayLike) -> np.ndarray:
        """Rows (n, d) float32 of codes, at their own length; ValueError for codes of another width."""
        check_is_fitted(self)
        codes = check_codes(codes, self.n_bytes)
        rows = self.codebooks_[np.arange(self.n_bytes), codes].reshape(len(codes), -1)
        return self.restored(rows, codes) @ self.rotation_.T

    def restored(self, rows: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Decoded rows (n, d') in the rotated space, of codes (n, n_bytes), at their own length."""
        return self.at_lengths(rows, codes, self.mean_ @ self.rotation_)

    def at_lengths(self, rows: np.ndarray, codes: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """Decoded rows (n, d) at their own length, about the rows' mean `centre` (d,) in their space."""
        if len(self.lengths_):
            return centre + unit_rows(rows - centre) * self.lengths_[codes[:, -1]][:, None]
        return rows if self.length_ is None else at_length(rows, self.length_)

    def to_faiss(self, metric: str = "l2") -> faiss.Index:
        """A trained, empty `faiss.IndexPQ` behind the rotation, for the very same codes; `metric` is "l2" or "ip".

        FAISS compares queries with rows without their own length: it keeps fewer neighbours than `nk.Index`.
        """
        check_is_fitted(self)
        check_choice(metric, "metric", METRIC_TYPES)
        return empty_index(self.rotation_, self.codebooks_, None, metric, fast_scan=False)

    def _check_loaded(self) -> None:
        d, (M, K, width) = self.n_features_in_, self.codebooks_.shape
        shapes = self.rotation_.shape, self.mean_.shape, self.lengths_.shape
        if (M, K) not in ((self.n_bytes, LEVELS), (2 * self.n_bytes, SCANNED)) or shapes not in [
            ((d, M * width), (d,), (n,)) for n in (0, LEVELS)
        ]:
            raise ValueError(f"codebooks_ is {self.codebooks_.shape}, and rotation_, mean_ and lengths_ are {shapes}")
        super()._check_loaded()
        self.decode(self.encode(np.zeros((1, d), np.float32)))

    def length_codes(self, X: np.ndarray) -> np.ndarray:
        """The last byte (n,) of rows X (n, d): the level nearest to the row's length about the mean."""
        return np.searchsorted((self.lengths_[1:] + self.lengths_[:-1]) / 2, lengths(X, self.mean_)).astype(np.uint8)

    def recall(self, rows: np.ndarray) -> float:
        """Neighbours kept among the first rows (n, d), compared as `nk.Index` compares them."""
        split = min(_QUERIES, len(rows) // 2)
        queries, others = rows[:split], rows[split : split + _JUDGED]
        decoded = self.decode(self.encode(others))
        found, true = (nearest_rows(base, queries, NEAR) for base in (decoded, others))
        return recall_k_at_k(found, true, NEAR)


def length_levels(X: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Levels (256,) for lengths of rows X (n, d) about their mean (d,), in equal ratios; 0 is for a row at the mean."""
    found = lengths(X, mean)
    low, high = np.quantile(found[found > 0], [_CLIPPED, 1 - _CLIPPED]) if found.any() else (1.0, 1.0)
    return np.r_[0, np.geomspace(low, high, LEVELS - 1)].astype(np.float32)


def lengths(X: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """|x - mean| (n,) float64 of rows X (n, d); alone and in a batch the same."""
    found = np.empty(len(X))
    for first in range(0, len(X), _CHUNK):
        centred = X[first : first + _CHUNK].astype(np.float64) - mean
        np.sqrt(np.square(centred).sum(axis=1), out=found[first : first + _CHUNK])
    return found
