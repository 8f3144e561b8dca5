"""Measures of packed codes by Hamming distance that do not depend on vector order.

Hamming distances of L bits take L + 1 values, so most vectors of a ranking are tied, and a measure that breaks ties by
vector number depends on the order of the file. Every measure here is the expectation over all orders of equal
distances. It needs only two histograms per query, vectors and relevant vectors at each distance, which one popcount
pass over the codes
gives: 10,000 queries against 60,000 codes of 64 bits take about three seconds.
"""

# pyright: reportConstantRedefinition=false

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nearkin._check import as_array, check_integer, check_label_pair, check_vectors
from nearkin._types import ArrayLike
from nearkin.metrics.retrieval import tie_groups


@dataclass(frozen=True)
class RankHistograms:
    """How many vectors, and how many relevant ones, (q, D) int64, lie at each of D distances from each query, nearest
    first (McSherry & Najork 2008, Computing information retrieval performance measures efficiently in the presence of
    tied scores).

    >>> found = RankHistograms(np.array([[1, 2]]), np.array([[1, 1]]))  # at 0 a hit, at 1 one of two
    >>> found.precision_at(2), found.average_precision()
    (array([0.75]), array([0.91666667]))
    """

    total: np.ndarray
    relevant: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, hits: np.ndarray) -> "RankHistograms":
        """Those of rankings (q, K) by `scores`, best first, each equal score a distance, with relevant vectors
        `hits`."""
        group, _ = tie_groups(np.column_stack([np.ones(len(scores), bool), scores[:, 1:] != scores[:, :-1]]))
        counts = (np.bincount(group.ravel(), weights, scores.size) for weights in (None, hits.ravel()))
        return cls(*(count.astype(np.int64).reshape(scores.shape) for count in counts))

    def average_precision(self) -> np.ndarray:
        """Return the expected average precision (q,) over all orders of tied vectors; 0 for queries without relevant
        vectors.

        In a group of t vectors with r relevant ones, after n vectors with R relevant ones, the vector at place i is
        relevant with probability r / t and has then R + 1 + (i - 1)(r - 1)/(t - 1) relevant vectors up to itself on
        average. The sum over i is a difference of harmonic numbers (McSherry & Najork 2008, section 3.2).
        """
        t, r = self.total.astype(np.float64), self.relevant.astype(np.float64)
        rows_before, relevant_before = np.cumsum(t, axis=1) - t, np.cumsum(r, axis=1) - r
        harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, int(t.sum(axis=1).max(initial=0)) + 1))])
        before = rows_before.astype(np.int64)
        reciprocal = harmonic[before + self.total] - harmonic[before]  # sum of 1 / (n + i) over the group
        gain = np.divide(r - 1, t - 1, out=np.zeros_like(t), where=t > 1)
        expected = (relevant_before + 1 - gain * (rows_before + 1)) * reciprocal + gain * t
        share = np.divide(r, t, out=np.zeros_like(t), where=t > 0)
        return _divide((share * expected).sum(axis=1), r.sum(axis=1))

    def precision_at(self, k: int) -> np.ndarray:
        """Return the expected share (q,) of relevant vectors among the first k (all vectors, if they are fewer)."""
        k = check_integer(k, "k", low=1)
        before = np.cumsum(self.total, axis=1) - self.total
        taken = np.clip(k - before, 0, self.total)  # of each group of ties
        share = _divide(self.relevant, self.total)
        return _divide((taken * share).sum(axis=1), taken.sum(axis=1))

    def precision_within(self, radius: int) -> np.ndarray:
        """Return the share (q,) of relevant vectors among those within `radius`; 0 without any."""
        radius = check_integer(radius, "radius", low=0)
        return _divide(self.relevant[:, : radius + 1].sum(axis=1), self.total[:, : radius + 1].sum(axis=1))


def hamming_histograms(
    queries: np.ndarray,
    database: np.ndarray,
    query_labels: ArrayLike | None = None,
    database_labels: ArrayLike | None = None,
    *,
    neighbours: ArrayLike | None = None,
) -> RankHistograms:
    """Vectors and relevant vectors at each Hamming distance, 0 to 8 times the bytes of a code; arguments as in
    `hamming_radius_precision`."""
    queries, database = as_array(queries, "queries"), as_array(database, "database")
    for name, codes in (("queries", queries), ("database", database)):
        if codes.dtype != np.uint8 or codes.ndim != 2:
            raise TypeError(
                f"{name} has dtype {codes.dtype} and shape {codes.shape}; it must be packed codes (n, bytes) of uint8"
            )
    if queries.shape[1] != database.shape[1]:
        raise ValueError(f"queries have {queries.shape[1]} bytes and database {database.shape[1]}; give equal width")
    q, n, n_bins = len(queries), len(database), 8 * queries.shape[1] + 1
    if neighbours is None:
        hits = relevant_rows(query_labels, database_labels, q, n)
    else:
        hits = _checked_neighbours(neighbours, q, n)
    words = np.ascontiguousarray(_as_words(database).T)
    total, relevant = np.empty((2, q, n_bins), np.int64)
    for i, (query, found) in enumerate(zip(_as_words(queries), hits, strict=True)):
        distances = np.bitwise_count(words ^ query[:, None]).sum(axis=0, dtype=np.int64)
        total[i] = np.bincount(distances, minlength=n_bins)
        relevant[i] = np.bincount(distances[found], minlength=n_bins)
    return RankHistograms(total, relevant)


