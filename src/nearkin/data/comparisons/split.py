"""Splitting comparisons into a part to learn from and a part to judge by."""

import numpy as np

from nearkin import _check
from nearkin._random import numpy_generator
from nearkin._types import Seed
from nearkin.data.comparisons.votes import number_questions
from nearkin.records import Comparisons


def split_comparisons(
    comparisons: Comparisons, test_size: float = 0.2, *, by: str = "rows", random_state: Seed = None
) -> tuple[Comparisons, Comparisons]:
    """Split into (train, test), over the same objects; `test_size` is the share held out.

    by: "rows" holds out comparisons; "questions" holds out questions with all their answers, for where questions were
    asked more than once a split by rows judges by answers that were learnt from; "objects" holds out objects, and with
    them every comparison that has one (those of objects that took no part); "annotators" holds out all answers of some
    annotators. Without repeated questions "questions" is the same split as "rows". Raises ValueError if either part
    would be empty or the annotators are unknown.
    """
    _check.check_instance(comparisons, "comparisons", Comparisons)
    _check.check_choice(by, "by", ("rows", "questions", "objects", "annotators"))
    _check.check_real(test_size, "test_size", low=0.0, high=1.0)
    rng = numpy_generator(random_state)
    if by == "rows":
        held = np.zeros(len(comparisons), bool)
        held[rng.permutation(len(comparisons))[: round(test_size * len(comparisons))]] = True
    elif by == "questions":
        number = number_questions(comparisons)
        n_questions = int(number.max(initial=-1)) + 1
        held = np.isin(number, rng.permutation(n_questions)[: round(test_size * n_questions)])
    elif by == "objects":
        out = rng.permutation(comparisons.n_objects)[: round(test_size * comparisons.n_objects)]
        held = np.isin(comparisons.indices, out).any(axis=1)
    else:
        if comparisons.annotators is None:
            raise ValueError("by is 'annotators' and the comparisons name none; use by='rows'")
        names = np.unique(comparisons.annotators)
        out = rng.permutation(names)[: round(test_size * len(names))]
        held = np.isin(comparisons.annotators, out)
    if held.all() or not held.any():
        raise ValueError(
            f"test_size is {test_size}: a split of {len(comparisons)} comparisons by {by} leaves "
            f"{int((~held).sum())} to learn from and {int(held.sum())} to test; choose another test_size"
        )
    return comparisons.take(np.flatnonzero(~held)), comparisons.take(np.flatnonzero(held))


def question_folds(comparisons: Comparisons, n_folds: int, rng: np.random.Generator, why: str) -> np.ndarray:
    """(m,) a fold for each answer, those of one question together: rows would leak.

    ValueError that begins with `why` if there are fewer questions than folds.
    """
    number = number_questions(comparisons)
    fold = (rng.permutation(int(number.max()) + 1) % n_folds)[number]
    if len(np.unique(fold)) < n_folds:
        raise ValueError(
            f"{why} and there are {int(number.max()) + 1} different questions; cross-validation needs {n_folds}"
        )
    return fold
