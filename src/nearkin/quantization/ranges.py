"""A rotation for scalar codes of equal steps, whose error is the width of their ranges: widths as small as can be."""

import numpy as np

from nearkin.quantization.descent import descend

_POWER = 8  # of the mean that stands for the largest entry: a maximum itself would follow single rows
_STEPS = 300
_RATE = 0.3
_BATCH = 2_048


def narrowed(X: np.ndarray, R: np.ndarray, axis: int | None, generator: np.random.Generator) -> np.ndarray:
    """R (d, d) turned until ranges of X R (n, d) are narrow: of columns (axis 0), of rows (1) or of all (None)."""

    def gradient(R: np.ndarray) -> np.ndarray:
        rows = X if len(X) <= _BATCH else X[generator.integers(len(X), size=_BATCH)]
        return width(rows, R, axis)[1]

    return descend(R, gradient, _STEPS, _RATE)


def width(X: np.ndarray, R: np.ndarray, axis: int | None) -> tuple[float, np.ndarray]:
    """The sum of squared widths and its slope by R: means of power 8 of a column (row) of X R about its mean.

    With axis=None the one width is about 0.
    """
    Z = X @ R
    if axis is not None:
        Z -= Z.mean(axis=axis, keepdims=True)
    sizes = np.abs(Z)
    largest = np.maximum(sizes.max(axis=axis, keepdims=True), np.finfo(Z.dtype).tiny ** 0.5)
    shares = sizes / largest
    mean = np.maximum((shares**_POWER).mean(axis=axis, keepdims=True), np.finfo(Z.dtype).tiny)
    widths = largest * mean ** (1 / _POWER)
    by_z = 2 * widths.size / Z.size * widths * shares ** (_POWER - 1) * mean ** (1 / _POWER - 1) * np.sign(Z)
    if axis is not None:
        by_z -= by_z.mean(axis=axis, keepdims=True)
    return float(np.square(widths).sum()), X.T @ by_z
