"""Candidates of codes by FAISS's fast scan of 4-bit codes, compared by their whole codes.

A row's coarse code has 16 centroids a place, which FAISS scans many times faster than bytes (Andre et al., VLDB 2015),
and the candidates are compared by their codes: by `IndexRefine`, or by tables. Of a product code every subspace is a
place, whose 256 centroids are merged to 16 by k-means; 16 centroids stay, and only the rounding of the scan is undone.
A sum of centroids has four places a byte, to which the principal axes of random sums are dealt, and whose 16 centroids
are learned from these sums. In inverted lists both are of the row's difference from its list's centre. So coarse
codebooks follow from codebooks, and coarse codes from the codes alone: the first search makes them, whatever was
searched or changed before. They are not saved. Twice in memory, for the scan and for rows to come, they take as much
again as product codes, four times as much as sums; a row in a list 28 bytes more.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypeGuard, cast

import faiss
import numpy as np

from nearkin._exact import nearest_lists
from nearkin._faiss import add_codes, byte_codes, linear_transform
from nearkin._threads import serial_products
from nearkin.index import faiss_index
from nearkin.index.identifiers import Found
from nearkin.linalg.orthonormal import principal_axes

_BITS = 4, 8  # of a product code in a subspace
_PLACES = 8  # of a row, at least: with fewer, coarse codes tell too little
_MERGED, _ROUNDS = 16, 10  # centroids of a coarse codebook, and rounds of k-means
_SUMS = 2_048  # random sums of centroids
_AXES = 4  # of a place, at most
_ROWS, _ROWS_BY_TABLES = 8, 40  # rows a candidate, at least, where FAISS compares candidates, and where tables do
_TRIED_ROWS = 16_384  # the first rows, at most, which are tried
_STEP = 1 << 20  # numbers of decoded rows that are translated at a time
_NEIGHBOURS = 10, 100  # of each query of a trial
_TRIED_LISTS = 64  # lists that these visit, at most
_NUMBERS = 1 << 21  # numbers of queries' tables at a time
_FACTORS = (1, 2, 4, 8)  # times the usual candidates, the fewest that lose no more than this share of the neighbours
_LOST = 0.002
_EQUAL = 1e-5  # part by which equal scores may differ
# of a number of first rows: queries (q, d'), and their scores (q, n) of these rows that count, smaller is nearer
Tried = Callable[[int], tuple[np.ndarray, np.ndarray]]
# by whole codes: Q (q, d'), k, candidates (q, c), lists visited (q, p)
Compare = Callable[[np.ndarray, int, np.ndarray, np.ndarray], Found]
Merged: TypeAlias = faiss.IndexPQ | faiss.IndexIVFPQ
Coded: TypeAlias = faiss.IndexPQ | faiss.IndexAdditiveQuantizer | faiss.IndexIVFPQ | faiss.IndexIVFAdditiveQuantizer


class _Made(NamedTuple):
    """Coarse codes, which threads share: nothing but `cut` changes them."""

    codes: Merged
    scan: faiss.IndexPQFastScan | faiss.IndexIVFPQFastScan  # of these
    means: np.ndarray  # (M, 16, w), the coarse centroids
    numbers: np.ndarray | None  # (M, K) of the coarse centroids of product codes
    axes: np.ndarray | None  # (d', M w) in front of the scan of sums
    turn: faiss.LinearTransform | None  # by these; made once, as it takes a tenth of a query
    tried: int  # rows that decided `factor`
    factor: int  # times the usual candidates; 0 where even the most lose too many neighbours


class CoarseScan:
    """The coarse codes of the rows of one index of codes; threads may search at the same time."""

    def __init__(self) -> None:
        self._made: _Made | None = None

    def search(
        self,
        inner: Coded,
        Q: np.ndarray,
        k: int,
        wanted: int,
        tried: Tried,
        compare: Compare | None = None,
        places: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores and positions (q, k) of the rows of `inner` for queries Q (q, d'), nearest first, of which the best
        `wanted` will be needed; and a mask (q,) of the queries that coarse codes cannot answer. FAISS compares the
        candidates unless `compare` does, which it must for inverted lists; `places` (n, 2): of rows in these."""
        made = self._made = _following(self._made, inner, tried, places)
        scores, positions = np.empty((len(Q), k), np.float32), np.full((len(Q), k), -1, np.int64)
        sought = k if made.numbers is None else wanted  # those that norms will rank too
        if serves(inner, sought, made.factor):
            compared = min(inner.ntotal, max(k, made.factor * candidates(inner, sought)))
            step = max(1, _NUMBERS // (256 * inner.code_size + _MERGED * len(made.means) * _probes(inner)))
            for some in (slice(first, first + step) for first in range(0, len(Q), step)):
                if compare is None:
                    how = faiss.IndexRefineSearchParameters(k_factor=max(1, compared / k))
                    both = faiss.IndexRefine(_first(made), inner)
                    scores[some], positions[some] = both.search(Q[some], k, params=how)
                else:
                    visited = _visited(inner, Q[some], _probes(inner))
                    found = _scanned(made, Q[some], compared, visited)
                    scores[some], positions[some] = compare(Q[some], k, found, visited[1])
        # FAISS's fast scan divides by the range of its table, and leaves out rows of the lowest inner product
        return scores, positions, np.logical_or((positions < 0).any(axis=1), ~np.isfinite(scores).all(axis=1))

    def cut(self, n_rows: int) -> None:
        """Leave the first rows; no thread may search meanwhile."""
        if (made := self._made) is not None:
            faiss_index.cut(made.codes, n_rows)
            self._made = made._replace(scan=_fast_scan(made.codes), tried=made.tried if n_rows >= made.tried else 0)


def _following(made: _Made | None, inner: Coded, tried: Tried, places: np.ndarray | None) -> _Made:
    """The coarse codes of all rows, those that were made before included; of the first rows if they do not serve. A
    power of two of them is tried, so that the result depends on these rows alone, not on how they came."""
    first = 1 << min(inner.ntotal, _TRIED_ROWS).bit_length() >> 1
    if made is None or made.codes.ntotal > inner.ntotal:  # rows were taken out of FAISS's index itself
        made = _merged(inner)
    due = first != made.tried
    if due:
        made = _translated(made, inner, places, first)
        made = made._replace(tried=first, factor=_factor(made, inner, *tried(first), places))
    if made.codes.ntotal == inner.ntotal or not made.factor:
        return made
    return _translated(made, inner, places, inner.ntotal)


def _merged(inner: Coded) -> _Made:
    """Coarse codebooks, without rows."""
    axes, numbers = None, None
    if isinstance(inner, faiss.IndexPQ | faiss.IndexIVFPQ):
        means, numbers = merged(faiss.vector_to_array(inner.pq.centroids).reshape(inner.pq.M, -1, inner.pq.dsub))
    else:
        sums = inner.aq.decode(np.random.default_rng(0).integers(0, 256, (_SUMS, inner.code_size), np.uint8))
        with serial_products(sums.shape[0] * sums.shape[1] ** 2):
            axes = _dealt(sums - sums.mean(axis=0), coarse_places(inner))
        means = merged(_in_places(sums @ axes, coarse_places(inner)))[0]
    d, M, metric = means.shape[0] * means.shape[2], len(means), inner.metric_type
    if isinstance(inner, faiss.IndexIVF):
        centres, lists = inner.quantizer.reconstruct_n(0, inner.nlist), faiss.IndexFlat(d, metric)
        lists.add(centres if axes is None else centres @ axes)
        codes = faiss.IndexIVFPQ(lists, d, inner.nlist, M, 4, metric)
    else:
        codes = faiss.IndexPQ(d, M, 4, metric)
    faiss.copy_array_to_vector(means.ravel(), codes.pq.centroids)
    codes.is_trained = True
    if isinstance(codes, faiss.IndexIVFPQ):
        codes.precompute_table()
    turn = None if axes is None else linear_transform(axes)
    return _Made(codes, _fast_scan(codes), means, numbers, axes, turn, 0, 1)


def _fast_scan(codes: Merged) -> faiss.IndexPQFastScan | faiss.IndexIVFPQFastScan:
    """FAISS's fast scan of codes, whose lists it shares."""
    return faiss.IndexPQFastScan(codes) if isinstance(codes, faiss.IndexPQ) else faiss.IndexIVFPQFastScan(codes)


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
    return made.scan if made.turn is None else faiss.IndexPreTransform(made.turn, made.scan)


def _translated(made: _Made, inner: Coded, places: np.ndarray | None, last: int) -> _Made:
    """With the coarse codes of the rows up to `last`."""
    every, step = cast(Merged, faiss.clone_index(made.codes)), max(1, _STEP // inner.d)
    faiss_index.cut(every, last)  # rows behind these were taken out
    for start in range(every.ntotal, last, step):
        some = slice(start, min(start + step, last))
        codes = _codes(inner, places, some)
        if made.numbers is None:
            sums = cast(faiss.IndexAdditiveQuantizer, inner).aq.decode(codes)
            by_place = _nearest(_in_places(sums @ made.axes, len(made.means)), made.means)
        else:
            codes = faiss.unpack_bitstrings(codes, len(made.numbers), 4) if made.numbers.shape[1] == _MERGED else codes
            by_place = np.stack([own.take(code) for own, code in zip(made.numbers, codes.T, strict=True)])
        pairs = by_place[::2].copy()
        pairs[: len(by_place) // 2] |= by_place[1::2] << 4
        coarse = pairs.T
        if isinstance(every, faiss.IndexIVFPQ) and places is not None:
            numbers = places[some, :1].astype("<u4").view(np.uint8)[:, : every.coarse_code_size()]
            coarse = np.hstack([numbers, coarse])
        add_codes(every, np.ascontiguousarray(coarse))
    return made._replace(codes=every, scan=_fast_scan(every))


def _codes(inner: Coded, places: np.ndarray | None, some: slice) -> np.ndarray:
    """Codes (n, bytes) of some rows, without the number of a list."""
    if isinstance(inner, faiss.IndexIVF) and places is not None:
        return faiss_index.codes_at(inner, places[some])
    return np.ascontiguousarray(byte_codes(inner)[some])


def _probes(inner: faiss.Index) -> int:
    """The lists that a search visits, 1 without lists."""
    return min(inner.nprobe, inner.nlist) if isinstance(inner, faiss.IndexIVF) else 1


def _visited(inner: Coded, Q: np.ndarray, count: int) -> Found:
    """The distances and numbers (q, p) of at most `count` lists that queries (q, d') visit; number 0 without lists."""
    if not isinstance(inner, faiss.IndexIVF):
        return np.zeros((len(Q), 1), np.float32), np.zeros((len(Q), 1), np.int64)
    return nearest_lists(inner, Q, count)


def _scanned(made: _Made, Q: np.ndarray, compared: int, visited: Found) -> np.ndarray:
    """Positions (q, compared) of the candidates for queries Q (q, d'), -1 for none."""
    if not isinstance(made.scan, faiss.IndexIVF):
        return _first(made).search(Q, compared)[1]
    asked = np.ascontiguousarray(Q if made.axes is None else Q @ made.axes)
    return faiss_index.search_lists(made.scan, asked, compared, *visited)[1]


def _factor(made: _Made, inner: Coded, Q: np.ndarray, scores: np.ndarray, places: np.ndarray | None) -> int:
    """How many times the usual candidates the scan of the first rows must take to find the nearest to queries Q (q, d')
    by scores (q, n); 0 if the most are too few, as where one centroid lies far out: the fast scan rounds its tables to
    8 bits."""
    visited, n_rows = _visited(inner, Q, _TRIED_LISTS), scores.shape[1]
    if places is not None:
        for own, numbers in zip(scores, visited[1], strict=True):
            own[~np.isin(places[:n_rows, 0], numbers)] = np.inf
    there, needed = int(np.isfinite(scores).sum(axis=1).mean()), 0
    depths = [min(count, n_rows) for count in _NEIGHBOURS]
    found = _scanned(made, Q, min(n_rows, _FACTORS[-1] * candidates(inner, depths[-1], there)), visited)
    own = np.where(found < 0, np.inf, np.take_along_axis(scores, np.maximum(found, 0), axis=1))
    limits = np.partition(scores, [k - 1 for k in depths], axis=1)
    for k in depths:
        usual, limit = candidates(inner, k, there), limits[:, k - 1 : k]
        near = own <= limit + _EQUAL * np.abs(limit)
        halves = (np.array_split(np.minimum(near[:, : f * usual].sum(axis=1), k) / k, 2) for f in _FACTORS)
        shares = [min(half.mean() for half in both) for both in halves]
        if shares[-1] < 1 - _LOST:
            return 0
        needed = max(needed, next(factor for factor, share in zip(_FACTORS, shares, strict=True) if share >= 1 - _LOST))
    return needed


def coarse_places(inner: faiss.Index) -> int:
    """Coarse centroids of a row of this index; 0 for one without coarse codes."""
    if isinstance(inner, faiss.IndexPQ | faiss.IndexIVFPQ) and inner.pq.nbits in _BITS:
        return inner.pq.M
    # by inner products unit vectors of sentences lost .011 of ten neighbours
    sums = isinstance(inner, faiss.IndexAdditiveQuantizer | faiss.IndexIVFAdditiveQuantizer)
    return inner.aq.tot_bits // 2 if sums and inner.metric_type == faiss.METRIC_L2 else 0


def candidates(inner: faiss.Index, k: int, n_rows: int | None = None) -> int:
    """The usual number of rows, of all or of some, that are compared by their bytes where k are wanted; fewer than 10
    get the candidates of 10. A trial of each index decides how many times as many it takes."""
    k, n = max(k, _NEIGHBOURS[0]), _compared(inner) if n_rows is None else n_rows
    product = isinstance(inner, faiss.IndexPQ | faiss.IndexIVFPQ)
    if product and inner.pq.nbits == 4:  # which the scan rounds
        return 3 * k + 30
    share = 50 if product else 100
    return 6 * k + int(share * (k * n) ** 0.5 / coarse_places(inner) ** 1.5)


def _compared(inner: faiss.Index) -> int:
    """Rows that FAISS compares with a query: all, or those of the lists visited."""
    return inner.ntotal * _probes(inner) // inner.nlist if isinstance(inner, faiss.IndexIVF) else inner.ntotal


def serves(inner: faiss.Index, k: int, factor: int = 1) -> TypeGuard[Coded]:
    """Whether coarse codes may serve a search for k rows of this index with `factor` times the usual candidates.
    Without AVX2 or a like set FAISS scans 4-bit codes more slowly than bytes."""
    if not factor or coarse_places(inner) < _PLACES or faiss.SIMDConfig.get_level_name() == "NONE":
        return False
    rows = _ROWS if isinstance(inner, faiss.IndexPQ) else _ROWS_BY_TABLES
    return _compared(inner) >= rows * factor * candidates(inner, k)


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
