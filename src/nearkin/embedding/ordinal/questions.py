"""Which questions to ask next, and a function as the rater: a language model, a simulation, another embedding."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.special import xlogy

from nearkin import _check
from nearkin._random import numpy_generator
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback, ignore
from nearkin.data.comparisons.votes import distinct_rows
from nearkin.records import Comparisons

Item = TypeVar("Item")


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of the choice of questions, measured 2026-11 by `python -m benchmarks ordinal questions`."""

    # Share of answers modelled as random, half of them wrong. With a fifth of the answers wrong, held-out error in the
    # plane after 30 answers an object is .148, without it .191, with random questions .179; equal with clean answers.
    lapse: float = 0.4
    n_pairs: int = 100  # questions tried for a head
    n_places: int = 300  # places at which a head's posterior is known


DEFAULTS = Defaults()
Probability = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (d_ij^2, d_ik^2) -> P(d_ij < d_ik)


def random_queries(n: int, comparisons: Comparisons, k: int, rng: np.random.Generator) -> np.ndarray:
    """(at most k, 3) questions drawn at random among those about n objects that were not asked yet."""
    return _fresh(distinct_rows(n, 4 * k, 3, rng), _triplets(comparisons), n)[:k]


def informative_queries(
    X: np.ndarray, comparisons: Comparisons, probability: Probability, k: int, rng: np.random.Generator
) -> np.ndarray:
    """(k, 3) questions of the greatest expected information gain (the crowd kernel's rule, Tamuz et al. 2011).

    The place of a head i is uncertain: its posterior is over `n_places` of the objects' own places, given all answers
    with head i. The gain of the question (i, j, k) is H(tau) - p H(tau | j) - (1 - p) H(tau | k), equal to the mutual
    information of place and answer, computed as h(p) - E_tau h(p(place)), h the entropy of a coin. Heads come in random
    order, those with few answers first, and each contributes its best question of `n_pairs` until there are k.
    """
    n = len(X)
    triplets = _triplets(comparisons)
    by_head = np.argsort(triplets[:, 0], kind="stable")
    heads_of = triplets[by_head, 0]
    known = np.bincount(triplets[:, 0], minlength=n)
    order = rng.permutation(n)
    order = order[np.argsort(known[order], kind="stable")]
    places = X[rng.permutation(n)[: DEFAULTS.n_places]]
    found: list[np.ndarray] = []
    gains: list[float] = []
    rounds = -(-k // n)
    for head in np.tile(order[: min(n, 4 * k)], rounds):
        answers = triplets[by_head[slice(*np.searchsorted(heads_of, [head, head + 1]))]]
        rows = distinct_rows(n, DEFAULTS.n_pairs, 3, rng)
        rows[:, 0] = head
        rows = _fresh(rows[(rows[:, 1] != head) & (rows[:, 2] != head)], answers, n)
        if len(rows) == 0:
            continue
        gain = information_gain(places, X, answers, rows, probability)
        best = int(gain.argmax())
        found.append(rows[best])
        gains.append(float(gain[best]))
    top = np.argsort(-np.asarray(gains), kind="stable")[:k]
    return np.asarray(found, np.int64).reshape(-1, 3)[top]


def information_gain(
    places: np.ndarray,  # (r, p) where the head may be
    X: np.ndarray,  # (n, p)
    answers: np.ndarray,  # (a, 3) triplets with the head first
    rows: np.ndarray,  # (q, 3) questions with the head first
    probability: Probability,
) -> np.ndarray:
    """(q,) the mutual information, in nats, of the answer to each question and the head's place.

    An answer follows `probability` with the chance 1 - lapse and is random otherwise, so that one wrong answer cannot
    rule out the head's true place.
    """
    lapse = DEFAULTS.lapse

    def chance(near: np.ndarray, far: np.ndarray) -> np.ndarray:  # (q or a, r)
        to_near = ((X[near][:, None] - places) ** 2).sum(-1)
        to_far = ((X[far][:, None] - places) ** 2).sum(-1)
        return (1.0 - lapse) * probability(to_near, to_far) + 0.5 * lapse

    likelihood = np.log(chance(answers[:, 1], answers[:, 2])).sum(axis=0)
    tau = np.exp(likelihood - likelihood.max())
    tau /= tau.sum()
    p = chance(rows[:, 1], rows[:, 2])
    return _coin_entropy(p @ tau) - _coin_entropy(p) @ tau


def _coin_entropy(p: np.ndarray) -> np.ndarray:
    """In nats, of coins that fall on one side with probability p."""
    return -(xlogy(p, p) + xlogy(1.0 - p, 1.0 - p))


def _triplets(comparisons: Comparisons) -> np.ndarray:
    """The comparisons as triplets; quadruplets of four objects have no head and are left out."""
    if comparisons.n_columns == 3:
        return comparisons.indices
    q = comparisons.indices
    shared = [(q[q[:, a] == q[:, b]])[:, [a, 1 - a, 5 - b]] for a in (0, 1) for b in (2, 3)]
    return np.concatenate(shared)


def _fresh(rows: np.ndarray, asked: np.ndarray, n: int) -> np.ndarray:
    """`rows` (q, 3) without repetitions and without the questions of `asked` (a, 3), in whichever direction."""

    def key(rows: np.ndarray) -> np.ndarray:
        head, one, other = rows.T.astype(np.uint64)  # exact below 2^21 objects
        return (head * np.uint64(n) + np.minimum(one, other)) * np.uint64(n) + np.maximum(one, other)

    keys = key(rows)
    _, first = np.unique(keys, return_index=True)
    first = np.sort(first)
    return rows[first][~np.isin(keys[first], key(asked))]


@dataclass(frozen=True)
class Asked:
    """The answers of a function.

    comparisons: the questions answered alike in both orders, a row each, objects in the order of `items`.
    n_questions, n_consistent, n_unanswered: number of questions, of those answered alike, of those with a None.
    first_share: of all answers, the share that chose the item named first; 1/2 without a preference for a position.
    position_bias: of the questions answered twice, the share decided by the position: first named twice minus last
        named twice, in [-1, 1]; 0 without a preference, 1 if the first is always chosen.
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
    """Ask a function which of two items is more like an anchor, every question in both orders.

    items: at least three, all different, of any type that NumPy distinguishes (texts, numbers).
    rater(anchor, first, second): returns 0 for the first, 1 for the second, None for no answer. It is called 2 n times;
        both orders of a question follow each other, in random order.
    n: number of random questions; or give `questions` (k, 3) of items, as from `OrdinalEmbedding.next_queries`.
    callback(step, record): called after each question, with "total".

    Only questions answered alike in both orders become comparisons: an answer that changes with the order carries no
    information about the items. ValueError for another answer of the rater, or if none was alike.

    >>> asked = ask_function([1, 2, 9, 10], lambda a, b, c: int(abs(a - c) < abs(a - b)), 5, random_state=0)
    >>> asked.n_consistent, asked.position_bias
    (5, 0.0)
    """
    names = np.asarray(items)
    if names.ndim != 1 or len(names) < 3 or len(np.unique(names)) < len(names):
        raise ValueError(f"items has shape {names.shape}; it must be at least 3 different items")
    rng = numpy_generator(random_state)
    rows = _rows(items, names, n, questions, rng)
    said = np.empty((len(rows), 2), np.int64)  # the choices from (first, second), and from (second, first)
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
            "the rater chooses by position, not by the items"
        )
    chosen = rows[alike]
    turn = said[alike, 0] == 1
    chosen[turn] = chosen[turn][:, [0, 2, 1]]
    firsts = said[answered] == 0
    bias = float((firsts.all(axis=1).astype(int) - (~firsts).all(axis=1)).mean())
    first_share, n_unanswered = float((said[said >= 0] == 0).mean()), int((~answered).sum())
    return Asked(Comparisons(chosen, names), len(rows), int(alike.sum()), n_unanswered, first_share, bias)


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
