"""Repeated and contradictory answers; splits by questions; random comparisons."""

import numpy as np

from nearkin import _check
from nearkin._check import check_instance, numpy_generator
from nearkin._fields import counted
from nearkin._types import ArrayLike, Seed
from nearkin.data.comparisons.forms import orient, turn
from nearkin.records import Comparisons, as_quadruplets, nearer


def number_judgements(comparisons: Comparisons, *, shared: bool = True) -> np.ndarray:
    """(m, 2) the numbers of the judgements behind each comparison, twice the same one unless it is of two ratings.

    What has a common number is held out and redrawn together. Judgements on the same pairs of objects, as repeated
    questions, have one number: everybody's if `shared`, else those of one annotator.
    """
    pairs, m, annotators = _pairs(comparisons), len(comparisons), comparisons.annotators
    numbers = np.arange(m) if comparisons.judgements is None else comparisons.judgements
    ends = np.unique(numbers, return_inverse=True)[1].reshape(m, numbers.ndim)[:, [0, -1]]
    who = np.zeros(m) if shared else np.arange(m) if annotators is None else annotators
    who = np.unique(who, return_inverse=True)[1].astype(np.uint64)[:, None]
    names, code = np.unique(pairs * (who.max(initial=0) + np.uint64(1)) + who, return_inverse=True)
    entries = np.unique(ends * len(names) + code.reshape(m, 2))  # each pair of a judgement once
    marks = np.random.default_rng(0).integers(2**62, size=len(names))  # the sum differs between sets of pairs
    topics = np.zeros(ends.max(initial=-1) + 1, np.int64)
    np.add.at(topics, entries // len(names), marks[entries % len(names)])
    return _by_first(topics)[ends]


def net_votes(comparisons: Comparisons) -> tuple[np.ndarray, np.ndarray]:
    """Per question (which of two pairs is nearer), votes for one answer minus votes for the other, and their sum.

    Both are (number of questions,). A question is contradicted where |net| < sum.
    """
    number, first = _questions(comparisons)
    weights = np.ones(len(number)) if comparisons.weights is None else comparisons.weights.astype(np.float64)
    size = int(number.max()) + 1 if len(number) else 0
    signs = np.where(first, 1.0, -1.0)
    return np.bincount(number, weights * signs, minlength=size), np.bincount(number, weights, minlength=size)


def _pairs(comparisons: Comparisons) -> np.ndarray:
    """(m, 2) uint64 numbers of each comparison's nearer and farther pair, which have no order."""
    check_instance(comparisons, "comparisons", Comparisons)
    i, j, l, k = comparisons.quadruplets().T.astype(np.uint64)  # noqa: E741  the paper's letters
    n = np.uint64(comparisons.n_objects)
    return np.stack([np.minimum(i, j) * n + np.maximum(i, j), np.minimum(l, k) * n + np.maximum(l, k)], axis=1)


def _questions(comparisons: Comparisons) -> tuple[np.ndarray, np.ndarray]:
    """(m,) the number of each answer's question, and whether the answer is the pair of the lower number."""
    pairs = _pairs(comparisons)
    return _by_first(np.sort(pairs, axis=1)), pairs[:, 0] < pairs[:, 1]


def _by_first(values: np.ndarray) -> np.ndarray:
    """(m,) the number of each row's value, in the order in which values are first met."""
    _, met, number = np.unique(values, axis=0, return_index=True, return_inverse=True)
    place = np.empty(len(met), np.int64)
    place[np.argsort(met)] = np.arange(len(met))
    return place[number.ravel()]


def held_out_noise_floor(comparisons: Comparisons) -> tuple[float, int]:
    """The error on new answers that no model can beat, in [0, 1/2], and the number of questions that were answered at
    least twice, which give it; NaN without any.

    With p the share of one answer among all that would be given to a question, the best model errs with min(p, 1 - p)
    and two answers disagree with chance D = 2 p (1 - p), so that min(p, 1 - p) = (1 - sqrt(1 - 2 D)) / 2. The mean of
    D over questions, weighted by their answers, is estimated without bias from pairs of answers and put into this
    formula. It is convex in D: where some questions are harder than others, the floor lies above the number returned
    (Jensen). A row is as many answers as its weight where all weights are whole numbers, as of votes, else one; answers
    with a common judgement are no pair.
    """
    (number, first), weights = _questions(comparisons), comparisons.weights
    counts = np.ones(len(number)) if weights is None or (weights % 1).any() else weights.astype(np.float64)
    judgements = np.arange(len(number)) if comparisons.judgements is None else comparisons.judgements
    ends = judgements.reshape(len(number), -1)[:, [0, -1]]
    low, high = np.where(first[:, None], ends, ends[:, ::-1]).T
    pairs = np.zeros((2, number.max(initial=-1) + 1))  # of a question's answers: all, and those that disagree
    terms = (1,), (-1, low), (-1, high), (1, low, high)
    for sign, *common in terms[: 1 if comparisons.judgements is None else 4]:
        group = _by_first(np.stack([number, *common], axis=1))
        total, ones = np.bincount(group, counts), np.bincount(group, first * counts)
        question = number[np.unique(group, return_index=True)[1]]
        pairs += [sign * np.bincount(question, count) for count in (total * (total - 1) / 2, ones * (total - ones))]
    repeated = pairs[0] > 0
    if not repeated.any():
        return np.nan, 0
    share = np.average((pairs[1] / np.maximum(pairs[0], 1))[repeated], weights=np.bincount(number, counts)[repeated])
    return 0.5 * (1.0 - float(np.sqrt(max(0.0, 1.0 - 2.0 * share)))), int(repeated.sum())


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
    test_size: share held out. Of ratings more are held out, until this is the share of comparisons in the test part.
    by: "rows" holds out judgements (`Comparisons.judgements`), with all that one annotator answered to the same
        question; "questions" holds out questions, with everybody's answers; "objects" holds out objects, and with them
        every judgement on one (those of objects that took no part); "annotators" holds out all answers of some
        annotators. Comparisons of a held-out rating with one that is not are in neither part.
    random_state: seed, NumPy generator or RandomState.

    Returns
    -------
    train, test: `Comparisons`.

    Examples
    --------
    >>> answers = nk.data.comparisons_from_vectors(np.eye(5), 50, random_state=0)
    >>> train, test = nk.data.split_comparisons(answers, 0.2, random_state=0)
    >>> len(train), len(test)
    (40, 10)
    """
    _check.check_choice(by, "by", ("rows", "questions", "objects", "annotators"))
    _check.check_real(test_size, "test_size", low=0.0, high=1.0)
    number, rng = number_judgements(comparisons, shared=by == "questions"), numpy_generator(random_state)
    if by == "annotators" and comparisons.annotators is None:
        raise ValueError("by is 'annotators' and the comparisons name none; use by='rows'")
    held = comparisons.quadruplets() if by == "objects" else np.repeat(number, 2, axis=1)  # (m, 4): a pair has two
    held = held if by != "annotators" else np.stack([np.asarray(comparisons.annotators)] * 4, axis=1)
    names = np.arange(comparisons.n_objects) if by == "objects" else np.unique(held)
    rated = by in ("rows", "questions") and (number[:, 0] != number[:, 1]).any()
    share = test_size**0.5 / (test_size**0.5 + (1 - test_size) ** 0.5) if rated else test_size
    marked = np.isin(held, rng.permutation(names)[: round(share * len(names))]).reshape(-1, 2, 2).any(axis=2)
    train, test = held_out_parts(comparisons, np.isin(number, number[marked]), by == "questions")
    if not len(train) or not len(test):
        what = f"test_size is {test_size}: a split of {counted(len(comparisons), 'comparison')} by {by} leaves"
        way = "collect more" + " ratings by one rater: two make a comparison" * bool(rated)
        raise ValueError(f"{what} {len(train)} to train on and {len(test)} to test; {way}")
    return comparisons.take(train), comparisons.take(test)


def held_out_parts(comparisons: Comparisons, held_out: np.ndarray, shared: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and to test, by whether the judgements (m, 2) of each are held out: both, or none of them, and
    where questions are `shared` none that is tested."""
    train, test = ~held_out.any(axis=1), held_out.all(axis=1)
    if shared and comparisons.judgements is not None:
        question = _questions(comparisons)[0]
        train &= ~np.isin(question, question[test])
    return np.flatnonzero(train), np.flatnonzero(test)


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
    return turn(comparisons, responses)


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


def triplets_of(rows: np.ndarray) -> np.ndarray:
    """(q * t, 3): the head of each row (q, 1 + c) with every pair of the c others, which are ranked by nearness."""
    near, far = np.triu_indices(rows.shape[1] - 1, 1)
    return rows[:, np.stack([0 * near, 1 + near, 1 + far], axis=1)].reshape(-1, 3)
