"""Ranking metrics: recall, precision, NDCG and MRR at k over left entities, without seen pairs.

Of items with equal scores (integers, equal vectors, items without pairs) no order is better than another, and that of
their numbers would be a property of the file. Metrics of scores are expected values over all orders of equal scores.
"""

# pyright: reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Iterable
from typing import NamedTuple

import faiss
import numpy as np
import scipy.sparse as sp

from nearkin._check import as_array, check_instance, check_integer, check_vectors, each_once
from nearkin._exact import nearest
from nearkin._types import ArrayLike, Record
from nearkin.metrics.retrieval import as_lists, best_gain, discounted_gain, reciprocal_rank, tie_groups
from nearkin.records import Interactions

BLOCK = 4096  # queries that are searched together: FAISS takes half as long a query as with 1,024
METRICS = ("recall", "precision", "ndcg", "mrr")
_EQUAL = 1e-12  # rounding error of a product in float64, in units of the vectors' lengths
_LONG_HISTORY = 200  # items of a user beyond which a history says little of any two of them, as in SIDInspector
_BLOCK = 1 << 23  # numbers of the products in float64 that are computed at once


def recommend(
    left: ArrayLike,
    right: ArrayLike | faiss.Index,
    k: int,
    *,
    seen: Interactions | sp.spmatrix | None = None,
    users: ArrayLike | None = None,
    candidates: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The k items of largest inner product for each user.

    FAISS searches in blocks, k + the block's largest number of seen items, and the seen ones are struck out, so memory
    stays bounded.

    Parameters
    ----------
    left: (m, d) vectors of users.
    right: (n, d) vectors of items, or a `faiss.Index` of them by inner product, which then ranks them.
    k: items for each user.
    seen: pairs (m, n) that must not be returned, `Interactions` or a sparse matrix.
    users: numbers of the users, or a mask (m,), default all.
    candidates: numbers of the items that may be returned, or a mask (n,), default all (of vectors only).

    Returns
    -------
    scores: (m, k), best first; -inf where fewer than k items are left.
    numbers: (m, k) int64; -1 there.

    Examples
    --------
    >>> nk.metrics.recommend(np.array([[1.0, 0.0]]), np.eye(2), k=1)
    (array([[1.]]), array([[0]]))
    """
    k = check_integer(k, "k", low=1)
    if isinstance(right, faiss.Index):
        if candidates is not None:
            raise ValueError("candidates works with right as vectors (n, d); an index is searched as a whole")
        if right.metric_type != faiss.METRIC_INNER_PRODUCT:
            raise ValueError("right is an index that does not rank by inner product; build it with metric='ip'")
        left, n = check_vectors(left, name="left", n_features=right.d), right.ntotal
    else:
        left, right = _two(left, right)
        n = len(right)
    rows, (allowed, pairs) = _rows(users, len(left), "users"), _seen(seen, candidates, (len(left), n))
    scores, numbers = _search(left, right if isinstance(right, faiss.Index) else right[allowed], rows, k, pairs)
    return scores.astype(left.dtype, copy=False), np.where(numbers < 0, -1, allowed[numbers])


def _search(
    left: np.ndarray, right: np.ndarray | faiss.Index, rows: np.ndarray, k: int, pairs: sp.csr_matrix | None
) -> tuple[np.ndarray, np.ndarray]:
    """The k first (m, k) items for the users `rows` (m,), without the seen `pairs`: exact ones of vectors, by number if
    equal."""
    scores, numbers = np.full((len(rows), k), -np.inf), np.full((len(rows), k), -1)
    counts = np.zeros(len(rows), np.int64) if pairs is None else np.diff(pairs.indptr)[rows]
    order = np.argsort(counts, kind="stable")  # rows with about as many seen rights are searched together
    depth = np.log2(k + counts[order]).astype(int)
    for block in np.split(order, np.union1d(np.flatnonzero(np.diff(depth)) + 1, np.arange(BLOCK, len(rows), BLOCK))):
        asked, wanted = left[rows[block]], k + int(counts[block].max(initial=0))
        if isinstance(right, faiss.Index):
            near, found = right.search(asked.astype(np.float32, copy=False), min(wanted, right.ntotal))
        else:
            near, found = nearest(right, asked, wanted, "ip")
        hidden = found < 0 if pairs is None else (found < 0) | _holds(pairs, rows[block], found)
        shown = np.argsort(hidden, axis=1, kind="stable")[:, :k]
        near, found = np.where(hidden, -np.inf, near), np.where(hidden, -1, found)
        near, found = np.take_along_axis(near, shown, axis=1), np.take_along_axis(found, shown, axis=1)
        scores[block, : near.shape[1]], numbers[block, : near.shape[1]] = near, found
    return scores, numbers


def _holds(pairs: sp.csr_matrix, rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """(rows, k) bool: whether the pair (rows[r], numbers[r, c]) is stored; -1 never is."""
    return pairs[rows[:, None], np.maximum(numbers, 0)].toarray() & (numbers >= 0)


def ranking_metrics(
    left: ArrayLike,
    right: ArrayLike,
    relevant: Interactions | sp.spmatrix,
    *,
    seen: Interactions | sp.spmatrix | None = None,
    k: int | Iterable[int] = (20, 100),
    metrics: Iterable[str] = METRICS,
    users: ArrayLike | None = None,
    candidates: ArrayLike | None = None,
    each: bool = False,
) -> Record:
    """Mean ranking metrics over the users that have relevant pairs. The score of a pair is the inner product.

    Equal scores are in random order: metrics are expected values over their orders. Pairs that are both
    relevant and seen are neither hits nor misses.

    Parameters
    ----------
    left: (m, d) vectors of users.
    right: (n, d) vectors of items.
    relevant: pairs to be found, `Interactions` or a sparse matrix (m, n).
    seen: pairs left out of the rankings and of the relevant ones, in the same form.
    k: one or several depths.
    metrics: one or several of "recall", "precision", "ndcg", "mrr".
    users: numbers of the users that count, default all.
    candidates: numbers of the items that are ranked and may be relevant, or a mask (n,), default all. To compare two
        rankings give both the items that both can rank.
    each: the values of each user that has relevant pairs (q,), instead of their means.

    Returns
    -------
    values: {"recall@20": float in [0, 1], "ndcg@100": ...}.

    References
    ----------
    McSherry & Najork (2008), as in `RankHistograms`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> nk.metrics.ranking_metrics(np.ones((1, 1)), np.ones((5, 1)), sp.csr_matrix([[0, 0, 0, 0, 1]]), k=1)["recall@1"]
    0.2
    """
    depths = _depths(k)
    left, right = _two(left, right)
    allowed, hidden = _seen(seen, candidates, (len(left), len(right)))
    pairs = _counting(relevant, hidden, allowed, (len(left), len(right)))
    rows = _rows(users, len(left), "users")
    rows, right = rows[np.diff(pairs.indptr)[rows] > 0], right[allowed]
    if not len(rows):
        raise ValueError("relevant has no pair that counts: unseen, of the users and candidates asked for")
    depth = min(max(depths), len(right))
    scores, ranked = _search(left, right, rows, min(depth + 1, len(right)), hidden)
    hits = _holds(pairs, rows, ranked[:, :depth]).astype(np.float64)
    at = Hits(hits, hits.copy())
    P, Q = left[rows].astype(np.float64), right.astype(np.float64)
    error = _EQUAL * (np.linalg.norm(P, axis=1) * np.linalg.norm(Q, axis=1).max())[:, None]
    with np.errstate(invalid="ignore"):  # places without an item
        tied = np.flatnonzero((scores[:, :-1] - scores[:, 1:] <= error).any(axis=1))
    step = max(1, _BLOCK // len(Q))
    for block in (tied[start : start + step] for start in range(0, len(tied), step)):
        exact = P[block] @ Q.T
        if hidden is not None:
            exact[hidden[rows[block]].nonzero()] = -np.inf
        found = _expected(scores[block], ranked[block], exact, error[block], pairs[rows[block]])
        at.share[block], at.hazard[block] = (values[:, :depth] for values in found)
    return _values_of(at, np.diff(pairs.indptr)[rows], depths, metrics, each)


class Hits(NamedTuple):
    """Of every place of rankings (m, depth): the chance of a relevant right, and that chance if none was before."""

    share: np.ndarray
    hazard: np.ndarray


def _expected(
    scores: np.ndarray, ranked: np.ndarray, exact: np.ndarray, error: np.ndarray, relevant: sp.csr_matrix
) -> Hits:
    """The hits (b, c) of rankings `ranked` (b, c) by `scores` (b, c), equal ones in random order.

    `exact` (b, n) are the scores of all rights, with rounding errors (b, 1).

    A group of t rights with r relevant ones has a relevant one at each place with chance r / t, and at its place j = 0,
    1, ..., if none was before in it, with chance r / (t - j).
    """
    with np.errstate(invalid="ignore"):  # places without a right
        new = np.column_stack([np.ones(len(scores), bool), ~(scores[:, :-1] - scores[:, 1:] <= error)])
        equal = np.abs(exact - scores[:, -1:]) <= error  # the last group may go on behind the ranking
    group, j = tie_groups(new)
    hits = _holds(relevant, np.arange(len(scores)), ranked)
    size, good = (np.bincount(group.ravel(), weights, group.size) for weights in (None, hits.ravel()))
    size[group[:, -1]], good[group[:, -1]] = equal.sum(axis=1), np.asarray(relevant.multiply(equal).sum(axis=1)).ravel()
    t, r = np.maximum(size, 1)[group], good[group]
    return Hits(r / t, np.minimum(r / np.maximum(t - j, 1), 1))


def list_metrics(
    ranked: ArrayLike,
    relevant: Interactions | sp.spmatrix,
    *,
    seen: Interactions | sp.spmatrix | None = None,
    candidates: ArrayLike | None = None,
    k: int | Iterable[int] = (20, 100),
    metrics: Iterable[str] = METRICS,
    each: bool = False,
) -> Record:
    """`ranking_metrics` of lists that are ranked already.

    Lists must have equal scores in random order, as those of `nk.embedding.popularity` have.

    Parameters
    ----------
    ranked: (m, depth) numbers of items, best first, -1 for none; an item counts at its first place only.
    relevant, seen, candidates, k, metrics, each: as in `ranking_metrics`; seen pairs and items that are no candidates
        are left out of the lists, too.

    Returns
    -------
    values: {"recall@20": float in [0, 1], ...}.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> nk.metrics.list_metrics(np.array([[1, 0]]), sp.csr_matrix([[1, 0]]), k=2, metrics=["recall", "mrr"])
    {'recall@2': 1.0, 'mrr@2': 0.5}
    """
    check_instance(relevant, "relevant", Interactions, sp.spmatrix, sp.sparray, np.ndarray)
    n = relevant.shape[-1] if relevant.shape else 0
    ranked = as_lists(ranked, "ranked")
    if ranked.dtype.kind == "U":
        raise TypeError("ranked holds text; it must hold numbers of items, the columns of relevant, or -1")
    allowed, hidden = _seen(seen, candidates, (len(ranked), n))
    pairs = _counting(relevant, hidden, allowed, (len(ranked), n))
    if (wrong := (ranked < -1) | (ranked >= n)).any():
        raise ValueError(
            f"ranked holds {ranked[wrong][0]}; it must hold numbers of items, 0 to {n - 1}, or -1 for none"
        )
    rows, places = np.flatnonzero(np.diff(pairs.indptr) > 0), np.full(n + 1, -1)  # the last for -1
    if not len(rows):
        raise ValueError("relevant has no pair that counts: unseen, and of the candidates")
    places[allowed] = np.arange(len(allowed))
    ranked = places[ranked[rows]]
    by_item = np.argsort(ranked, axis=1, kind="stable")
    again = np.diff(np.take_along_axis(ranked, by_item, axis=1), axis=1, prepend=-1) == 0  # -1 is no item
    kept = np.empty(ranked.shape, bool)
    np.put_along_axis(kept, by_item, ~again, axis=1)
    kept &= True if hidden is None else ~_holds(hidden, rows, ranked)
    order = np.argsort(~kept, axis=1, kind="stable")
    hits = np.take_along_axis(kept & _holds(pairs, rows, ranked), order, axis=1).astype(np.float64)
    return _values_of(Hits(hits, hits), np.diff(pairs.indptr)[rows], _depths(k), metrics, each)


def _depths(k: int | Iterable[int]) -> list[int]:
    depths = list(k) if isinstance(k, Iterable) else [k]
    if not depths:
        raise ValueError("k is empty; give a depth, or several")
    return sorted({check_integer(depth, "k", low=1) for depth in depths})


def _values_of(hits: Hits, relevant: np.ndarray, depths: Iterable[int], metrics: Iterable[str], each: bool) -> Record:
    """The metrics of each row, or their means. recall = hits / relevant, precision = hits / k, mrr = 1 / rank of the
    first hit, ndcg with gains 1 and discounts 1 / log2(rank + 1), its ideal having min(k, relevant) hits."""
    result, metrics = {}, [metrics] if isinstance(metrics, str) else list(metrics) or [""]
    for depth in depths:
        top = hits.share[:, :depth]
        values = {
            "recall": top.sum(axis=1) / relevant,
            "precision": top.sum(axis=1) / depth,
            "ndcg": discounted_gain(top) / best_gain(relevant, depth),
            "mrr": reciprocal_rank(hits.hazard[:, :depth]),
        }
        for name in metrics:
            if name not in values:
                raise ValueError(f"metrics holds {name!r}; it must hold some of {', '.join(map(repr, METRICS))}")
            result[f"{name}@{depth}"] = values[name] if each else float(values[name].mean())
    return result


def _rows(given: ArrayLike | None, n: int, name: str) -> np.ndarray:
    """The numbers of n rows that are given, or that a mask (n,) marks, all by default."""
    if given is None:
        return np.arange(n)
    asked = as_array(given, name)
    if asked.dtype == bool and asked.shape == (n,):
        return np.flatnonzero(asked)
    if asked.ndim != 1 or (asked.size and asked.dtype.kind not in "iu"):
        raise TypeError(f"{name} has shape {asked.shape} and dtype {asked.dtype}; it must be a list of numbers")
    if asked.size and (asked.min() < 0 or asked.max() >= n):
        raise ValueError(f"{name} holds {asked.min()}..{asked.max()}; they must lie within 0..{n - 1}")
    return each_once(asked.astype(np.int64), name)


def _seen(
    seen: Interactions | sp.spmatrix | None, candidates: ArrayLike | None, shape: tuple[int, int]
) -> tuple[np.ndarray, sp.csr_matrix | None]:
    """The items that may be returned, in order, and the seen pairs of these; ValueError if there are none."""
    allowed = np.unique(_rows(candidates, shape[1], "candidates"))
    if not len(allowed):
        raise ValueError(f"candidates is empty; it must hold at least one of 0, ..., {shape[1] - 1}")
    return allowed, None if seen is None else _structure(seen, shape, "seen")[:, allowed]


def _counting(
    relevant: Interactions | sp.spmatrix, seen: sp.csr_matrix | None, allowed: np.ndarray, shape: tuple[int, int]
) -> sp.csr_matrix:
    """The relevant pairs of the allowed items without the seen ones, which no ranking can return."""
    pairs = _structure(relevant, shape, "relevant")[:, allowed]
    return pairs if seen is None else pairs > pairs.multiply(seen)


def _two(left: ArrayLike, right: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    left = check_vectors(left, name="left", exact=True)
    return left, check_vectors(right, name="right", n_features=left.shape[1], exact=True)


def _structure(pairs: Interactions | sp.spmatrix, shape: tuple[int, int], name: str) -> sp.csr_matrix:
    """The pairs, of a matrix the entries other than 0, as a matrix of True; ValueError for another shape."""
    if not isinstance(pairs, Interactions):
        pairs = sp.csr_matrix(pairs, copy=True)
        pairs.sum_duplicates()
        pairs.eliminate_zeros()  # SciPy stores zeros, too
    found = tuple(pairs.shape or ())
    if found != shape:
        raise ValueError(f"{name} has shape {found}; it must be {shape}, the vectors of left and of right")
    return sp.csr_matrix((np.ones(len(pairs.indices), bool), pairs.indices, pairs.indptr), shape)


def prefix_cooccurrence(codes: ArrayLike, interactions: Interactions, k: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """How far prefixes of items' codes agree with users' histories: probe D3 of SIDInspector (Ding et al. 2026,
    arXiv:2606.10375).

    The k items that most users have together with an item are its neighbours; users of more than 200 items are left
    out, as there. Of items with equally many users each is as likely. One code for all items gives 1, so compare with
    the second result.

    Parameters
    ----------
    codes: (n, levels) integers, row i those of `interactions.right_ids[i]`: `SemanticIds.ids_`, or categories in one
        column. Items of -1 have no codes and do not count.
    interactions: pairs of users and n items, best apart from those that the codes were made of.
    k: neighbours of an item.

    Returns
    -------
    shares: (levels,), the share of the neighbours that have an item's first 1, 2, ... codes, the mean of the items that
        have neighbours; 0 without any.
    chance: (levels,), the same of k random items.

    Examples
    --------
    >>> pairs = nk.Interactions.from_pairs([0, 0, 1, 1], [0, 1, 2, 3])
    >>> nk.metrics.prefix_cooccurrence([[0, 0], [0, 1], [1, 0], [2, 0]], pairs)
    (array([0.5, 0. ]), array([0.16666667, 0.        ]))
    """
    n, pairs = check_instance(interactions, "interactions", Interactions).shape[1], interactions.matrix()
    codes, k = as_array(codes, "codes"), check_integer(k, "k", low=1)
    if codes.dtype.kind not in "iu" or codes.ndim != 2 or len(codes) != n:
        raise ValueError(
            f"codes has shape {codes.shape} and dtype {codes.dtype}; it must be integers ({n}, levels), a "
            "row for each of interactions.right_ids"
        )
    coded = codes[:, 0] >= 0
    codes, pairs = codes[coded], pairs[:, coded].astype(bool).astype(np.int64)
    pairs = pairs[np.diff(pairs.indptr) <= _LONG_HISTORY]
    shared, shares = sp.csr_matrix(pairs.T @ pairs), [np.zeros(codes.shape[1])]
    shared.setdiag(0)
    shared.eliminate_zeros()
    for item in np.flatnonzero(np.diff(shared.indptr)):
        _, others, users = sp.find(shared[[item]])
        least = np.sort(users)[-min(k, len(users))]
        above, level = users > least, users == least
        weights = above + level * (min(k, len(users)) - above.sum()) / level.sum()
        shares.append(weights @ np.cumprod(codes[others] == codes[item], axis=1) / weights.sum())
    counts = [np.unique(codes[:, : depth + 1], axis=0, return_counts=True)[1] for depth in range(codes.shape[1])]
    chance = [float((count * (count - 1)).sum()) / max(len(codes) * (len(codes) - 1), 1) for count in counts]
    return np.sum(shares, axis=0) / max(len(shares) - 1, 1), np.array(chance)