def hamming_radius_precision(
    queries: np.ndarray,
    database: np.ndarray,
    query_labels: ArrayLike | None = None,
    database_labels: ArrayLike | None = None,
    *,
    radius: int = 2,
    neighbours: ArrayLike | None = None,
) -> float:
    """Mean precision within a Hamming distance (SCQ's prec@r2); a query that finds nothing counts as 0.

    Parameters
    ----------
    queries, database: packed codes (q, bytes) and (n, bytes) of uint8.
    query_labels, database_labels: (q,) and (n,) classes, or of several labels a row masks (q, c) and (n, c) of dtype
        bool, dense or sparse. A vector is relevant if it has the query's class, or shares one.
    radius: largest distance, in bits.
    neighbours: (q, k) numbers of the query's exact neighbours, -1 for none, which are relevant instead.

    Returns
    -------
    precision: float in [0, 1].

    Examples
    --------
    >>> codes = np.array([[0], [1], [255]], np.uint8)
    >>> nk.metrics.hamming_radius_precision(codes[:1], codes, [7], [7, 8, 7])
    0.5
    """
    histograms = hamming_histograms(queries, database, query_labels, database_labels, neighbours=neighbours)
    return float(histograms.precision_within(radius).mean()) if len(histograms.total) else 0.0


def relevant_rows(
    query_labels: ArrayLike | None, database_labels: ArrayLike | None, q: int, n: int
) -> Iterable[np.ndarray]:
    """For each of q queries, whether each of n vectors has its label or shares one, (n,) bool, as
    `hamming_histograms`."""
    if query_labels is None or database_labels is None:
        raise ValueError("query_labels or database_labels is None; give both, or neighbours (q, k) of exact neighbours")
    left, right = check_label_pair(query_labels, "query_labels", q, database_labels, "database_labels", n)
    if left.ndim == 2:
        columns = right.T.astype(np.float32)
        return (row @ columns > 0 for row in left.astype(np.float32))
    codes = np.unique(np.concatenate([left, right]), return_inverse=True)[1].astype(np.int64)
    return (codes[q:] == code for code in codes[:q])


def _checked_neighbours(neighbours: ArrayLike, q: int, n: int) -> list[np.ndarray]:
    """The different neighbours of each query; -1 pads."""
    ids = as_array(neighbours, "neighbours")
    if ids.ndim != 2 or len(ids) != q or ids.dtype.kind not in "iu":
        raise ValueError(f"neighbours has shape {ids.shape} and dtype {ids.dtype}; it must be integers ({q}, k)")
    if ids.size and (ids.min() < -1 or ids.max() >= n):
        raise ValueError(f"neighbours holds {ids.min()}..{ids.max()}; it must hold row numbers within 0..{n - 1}")
    return [np.unique(row[row >= 0]) for row in ids]


def _as_words(codes: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))).view(np.uint64)


def _divide(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    return np.divide(numerator, denominator, out=np.zeros(numerator.shape, np.float64), where=denominator > 0)


def distortion(X: ArrayLike, reconstructed: ArrayLike) -> float:
    """Mean squared L2 distance between vectors and their reconstructions, summed in float64.

    Parameters
    ----------
    X: (n, d) vectors.
    reconstructed: (n, d), as from `decode`.

    Returns
    -------
    distortion: float >= 0, in squared units of X.

    Examples
    --------
    >>> nk.metrics.distortion([[0.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 1.0]])
    0.5
    """
    X, reconstructed = check_vectors(X, exact=True), check_vectors(reconstructed, name="reconstructed", exact=True)
    if X.shape != reconstructed.shape:
        raise ValueError(f"reconstructed has shape {reconstructed.shape}; X has {X.shape}, and they must agree")
    blocks = (slice(i, i + 4096) for i in range(0, len(X), 4096))  # no second array of X's size
    squared = (np.square(np.subtract(X[i], reconstructed[i], dtype=np.float64)).sum() for i in blocks)
    return float(sum(squared)) / len(X)
