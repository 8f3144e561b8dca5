"""Candidates of byte codes by FAISS's fast scan of 4-bit codes, compared by their bytes.

A row's coarse code has 16 centroids a place, which FAISS scans many times faster than bytes (Andre et al., VLDB 2015),
and its `IndexRefine` compares the candidates by their bytes. Of a product code every byte is a place, whose 256
centroids are merged to 16 by k-means. A sum of centroids has four places a byte, to which the principal axes of random
sums are dealt, and whose 16 centroids are learned from these sums. So coarse codebooks follow from codebooks, and
coarse codes from the bytes alone: the first search makes them, whatever was searched or changed before. They are not
saved, and take half as much memory again as product codes, twice as much as sums.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeGuard

import faiss
import numpy as np

from nearkin._faiss import add_codes, byte_codes
from nearkin._threads import serial_products
from nearkin.index import faiss_index
from nearkin.linalg.orthonormal import principal_axes

_BITS = 8  # of a product code that is merged to 4
_PLACES = 8  # of a row, at least: with fewer, coarse codes tell too little
_MERGED, _ROUNDS = 16, 10  # centroids of a coarse codebook, and rounds of k-means
_SUMS = 2_048  # random sums of centroids
_AXES = 4  # of a place, at most
_ROWS, _ROWS_OF_SUMS = 8, 40  # rows a candidate, at least; with fewer, comparing all bytes takes no longer
_TRIED_ROWS = 16_384  # the first rows, which are tried
_STEP = 1 << 20  # numbers of decoded rows that are translated at a time
_TRIED, _NEIGHBOURS = 128, 10  # rows searched, and neighbours of each
# share of them that coarse codes must find: sums of sentences, .991, lose .006 of recall; of GIST, .9984, none
_FOUND, _FOUND_OF_SUMS = 0.98, 0.996
_EQUAL = 1e-5  # part by which equal scores may differ
Found = tuple[np.ndarray, np.ndarray]  # scores and positions (q, k)
Compare = Callable[[np.ndarray, int, np.ndarray], Found]  # by whole codes: Q (q, d'), k, candidates (q, c)
Coded: TypeAlias = faiss.IndexPQ | faiss.IndexAdditiveQuantizer


class _Made(NamedTuple):
    """Coarse codes, which threads share: nothing but `cut` changes them."""

    scan: faiss.IndexPQFastScan
    means: np.ndarray  # (M, 16, w), the coarse centroids
    numbers: np.ndarray | None  # (M, 256) of the coarse centroids of product codes
    axes: np.ndarray | None  # (d', M w) in front of the scan of sums
    tried: int  # first rows, which decided `good`
    good: bool


class CoarseScan:
    """The coarse codes of the rows of one flat index of codes; threads may search at the same time."""

    def __init__(self) -> None:
        self._made: _Made | None = None

    def search(
        self, inner: Coded, Q: np.ndarray, k: int, wanted: int, compare: Compare | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores and positions (q, k) of the rows of `inner` for queries Q (q, d'), nearest first, of which the best
        `wanted` will be needed; and a mask (q,) of the queries that coarse codes cannot answer. FAISS compares the
        candidates unless `compare` does."""
        made = self._made = _following(self._made, inner)
        if not made.good:
            return np.empty((len(Q), k), np.float32), np.empty((len(Q), k), np.int64), np.ones(len(Q), bool)
        compared = candidates(inner, k if made.numbers is None else wanted)  # those that norms will rank too
        first, compared = _first(made), min(inner.ntotal, max(k, compared))
        if compare is None:
            scores, positions = _refined(first, inner, Q, k, compared)
        else:
            scores, positions = compare(Q, k, first.search(Q, compared)[1])
        # FAISS's fast scan divides by the range of its table, and leaves out rows of the lowest inner product
        return scores, positions, np.logical_or((positions < 0).any(axis=1), ~np.isfinite(scores).all(axis=1))

    def cut(self, n_rows: int) -> None:
        """Leave the first rows, where those behind them change; no thread may search meanwhile."""
        if self._made is None:
            return
        faiss_index.cut(self._made.scan, n_rows)
        if n_rows < self._made.tried:
            self._made = self._made._replace(tried=0)


