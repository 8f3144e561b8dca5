"""The choice of the next questions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from nearkin.data.comparisons.votes import distinct_rows
from nearkin.records import Comparisons


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of the choice of questions, measured 2026-11 by `python -m benchmarks ordinal questions`."""

    # Share of answers modelled as random, half of them wrong. With a fifth of the answers wrong, held-out error in the
    # plane after 30 answers an object is .148, without it .191, with random questions .179; equal with clean answers.
    lapse: float = 0.4
    n_pairs: int = 100  # questions tried for a head


DEFAULTS = Defaults()
Probability = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (d_ij^2, d_ik^2) -> P(d_ij < d_ik)


def random_queries(n: int, comparisons: Comparisons, k: int, rng: np.random.Generator) -> np.ndarray:
    """(at most k, 3) questions drawn at random among those about n objects that were not asked yet."""
    return _fresh(distinct_rows(n, 4 * k, 3, rng), _triplets(comparisons), n)[:k]


def informative_queries(
    X: np.ndarray, comparisons: Comparisons, probability: Probability, k: int, rng: np.random.Generator
) -> np.ndarray:
    """(k, 3) questions of the greatest expected information gain (the crowd kernel's rule, Tamuz et al. 2011).

    The place of a head i is uncertain: its posterior is over 300 of the objects' own places, given all answers
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
    places = X[rng.permutation(n)[:300]]  # places at which a head's posterior is known
    found: list[np.ndarray] = []  # (1, 3) questions
    gains: list[float] = []
    rounds = -(-k // n)  # heads come again if k > n
    for head in np.tile(order[: min(n, 4 * k)], rounds):
        answers = triplets[by_head[slice(*np.searchsorted(heads_of, [head, head + 1]))]]
        rows = distinct_rows(n, DEFAULTS.n_pairs, 3, rng)
        rows[:, 0] = head
        rows = rows[(rows[:, 1] != head) & (rows[:, 2] != head)]
        rows = _fresh(rows, np.concatenate([answers, *(found if rounds > 1 else [])]), n)
        if len(rows):
            gain = information_gain(places, X, answers, rows, probability)
            best = int(gain.argmax())
            found.append(rows[best : best + 1])
            gains.append(float(gain[best]))
    top = np.argsort(-np.asarray(gains), kind="stable")[:k]
    return np.concatenate([np.empty((0, 3), np.int64), *found])[top]


def information_gain(
    places: np.ndarray,  # (r, p) where the head may be
    X: np.ndarray,  # (n, p)
    answers: np.ndarray,  # (a, 3) triplets with the head first
    rows: np.ndarray,  # (q, 3) questions with the head first
    probability: Probability,
) -> np.ndarray:
    """(q,) the mutual information, in nats, of the answer to each question and the head's place. With the chance
    `lapse` an answer is random, so that one wrong answer cannot rule out the true place."""
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
    """Entropy in nats of a coin with probability p."""
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
