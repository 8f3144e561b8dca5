"""The choice of the next questions."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import expit

from nearkin.data.comparisons.votes import distinct_rows, triplets_of
from nearkin.records import Comparisons


@dataclass(frozen=True)
class Defaults:
    """Tuned numbers of the choice of questions, measured 2026-11 by `python -m benchmarks ordinal questions`."""

    lapse: float = 0.4  # share of answers modelled as random: a wrong answer cannot rule out an object's true place
    n_pairs: int = 25  # questions tried for an object


DEFAULTS = Defaults()
RANKED = 4  # others in a ranking: 8 need as many clicks to an error, of answers by STE's model
_OBJECTS, _BLOCK = 150, 1000  # least objects to choose from, and most places of them; rows of a block


def random_queries(
    n: int, comparisons: Comparisons, k: int, rng: np.random.Generator, form: str = "triplet"
) -> np.ndarray:
    """(at most k, 3) or, of rankings, (at most k, 5) questions drawn at random among those about n objects that were
    not asked yet."""
    return _open(np.arange(n), 4 * k, k, _triplets(comparisons), n, rng, form)[:k]


def informative_queries(
    X: np.ndarray, comparisons: Comparisons, k: int, rng: np.random.Generator, form: str = "triplet"
) -> np.ndarray:
    """(at most k, 3) or (at most k, 5) questions whose answers say most about the places of their objects.

    The crowd kernel's rule (Tamuz et al. 2011) looks at the head's place alone, among the other objects' places, and at
    the answers with this head. Here every answer about an object counts, and places around those of the objects. What
    was chosen about an object divides its part in the gain of the next question, so that questions spread. The gain of
    a ranking is the sum over its triplets, without those that were asked.
    """
    n, triplets = len(X), _triplets(comparisons).astype(np.int64)
    order = rng.permutation(n)
    order = order[np.argsort(np.bincount(triplets.ravel(), minlength=n)[order], kind="stable")]
    objects = order[: max(4 * k, _OBJECTS)]  # those with few answers first
    rows = _open(objects, DEFAULTS.n_pairs * len(objects), k, triplets, n, rng, form)
    places = X[rng.permutation(n)[:_OBJECTS]]
    width = np.sqrt(X.var(axis=0).mean()) * n ** (-1 / (X.shape[1] + 4))  # of a kernel density, by Scott's rule
    places = np.concatenate([places, places + width * rng.normal(size=places.shape)])
    gains = _gains(places, X, triplets, rows)
    heap = [(-gain, question) for question, gain in enumerate(gains.sum(axis=1).tolist())]
    heapq.heapify(heap)
    times, chosen = np.ones(n), []
    while heap and len(chosen) < k:  # gains only fall: the greatest stays so if the next one's old gain is smaller
        question = heapq.heappop(heap)[1]
        gain = -float((gains[question] / times[rows[question]]).sum())
        if heap and gain > heap[0][0]:
            heapq.heappush(heap, (gain, question))
            continue
        chosen.append(question)
        times[rows[question]] += 1
    return rows[chosen]


def _gains(places: np.ndarray, X: np.ndarray, answers: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """What the answers to `rows` (q, w) say about each of their objects, (q, w): the sum over a row's open triplets."""
    asked, columns = triplets_of(rows), triplets_of(np.arange(rows.shape[1])[None])
    told = information(places, X, answers, asked) * ~np.isin(_keys(asked, len(X)), _keys(answers, len(X)))[:, None]
    gains = np.zeros(rows.shape)
    np.add.at(gains.T, columns, told.reshape(len(rows), *columns.shape).transpose(1, 2, 0))
    return gains


def information(places: np.ndarray, X: np.ndarray, answers: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(q, 3) what the answers to questions `rows` say about the place of each of their objects, the others fixed.

    places (r, p), X (n, p), answers (a, 3), rows (q, 3). It is the variance of P(answer | place) over the posterior
    of the place: half the mutual information in nats, to second order in P - 1/2, and without logarithms.
    """
    lapse, objects = DEFAULTS.lapse, np.unique(rows)
    number = np.full(len(X), len(objects))  # the last row of `posterior` is of all other objects
    number[objects] = np.arange(len(objects))
    posterior = np.zeros((len(objects) + 1, len(places)), np.float32)
    for block, chances in _chances(places, X, answers[(number[answers] < len(objects)).any(axis=1)]):
        for role, chance in enumerate(chances):
            np.add.at(posterior, number[block[:, role]], np.log((1 - lapse) * chance + lapse / 2))
    posterior = np.exp(posterior - posterior.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    found = [np.empty((0, 3))]
    for block, chances in _chances(places, X, rows):
        weights = posterior[number[block.T]]  # (3, b, r)
        mean = np.einsum("kbr,kbr->bk", weights, chances)
        found.append(np.einsum("kbr,kbr,kbr->bk", weights, chances, chances) - mean**2)
    return np.concatenate(found)


def _chances(places: np.ndarray, X: np.ndarray, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks (b, 3) of `rows`, and (3, b, r) P(d_ij < d_ik) by STE with i, with j and with k at each place."""
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        i, j, k = (cdist(X[objects], places, "sqeuclidean") for objects in block.T)
        ij, ik = (((X[block[:, 0]] - X[block[:, other]]) ** 2).sum(axis=1, keepdims=True) for other in (1, 2))
        yield block, expit(np.stack([k - j, ik - i, i - ij]).astype(np.float32))


def _triplets(comparisons: Comparisons) -> np.ndarray:
    """The comparisons as triplets; quadruplets of four objects have no head and are left out."""
    if comparisons.n_columns == 3:
        return comparisons.indices
    q = comparisons.indices
    shared = [(q[q[:, a] == q[:, b]])[:, [a, 1 - a, 5 - b]] for a in (0, 1) for b in (2, 3)]
    return np.concatenate(shared)


def _open(
    objects: np.ndarray, draws: int, k: int, asked: np.ndarray, n: int, rng: np.random.Generator, form: str
) -> np.ndarray:
    """Questions (q, 3), or rankings (q, at most 5), about some of n objects that were not asked yet: drawn ones, or
    where these are fewer than k and the objects few, all triplets that are left."""
    m = len(objects)
    width = min(m, 1 + RANKED) if form == "ranking" else 3
    rows = _fresh(objects[distinct_rows(m, draws, width, rng)], asked, n)
    if len(rows) >= k or m > _OBJECTS or width > 3:
        return rows
    heads, (one, other) = np.repeat(np.arange(m), m * (m - 1) // 2), np.tile(np.triu_indices(m, 1), m)
    rows = objects[np.stack([heads, one, other], axis=1)[(heads != one) & (heads != other)]]
    return _fresh(rng.permutation(rows), asked, n)


def _fresh(rows: np.ndarray, asked: np.ndarray, n: int) -> np.ndarray:
    """`rows` (q, w) without repetitions, and without those of which all triplets are in `asked` (a, 3), in whichever
    direction."""
    keys = np.sort(_keys(triplets_of(rows), n).reshape(len(rows), -1), axis=1)
    first = np.sort(np.unique(keys, axis=0, return_index=True)[1])
    return rows[first][~np.isin(keys[first], _keys(asked, n)).all(axis=1)]


def _keys(triplets: np.ndarray, n: int) -> np.ndarray:
    """(a,) a number for each triplet (a, 3) of n objects, the same in both directions."""
    head, one, other = triplets.T.astype(np.uint64)  # exact below 2^21 objects
    return (head * np.uint64(n) + np.minimum(one, other)) * np.uint64(n) + np.maximum(one, other)
