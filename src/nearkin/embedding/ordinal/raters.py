"""How far each rater can be trusted: by answers that the embedding has not learnt from."""

from collections.abc import Callable

import numpy as np

from nearkin.data.comparisons.votes import question_folds
from nearkin.metrics.ordinal import satisfied
from nearkin.records import Comparisons

SMALLEST = 1e-3  # the weight of a rater whose answers are no better than a coin; 0 is no weight


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
