"""A function as the rater: a language model, a simulation, another embedding; every question in both orders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nearkin import _check
from nearkin._random import numpy_generator
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback, ignore
from nearkin.data.comparisons.synthetic import distinct_rows
from nearkin.records import Comparisons

Item = TypeVar("Item")


@dataclass(frozen=True)
class Asked:
    """What a function answered.

    comparisons: the questions answered alike in both orders, a row each, objects in the order of `items`.
    n_questions, n_consistent, n_unanswered: how many were asked, answered alike, and answered None at least once.
    first_share: of all answers, the share that chose the item named first; 1/2 without a preference for a place.
    position_bias: of the questions answered twice, the share decided by the place: first named twice minus last named
        twice, in [-1, 1]; 0 without a preference, 1 if the first is always chosen.
    """

    comparisons: Comparisons
    n_questions: int
    n_consistent: int
    n_unanswered: int
    first_share: float
    position_bias: float

    def __str__(self) -> str:
        return (
            f"{self.n_questions} questions, each in both orders: {self.n_consistent} answered alike, "
            f"{self.n_unanswered} not answered; the item named first was chosen in {self.first_share:.0%} of the "
            f"answers (position bias {self.position_bias:+.2f})"
        )


def ask_function(
    items: Sequence[Item],
    rater: Callable[[Item, Item, Item], int | None],
    n: int = 100,
    *,
    questions: ArrayLike | None = None,
    callback: Callback = ignore,
    random_state: Seed = None,
) -> Asked:
    """Ask `rater(anchor, first, second)` which of two items is more like the anchor, every question in both orders.

    items: at least three, all different, of any type that NumPy keeps apart (texts, numbers). rater: returns 0 for the
    first, 1 for the second, None for no answer; it is called 2 n times, one call after the other, with the second
    order of a question asked right after the first, which order comes first being random. Only questions answered
    alike in both orders become comparisons: an answer that turns with the order says nothing of the items. n: random
    questions; or give `questions` (k, 3) of items, as from `OrdinalEmbedding.next_queries`. callback(step, record): per
    question, with "total". Raises ValueError for another answer of the rater, and if no question was answered alike.

    >>> asked = ask_function([1, 2, 9, 10], lambda a, b, c: int(abs(a - c) < abs(a - b)), 5, random_state=0)
    >>> asked.n_consistent, asked.position_bias
    (5, 0.0)
    """
    names = np.asarray(items)
    if names.ndim != 1 or len(names) < 3 or len(np.unique(names)) < len(names):
        raise ValueError(f"items has shape {names.shape}; it must be at least 3 different items")
    rng = numpy_generator(random_state)
    rows = _rows(items, names, n, questions, rng)
    said = np.empty((len(rows), 2), np.int64)  # of each question: what was chosen of (first, second), and turned round
    for step, (anchor, one, other) in enumerate(rows.tolist(), 1):
        for turned in rng.permutation(2).tolist():
            pair = (other, one) if turned else (one, other)
            said[step - 1, turned] = _answer(rater, items[anchor], items[pair[0]], items[pair[1]])
        callback(step, {"total": len(rows)})
    answered = (said >= 0).all(axis=1)
    alike = answered & (said[:, 0] != said[:, 1])
    if not alike.any():
        raise ValueError(
            f"none of {len(rows)} questions was answered alike in both orders ({int(answered.sum())} were answered); "
            "the rater goes by the place, not by the items"
        )
    chosen = rows[alike]
    turn = said[alike, 0] == 1
    chosen[turn] = chosen[turn][:, [0, 2, 1]]
    firsts = said[answered] == 0
    return Asked(
        Comparisons(chosen, names),
        len(rows),
        int(alike.sum()),
        int((~answered).sum()),
        float((said[said >= 0] == 0).mean()),
        float((firsts.all(axis=1).astype(int) - (~firsts).all(axis=1)).mean()),
    )


def _rows(
    items: Sequence[Item], names: np.ndarray, n: int, questions: ArrayLike | None, rng: np.random.Generator
) -> np.ndarray:
    """(k, 3) numbers of items."""
    if questions is None:
        return distinct_rows(len(names), _check.check_integer(n, "n", low=1), 3, rng)
    place = {name: number for number, name in enumerate(names.tolist())}
    asked = np.asarray(questions)
    if asked.ndim != 2 or asked.shape[1] != 3:
        raise ValueError(f"questions has shape {asked.shape}; it must be (k, 3), rows (anchor, one, other) of items")
    unknown = [name for name in asked.ravel().tolist() if name not in place]
    if unknown:
        raise ValueError(f"questions names {unknown[0]!r}, which is none of the {len(items)} items")
    return np.array([[place[name] for name in row] for row in asked.tolist()])


def _answer(rater: Callable[[Item, Item, Item], int | None], anchor: Item, first: Item, second: Item) -> int:
    """0 or 1, the place of the item chosen, or -1 for no answer."""
    said = rater(anchor, first, second)
    if said is None:
        return -1
    if said not in (0, 1):
        raise ValueError(f"rater returned {said!r}; it must return 0 (the first), 1 (the second) or None (no answer)")
    return int(said)
