"""A rotation for sign codes, trained so that scores rank near vectors by their true distances.

The reconstruction error does not determine which of two near vectors is nearer. Here lists of near vectors are drawn,
and gradients on O(d) raise the correlation of scores and distances within lists. Signs have no gradient; that of tanh
replaces it ("straight-through", Bengio et al. 2013)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearkin._exact import nearest
from nearkin.linalg.orthonormal import nearest_orthogonal, newton_schulz
from nearkin.quantization.additive import decode
from nearkin.quantization.codebooks import ClusterSums

Slopes = tuple[np.ndarray, np.ndarray]  # gradients of a loss by z and by b, (g, k, d) each
Scores = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, Callable[[np.ndarray], Slopes]]]
_MOMENTUM, _MEMORY, _LEAST = 0.9, 0.99, 1e-12  # Adam's
_JUDGED = 4_096  # rows that measure the size of errors
_CONSTANT = 1e-6  # scores whose centred norm is smaller are equal up to rounding


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of both descents; docs/notes/decisions.md has what other losses and rates keep."""

    # ---- rotations
    lists: int = 16  # of a step
    steps: int = 500
    rate: float = 0.2  # first step's angle; it falls linearly to 0
    width: float = 0.5  # of tanh, in standard deviations of an entry
    # ---- codebooks
    code_list_rows: int = 48  # near rows, each a query for the others
    code_lists: int = 32  # of a step
    code_steps: int = 300
    code_rate: float = 0.01  # first step, as a share of the errors' root mean square; it falls linearly to 0


DEFAULTS = Defaults()


def _with_norms(z: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], Slopes]]:
    """RaBitQ: 2 <z_i, y_j> - |z_j|^2 with y_j = b_j |z_j|^2 / <z_j, b_j>; a rotation does not change the norm."""
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
    "sign": lambda z, b: (b @ b.mT, lambda W: (np.zeros_like(z), (W + W.mT) @ b)),  # the order of Hamming distances
    "sign-float": lambda z, b: (z @ b.mT, lambda W: (W @ b, W.mT @ z)),  # queries in floats against bits
    "rabitq": _with_norms,
}


def turned_for_order(X: np.ndarray, R: np.ndarray, codec: str, generator: np.random.Generator) -> np.ndarray:
    """R (d, d) rotated so that scores by codes of X R follow the distances among near vectors of X (n, d)."""
    drawn, places = np.unique(generator.integers(len(X), size=DEFAULTS.steps * DEFAULTS.lists), return_inverse=True)
    near = nearest(X, X[drawn], min(64, len(X)))[1]
    steps = iter(places.reshape(DEFAULTS.steps, DEFAULTS.lists))
    spread = np.float32(np.sqrt(np.square(X).mean(dtype=np.float64)) or 1)

    def gradient(R: np.ndarray) -> np.ndarray:
        return disagreement(X[near[next(steps)]] / spread, R, SCORES[codec])[1]

    return descend(R, gradient, DEFAULTS.steps, DEFAULTS.rate)


def disagreement(
    rows: np.ndarray,  # (g, k, d): lists of rows near each other
    R: np.ndarray,  # (d, d)
    scores: Scores,
    codes: Callable[[np.ndarray], np.ndarray] = np.sign,
) -> tuple[float, np.ndarray]:
    """The negative mean correlation of scores and minus squared distances, and its gradient by R (d, d).

    The slope of tanh replaces that of `codes`; for codes=np.tanh the gradient is exact.
    """
    z = rows @ R
    soft = np.tanh(z / DEFAULTS.width)
    found, slopes = scores(z, codes(z / DEFAULTS.width))
    value, W = correlation(found, -distances(rows))
    by_z, by_b = slopes(-W)
    by_z = by_z + by_b * (1 - np.square(soft)) / DEFAULTS.width
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
        length = np.sqrt(np.square(centred).sum(axis=2, keepdims=True))
        length[length < _CONSTANT] = np.inf  # equal values have no correlation and no slope
        return centred / length, length

    (s, length), (t, _) = unit(s), unit(t)
    each = (s * t).sum(axis=2, keepdims=True)
    return float(each.mean()), (t - each * s) / (length * each.size)


