"""Exact neighbours: candidates by FAISS in float32, decided in float64.

For many queries FAISS expands |q - x|^2 = |q|^2 + |x|^2 - 2 <q, x>, which loses the digits of a common offset and of
near duplicates. So rows and queries are taken about a middle, a few candidates more than wanted are found, and their
distances are formed again in float64. The last candidate's distance and the bound of float32's rounding prove that no
other row is nearer; queries without this proof are answered in float64. Neither the batch nor the number of threads
changes a result.

With u = 2^-24, rounding changes a squared distance by at most g (|q| + |x|)^2 and a product by at most g |q| |x|, where
g = (d + 8) u (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1). A row x at distance t has
|x| <= |q| + t, and (2 |q| + t)^2 <= 8 |q|^2 + 2 t^2.
"""

from collections.abc import Iterable, Iterator

import faiss
import numpy as np

from nearkin._faiss import METRIC_TYPES

_SPARE = 4  # candidates beyond those wanted
_BLOCK = 1 << 22  # numbers of rows about the middle at a time
_SAMPLE = 256  # rows of which the middle is the median
_TABLE = 1 << 22  # float64 keys of some queries and all rows at a time
_PAIRS = 1 << 17  # numbers of pairs compared at a time, which stay in the cache
_FLOAT32, _FLOAT64 = 2.0**-24, 2.0**-53  # unit roundoff