def _following(made: _Made | None, inner: Coded) -> _Made:
    """The coarse codes of all rows, those that were made before included; of the first rows if they are not good."""
    codes = byte_codes(inner)
    first = min(inner.ntotal, _TRIED_ROWS)
    if made is None or made.scan.ntotal > inner.ntotal:  # rows were taken out of FAISS's index itself
        made = _merged(inner)
    if made.tried == first and (made.scan.ntotal == inner.ntotal or not made.good):
        return made
    made = made._replace(scan=faiss.clone_index(made.scan))
    if made.tried != first:
        _translate(made, inner, codes[:first])
        made = made._replace(tried=first, good=_finds(_first(made), inner, codes[:first]))
    if made.good:
        _translate(made, inner, codes)
    return made


def _merged(inner: Coded) -> _Made:
    """Coarse codebooks, without rows."""
    if isinstance(inner, faiss.IndexPQ):
        axes = None
        means, numbers = merged(faiss.vector_to_array(inner.pq.centroids).reshape(inner.pq.M, -1, inner.pq.dsub))
    else:
        codes = np.random.default_rng(0).integers(0, 256, (_SUMS, inner.code_size), np.uint8)
        sums = inner.sa_decode(codes)
        with serial_products(sums.shape[0] * sums.shape[1] ** 2):
            axes, numbers = _dealt(sums - sums.mean(axis=0), places(inner)), None
        means = merged(_in_places(sums @ axes, places(inner)))[0]
    scan = faiss.IndexPQFastScan(means.shape[0] * means.shape[2], len(means), 4, inner.metric_type)
    faiss.copy_array_to_vector(means.ravel(), scan.pq.centroids)
    scan.is_trained = True
    return _Made(scan, means, numbers, axes, 0, True)


def _dealt(rows: np.ndarray, count: int) -> np.ndarray:
    """The principal axes of centred rows (n, d), those of the largest variance, dealt to `count` places in turn: (d, M
    w); zeros fill up."""
    axes = principal_axes(rows)[0][:, : _AXES * count]
    axes = np.pad(axes, ((0, 0), (0, -axes.shape[1] % count)))
    return np.ascontiguousarray(axes.reshape(len(axes), -1, count).transpose(0, 2, 1).reshape(axes.shape), np.float32)


def _in_places(rows: np.ndarray, count: int) -> np.ndarray:
    """Rows (n, M w) as (M, n, w)."""
    return np.ascontiguousarray(rows.reshape(len(rows), count, -1).transpose(1, 0, 2))


def _first(made: _Made) -> faiss.Index:
    """The scan behind its axes."""
    if made.axes is None:
        return made.scan
    turn = faiss.LinearTransform(len(made.axes), made.scan.d, False)
    faiss.copy_array_to_vector(made.axes.T.ravel(), turn.A)
    turn.is_trained = True
    return faiss.IndexPreTransform(turn, made.scan)


