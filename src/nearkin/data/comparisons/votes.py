"""Repeated and contradictory answers; splits by questions; random comparisons."""

from dataclasses import replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nearkin import _check
from nearkin._check import check_instance, numpy_generator
from nearkin._fields import counted
from nearkin._types import ArrayLike, Seed
from nearkin.data.comparisons.reading import orient
from nearkin.records import Comparisons, as_quadruplets, nearer


def number_questions(comparisons: Comparisons) -> np.ndarray:
    """(m,) the number of the question behind each answer, in the order in which questions are first met.

    A question is which of two pairs is nearer; pairs have no order, and the answer does not matter. Rows of one event
    have the number of one question, as do all events about the same three objects.
    """
    number = _questions(comparisons)[0]
    if comparisons.events is None or len(number) == 0:
        return number
    events = np.unique(comparisons.events, return_inverse=True)[1] + int(number.max()) + 1
    size = int(events.max()) + 1
    links = coo_array((np.ones(len(number), np.int32), (number, events)), shape=(size, size))
    return _by_first(connected_components(links, directed=False)[1][number])


def net_votes(comparisons: Comparisons) -> tuple[np.ndarray, np.ndarray]:
    """Per question, as `number_questions` counts them: votes for one answer minus votes for the other, and their sum.

    Both are (number of questions,). A question is contradicted where |net| < sum.
    """
    number, first = _questions(comparisons)
    weights = np.ones(len(number)) if comparisons.weights is None else comparisons.weights.astype(np.float64)
    size = int(number.max()) + 1 if len(number) else 0
    signs = np.where(first, 1.0, -1.0)
    return np.bincount(number, weights * signs, minlength=size), np.bincount(number, weights, minlength=size)


def _questions(comparisons: Comparisons) -> tuple[np.ndarray, np.ndarray]:
    """(m,) the number of each answer's question, and whether the answer is the pair of the lower number."""
    check_instance(comparisons, "comparisons", Comparisons)
    i, j, l, k = comparisons.quadruplets().T.astype(np.uint64)  # noqa: E741  the paper's letters
    n = np.uint64(comparisons.n_objects)
    near = np.minimum(i, j) * n + np.maximum(i, j)  # a pair has no order
    far = np.minimum(l, k) * n + np.maximum(l, k)
    question = np.stack([np.minimum(near, far), np.maximum(near, far)], axis=1)
    return _by_first(question), near < far


def _by_first(values: np.ndarray) -> np.ndarray:
    """(m,) the number of each row's value, in the order in which values are first met."""
    _, met, number = np.unique(values, axis=0, return_index=True, return_inverse=True)
    place = np.empty(len(met), np.int64)
    place[np.argsort(met)] = np.arange(len(met))
    return place[number.ravel()]


def held_out_noise_floor(comparisons: Comparisons) -> float:
    """The error on new answers that no model can beat, in [0, 1/2], from questions that were answered at least twice.

    With p the share of one answer among all that would be given to a question, the best model errs with min(p, 1 - p)
    and two answers disagree with chance D = 2 p (1 - p), so that min(p, 1 - p) = (1 - sqrt(1 - 2 D)) / 2. The mean of
    D over questions, weighted by their answers, is estimated without bias from pairs of answers and put into this
    formula. It is convex in D: where some questions are harder than others, the floor lies above the number returned
    (Jensen). One row is one answer, whatever its weight. ValueError if no question was answered twice.
    """
    number, first = _questions(comparisons)
    total = np.bincount(number)
    ones = np.bincount(number, first)
    repeated = total >= 2
    if not repeated.any():
        raise ValueError("no question was answered twice; the noise floor cannot be told from these comparisons")
    total, ones = total[repeated].astype(np.float64), ones[repeated]
    disagree = 2 * ones * (total - ones) / (total * (total - 1))  # share of a question's pairs of answers
    share = float(np.average(disagree, weights=total))
    return 0.5 * (1.0 - float(np.sqrt(max(0.0, 1.0 - 2.0 * share))))


def count_contradictions(comparisons: Comparisons) -> int:
    """The number of questions that were answered both ways."""
    net, total = net_votes(comparisons)
    return int((np.abs(net) < total * (1 - 1e-6)).sum())


