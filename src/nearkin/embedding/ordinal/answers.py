"""Sets of answers: matching, joining, counting; and resampling for the dimension, raters' weights and intervals."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import stdtrit
from scipy.stats import binom

from nearkin._fields import counted
from nearkin._pairs import number_ids
from nearkin._types import ArrayLike, Record
from nearkin.data.comparisons import as_comparisons
from nearkin.data.comparisons.forms import turn
from nearkin.data.comparisons.votes import count_contradictions, held_out_parts, number_judgements
from nearkin.metrics.ordinal import satisfied, triplet_error
from nearkin.metrics.trial import Trial, paired_difference
from nearkin.records import Answers, Comparisons

N_FOLDS = 4
# tried for loss="auto", with their loss_parameter; `python -m benchmarks ordinal wrong` has their errors on seven sets
CANDIDATES: tuple[tuple[str, float | None], ...] = (("ste", None), ("ste", 0.1), ("t-ste", None))
ENOUGH = 5_000  # held-out comparisons that choose a loss: a difference of .01 is then two standard errors
Embed: TypeAlias = Callable[..., np.ndarray]
"""Points (n, p) that are learnt from answers, and other settings of the estimator by name."""


@dataclass(frozen=True)
class Defaults:
    """Numbers of cross-validation by questions (2026-11, `python -m benchmarks ordinal`, without a recorded table)."""

    dimensions: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)  # tried for n_components="auto"


DEFAULTS = Defaults()


def choose_dimension(comparisons: Comparisons, embed: Embed, rng: np.random.Generator) -> tuple[int, Record]:
    """The smallest dimension that none leads by a standard error in its held-out answers, paired by judgement, or the
    first if none beats chance; and the curve {"dimension": [...], "error": [...], "standard_error": [...], "chance":
    e}; a standard error is that of the difference from the best. Coin flips have an error of e or more in every
    dimension tried, 19 times of 20 at least: e is their .2 % quantile for one dimension, a flip a judgement (16 of 540
    sets of 120 to 1,500 flips were below it in some dimension; 47 were below the 1 % quantile).

    `embed(train, n_components=p)` returns points (n, p). Dimensions are tried upwards until two in a row are no better
    than the best; what comes from one judgement is held out together. ValueError for fewer than 8 comparisons or 4
    questions.
    """
    m = len(comparisons)
    if m < 2 * N_FOLDS:
        raise ValueError(
            f"n_components is 'auto' and there are {counted(m, 'comparison')}; cross-validation needs "
            f"{2 * N_FOLDS}, give n_components as a number"
        )
    folds, tested = judgement_folds(comparisons, rng, "n_components is 'auto' (give it as a number)")
    limit, trial = max(1, comparisons.n_objects - 2), Trial[int]()  # n points satisfy any answers in n - 2 dimensions
    for p in [p for p in DEFAULTS.dimensions if p <= limit]:
        trial.add(p, by_judgement(tested, _held_out_right(folds, partial(embed, n_components=p))), p)
        # two dimensions in a row that are no better than the best end the search
        if list(trial.values)[::-1].index(trial.best()) >= 2:
            break
    table, flips = trial.table(), n_judgements(tested)
    curve = {
        "dimension": [record["candidate"] for record in table],
        "error": [1 - record["value"] for record in table],
        "standard_error": [record["error"] for record in table],
        "chance": float(binom.ppf(0.002, flips, 0.5)) / flips,
    }
    return trial.winner() if min(curve["error"]) < curve["chance"] else curve["dimension"][0], curve


def choose_loss(comparisons: Comparisons, embed: Embed, rng: np.random.Generator) -> tuple[str, float | None]:
    """The first loss and parameter of `CANDIDATES` that none leads by a standard error in held-out answers, paired by
    judgement; STE if there are too few. `embed(train, loss=..., loss_parameter=...)` returns points (n, p). What comes
    from one judgement is held out together."""
    many = len(comparisons) >= 10 * ENOUGH  # then one fold of ten: which loss is best depends on the number
    try:
        folds, tested = judgement_folds(comparisons, rng, "loss is 'auto'", 10 if many else N_FOLDS)
    except ValueError:  # too few
        return CANDIDATES[0]
    if many:
        folds, tested = folds[:1], folds[0][1]
    trial = Trial[tuple[str, float | None]]()
    for place, (loss, parameter) in enumerate(CANDIDATES):
        right = _held_out_right(folds, partial(embed, loss=loss, loss_parameter=parameter))
        trial.add((loss, parameter), by_judgement(tested, right), place)
    return trial.winner()


def n_judgements(comparisons: Comparisons) -> int:
    """How many judgements the comparisons come from; one annotator's on the same question are one."""
    return int(number_judgements(comparisons, shared=False).max(initial=-1)) + 1


