"""Baselines of recommendation: popularity, item-kNN, a graph filter and sparse EASE."""

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dposv  # scipy.linalg.solve costs three times these small systems

from nearkin._check import check_instance, check_integer, check_real, numpy_generator
from nearkin._compile import cached_njit
from nearkin._types import Seed
from nearkin.metrics.ranking import recommend
from nearkin.records import Interactions


def popularity(interactions: Interactions, k: int = 100, *, random_state: Seed = 0) -> tuple[np.ndarray, np.ndarray]:
    """The k items with most pairs that a user has not seen, for each user; equal counts are in random order, by the
    seed.

    Parameters
    ----------
    interactions: `Interactions` (m, n).
    k: items for each user.
    random_state: seed of the order of ties.

    Returns
    -------
    scores: (m, k) float32, number of pairs, best first; -inf where fewer than k unseen items are left.
    numbers: (m, k) int64; -1 there.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs([0, 0, 1, 1, 2], [0, 1, 0, 1, 0])
    >>> nk.embedding.popularity(pairs, k=1)[1].tolist()  # only the third user has an item left
    [[-1], [-1], [1]]
    """
    check_instance(interactions, "interactions", Interactions)
    m, n = interactions.shape
    counts = np.bincount(interactions.indices, minlength=n).astype(np.float32)
    ranks = np.empty((n, 1), np.float32)
    ranks[np.lexsort((numpy_generator(random_state).random(n), -counts)), 0] = -np.arange(n)
    numbers = recommend(np.ones((m, 1), np.float32), ranks, k, seen=interactions)[1]
    return np.where(numbers >= 0, counts[numbers], np.float32(-np.inf)), numbers


