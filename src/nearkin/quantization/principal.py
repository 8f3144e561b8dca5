"""Principal axes of rows, and how many of them a code of given bits can lower."""

import numpy as np


def principal_axes(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Axes (d, d) float32, largest entries positive, and descending variances (d,) of centred rows X (n, d)."""
    variances, axes = np.linalg.eigh((X.T @ X).astype(np.float64) / len(X))
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(len(axes))])
    return np.ascontiguousarray(axes[:, ::-1], np.float32), np.maximum(variances[::-1], 0)


def reached(variances: np.ndarray, bits: float, margin: float = 1.0) -> int:
    """Number of axes, at least 1, whose descending variances (d,) a code of `bits` bits can lower.

    For normal rows the best code gives the i-th axis log2(v_i / t) / 2 bits where v_i is above the water level t, and
    none elsewhere (reverse water-filling; Cover & Thomas 2006, section 10.3). Axes down to t / `margin` are counted.

    >>> reached(np.array([16.0, 4.0, 0.01, 0.0]), 3)
    2
    """
    logs = np.log2(np.maximum(variances, np.finfo(float).tiny))
    levels = (np.cumsum(logs) - 2 * bits) / np.arange(1, len(logs) + 1)  # of t, were the first k axes those above it
    above = int(np.flatnonzero(logs >= levels)[-1])
    return max(1, int((logs >= levels[above] - np.log2(margin)).sum()))
