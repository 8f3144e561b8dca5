"""A rotation for codes of signs, learned for the order of near rows: their scores shall follow the true distances.

Errors of reconstruction say little of which of two near rows is nearer. Here lists of rows near each other are drawn,
and the correlation between what the codes say and the distances, list by list, is raised by gradients on O(d). Signs
have no slope; that of tanh stands for it ("straight-through", Bengio et al. 2013).
"""

from collections.abc import Callable

import numpy as np

from nearkin._faiss import nearest_rows
from nearkin.quantization.descent import descend

Slopes = tuple[np.ndarray, np.ndarray]  # of a loss by z and by b, (g, k, d) each
Scores = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, Callable[[np.ndarray], Slopes]]]
_LIST = 64  # rows near each other in a list
_LISTS = 16  # of a step
_STEPS = 500
_RATE = 0.2
_WIDTH = 0.5  # of tanh, in standard deviations of an entry


def _by_bits(z: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], Slopes]]:
    """Bits against bits: <b_i, b_j>, the order of Hamming distances."""
    return b @ b.mT, lambda W: (np.zeros_like(z), (W + W.mT) @ b)


def _by_floats(z: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], Slopes]]:
    """Queries in floats against bits: <z_i, b_j>."""
    return z @ b.mT, lambda W: (W @ b, W.mT @ z)


def _with_norms(z: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], Slopes]]:
    """RaBitQ: 2 <z_i, y_j> - |z_j|^2 with y_j = b_j |z_j|^2 / <z_j, b_j>; the norm does not change with the turn."""
    squares = np.square(z).sum(axis=2, keepdims=True)
    products = np.maximum((z * b).sum(axis=2, keepdims=True), np.finfo(z.dtype).tiny)
    length = squares / products
    y = b * length

    def slopes(W: np.ndarray) -> Slopes:
        by_y = 2 * (W.mT @ z)
        shrink = (by_y * b).sum(axis=2, keepdims=True) * length / products
        return 2 * (W @ y) - shrink * b, by_y * length - shrink * z

    return 2 * (z @ y.mT) - squares.mT, slopes


SCORES: dict[str, Scores] = {
    "sign": _by_bits,
    "sign-float": _by_floats,
    "rabitq": _with_norms,
    "eden1": _with_norms,
}


def turned_for_order(X: np.ndarray, R: np.ndarray, codec: str, generator: np.random.Generator) -> np.ndarray:
    """R (d, d) turned so that scores by codes of X R follow the distances among rows of X (n, d) near each other."""
    drawn, places = np.unique(generator.integers(len(X), size=_STEPS * _LISTS), return_inverse=True)
    near = nearest_rows(X, X[drawn], min(_LIST, len(X)))
    steps = iter(places.reshape(_STEPS, _LISTS))
    spread = np.float32(np.sqrt(np.square(X).mean(dtype=np.float64)) or 1)
    return descend(R, lambda R: disagreement(X[near[next(steps)]] / spread, R, SCORES[codec])[1], _STEPS, _RATE)


def disagreement(
    rows: np.ndarray,  # (g, k, d): lists of rows near each other
    R: np.ndarray,  # (d, d)
    scores: Scores,
    codes: Callable[[np.ndarray], np.ndarray] = np.sign,
) -> tuple[float, np.ndarray]:
    """Less the mean correlation between scores and minus squared distances, and its gradient by R (d, d).

    The slope of tanh stands for that of `codes`; for codes=np.tanh the gradient is exact.
    """
    z = rows @ R
    soft = np.tanh(z / _WIDTH)
    found, slopes = scores(z, codes(z / _WIDTH))
    value, W = correlation(found, -distances(rows))
    by_z, by_b = slopes(-W)
    by_z = by_z + by_b * (1 - np.square(soft)) / _WIDTH
    d = rows.shape[2]
    return -value, rows.reshape(-1, d).T @ by_z.reshape(-1, d)


def distances(rows: np.ndarray) -> np.ndarray:
    squares = np.square(rows).sum(axis=2)
    return squares[:, :, None] + squares[:, None] - 2 * rows @ rows.mT


def correlation(s: np.ndarray, t: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean correlation of s and t (g, k, k) along their last axis, the diagonal left out, and its slope by s."""
    others = 1 - np.eye(s.shape[1], dtype=s.dtype)
    count = max(1, s.shape[1] - 1)

    def unit(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        centred = (values - (values * others).sum(axis=2, keepdims=True) / count) * others
        length = np.sqrt(np.square(centred).sum(axis=2, keepdims=True)) + np.finfo(s.dtype).tiny ** 0.5
        return centred / length, length

    (s, length), (t, _) = unit(s), unit(t)
    each = (s * t).sum(axis=2, keepdims=True)
    return float(each.mean()), (t - each * s) / (length * each.size)
