"""Sets of answers: matching, joining, counting; and resampling for the dimension, raters' weights and intervals."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import binom

from nearkin._fields import counted
from nearkin._types import ArrayLike, Record
from nearkin.data.comparisons import as_comparisons
from nearkin.data.comparisons.votes import count_contradictions, number_questions, question_folds
from nearkin.metrics.ordinal import satisfied, triplet_error
from nearkin.metrics.trial import Trial
from nearkin.records import Answers, Comparisons

N_FOLDS = 4


@dataclass(frozen=True)
class Defaults:
    """Numbers of cross-validation by questions (2026-11, `python -m benchmarks ordinal`, without a recorded table)."""

    dimensions: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)  # tried for n_components="auto"


DEFAULTS = Defaults()


def choose_dimension(
    comparisons: Comparisons, embed: Callable[[Comparisons, int], np.ndarray], rng: np.random.Generator
) -> tuple[int, Record]:
    """The smallest dimension that none leads by a standard error in its held-out answers, paired by question, and the
    curve {"dimension": [...], "error": [...], "standard_error": [...], "chance": e}; a standard error is that of the
    difference from the best. Coin flips have an error of e or more in every dimension tried, 19 times of 20: e is their
    1 % quantile for one dimension (16 of 260 sets of 120 to 1,500 flips were below it in some dimension).

    `embed(train, p)` returns points (n, p). Dimensions are tried upwards until two in a row are no better than the
    best; answers to one question are held out together. ValueError for fewer than 8 comparisons or 4 questions.
    """
    m = len(comparisons)
    if m < 2 * N_FOLDS:
        raise ValueError(
            f"n_components is 'auto' and there are {counted(m, 'comparison')}; cross-validation needs "
            f"{2 * N_FOLDS}, give n_components as a number"
        )
    fold = question_folds(comparisons, N_FOLDS, rng, "n_components is 'auto' (give it as a number)")
    limit = max(1, comparisons.n_objects - 2)  # n points satisfy any answers in n - 2 dimensions
    number, trial = number_questions(comparisons), Trial[int]()
    votes = np.ones(m) if comparisons.weights is None else comparisons.weights
    shares = votes / votes.sum() * (number.max() + 1)  # of an answer; the mean over questions is that over answers
    for p in [p for p in DEFAULTS.dimensions if p <= limit]:
        right = _held_out_right(comparisons, fold, lambda train, p=p: embed(train, p))
        trial.add(p, np.bincount(number, shares * right), p)
        # two dimensions in a row that are no better than the best end the search
        if list(trial.values)[::-1].index(trial.best()) >= 2:
            break
    chosen, table = trial.winner(), trial.table()
    return chosen, {
        "dimension": [record["candidate"] for record in table],
        "error": [1 - record["value"] for record in table],
        "standard_error": [record["error"] for record in table],
        "chance": float(binom.ppf(0.01, m, 0.5)) / m,
    }


def _held_out_right(
    comparisons: Comparisons, fold: np.ndarray, embed: Callable[[Comparisons], np.ndarray]
) -> np.ndarray:
    """Whether points learnt from the other folds satisfy each answer (m,)."""
    right = np.empty(len(comparisons), bool)
    for number in range(N_FOLDS):
        out = fold == number
        right[out] = satisfied(embed(comparisons.take(~out)), comparisons.take(out))
    return right


def rater_reliability(
    comparisons: Comparisons, embed: Callable[[Comparisons], np.ndarray], rng: np.random.Generator
) -> dict[object, float]:
    """Rater -> weight, the best one's 1: the log odds log((1 - e) / e) of a right answer (Nitzan & Paroush 1982).

    `embed(train)` gives points (n, p). The error e is the share of a rater's answers that points learnt from other
    questions violate; an error of a half or more weighs `smallest`.
    """
    names, right, total = rater_agreement(comparisons, embed, rng)
    error = (total - right + 1) / (total + 2)  # one right and one wrong answer are added to each rater's
    odds = np.log((1 - error) / error)
    best = odds.max()
    # a rater whose answers are no better than chance has the least weight; weights must be positive
    weights = np.clip(odds / best, 1e-3, 1.0) if best > 0 else np.ones(len(names))
    return dict(zip(names.tolist(), weights.tolist(), strict=True))


def rater_agreement(
    comparisons: Comparisons, embed: Callable[[Comparisons], np.ndarray], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Raters (r,), the votes of each that points learnt from all answers to other questions satisfy, and all votes."""
    if comparisons.annotators is None:
        raise ValueError("raters is 'estimated' and the comparisons name no annotators; use raters='equal'")
    names, who = np.unique(comparisons.annotators, return_inverse=True)
    fold = question_folds(comparisons, N_FOLDS, rng, "raters is 'estimated'")
    right = _held_out_right(comparisons, fold, embed)
    votes = np.ones(len(who)) if comparisons.weights is None else comparisons.weights
    return names, np.bincount(who, votes * right), np.bincount(who, votes)