def nearest(
    rows: np.ndarray, queries: np.ndarray, k: int, metric: str = "l2", longest: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (q, min(k, n)) float64 and numbers int64 of the rows (n, d) nearest to queries (q, d), nearest first;
    equal ones by number.

    metric: "l2" for squared distances, "ip" for products, "cosine" for rows and queries that are of norm 1 but for
        rounding, which then changes no order, or zero.
    longest: the largest norm of the rows, if it is known; only products need it.
    """
    rows, queries = (np.asarray(X, None if X.dtype == np.float64 else np.float32, order="C") for X in (rows, queries))
    k = min(k, len(rows))
    if not k or not len(queries):
        return np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    numbers, others = _candidates(rows, queries, min(len(rows), k + _SPARE), metric, longest)
    numbers.sort(axis=1)  # equal keys keep this order
    keys = pair_keys(rows, queries, numbers, np.arange(len(queries)), metric)
    best = keys.argsort(axis=1, kind="stable")[:, :k]
    keys, numbers = np.take_along_axis(keys, best, axis=1), np.take_along_axis(numbers, best, axis=1)
    unproven, step = np.flatnonzero(~(keys[:, -1] < others)), max(1, _TABLE // len(rows))
    for some in (unproven[first : first + step] for first in range(0, len(unproven), step)):
        keys[some], numbers[some] = _in_float64(rows, queries[some], k, metric)
    return (keys if metric == "l2" else -keys), numbers


def nearest_of_parts(
    parts: Iterable[tuple[np.ndarray, np.ndarray]], queries: np.ndarray, k: int, metric: str = "l2"
) -> tuple[np.ndarray, np.ndarray]:
    """As `nearest`, of rows that come in parts: ascending ids (m,), and rows (m, d)."""
    scores, ids = np.empty((len(queries), 0)), np.empty((len(queries), 0), np.int64)
    for own, rows in parts:
        found, numbers = nearest(rows, queries, k, metric)
        scores, ids = np.hstack([scores, found]), np.hstack([ids, own[numbers]])
        best = (scores if metric == "l2" else -scores).argsort(axis=1, kind="stable")[:, :k]
        scores, ids = np.take_along_axis(scores, best, axis=1), np.take_along_axis(ids, best, axis=1)
    return scores, ids


def keys_of_pairs(X: np.ndarray, Q: np.ndarray, metric: str) -> np.ndarray:
    """Squared distances, minus products or minus cosines (...) float64, smaller is nearer, of vectors X and Q (..., d);
    0 for the cosine of a zero vector."""
    X, Q = X.astype(np.float64), Q.astype(np.float64)
    if metric == "l2":
        X -= Q
        return np.einsum("...d,...d->...", X, X)
    products = -np.einsum("...d,...d->...", X, Q)
    if metric == "cosine":
        products /= np.maximum(_norms(X) * _norms(Q), np.finfo(np.float64).tiny)
    return products


def _norms(X: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("...d,...d->...", X, X))


def pair_keys(
    rows: np.ndarray, queries: np.ndarray, numbers: np.ndarray, owners: np.ndarray, metric: str
) -> np.ndarray:
    """`keys_of_pairs` (m, c) of rows by their numbers (m, c) and of queries by theirs (m,)."""
    keys, step = np.empty(numbers.shape), max(1, _PAIRS // (numbers.shape[1] * rows.shape[1]))
    for some in (slice(first, first + step) for first in range(0, len(numbers), step)):
        keys[some] = keys_of_pairs(rows[numbers[some]], queries[owners[some], None], metric)
    return keys


def _candidates(
    rows: np.ndarray, queries: np.ndarray, wide: int, metric: str, longest: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (q, wide) of candidates, and a lower bound (q,) of the keys of all other rows."""
    products, rounding = metric == "ip", (rows.shape[1] + 8) * _FLOAT32
    few = queries.size < faiss.cvar.distance_compute_blas_threshold  # FAISS then forms differences
    few &= rows.dtype == queries.dtype == np.float32
    middle = np.zeros(rows.shape[1]) if few else middle_of(rows)
    asked = (queries if products or few else queries - middle).astype(np.float32, copy=False)
    best, reach = faiss.ResultHeap(len(queries), wide, keep_max=products), 0.0
    for first, block in [(0, rows)] if few else _blocks(rows, middle.astype(rows.dtype)):
        scores, numbers = faiss.knn(
            asked, block, min(wide, len(block)), metric=METRIC_TYPES["ip" if products else "l2"]
        )
        best.add_result(scores, numbers + first)
        if products and longest is None:
            reach = max(reach, float(np.einsum("nd,nd->n", block, block).max()) ** 0.5)
    best.finalize()
    sizes = _norms(asked.astype(np.float64))
    if products:
        reach = reach if longest is None else longest + float(_norms(middle))
        others = -best.D[:, -1] - queries @ middle - rounding * sizes * reach
    else:
        others = (best.D[:, -1] - 8 * rounding * (0 if few else sizes**2)) / (1 + 2 * rounding)
    if metric == "cosine":  # |q - x|^2 = (|q| - |x|)^2 + 2 |q| |x| (1 - cos), and norms differ from 1 by rounding
        others = (others - 4 * rounding**2) / (1 + rounding) ** 2 / 2 - 1
    others[best.I[:, -1] < 0] = -np.inf  # of scores beyond float32
    return np.maximum(best.I, 0), others if wide < len(rows) else np.full(len(queries), np.inf)


def middle_of(rows: np.ndarray) -> np.ndarray:
    """The lower median (d,) float64 of evenly spaced rows."""
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLE)).astype(np.int64)]
    return np.sort(some, axis=0)[(len(some) - 1) // 2].astype(np.float64)


def _blocks(rows: np.ndarray, middle: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The number of a first row, and rows from it on less the middle, as float32."""
    step = max(1, _BLOCK // rows.shape[1])
    for first in range(0, len(rows), step):
        yield first, (rows[first : first + step] - middle).astype(np.float32, copy=False)


def _in_float64(rows: np.ndarray, queries: np.ndarray, k: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Keys and numbers (q, k) of the nearest rows by products in float64, for distances about the middle; rows within
    rounding of the k-th are compared directly."""
    middle = middle_of(rows) if metric == "l2" else np.zeros(rows.shape[1])
    asked, table, reach = queries - middle, np.empty((len(queries), len(rows))), 0.0
    sizes, step = _norms(asked), max(1, _BLOCK // rows.shape[1])
    if metric == "cosine":
        asked /= np.where(sizes > 0, sizes, 1)[:, None]
    for some in (slice(first, first + step) for first in range(0, len(rows), step)):
        block = rows[some] - middle
        norms = _norms(block)
        reach = max(reach, float(norms.max()))
        if metric == "cosine":
            block /= np.where(norms > 0, norms, 1)[:, None]
        table[:, some] = asked @ -block.T
        if metric == "l2":
            table[:, some] = 2 * table[:, some] + norms**2
    last, rounding = np.partition(table, k - 1, axis=1)[:, k - 1], (rows.shape[1] + 8) * _FLOAT64
    if metric == "l2":
        doubt = 10 * rounding * np.square(sizes) + 2 * rounding * np.maximum(last, 0)
    else:
        doubt = rounding * (sizes * reach if metric == "ip" else 4)
    owners, numbers = np.nonzero(table <= (last + 2 * doubt)[:, None])
    keys = pair_keys(rows, queries, numbers[:, None], owners, metric)[:, 0]
    order = np.lexsort((keys, owners))  # equal keys keep the order of their numbers
    places = order[np.searchsorted(owners, np.arange(len(queries)))[:, None] + np.arange(k)]
    return keys[places], numbers[places]
