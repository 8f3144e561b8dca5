"""Decoded rows at their own length: what an index compares with queries where that length is known.

A rounded row is too short, each by another factor, so its scores favour the wrong rows. If all rows of an index have
one length L, a decoded row y is taken as L y / |y|, which needs no byte. Codes may also hold each row's length
(`NormExplicitQuantizer`, `AxisQuantizer`). FAISS compares with y itself: it finds candidates, ranked again here.
"""

from collections.abc import Iterable
from typing import NamedTuple, cast

import faiss
import numpy as np

from nearkin._faiss import at_length, innermost
from nearkin.contracts import LengthCodes, OrderedCodes, VectorCodes
from nearkin.index.searching import Kept, best_of, compared, decoded, matrix
from nearkin.linalg.orthonormal import EQUAL, has_length, row_length

_MORE, _FEWEST = 2, 40  # candidates for each row wanted, and at least
_NUMBERS = 1 << 26  # of decoded rows at a time
_QUERIES = 256  # ranked at a time, at most


def takes_length(quantizer: object) -> bool:
    """Whether decoded rows of a quantizer are better compared at their own length."""
    return isinstance(quantizer, VectorCodes) and not (isinstance(quantizer, OrderedCodes) and quantizer.learned_order)


def length_of_chunks(chunks: Iterable[np.ndarray], unit: bool) -> float | None:
    """`row_length` of rows in several chunks, as an index that they are added to in turn knows it."""
    length, first = None, True
    for X in chunks:
        if first:
            length, first = row_length(X, unit), False
        elif length is None or not has_length(X, length):
            return None
    return length


def common_length(one: float | None, other: float | None) -> float | None:
    """The first of two lengths if they are the same."""
    return one if one and other and abs(one - other) <= EQUAL * one else None


class Lengths(NamedTuple):
    """How decoded rows get their length: `length` of all rows, or `codes` that hold each row's length."""

    length: float | None
    codes: LengthCodes | None

    def candidates(self, k: int) -> int:
        """How many rows to find by their codes, of which the k best are wanted."""
        return max(_MORE * k, _FEWEST) * (1 if self.codes is None else 2)  # FAISS ranks those of any length worse

    def rows(self, index: faiss.Index, positions: np.ndarray, kept: Kept) -> np.ndarray:
        """Rows (m, d) of the index at `positions` (m,), at their own length."""
        turned = self._turned(index, positions, kept)
        return turned @ matrix(index).T if isinstance(index, faiss.IndexPreTransform) else turned

    def ranked(
        self, index: faiss.Index, Q: np.ndarray, positions: np.ndarray, k: int, kept: Kept
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores and positions (q, k), best first, of `positions` (q, c) for queries Q (q, d') behind the rotation."""
        asked, scores = kept.real(index, Q), np.empty(positions.shape, np.float32)
        decoded_at_most = min(_QUERIES * positions.shape[1], index.ntotal) * Q.shape[1]
        step = max(1, int(_QUERIES * min(1.0, _NUMBERS / max(decoded_at_most, 1))))
        by_distance = index.metric_type == faiss.METRIC_L2
        for first in range(0, len(Q), step):
            some = slice(first, first + step)
            own, numbers = np.maximum(positions[some].ravel(), 0), np.arange(positions[some].size)
            if step > 1 and len(Q) > 1:  # queries have rows in common, which are decoded once
                own, numbers = np.unique(own, return_inverse=True)
            rows = self._turned(index, own, kept)
            scores[some] = compared(asked[some], rows, numbers.reshape(positions[some].shape), by_distance)
        return best_of(scores, positions, k, by_distance)

    def _turned(self, index: faiss.Index, positions: np.ndarray, kept: Kept) -> np.ndarray:
        """Rows (m, d') behind the rotation, at their own length; without the bias there."""
        rows, codes = decoded(innermost(index), positions, kept)
        if self.codes is not None:
            return self.codes.restored(rows, codes)
        return at_length(kept.real(index, rows), cast(float, self.length))