def _translate(made: _Made, inner: Coded, codes: np.ndarray) -> None:
    """Add the coarse codes of those of all rows, by their codes (n, bytes), that lack them."""
    step = max(1, _STEP // inner.d)
    for start in range(made.scan.ntotal, len(codes), step):
        some = np.ascontiguousarray(codes[start : start + step])
        if made.numbers is None:
            by_place = _nearest(_in_places(inner.sa_decode(some) @ made.axes, len(made.means)), made.means)
        else:
            by_place = np.stack([own.take(code) for own, code in zip(made.numbers, some.T, strict=True)])
        pairs = by_place[::2].copy()
        pairs[: len(by_place) // 2] |= by_place[1::2] << 4
        add_codes(made.scan, np.ascontiguousarray(pairs.T))


def _refined(first: faiss.Index, whole: faiss.Index, Q: np.ndarray, k: int, compared: int) -> Found:
    """The best k for queries Q (q, d') of candidates of the first index, `compared` in number and at least k."""
    some = faiss.IndexRefineSearchParameters(k_factor=max(1, compared / k))
    return faiss.IndexRefine(first, whole).search(Q, k, params=some)


def _finds(first: faiss.Index, inner: Coded, codes: np.ndarray) -> bool:
    """Whether the scan of rows of these codes (n, bytes) finds the nearest of some of them. It does not if one centroid
    lies far out: the fast scan rounds its tables to 8 bits."""
    some, rows = faiss.IndexFlat(inner.d, inner.metric_type), inner.sa_decode(codes)
    some.add(rows)
    Q, k = rows[:: -(-len(rows) // _TRIED)], min(_NEIGHBOURS, len(rows))
    true, found = some.search(Q, k)[0], _refined(first, some, Q, k, candidates(inner, k, len(rows)))[0]
    if inner.metric_type == faiss.METRIC_INNER_PRODUCT:
        true, found = -true, -found
    share = float((found <= true[:, -1:] + _EQUAL * np.abs(true[:, -1:])).mean())
    return share >= (_FOUND if isinstance(inner, faiss.IndexPQ) else _FOUND_OF_SUMS)


def places(inner: faiss.Index) -> int:
    """Coarse centroids of a row of this index; 0 for one without coarse codes."""
    if isinstance(inner, faiss.IndexAdditiveQuantizer):
        if inner.metric_type != faiss.METRIC_L2:  # unit vectors of sentences lost .011 of ten neighbours
            return 0
        return int(faiss.vector_to_array(inner.aq.nbits).sum()) // 2
    return inner.pq.M if isinstance(inner, faiss.IndexPQ) and inner.pq.nbits == _BITS else 0


def candidates(inner: faiss.Index, k: int, n_rows: int | None = None) -> int:
    """Rows, of all or of some, that are compared by their bytes where k are wanted.

    They have 99 % of the k nearest by bytes (k of 10, 40, 100; 2026-11), and of fewer, which get the candidates of 10:
    SIFT, 12,500 and 100,000 rows, 8 to 32 bytes; 30,000 sentences, axis codes of 50, 98, 194; 200,000 normal rows of
    variances 1/i, 16 and 32; MNIST, 16.
    """
    k, n = max(k, _NEIGHBOURS), inner.ntotal if n_rows is None else n_rows
    share = 50 if isinstance(inner, faiss.IndexPQ) else 100
    return 6 * k + int(share * (k * n) ** 0.5 / places(inner) ** 1.5)


def serves(inner: faiss.Index, k: int) -> TypeGuard[Coded]:
    """Whether coarse codes may serve a search for k rows of this index. Without AVX2 or a like set FAISS scans
    4-bit codes more slowly than bytes."""
    if places(inner) < _PLACES or faiss.SIMDConfig.get_level_name() == "NONE":
        return False
    return inner.ntotal >= (_ROWS if isinstance(inner, faiss.IndexPQ) else _ROWS_OF_SUMS) * candidates(inner, k)


def merged(books: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """16 centroids (M, 16, w) float32 for the points (M, n, w) of each place, and the number (M, n) uint8 of each
    one's."""
    points = np.ascontiguousarray(books, np.float64)
    # at random: the points that lie farthest apart would spoil the scan's tables
    means = points[:, np.random.default_rng(0).permutation(points.shape[1])[:_MERGED]]
    for _ in range(_ROUNDS):
        members = (_nearest(points, means)[:, None] == np.arange(_MERGED)[:, None]).astype(np.float64)
        sizes = members.sum(axis=2, keepdims=True)
        means = np.where(sizes > 0, members @ points / np.maximum(sizes, 1), means)
    return means.astype(np.float32), _nearest(points, means)


def _nearest(points: np.ndarray, means: np.ndarray) -> np.ndarray:
    """The number (M, K) of the mean (M, 16, w) nearest to each point (M, K, w)."""
    scores = np.square(means).sum(axis=2)[:, None] - 2 * (points @ means.transpose(0, 2, 1))
    return scores.argmin(axis=2).astype(np.uint8)