def descend(R: np.ndarray, gradient: Callable[[np.ndarray], np.ndarray], steps: int, rate: float) -> np.ndarray:
    """R (d, d) float32 after steps R <- R (I - a S), S skew, at rates that fall linearly from `rate` to 0.
    `gradient(R)` (d, d) may be of other vectors at every step. S = R^T G - G^T R by its running mean and size, so that
    the spectral norm of a S is about `rate` at first. Newton and Schulz's product keeps R on O(d)."""
    d = len(R)
    mean, square, eps = np.zeros((d, d), np.float32), 0.0, float(np.finfo(np.float32).tiny)
    for step in range(steps):
        half = R.T @ gradient(R)
        skew = half - half.T
        mean = _MOMENTUM * mean + (1 - _MOMENTUM) * skew
        square = _MEMORY * square + (1 - _MEMORY) * float(np.square(skew).mean())
        size = np.sqrt(square / (1 - _MEMORY ** (step + 1))) + eps
        length = rate * (1 - step / steps) / (2 * np.sqrt(d) * (1 - _MOMENTUM ** (step + 1)) * size)
        R = newton_schulz(R - R @ (np.float32(length) * mean))
    return nearest_orthogonal(R.astype(np.float64)).astype(np.float32)


def ordered(
    codebooks: np.ndarray,
    codes: np.ndarray,
    X: np.ndarray,
    centres: np.ndarray | None,
    inner: bool,
    generator: np.random.Generator,
) -> np.ndarray:
    """Codebooks (splits, M, K, w) by which distances from vectors X (n, splits w) to near vectors, `inner`: inner
    products, rank better.

    A vector is known by its codes (n, splits M), and by the centre (n, splits w) that is added to their sums where
    there are centres. The loss is `codebook_disagreement` of lists of near vectors drawn at random, the steps Adam's.
    """
    middle = X.mean(axis=0, dtype=np.float64).astype(np.float32)  # far from 0, squares lose the digits that rank
    middle = np.zeros_like(middle) if inner else middle  # inner products depend on the mean
    spread = np.float32(np.sqrt(np.square(X - middle, dtype=np.float64).mean()) or 1)
    X, books = (X - middle) / spread, codebooks / spread
    carried, added = (middle / spread).reshape(len(books), 1, -1), np.zeros((len(X), 1), np.float32)
    if centres is not None:  # else the first codebook carries the mean
        carried, added = np.zeros_like(carried), (centres - middle) / spread
    books[:, 0] -= carried
    some = slice(_JUDGED)
    error = np.square(X[some] - added[some] - _decoded(codes[some], books)).mean(dtype=np.float64)
    steps, lists = DEFAULTS.code_steps, DEFAULTS.code_lists
    drawn, places = np.unique(generator.integers(len(X), size=steps * lists), return_inverse=True)
    near = nearest(X, X[drawn], min(DEFAULTS.code_list_rows, len(X)))[1]
    mean, square = np.zeros_like(books), np.zeros_like(books)
    for step, chosen in enumerate(places.reshape(steps, lists)):
        rows = near[chosen]
        own = codes[rows.ravel()]
        y = (_decoded(own, books) + added[rows.ravel()]).reshape(*rows.shape, -1)
        slope = _slope(books.shape, own, codebook_disagreement(X[rows], y, inner)[1].reshape(rows.size, -1))
        mean += (1 - _MOMENTUM) * (slope - mean)
        square += (1 - _MEMORY) * (np.square(slope) - square)
        size = np.sqrt(square / (1 - _MEMORY ** (step + 1))) + _LEAST
        rate = DEFAULTS.code_rate * np.sqrt(error) * (1 - step / steps) / (1 - _MOMENTUM ** (step + 1))
        books = books - np.float32(rate) * mean / size
    books[:, 0] += carried
    return books * spread


def codebook_disagreement(x: np.ndarray, y: np.ndarray, inner: bool) -> tuple[float, np.ndarray]:
    """The negative mean correlation between distances |x_i - y_j|^2 and |x_i - x_j|^2, `inner`: x_i . y_j and x_i .
    x_j, within lists of vectors x (g, k, d) that are searched as y (g, k, d), and its slope by y."""
    if inner:
        value, W = correlation(x @ y.mT, x @ x.mT)
        return -value, -W.mT @ x
    scores = 2 * x @ y.mT - np.square(y).sum(axis=2)[:, None]  # without the term of x_i alone, which does not rank
    value, W = correlation(scores, -distances(x))
    return -value, 2 * (y * W.sum(axis=1)[:, :, None] - W.mT @ x)


def _decoded(codes: np.ndarray, codebooks: np.ndarray) -> np.ndarray:
    parts = zip(np.split(codes, len(codebooks), axis=1), codebooks, strict=True)
    return np.hstack([decode(own, books) for own, books in parts])


def _slope(shape: tuple[int, ...], codes: np.ndarray, by_rows: np.ndarray) -> np.ndarray:
    """The slope by codebooks of this shape, from that by the decoded rows (b, splits w): float32."""
    splits, M, K, w = shape
    parts = zip(np.split(codes, splits, axis=1), np.split(by_rows, splits, axis=1), strict=True)
    return np.stack([ClusterSums(M, K, w).update(rows, own).sums for own, rows in parts]).astype(np.float32)
