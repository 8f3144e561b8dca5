"""How far each rater can be trusted: by answers that the embedding has not learnt from."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nearkin.data.comparison_split import question_folds
from nearkin.metrics.ordinal import satisfied
from nearkin.records import Comparisons

SMALLEST = 1e-3  # the weight of a rater whose answers are no better than a coin; 0 is no weight


def rater_reliability(
    comparisons: Comparisons,
    embed: Callable[[Comparisons], np.ndarray],
    rng: np.random.Generator,
    *,
    n_folds: int = 4,
) -> dict[Any, float]:
    """Rater -> weight, the best one's 1.

    `embed(train)` gives points (n, p). Every question is held out once with all its answers, and a rater's error e is
    the share of their answers that points learnt from the other questions violate, with one right and one wrong answer
    added. The weight is the log odds log((1 - e) / e) of an answer being right, by which independent votes are combined
    best (Nitzan & Paroush 1982); errors of a half and more weigh `SMALLEST`. ValueError if nobody is named, and if
    there are fewer questions than folds.
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
    error = (np.bincount(who, votes * ~right) + 1) / (np.bincount(who, votes) + 2)
    odds = np.log((1 - error) / error)
    best = odds.max()
    weights = np.clip(odds / best, SMALLEST, 1.0) if best > 0 else np.ones(len(names))
    return dict(zip(names.tolist(), weights.tolist(), strict=True))


def weigh(comparisons: Comparisons, reliability: dict[Any, float]) -> np.ndarray:
    """(m,) the answers' weights times those of their raters."""
    names, who = np.unique(np.asarray(comparisons.annotators), return_inverse=True)
    weights = np.array([reliability[name] for name in names.tolist()])[who]
    return weights if comparisons.weights is None else weights * comparisons.weights