def reversed_raters(
    comparisons: Comparisons, embed: Callable[[Comparisons], np.ndarray], rng: np.random.Generator
) -> dict[object, float]:
    """Rater -> agreement with the others, of those who answer the opposite: by chance so few agree in one of 1,000
    studies of as many raters. With fewer than three raters nobody is named."""
    names, right, total = rater_agreement(comparisons, embed, rng)
    chance = binom.cdf(np.floor(right), np.ceil(total), 0.5)
    found = names[(chance < 1e-3 / len(names)) & (len(names) >= 3) & (right.sum() > total.sum() / 2)]
    raters = np.asarray(comparisons.annotators)
    theirs = np.isin(raters, found)
    if not theirs.any():
        return {}
    X = embed(comparisons.take(~theirs))
    return {name: 1 - triplet_error(X, comparisons.take(raters == name)) for name in found.tolist()}


def weigh(comparisons: Comparisons, reliability: dict[object, float]) -> np.ndarray:
    """(m,) the answers' weights times their raters' weights."""
    names, who = np.unique(np.asarray(comparisons.annotators), return_inverse=True)
    weights = np.array([reliability[name] for name in names.tolist()])[who]
    return weights if comparisons.weights is None else weights * comparisons.weights


def error_interval(X: ArrayLike, comparisons: Comparisons) -> tuple[float, float]:
    """The interval of `metrics.triplet_error(X, comparisons)` that holds 90 % of 1,000 bootstrap draws of questions,
    each with all its answers. X must not have been fitted to the comparisons. ValueError if there are none."""
    if len(comparisons) == 0:
        raise ValueError("comparisons is empty; at least one is needed")
    number = number_questions(comparisons)
    weights = np.ones(len(number)) if comparisons.weights is None else comparisons.weights.astype(np.float64)
    wrong = np.bincount(number, weights * ~satisfied(X, comparisons))
    total = np.bincount(number, weights)
    rng, errors = np.random.default_rng(0), np.empty(1000)
    for draw in range(len(errors)):
        times = _times(len(total), rng)
        errors[draw] = times @ wrong / (times @ total)
    low, high = np.quantile(errors, [0.05, 0.95])
    return float(low), float(high)