def by_judgement(comparisons: Comparisons, right: np.ndarray) -> np.ndarray:
    """A value for each judgement on a question: their mean is the mean of `right` (m,), weighted by votes, and their
    spread gives its standard error. They are jackknife pseudo-values to first order, as of a U-statistic where a
    comparison is of two ratings (Sen 1960)."""
    number, votes = number_judgements(comparisons), _votes(comparisons)
    share, size = np.average(right, weights=votes), int(number.max()) + 1
    moved = votes * (right - share) / votes.sum()
    alone = number[:, 0] == number[:, 1]
    return share + size * (
        np.bincount(number[:, 0], moved, size) + np.bincount(number[:, 1], np.where(alone, 0.0, moved), size)
    )


def _votes(comparisons: Comparisons) -> np.ndarray:
    return np.ones(len(comparisons)) if comparisons.weights is None else comparisons.weights.astype(np.float64)


Folds: TypeAlias = list[tuple[Comparisons, Comparisons]]
"""For each fold the comparisons to train on and to test."""


def judgement_folds(
    comparisons: Comparisons, rng: np.random.Generator, why: str, n_folds: int = N_FOLDS
) -> tuple[Folds, Comparisons]:
    """Folds of judgements on questions, and all that is tested; ValueError, beginning with `why`, for too few."""
    number = number_judgements(comparisons)
    size = int(number.max()) + 1
    fold = (rng.permutation(size) % n_folds)[number]
    parts = [held_out_parts(comparisons, fold == part, True) for part in range(n_folds)]
    if not all(len(train) and len(test) for train, test in parts):
        rated = (number[:, 0] != number[:, 1]).any()
        what, needed = (
            ("rated pair", f"{2 * n_folds} or more by one rater") if rated else ("different question", n_folds)
        )
        raise ValueError(f"{why}; there are {counted(size, what)}; cross-validation needs {needed}")
    folds = [(comparisons.take(train), comparisons.take(test)) for train, test in parts]
    return folds, comparisons.take(np.concatenate([test for _, test in parts]))


def _held_out_right(folds: Folds, embed: Embed) -> np.ndarray:
    """Whether points learnt from the other folds satisfy each answer that is tested, in the order of the folds."""
    return np.concatenate([satisfied(embed(train), test) for train, test in folds])