def split_comparisons(
    comparisons: Comparisons, test_size: float = 0.2, *, by: str = "rows", random_state: Seed = None
) -> tuple[Comparisons, Comparisons]:
    """Split comparisons into training and test part, over the same objects.

    Parameters
    ----------
    comparisons: `Comparisons`.
    test_size: share held out.
    by: "rows" holds out comparisons; "questions" holds out questions with all their answers, because a split by rows
        would test on training questions that were asked more than once (without repeated questions it is the same
        split); "objects" holds out objects, and with them every comparison that has one (those of objects that took no
        part); "annotators" holds out all answers of some annotators.
    random_state: seed, NumPy generator or RandomState.

    Returns
    -------
    train, test: `Comparisons`.

    Raises
    ------
    ValueError: an empty part, unknown annotators, an unknown rule.
    TypeError: what are no `Comparisons`.

    Examples
    --------
    >>> answers = nk.data.comparisons_from_vectors(np.eye(5), 50, random_state=0)
    >>> train, test = nk.data.split_comparisons(answers, 0.2, random_state=0)
    >>> len(train), len(test)
    (40, 10)
    """
    _check.check_instance(comparisons, "comparisons", Comparisons)
    _check.check_choice(by, "by", ("rows", "questions", "objects", "annotators"))
    _check.check_real(test_size, "test_size", low=0.0, high=1.0)
    rng = numpy_generator(random_state)
    if by == "annotators" and comparisons.annotators is None:
        raise ValueError("by is 'annotators' and the comparisons name none; use by='rows'")
    units = {  # (m,) or (m, 3) or (m, 4): a comparison is held out with any of its units
        "rows": lambda: np.arange(len(comparisons)),
        "questions": lambda: number_questions(comparisons),
        "objects": lambda: comparisons.indices,
        "annotators": lambda: np.asarray(comparisons.annotators),
    }[by]()
    names = np.arange(comparisons.n_objects) if by == "objects" else np.unique(units)
    out = rng.permutation(names)[: round(test_size * len(names))]
    held = np.isin(units, out).reshape(len(comparisons), -1).any(axis=1)
    if held.all() or not held.any():
        raise ValueError(
            f"test_size is {test_size}: a split of {counted(len(comparisons), 'comparison')} by {by} leaves "
            f"{int((~held).sum())} to train on and {int(held.sum())} to test; choose another test_size"
        )
    return comparisons.take(np.flatnonzero(~held)), comparisons.take(np.flatnonzero(held))


def question_folds(comparisons: Comparisons, n_folds: int, rng: np.random.Generator, why: str) -> np.ndarray:
    """(m,) a fold for each answer, one for all of a question; ValueError, beginning with `why`, for too few."""
    number = number_questions(comparisons)
    fold = (rng.permutation(int(number.max()) + 1) % n_folds)[number]
    if len(np.unique(fold)) < n_folds:
        raise ValueError(
            f"{why}; there are {counted(int(number.max()) + 1, 'different question')}; cross-validation needs {n_folds}"
        )
    return fold


def comparisons_from_vectors(
    X: ArrayLike, n_comparisons: int, *, quadruplets: bool = False, noise: float = 0.0, random_state: Seed = None
) -> Comparisons:
    """Random comparisons of vectors, answered by their Euclidean distances.

    Parameters
    ----------
    X: (n, d) vectors, at least as many as objects in a question.
    n_comparisons: questions of distinct objects, drawn with replacement.
    quadruplets: ask about four objects in place of three.
    noise: share of the answers that are flipped.
    random_state: seed, NumPy generator or RandomState.

    Returns
    -------
    comparisons: `Comparisons`, (n_comparisons, 3) or (n_comparisons, 4).

    Raises
    ------
    ValueError: too few vectors, NaN, n_comparisons below 1, noise outside 0..1.

    References
    ----------
    Ma et al. (2021), section 5.1 (SVRG-SBB), arXiv:1912.00362.

    Examples
    --------
    >>> answers = nk.data.comparisons_from_vectors(np.arange(4.0)[:, None], 50, random_state=0)
    >>> nk.metrics.triplet_error(np.arange(4.0)[:, None], answers) < 0.4  # only ties are violated
    True
    """
    X = _check.check_vectors(X, min_rows=4 if quadruplets else 3)
    _check.check_integer(n_comparisons, "n_comparisons", low=1)
    rng = numpy_generator(random_state)
    rows = distinct_rows(len(X), n_comparisons, 4 if quadruplets else 3, rng)
    reversed_rows = as_quadruplets(rows)[:, [2, 3, 0, 1]]
    rows = orient(rows, ~nearer(X.astype(np.float64), reversed_rows))  # where both are equally near a row stays
    return flip_answers(Comparisons(rows, np.arange(len(X))), noise, random_state=rng)


def flip_answers(comparisons: Comparisons, share: float, *, random_state: Seed = None) -> Comparisons:
    """`comparisons` with exactly a `share` of the answers, chosen at random, reversed."""
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
