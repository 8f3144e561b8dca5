"""Principal axes of rows, how many of them a code of so many bits can lower, and learning along those alone."""

from typing import NamedTuple, Self

import numpy as np

from nearkin._distributed import ALONE, Group
from nearkin.quantization.learning import Step

_FEWEST = 64  # columns of rows for which leaving axes out is worth its trouble
_WORTH = 0.8  # share of the axes up to which leaving the others out saves more than it costs


def principal_axes(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """axes (d, d) float32, one a column, and variances (d,) in descending order, of centred rows X (n, d).

    An axis points where its largest entry is positive.
    """
    variances, axes = np.linalg.eigh((X.T @ X).astype(np.float64) / len(X))
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(len(axes))])
    return np.ascontiguousarray(axes[:, ::-1], np.float32), np.maximum(variances[::-1], 0)


def reached(variances: np.ndarray, bits: float, margin: float = 1.0) -> int:
    """Number of axes, at least 1, whose descending variances (d,) a code of so many bits can lower.

    For normal rows the best code gives the i-th axis log2(v_i / t) / 2 bits where v_i is above the water level t, and
    none elsewhere (reverse water-filling; Cover & Thomas 2006, section 10.3). Axes down to t / `margin` are counted.

    >>> reached(np.array([16.0, 4.0, 0.01, 0.0]), 3)
    2
    """
    logs = np.log2(np.maximum(variances, np.finfo(float).tiny))
    levels = (np.cumsum(logs) - 2 * bits) / np.arange(1, len(logs) + 1)  # of t, were the first k axes those above it
    above = int(np.flatnonzero(logs >= levels)[-1])
    return max(1, int((logs >= levels[above] - np.log2(margin)).sum()))


class Space(NamedTuple):
    """The first `width` of the principal axes (d, d), along which a rotation and codebooks are learned at first.

    A product, a decomposition and the noise of a centroid cost width instead of d. What a code tells of the other axes
    is learned at the end, when codebooks settle at full width.
    """

    axes: np.ndarray
    width: int

    @classmethod
    def of(cls, X: np.ndarray, n_subspaces: int, n_centroids: int, group: Group = ALONE) -> Self | None:
        """For centred rows X (n, d) and product codes; None where rows are short or too few axes could be left out."""
        if X.shape[1] < _FEWEST:
            return None
        X = X if group.size == 1 else np.concatenate(group.gather(X))  # every process takes the same axes
        axes, variances = principal_axes(X)
        width = n_subspaces * -(-reached(variances, n_subspaces * np.log2(n_centroids)) // n_subspaces)
        return cls(axes, width) if width <= _WORTH * len(axes) else None

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Rows X (n, d) along these axes, (n, width)."""
        return np.ascontiguousarray(X @ self.axes[:, : self.width])

    def widened(self, step: Step) -> Step:
        """The same rotation and codebooks over all axes: each subspace gets its share of the others, centroids 0."""
        M, K, narrow = step.codebooks.shape
        turned, others = self.axes[:, : self.width] @ step.rotation, self.axes[:, self.width :]
        parts = zip(np.split(turned, M, axis=1), np.split(others, M, axis=1), strict=True)
        codebooks = np.zeros((M, K, len(self.axes) // M), np.float32)
        codebooks[:, :, :narrow] = step.codebooks
        return Step(np.ascontiguousarray(np.hstack([part for pair in parts for part in pair])), codebooks)
