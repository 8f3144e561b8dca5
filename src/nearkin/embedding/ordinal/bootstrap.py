"""How sure is it? Intervals for the error and clouds for the places, by drawing the questions again."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.linalg import orthogonal_procrustes

from nearkin import _check
from nearkin._random import numpy_generator
from nearkin._types import ArrayLike, Seed
from nearkin.data.comparisons.votes import number_questions
from nearkin.metrics.ordinal import satisfied
from nearkin.records import Comparisons


def error_interval(
    X: ArrayLike, comparisons: Comparisons, *, level: float = 0.9, n_draws: int = 1000, random_state: Seed = 0
) -> tuple[float, float]:
    """The interval of `metrics.triplet_error(X, comparisons)` that holds a share `level` of bootstrap draws.

    Questions are drawn with replacement, each with all its answers: answers to one question err together. Give
    comparisons that X has not learnt from. ValueError if there are none.
    """
    _check.check_real(level, "level", low=0.0, high=1.0)
    if len(comparisons) == 0:
        raise ValueError("comparisons is empty; at least one is needed")
    number = number_questions(comparisons)
    weights = np.ones(len(number)) if comparisons.weights is None else comparisons.weights.astype(np.float64)
    wrong = np.bincount(number, weights * ~satisfied(X, comparisons))
    total = np.bincount(number, weights)
    rng = numpy_generator(random_state)
    errors = np.empty(n_draws)
    for draw in range(n_draws):
        times = _times(len(total), rng)
        errors[draw] = times @ wrong / (times @ total)
    low, high = np.quantile(errors, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bootstrap_embeddings(
    X: np.ndarray,  # (n, p)
    comparisons: Comparisons,
    embed: Callable[[Comparisons], np.ndarray],
    n_draws: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """(n_draws, n, p) embeddings `embed(resampled)` of questions drawn with replacement, aligned with X.

    An object without an answer in a draw stays where X has it.
    """
    number = number_questions(comparisons)
    size = int(number.max()) + 1
    weights = np.ones(len(number)) if comparisons.weights is None else comparisons.weights
    draws = np.empty((n_draws, *X.shape))
    for draw in range(n_draws):
        times = _times(size, rng)[number]
        drawn = times > 0
        answers = replace(comparisons, weights=weights * np.maximum(times, 1)).take(drawn)
        used = np.isin(np.arange(len(X)), answers.indices)
        draws[draw] = np.where(used[:, None], align(embed(answers), X, used), X)
    return draws


def align(Y: np.ndarray, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Y (n, p) turned or mirrored, scaled and shifted so that its `rows` come nearest to those of X (Procrustes)."""
    Y, X = Y.astype(np.float64), X.astype(np.float64)
    y, x = Y[rows].mean(axis=0), X[rows].mean(axis=0)
    turn, overlap = orthogonal_procrustes(Y[rows] - y, X[rows] - x)
    scale = overlap / max(float(((Y[rows] - y) ** 2).sum()), np.finfo(float).tiny)
    return scale * (Y - y) @ turn + x


def _times(size: int, rng: np.random.Generator) -> np.ndarray:
    """(size,) how often each of `size` things comes in as many draws with replacement."""
    return np.bincount(rng.integers(0, size, size), minlength=size).astype(np.float64)
