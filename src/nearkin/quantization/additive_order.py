"""Codebooks trained for the order of the rows that an index holds, once it is known which code each of them has.

Where the rows searched are those learned from, codebooks need not serve others: with the codes as they are, what they
stand for is moved by gradients until distances to near rows, or inner products with them, rank as they truly do. Of
other rows they keep no more neighbours, and often fewer.
"""

import numpy as np

from nearkin._faiss import nearest_rows
from nearkin.quantization.additive import decode
from nearkin.quantization.codebooks import ClusterSums
from nearkin.quantization.order import correlation, distances

_LIST = 48  # rows near each other, each of which asks for the others
_LISTS = 32  # of a step
_STEPS = 300
_RATE = 0.01  # of the first step, in errors' root mean square; it falls linearly to 0
_MOMENTUM, _MEMORY, _LEAST = 0.9, 0.99, 1e-12  # Adam's
_JUDGED = 4_096  # rows that tell the size of errors


def ordered(
    codebooks: np.ndarray,
    codes: np.ndarray,
    X: np.ndarray,
    centres: np.ndarray | None,
    inner: bool,
    generator: np.random.Generator,
) -> np.ndarray:
    """Codebooks (splits, M, K, w) by which distances from rows X (n, splits w) to near rows, `inner`: inner products,
    rank more as they should.

    A row is known by its codes (n, splits M), and by the centre (n, splits w) that is added to their sums where there
    are centres. The loss is `disagreement` of lists of near rows drawn at random, the steps Adam's.
    """
    middle = X.mean(axis=0, dtype=np.float64).astype(np.float32)  # far from 0, squares have no digits left for order
    middle = np.zeros_like(middle) if inner else middle  # which inner products count
    spread = np.float32(np.sqrt(np.square(X - middle, dtype=np.float64).mean()) or 1)
    X, books = (X - middle) / spread, codebooks / spread
    carried, added = (middle / spread).reshape(len(books), 1, -1), np.zeros((len(X), 1), np.float32)
    if centres is not None:  # else the first codebook carries the mean
        carried, added = np.zeros_like(carried), (centres - middle) / spread
    books[:, 0] -= carried
    some = slice(_JUDGED)
    error = np.square(X[some] - added[some] - _decoded(codes[some], books)).mean(dtype=np.float64)
    drawn, places = np.unique(generator.integers(len(X), size=_STEPS * _LISTS), return_inverse=True)
    near = nearest_rows(X, X[drawn], min(_LIST, len(X)))
    mean, square = np.zeros_like(books), np.zeros_like(books)
    for step, lists in enumerate(places.reshape(_STEPS, _LISTS)):
        rows = near[lists]
        own = codes[rows.ravel()]
        y = (_decoded(own, books) + added[rows.ravel()]).reshape(*rows.shape, -1)
        slope = _slope(books.shape, own, disagreement(X[rows], y, inner)[1].reshape(rows.size, -1))
        mean += (1 - _MOMENTUM) * (slope - mean)
        square += (1 - _MEMORY) * (np.square(slope) - square)
        size = np.sqrt(square / (1 - _MEMORY ** (step + 1))) + _LEAST
        rate = _RATE * np.sqrt(error) * (1 - step / _STEPS) / (1 - _MOMENTUM ** (step + 1))
        books = books - np.float32(rate) * mean / size
    books[:, 0] += carried
    return books * spread


def disagreement(x: np.ndarray, y: np.ndarray, inner: bool) -> tuple[float, np.ndarray]:
    """Less the mean correlation between distances |x_i - y_j|^2 and |x_i - x_j|^2, `inner`: x_i . y_j and x_i . x_j,
    within lists of rows x (g, k, d) that are searched as y (g, k, d), and its slope by y."""
    if inner:
        value, W = correlation(x @ y.mT, x @ x.mT)
        return -value, -W.mT @ x
    scores = 2 * x @ y.mT - np.square(y).sum(axis=2)[:, None]  # less a term of x_i alone, which ranks nothing
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