def bootstrap_embeddings(
    X: np.ndarray,  # (n, p)
    comparisons: Comparisons,
    embed: Callable[[Comparisons], np.ndarray],
    n_draws: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """(n_draws, n, p) embeddings of resampled questions, aligned with X, where an object without an answer stays."""
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
    """Y (n, p) rotated or reflected, scaled and shifted so that its `rows` are nearest to the same rows of X
    (Procrustes)."""
    Y, X = Y.astype(np.float64), X.astype(np.float64)
    y, x = Y[rows].mean(axis=0), X[rows].mean(axis=0)
    turn, overlap = orthogonal_procrustes(Y[rows] - y, X[rows] - x)
    scale = overlap / max(float(((Y[rows] - y) ** 2).sum()), np.finfo(float).tiny)
    return scale * (Y - y) @ turn + x


def _times(size: int, rng: np.random.Generator) -> np.ndarray:
    """(size,) how often each of `size` items occurs in `size` draws with replacement."""
    return np.bincount(rng.integers(0, size, size), minlength=size).astype(np.float64)


def match(comparisons: Answers, objects: np.ndarray, y: object = None) -> Comparisons:
    """`comparisons` with indices into `objects`, turned round by responses y.

    An integer array is taken to index `objects` already.
    """
    named, comparisons = isinstance(comparisons, Comparisons), as_comparisons(comparisons, y)
    if not named:
        if comparisons.n_objects > len(objects):
            raise ValueError(
                f"comparisons has the index {comparisons.n_objects - 1}; the embedding has "
                f"{counted(len(objects), 'object')}, 0 ... {len(objects) - 1}"
            )
        if objects.dtype.kind in "iu" and not np.array_equal(objects, np.arange(len(objects))):
            raise ValueError(
                f"comparisons is an array, and the objects are numbers such as {objects[0]}, not 0, 1, 2, ...; pass "
                "nk.data.comparisons_from_names(array), or of places nk.Comparisons(array, model.objects_)"
            )
        return replace(comparisons, objects=objects)
    if comparisons.objects is objects or np.array_equal(comparisons.objects, objects):
        return comparisons
    used = np.unique(comparisons.indices)
    place = {name: index for index, name in enumerate(objects.tolist())}
    names = comparisons.objects[used].tolist()
    unknown = [name for name in names if name not in place]
    if unknown:
        raise ValueError(
            f"comparisons has {counted(len(unknown), 'object')} not in the embedding, the first is {unknown[0]!r}; "
            "train on such comparisons with partial_fit"
        )
    table = np.zeros(comparisons.n_objects, np.uint32)
    table[used] = [place[name] for name in names]
    return replace(comparisons, indices=table[comparisons.indices], objects=objects)


def join(first: Comparisons, second: Comparisons) -> Comparisons:
    """Both sets of answers; objects of `first` keep their rows, new ones follow. Mixed kinds all become quadruplets."""
    objects, moved = first.objects, second.indices
    if len({found.dtype.kind in "iuf" for found in (objects, second.objects)}) > 1:
        raise TypeError(f"objects are {objects.dtype} and in the new comparisons {second.objects.dtype}; use one type")
    if not np.array_equal(objects, second.objects):
        names = dict.fromkeys([*objects.tolist(), *second.objects.tolist()])
        fresh = list(names)[len(objects) :]
        objects = np.concatenate([objects, np.asarray(fresh)]) if fresh else objects
        place = dict(zip(names, range(len(names)), strict=True))
        moved = np.array([place[name] for name in second.objects.tolist()], np.uint32)[second.indices]
    second = replace(second, indices=moved, objects=objects)
    first = replace(first, objects=objects)
    mixed = first.n_columns != second.n_columns
    rows = [part.quadruplets() if mixed else part.indices for part in (first, second)]
    weights = None
    if first.weights is not None or second.weights is not None:
        weights = np.concatenate([np.ones(len(c)) if c.weights is None else c.weights for c in (first, second)])
    events = None
    if first.events is not None or second.events is not None:  # a row without an event is a separate one
        numbers = [np.arange(len(c)) if c.events is None else c.events for c in (first, second)]
        numbers = [np.unique(one, return_inverse=True)[1] for one in numbers]
        events = np.concatenate([numbers[0], numbers[1] + len(first)])
    n_dropped = first.n_dropped + second.n_dropped
    return Comparisons(np.concatenate(rows), objects, weights=weights, n_dropped=n_dropped, events=events)


def count_per_object(comparisons: Comparisons) -> np.ndarray:
    """(n,) the number of comparisons that each object takes part in."""
    rows = np.sort(comparisons.indices, axis=1)
    first = np.ones(rows.shape, bool)  # an object may occur in both pairs of a quadruplet: count the row once
    first[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return np.bincount(rows[first], minlength=comparisons.n_objects)


def group_objects(comparisons: Comparisons) -> np.ndarray:
    """(n,) the number of each object's connected component: no chain of pairs connects two groups, so their relative
    position is arbitrary. An object without comparisons is a group by itself."""
    i, j, l, k = comparisons.quadruplets().T.astype(np.int64)  # noqa: E741
    rows, columns = np.concatenate([i, l]), np.concatenate([j, k])
    n = comparisons.n_objects
    graph = coo_array((np.ones(len(rows), np.int32), (rows, columns)), shape=(n, n)).tocsr()
    return connected_components(graph, directed=False)[1]


def describe(comparisons: Comparisons, few: int) -> Record:
    """Counts and, in "notes", limits of an embedding; with fewer than `few` comparisons an object's place is
    uncertain."""
    counts, groups = count_per_object(comparisons), group_objects(comparisons)
    used = counts > 0
    n_groups = len(np.unique(groups[used]))
    names = comparisons.objects
    report: Record = {
        "n_objects": comparisons.n_objects,
        "n_comparisons": len(comparisons),
        "n_dropped": comparisons.n_dropped,
        "n_contradictions": count_contradictions(comparisons),
        "n_groups": n_groups,
        "groups": groups,
        "comparisons_per_object": counts,
        "unplaced": names[~used],
        "few": names[used & (counts < few)],
    }
    unplaced, uncertain, contradictions = len(report["unplaced"]), len(report["few"]), report["n_contradictions"]
    limits = [
        (
            n_groups > 1,
            f"{n_groups} groups of objects are not connected by any comparison: their relative place is arbitrary",
        ),
        (unplaced, f"{counted(unplaced, 'object has', 'objects have')} no comparison: put at the origin"),
        (
            uncertain,
            f"{counted(uncertain, 'object has', 'objects have')} fewer than {few:,} comparisons: the place is hardly "
            "determined",
        ),
        (contradictions, f"{counted(contradictions, 'question was', 'questions were')} answered both ways"),
    ]
    report["notes"] = [text for holds, text in limits if holds]
    return report
