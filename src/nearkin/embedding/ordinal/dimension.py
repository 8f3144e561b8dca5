"""How many dimensions: cross-validated error against dimension."""

from collections.abc import Callable

import numpy as np

from nearkin._types import Record
from nearkin.data.comparisons.votes import question_folds
from nearkin.metrics.ordinal import triplet_error
from nearkin.records import Comparisons

CANDIDATES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)


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