def item_knn(
    interactions: Interactions, k: int = 100, *, n_neighbours: int = 400, random_state: Seed = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The k items most similar to a user's history.

    An item's score is the sum, over the history, of its similarities with the items there: the cosines of the columns
    of observed pairs, in which a common user counts as one over its number of pairs. Equal scores and equal
    similarities are in random order, by the seed.

    Parameters
    ----------
    interactions, k, random_state: as in `popularity`.
    n_neighbours: largest similarities with others that each item keeps. Recall@20 of a held-out fifth (28 November
        2026), and with plain cosines: gowalla .175, .149; Yelp2018 .096, .084; ml100k .333, .276.

    Returns
    -------
    scores, numbers: as of `popularity`; -inf and -1 where fewer than k items have a score.

    References
    ----------
    Sarwar et al. (2001), Item-based collaborative filtering; Deshpande & Karypis (2004), Item-based top-N
    recommendation.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs([0, 0, 1, 1, 2], [0, 1, 0, 1, 0])
    >>> nk.embedding.item_knn(pairs, k=1)[1].tolist()  # the third user took item 0 only
    [[-1], [-1], [1]]
    """
    pairs, order = _shuffled(interactions, random_state)
    return _lists(pairs, _by_votes(pairs, n_neighbours), k, order)


def graph_filter(
    interactions: Interactions, k: int = 100, *, n_neighbours: int = 400, random_state: Seed = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The k items that two steps on the graph of pairs reach most from a history: a linear low-pass filter.

    score_ij = sum over the history h of d_h^(-1/2) (R^T R)_hj d_j^(1/2), R = D_left^(-1/2) X D_right^(-1/2), d the
    numbers of the items' pairs: similarities of `item_knn` that favour popular items.

    Parameters
    ----------
    interactions, k, n_neighbours, random_state: as in `item_knn`. Recall@20 of a held-out fifth with it, and with
        `item_knn` (29 November 2026): gowalla .176, .151; tags of Last.fm .143, .090; ml100k .315, .349.

    Returns
    -------
    scores, numbers: as of `item_knn`.

    References
    ----------
    Shen et al. (2021), How powerful is graph convolution for recommendation? (GF-CF), eq. 9 without the ideal filter.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs([0, 0, 1, 1, 2], [0, 1, 0, 1, 0])
    >>> nk.embedding.graph_filter(pairs, k=1)[1].tolist()
    [[-1], [-1], [1]]
    """
    pairs, order = _shuffled(interactions, random_state)
    roots = np.sqrt(np.maximum(np.bincount(pairs.indices, minlength=pairs.shape[1]), 1))
    near = sp.diags(1 / roots) @ _by_votes(pairs, n_neighbours) @ sp.diags(roots)
    return _lists(pairs, sp.csr_matrix(near), k, order)


def sparse_ease(
    interactions: Interactions, k: int = 100, *, n_neighbours: int = 100, ridge: float = 30.0, random_state: Seed = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The k items that ridge regressions on a history predict most.

    score_ij = sum over the history h of B_hj, where column j of B is the ridge regression of item j's column of pairs
    on those of the `n_neighbours` items N of largest cosine with it, B_Nj = (X_N^T X_N + ridge)^-1 X_N^T x_j: EASE with
    the weights of all other items held at 0 (Steck 2019, Embarrassingly shallow autoencoders for sparse data), on the
    neighbourhoods of fsSLIM (Ning & Karypis 2011).

    Parameters
    ----------
    interactions, k, random_state: as in `item_knn`.
    n_neighbours: |N|, items that a regression reads.
    ridge: of the regressions, in pairs.

    Returns
    -------
    scores, numbers: as of `item_knn`.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs([0, 0, 1, 1, 2], [0, 1, 0, 1, 0])
    >>> nk.embedding.sparse_ease(pairs, k=1)[1].tolist()
    [[-1], [-1], [1]]
    """
    pairs, order = _shuffled(interactions, random_state)
    near = _similar_items(pairs, check_integer(n_neighbours, "n_neighbours", low=1), 1.0)
    near.sort_indices()
    weights = _regress(near, pairs, check_real(ridge, "ridge", above=0))
    into = sp.csr_matrix((weights, near.indices, near.indptr), near.shape)  # row j: the weights that rank j
    return _lists(pairs, sp.csr_matrix(into.T), k, order)


def _by_votes(pairs: Interactions, n_neighbours: int) -> sp.csr_matrix:
    """(n, n) the largest similarities, where a common left counts as one over its number of pairs."""
    votes = 1 / np.diff(pairs.indptr)[pairs.rows]
    return _similar_items(pairs, check_integer(n_neighbours, "n_neighbours", low=1), votes)


def _shuffled(interactions: Interactions, random_state: Seed) -> tuple[Interactions, np.ndarray]:
    """The pairs with rights in random order, and that order (n,): of equal scores the lowest number comes first."""
    m, n = check_instance(interactions, "interactions", Interactions).shape
    order = numpy_generator(random_state).permutation(n)
    numbers = np.argsort(order)[interactions.indices]
    return Interactions.from_pairs(interactions.rows, numbers, left_ids=np.arange(m), right_ids=np.arange(n)), order


def _lists(pairs: Interactions, similar: sp.csr_matrix, k: int, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each left entity the k largest sums over its history h of similar_hj, j outside it; right j is order[j]."""
    k = check_integer(k, "k", low=1)
    scores, found = np.full((pairs.shape[0], k), -np.inf, np.float32), np.full((pairs.shape[0], k), -1)
    entries = similar.indptr, similar.indices, similar.data.astype(np.float32)
    best_of_history(pairs.indptr, pairs.indices, *entries, True, scores, found)
    return scores, np.where(found >= 0, order[found], -1)


@cached_njit(nogil=True)
def best_of_history(indptr, indices, starts, others, values, exclude, scores, numbers):
    """Fill the rows of `scores` and `numbers`, of equal scores the lowest numbers first; only columns reached by the
    history are visited."""
    n, k = max(len(starts), len(indptr)) - 1, scores.shape[1]  # `others` are numbers of one of the two
    total, met, is_met = np.zeros(n, np.float32), np.empty(n, np.int64), np.zeros(n, np.bool_)
    for row in range(len(indptr) - 1):
        count = 0
        for e in range(indptr[row], indptr[row + 1]):
            h = indices[e]
            for t in range(starts[h], starts[h + 1]):
                j = others[t]
                if not is_met[j]:
                    is_met[j] = True
                    met[count] = j
                    count += 1
                total[j] += values[t]
        if exclude:
            for e in range(indptr[row], indptr[row + 1]):
                total[indices[e]] = 0
        full = 0  # places of the row; inserting compiles in a fifth of the time of NumPy's partition and sort
        for t in range(count):
            j = met[t]
            score = total[j]
            total[j], is_met[j] = 0, False
            if score > 0 and (full < k or (score, -j) > (scores[row, k - 1], -numbers[row, k - 1])):
                full = min(full + 1, k)
                place = full - 1
                while place > 0 and (score, -j) > (scores[row, place - 1], -numbers[row, place - 1]):
                    scores[row, place], numbers[row, place] = scores[row, place - 1], numbers[row, place - 1]
                    place -= 1
                scores[row, place], numbers[row, place] = score, j


def _regress(near: sp.csr_matrix, pairs: Interactions, ridge: float) -> np.ndarray:
    """(nnz,) the weights (G_NN + ridge)^-1 G_Nj of every right j's neighbours N, its row of `near`, G = X^T X."""
    weights, columns, m = [np.empty(0, np.float32)], pairs.columns, pairs.shape[0]
    counts, first, met = np.zeros(m, np.int32), np.full(m, -1), np.empty(len(pairs), np.int32)
    for j, neighbours in enumerate(np.split(near.indices, np.asarray(near.indptr)[1:-1])):
        if not len(neighbours):
            continue
        A = _block(np.append(neighbours, j), columns.indptr, columns.rows, counts, first, met)
        A.flat[:: len(A) + 1] += ridge
        _, found, info = dposv(A[:-1, :-1].T, A[-1, :-1])
        if info > 0:
            raise ValueError(f"ridge is {ridge}, too small where items have the same pairs; give 1 or more")
        weights.append(found.astype(np.float32))
    return np.concatenate(weights)


@cached_njit()
def _block(numbers, starts, rows, counts, first, met):
    """(n, n) counts of the common lefts of the rights `numbers`, on and below the diagonal. `met` lists for each left
    those of them that it has, from `first` on, `counts` so far; these are -1 and 0 before and afterwards."""
    n, free = len(numbers), 0
    A = np.zeros((n, n))
    for number in numbers:
        for e in range(starts[number], starts[number + 1]):
            counts[rows[e]] += 1
    for s in range(n):
        for e in range(starts[numbers[s]], starts[numbers[s] + 1]):
            left = rows[e]
            if first[left] < 0:
                first[left], free, counts[left] = free, free + counts[left], 0
            end = first[left] + counts[left]
            met[end] = s
            counts[left] += 1
            for at in range(first[left], end + 1):
                A[s, met[at]] += 1
    for number in numbers:
        for e in range(starts[number], starts[number + 1]):
            first[rows[e]], counts[rows[e]] = -1, 0
    return A


def _similar_items(interactions: Interactions, n_neighbours: int, votes: np.ndarray | float) -> sp.csr_matrix:
    """(n, n) the largest similarities of each right with the others: the cosines of their columns, in which a common
    left counts with its votes (nnz,)."""
    n, columns = interactions.shape[1], interactions.columns
    lengths = np.sqrt(np.maximum(np.diff(columns.indptr), 1)).astype(np.float32)
    # a right's "history" is its lefts, each of which leads to the rights that it has
    sums, others = np.full((n, n_neighbours + 1), -np.inf, np.float32), np.full((n, n_neighbours + 1), -1)
    rows = interactions.indptr, interactions.indices, (votes / lengths[interactions.indices]).astype(np.float32)
    best_of_history(columns.indptr, columns.rows, *rows, False, sums, others)
    kept = (others >= 0) & (others != np.arange(n)[:, None])
    kept &= np.cumsum(kept, axis=1) <= n_neighbours  # the right itself is last or missing among equal columns
    right, place = np.nonzero(kept)
    return sp.csr_matrix((sums[right, place] / lengths[right], (right, others[right, place])), (n, n))