def rater_reliability(comparisons: Comparisons, embed: Embed, rng: np.random.Generator) -> dict[object, float]:
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
    comparisons: Comparisons, embed: Embed, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Raters (r,), the votes of each that points learnt from all answers to other questions satisfy, and all votes; a
    judgement of several comparisons is one vote."""
    if comparisons.annotators is None:
        raise ValueError("raters is 'estimated' and the comparisons name no annotators; use raters='equal'")
    names = np.unique(comparisons.annotators)
    folds, tested = judgement_folds(comparisons, rng, "raters is 'estimated'")
    who, number = np.searchsorted(names, np.asarray(tested.annotators)), number_judgements(tested, shared=False)[:, 0]
    votes = _votes(tested) / np.bincount(number)[number]
    right = votes * _held_out_right(folds, embed)
    return names, np.bincount(who, right, len(names)), np.bincount(who, votes, len(names))


def reversed_raters(comparisons: Comparisons, embed: Embed, rng: np.random.Generator) -> dict[object, float]:
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


def direction_notes(comparisons: Comparisons, embed: Embed, rng: np.random.Generator) -> list[str]:
    """A note if the held-out answers are predicted better with all answers turned round, by the 95 % interval of the
    paired difference: then a scale, or near and far, are probably read the wrong way.

    Of 120 sets of ratings that were read so, 119 had the note, of 240 sets of coin flips 7.
    """
    folds, tested = judgement_folds(replace(comparisons, events=None), rng, "the direction is tested")
    turned = [(_turned(train), _turned(test)) for train, test in folds]
    one, other = (by_judgement(tested, ~_held_out_right(way, embed)) for way in (folds, turned))
    if paired_difference(one, other).low <= 0:
        return []
    return [
        f"the answers are probably read in the wrong direction: turned round they are predicted with an error of "
        f"{other.mean():.3f}, not {one.mean():.3f}, in four folds; exchange the ends of the scale, or near and far"
    ]


def _turned(comparisons: Comparisons) -> Comparisons:
    return turn(comparisons, np.full(len(comparisons), -1))


def doubts(comparisons: Comparisons, embed: Embed, rng: np.random.Generator) -> tuple[dict[object, float], list[str]]:
    """`reversed_raters` and `direction_notes`; none of both where judgements are too few for folds."""
    try:
        raters = {} if comparisons.annotators is None else reversed_raters(comparisons, embed, rng)
        return raters, direction_notes(comparisons, embed, rng)
    except ValueError:
        return {}, []


def weigh(comparisons: Comparisons, reliability: dict[object, float]) -> np.ndarray:
    """(m,) the answers' weights times their raters' weights."""
    names, who = np.unique(np.asarray(comparisons.annotators), return_inverse=True)
    weights = np.array([reliability[name] for name in names.tolist()])[who]
    return weights if comparisons.weights is None else weights * comparisons.weights


def error_interval(X: ArrayLike, comparisons: Comparisons) -> tuple[float, float]:
    """The 90 % interval of `metrics.triplet_error(X, comparisons)` for answers to other questions: Wilson's, with
    Student's quantile and as many answers as have the standard error of the judgements' mean. X must not have been
    fitted to the comparisons. ValueError if there are none."""
    if len(comparisons) == 0:
        raise ValueError("comparisons is empty; at least one is needed")
    values = by_judgement(comparisons, ~satisfied(X, comparisons))
    error, rest = float(values.mean()), max(len(values) - 1, 1)
    spread = float(values.var()) / rest  # of the mean; 0 without any wrong answer
    n = min(error * (1 - error) / spread, len(comparisons)) if spread > 0 else len(values)
    z = float(stdtrit(rest, 0.95))
    middle, half = error + z * z / (2 * n), z * (error * (1 - error) / n + z * z / (4 * n * n)) ** 0.5
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def bootstrap_embeddings(
    X: np.ndarray, comparisons: Comparisons, embed: Embed, n: int, rng: np.random.Generator
) -> np.ndarray:
    """(n, objects, p) embeddings of redrawn judgements, aligned with X (objects, p); objects without an answer stay."""
    number, weights, draws = number_judgements(comparisons), _votes(comparisons), np.empty((n, *X.shape))
    alone, size = number[:, 0] == number[:, 1], int(number.max()) + 1
    for draw in range(n):
        drawn = np.bincount(rng.integers(0, size, size), minlength=size)[number]  # how often each judgement is drawn
        times = drawn[:, 0] * np.where(alone, 1, drawn[:, 1])
        answers = replace(comparisons, weights=weights * np.maximum(times, 1)).take(times > 0)
        used = count_per_object(answers) > 0
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
    table = np.zeros(comparisons.n_objects, np.uint32)
    table[used] = number_ids(comparisons.objects[used], objects, "comparisons", "the embedding")[0]
    return replace(comparisons, indices=table[comparisons.indices], objects=objects)


def join(first: Comparisons, second: Comparisons) -> Comparisons:
    """Both sets of answers; objects of `first` keep their rows, new ones follow. Mixed kinds all become quadruplets."""
    objects, moved = first.objects, second.indices
    if len({found.dtype.kind in "iuf" for found in (objects, second.objects)}) > 1:
        raise TypeError(f"objects are {objects.dtype} and in the new comparisons {second.objects.dtype}; use one type")
    if not np.array_equal(objects, second.objects):
        fresh = second.objects[~np.isin(second.objects, objects)]
        objects = np.concatenate([objects, fresh]) if len(fresh) else objects
        moved = number_ids(second.objects, objects, "comparisons")[0].astype(np.uint32)[moved]
    second = replace(second, indices=moved, objects=objects)
    first = replace(first, objects=objects)
    mixed = first.n_columns != second.n_columns
    rows = [part.quadruplets() if mixed else part.indices for part in (first, second)]
    weights = None
    if first.weights is not None or second.weights is not None:
        weights = np.concatenate([np.ones(len(c)) if c.weights is None else c.weights for c in (first, second)])
    events, judgements = (_numbered(name, first, second) for name in ("events", "judgements"))
    n_dropped = first.n_dropped + second.n_dropped
    return Comparisons(
        np.concatenate(rows), objects, weights, n_dropped=n_dropped, events=events, judgements=judgements
    )


def _numbered(name: str, *parts: Comparisons) -> np.ndarray | None:
    """The events or judgements of all parts, none in two; a row without one is separate."""
    columns = [getattr(part, name) for part in parts]
    if all(column is None for column in columns):
        return None
    numbers, width, first = [], max(np.ndim(column) for column in columns), 0
    for part, column in zip(parts, columns, strict=True):
        column = np.unique(np.arange(len(part)) if column is None else column, return_inverse=True)[1]
        numbers.append(first + np.broadcast_to(column.reshape(len(part), -1), (len(part), width)))
        first += len(part) * width
    return np.concatenate(numbers).squeeze(axis=1) if width == 1 else np.concatenate(numbers)


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
        (n_groups > 1, f"{n_groups} groups of objects: no comparison connects them, their relative place is arbitrary"),
        (unplaced, f"{counted(unplaced, 'object has', 'objects have')} no comparison: put at the origin"),
        (uncertain, f"{counted(uncertain, 'object has', 'objects have')} fewer than {few:,} comparisons: uncertain"),
        (contradictions, f"{counted(contradictions, 'question was', 'questions were')} answered both ways"),
    ]
    report["notes"] = [text for holds, text in limits if holds]
    return report
