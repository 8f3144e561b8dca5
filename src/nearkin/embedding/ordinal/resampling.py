"""What held-out and resampled answers decide: the dimension, the weights of raters, intervals of errors and places."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.linalg import orthogonal_procrustes

from nearkin import _check
from nearkin._random import numpy_generator
from nearkin._types import ArrayLike, Record, Seed
from nearkin.data.comparisons.votes import number_questions, question_folds
from nearkin.metrics.ordinal import satisfied, triplet_error
from nearkin.records import Comparisons

CANDIDATES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
SMALLEST = 1e-3  # the weight of a rater whose answers are no better than chance; 0 is no weight


def choose_dimension(
    comparisons: Comparisons,
    embed: Callable[[Comparisons, int], np.ndarray],
    rng: np.random.Generator,
    *,
    candidates: tuple[int, ...] = CANDIDATES,
    n_folds: int = 4,
) -> tuple[int, Record]:
    """The smallest dimension whose held-out error is within one standard error of the best, and the curve.

    `embed(train, p)` returns points (n, p). Dimensions are tried upwards until two in a row are no better than the
    best. The answers to one question are held out together. The curve is {"dimension": [...], "error": [...],
    "standard_error": [...]}. Raises ValueError if there are fewer comparisons than 2 n_folds, or fewer questions than
    n_folds.
    """
    if len(comparisons) < 2 * n_folds:
        raise ValueError(
            f"n_components is 'auto' and there are {len(comparisons)} comparisons; cross-validation needs "
            f"{2 * n_folds}, give n_components as a number"
        )
    fold = question_folds(comparisons, n_folds, rng, "n_components is 'auto' (give it as a number)")
    limit = max(1, comparisons.n_objects - 2)  # n points satisfy any answers in n - 2 dimensions
    curve: dict[str, list] = {"dimension": [], "error": [], "standard_error": []}
    for p in [p for p in candidates if p <= limit]:
        errors = [
            triplet_error(embed(comparisons.take(fold != f), p), comparisons.take(fold == f)) for f in range(n_folds)
        ]
        curve["dimension"].append(p)
        curve["error"].append(float(np.mean(errors)))
        curve["standard_error"].append(float(np.std(errors, ddof=1) / np.sqrt(n_folds)))
        if len(curve["error"]) - 1 - int(np.argmin(curve["error"])) >= 2:
            break
    best = int(np.argmin(curve["error"]))
    bound = curve["error"][best] + curve["standard_error"][best]
    chosen = next(p for p, error in zip(curve["dimension"], curve["error"], strict=True) if error <= bound)
    return chosen, curve


def rater_reliability(
    comparisons: Comparisons,
    embed: Callable[[Comparisons], np.ndarray],
    rng: np.random.Generator,
    *,
    n_folds: int = 4,
) -> dict[object, float]:
    """Rater -> weight, the best one's 1.

    `embed(train)` gives points (n, p). Every question is held out once with all its answers, and a rater's error e is
    the share of their answers that points learnt from the other questions violate, drawn to the mean of all (`shrunk`).
    The weight is the log odds log((1 - e) / e) of an answer being right, by which independent votes are combined best
    (Nitzan & Paroush 1982); errors of a half and more weigh `SMALLEST`. ValueError if nobody is named, and if there are
    fewer questions than folds.
    """
    if comparisons.annotators is None:
        raise ValueError("raters is 'estimated' and the comparisons name no annotators; use raters='equal'")
    names, who = np.unique(comparisons.annotators, return_inverse=True)
    fold = question_folds(comparisons, n_folds, rng, "raters is 'estimated'")
    right = np.empty(len(comparisons), bool)
    for number in range(n_folds):
        out = fold == number
        right[out] = satisfied(embed(comparisons.take(~out)), comparisons.take(out))
    votes = np.ones(len(who)) if comparisons.weights is None else comparisons.weights
    error = shrunk(np.bincount(who, votes * ~right), np.bincount(who, votes))
    odds = np.log((1 - error) / error)
    best = odds.max()
    weights = np.clip(odds / best, SMALLEST, 1.0) if best > 0 else np.ones(len(names))
    return dict(zip(names.tolist(), weights.tolist(), strict=True))


def shrunk(wrong: np.ndarray, total: np.ndarray) -> np.ndarray:
    """(r,) shares wrong / total, each drawn to their mean as far as chance alone may have moved it (empirical Bayes).

    With m the mean, a share differs from it by chance with variance m (1 - m) / total; what the shares differ by beyond
    this is the variance t between raters, and the share kept of a difference is t / (t + m (1 - m) / total). Where
    raters do not differ by more than chance, all get the mean. One right and one wrong answer are added to each.
    """
    share = (wrong + 1) / (total + 2)
    mean = float(np.average(share, weights=total))
    chance = mean * (1 - mean) / total
    between = max(0.0, float(np.average((share - mean) ** 2 - chance, weights=total)))
    return mean + between / (between + chance) * (share - mean)


def weigh(comparisons: Comparisons, reliability: dict[object, float]) -> np.ndarray:
    """(m,) the answers' weights times those of their raters."""
    names, who = np.unique(np.asarray(comparisons.annotators), return_inverse=True)
    weights = np.array([reliability[name] for name in names.tolist()])[who]
    return weights if comparisons.weights is None else weights * comparisons.weights


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
