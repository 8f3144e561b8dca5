"""The inverted file's coarse quantizer: which list a row belongs to."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from nearkin.linalg.steady import nearest
from nearkin.quantization.codebooks import centroids_of

_ITERATIONS = 20


@dataclass(frozen=True)
class CoarseQuantizer:
    """`centroids` (L, d) float32 in the original space; distances do not change under the rotation that follows."""

    centroids: np.ndarray

    @classmethod
    def train(cls, X: np.ndarray, n_lists: int, seed: int) -> Self:
        """FAISS k-means on all rows of X (n, d)."""
        return cls(centroids_of(X, n_lists, _ITERATIONS, seed))

    def assign(self, X: np.ndarray) -> np.ndarray:
        """Number (n,) int64 of the nearest centroid of each row of X (n, d), the lowest of equals.

        A row falls into the same list alone and in a batch.
        """
        return nearest(X, self.centroids)

    def residuals(self, X: np.ndarray) -> np.ndarray:
        """What is left of rows X (n, d) after their centroids."""
        return X - self.centroids[self.assign(X)]

    @staticmethod
    def code_width(n_lists: int) -> int:
        """Bytes of a list's number, as FAISS counts them."""
        return max(1, -(-(n_lists - 1).bit_length() // 8))

    @classmethod
    def pack(cls, lists: np.ndarray, n_lists: int) -> np.ndarray:
        """Numbers (n,) to little-endian bytes (n, code_width)."""
        return lists.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : cls.code_width(n_lists)]

    @classmethod
    def unpack(cls, codes: np.ndarray, n_lists: int) -> np.ndarray:
        """Bytes (n, code_width) back to numbers (n,); ValueError for a number that names no list."""
        padded = np.zeros((len(codes), 8), np.uint8)
        padded[:, : codes.shape[1]] = codes
        lists = padded.view("<u8").ravel().astype(np.int64)
        if len(lists) and lists.max() >= n_lists:
            raise ValueError(f"codes name list {lists.max()}; this quantizer has n_lists={n_lists}")
        return lists
