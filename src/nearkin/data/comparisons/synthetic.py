"""Comparisons made from what is known: from vectors, from labels, and with answers flipped."""

from dataclasses import replace

import numpy as np

from nearkin import _check
from nearkin._random import numpy_generator
from nearkin._types import ArrayLike, Seed
from nearkin.data.comparisons.responses import orient
from nearkin.records import Comparisons


def comparisons_from_vectors(
    X: ArrayLike, n_comparisons: int, *, quadruplets: bool = False, noise: float = 0.0, random_state: Seed = None
) -> Comparisons:
    """Random comparisons of the rows of X (n, d), answered by their Euclidean distances; `noise` is the share flipped.

    Questions are drawn with replacement among those with distinct objects (SVRG-SBB section 5.1). n must be 3, or 4 for
    quadruplets.
    """
    X = _check.check_vectors(X, min_rows=4 if quadruplets else 3)
    _check.check_integer(n_comparisons, "n_comparisons", low=1)
    rng = numpy_generator(random_state)
    rows = distinct_rows(len(X), n_comparisons, 4 if quadruplets else 3, rng)
    near, far = (rows[:, :2], rows[:, 2:]) if quadruplets else (rows[:, [0, 1]], rows[:, [0, 2]])
    wrong = _squared(X, near) > _squared(X, far)
    rows = orient(rows, np.where(wrong, -1, 1))
    return flip_answers(Comparisons(rows, np.arange(len(X))), noise, random_state=rng)


def comparisons_from_labels(
    y: ArrayLike, n_comparisons: int, *, noise: float = 0.0, random_state: Seed = None
) -> Comparisons:
    """Random triplets (i, j, k) with i and j of one class and k of another (SVRG-SBB section 5.4).

    y (n,) labels of any type; objects are 0 ... n - 1. `noise` is the share with j and k exchanged. Raises ValueError
    if there is one class only, or no class has two objects.
    """
    y = np.asarray(y)
    _check.check_integer(n_comparisons, "n_comparisons", low=1)
    if y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}; it must be 1-D, one label per object")
    _, label, size = np.unique(y, return_inverse=True, return_counts=True)
    able = np.flatnonzero(size[label] >= 2)
    if len(size) < 2 or len(able) == 0:
        raise ValueError(f"y has {len(size)} classes, of {size.tolist()} objects; two classes are needed, one of two")
    rng = numpy_generator(random_state)
    order = np.argsort(label, kind="stable")
    starts = np.concatenate([[0], np.cumsum(size)])
    rank = np.empty(len(y), np.int64)  # of an object within its class
    rank[order] = np.arange(len(y)) - starts[label[order]]
    i = rng.choice(able, n_comparisons)
    other = (rank[i] + rng.integers(1, size[label[i]])) % size[label[i]]
    j = order[starts[label[i]] + other]
    far = rng.integers(0, len(y) - size[label[i]])  # counts the objects outside the class, in `order`
    k = order[np.where(far < starts[label[i]], far, far + size[label[i]])]
    return flip_answers(Comparisons(np.stack([i, j, k], axis=1), np.arange(len(y))), noise, random_state=rng)


def flip_answers(comparisons: Comparisons, share: float, *, random_state: Seed = None) -> Comparisons:
    """`comparisons` with exactly a `share` of the answers, chosen at random, turned round."""
    _check.check_instance(comparisons, "comparisons", Comparisons)
    _check.check_real(share, "share", low=0.0, high=1.0)
    rng = numpy_generator(random_state)
    responses = np.ones(len(comparisons), np.int64)
    responses[rng.permutation(len(comparisons))[: round(share * len(comparisons))]] = -1
    return replace(comparisons, indices=orient(comparisons.indices, responses))


def distinct_rows(n: int, count: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """(count, width) random indices below n, distinct within each row, drawn one column at a time."""
    rows = np.empty((count, width), np.int64)
    for column in range(width):
        draw = rng.integers(0, n - column, count)
        before = np.sort(rows[:, :column], axis=1)
        for place in range(column):  # the draw counts the objects not yet in the row
            draw += draw >= before[:, place]
        rows[:, column] = draw
    return rows


def _squared(X: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Squared distances of pairs (m, 2), in pieces that fit the cache."""
    out = np.empty(len(pairs))
    for start in range(0, len(pairs), 65536):
        part = pairs[start : start + 65536]
        difference = X[part[:, 0]].astype(np.float64) - X[part[:, 1]]
        out[start : start + 65536] = np.einsum("md,md->m", difference, difference)
    return out
