"""Exact sums of flat codes by tables, and candidates for codes by FAISS's fast scan of 4-bit codes.

A row's coarse code has 16 centroids a place, which FAISS scans many times faster than bytes (Andre et al., VLDB 2015),
and the candidates are compared by their whole codes. Product codes of 4 bits, in lists too, are scanned themselves:
only the rounding of the scan is undone. Of flat product codes of 8 bits every byte is a place, whose 256 centroids
are merged to 16 by k-means. A sum of centroids has four places a byte, to which the principal axes of random sums are
dealt, and whose 16 centroids are learned from these sums. So coarse codebooks follow from codebooks, and coarse codes
from the codes alone: the first search makes them, whatever was searched or changed before. They are not saved. In
memory they take as much again as product codes, and four times as much as sums: once for the scan, once for rows to
come. Other codes in inverted lists FAISS searches alone.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias, TypeGuard, cast

import faiss
import numpy as np

from nearkin._faiss import add_codes, linear_transform
from nearkin._threads import serial_products
from nearkin.index.faiss_index import byte_codes, cut, fast_scan, follow, nearest_lists, search_lists
from nearkin.index.identifiers import Found
from nearkin.linalg.orthonormal import principal_axes

_PLACES = 8  # of a row, at least: with fewer, coarse codes tell too little
_PLAIN = 4  # bits of a coarse code
_MERGED, _ROUNDS = 16, 10  # centroids of a coarse codebook, and rounds of k-means
_SUMS = 2_048  # random sums of centroids
_AXES = 4  # of a place, at most
_ROWS, _ROWS_BY_US = 8, 40  # rows a candidate, at least, where FAISS compares candidates, and where we do
_TRIED_ROWS = 16_384  # the first rows, at most, which are tried
_STEP = 1 << 20  # numbers of decoded rows at a time
_NEIGHBOURS = 10, 100  # of each query of a trial
_NUMBERS = 1 << 21  # numbers of queries' tables at a time
_FACTORS = (1, 2, 4, 8)  # times the usual candidates, the fewest that lose no more than this share of the neighbours
_LOST = 0.002
_EQUAL = 1e-5  # part by which equal scores may differ
# of a number of first rows: queries (q, d'), and their scores (q, n) of these rows that count, smaller is nearer
Tried = Callable[[int], tuple[np.ndarray, np.ndarray]]
# by whole codes: queries Q (q, d'), k, candidates (q, c)
Compare = Callable[[np.ndarray, int, np.ndarray], Found]
Coded: TypeAlias = faiss.IndexPQ | faiss.IndexAdditiveQuantizer | faiss.IndexIVFPQ


class CodeSums:
    """Squared distances of queries from the sums of centroids of one index, by tables of inner products: of a query q
    and a row r, |q - r|^2 = |q|^2 - 2 <q, r> + |r|^2, where <q, r> adds up an entry of the table of each codebook, and
    |r|^2 is kept, four bytes a row. To save digits, all are about the row whose codes are 0."""

    def __init__(self, inner: faiss.IndexAdditiveQuantizer) -> None:
        coder = faiss.downcast_AdditiveQuantizer(inner.aq)
        splits = coder.nsplits if isinstance(coder, faiss.ProductAdditiveQuantizer) else 1
        books = faiss.vector_to_array(coder.codebooks).reshape(coder.M, -1, inner.d // splits)
        self._M, self._bits = int(coder.M), int(faiss.vector_to_array(coder.nbits)[0])
        self._books = (books - books[:, :1]).reshape(splits, -1, inner.d // splits)
        self._middle = coder.decode(np.zeros((1, inner.code_size), np.uint8))
        self._codes, step = byte_codes(inner), max(1, _STEP // inner.d)
        self._squares = np.empty(len(self._codes), np.float32)
        for some in (slice(first, first + step) for first in range(0, len(self._codes), step)):
            rows = coder.decode(np.ascontiguousarray(self._codes[some])) - self._middle
            self._squares[some] = np.einsum("nd,nd->n", rows, rows)

    def compare(self, Q: np.ndarray, k: int, candidates: np.ndarray) -> Found:
        """Distances and positions (q, k) of the nearest of candidates (q, c) to queries Q (q, d), nearest first; -1 for
        none."""
        return best_of(np.stack([*self._distances(Q, candidates)]), candidates, k, True)

    def search(self, Q: np.ndarray, k: int) -> Found:
        """Distances and positions (q, k) of the nearest rows to queries Q (q, d), nearest first."""
        best, rows = faiss.ResultHeap(len(Q), k), np.arange(len(self._codes))[None]
        for query, distances in enumerate(self._distances(Q, [slice(None)] * len(Q))):
            best.add_result_subset(np.array([query]), distances[None], rows)
        best.finalize()
        return best.D, best.I

    def _distances(self, Q: np.ndarray, rows: Iterable[np.ndarray | slice]) -> Iterator[np.ndarray]:
        """Of each query (q, d) from the rows (c,) that belong to it."""
        asked = Q - self._middle
        products = asked.reshape(len(Q), len(self._books), -1).transpose(1, 0, 2) @ self._books.transpose(0, 2, 1)
        tables = 2 * products.transpose(1, 0, 2).reshape(len(Q), self._M, -1)
        for query, table, some in zip(asked, tables, rows, strict=True):
            numbers = self._codes[some]
            if self._bits != 8:
                numbers = faiss.unpack_bitstrings(np.ascontiguousarray(numbers), self._M, self._bits)
            distances = self._squares[some] + query @ query
            for entries, number in zip(table, numbers.T, strict=True):
                distances -= entries.take(number)
            yield np.maximum(distances, 0)


class _Made(NamedTuple):
    """Coarse codes, which threads share and nothing changes."""

    codes: faiss.Index  # those of the index itself where `means` is None
    scan: faiss.Index  # of these, behind its axes
    n_rows: int  # of these that still stand
    means: np.ndarray | None  # (M, 16, w), the coarse centroids
    numbers: np.ndarray | None  # (M, 256) of the coarse centroids of product codes
    axes: np.ndarray | None  # (d', M w) in front of the scan of sums
    tried: int  # rows that decided `factor`
    factor: int  # times the usual candidates; 0 where even the most lose too many neighbours


class CoarseScan:
    """The coarse codes of the rows of one index of codes; threads may search at the same time."""

    def __init__(self) -> None:
        self._made: _Made | None = None

    def search(
        self, inner: Coded, Q: np.ndarray, k: int, wanted: int, tried: Tried, compare: Compare | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores and positions (q, k) of the rows of `inner` for queries Q (q, d'), nearest first, of which the best
        `wanted` will be needed; and a mask (q,) of the queries that coarse codes cannot answer. FAISS compares the
        candidates unless `compare` does, which it must for sums and inverted lists."""
        made = self._made = _following(self._made, inner, tried)
        scores, positions = np.empty((len(Q), k), np.float32), np.full((len(Q), k), -1, np.int64)
        sought = wanted if made.axes is None else k  # those that norms will rank too
        if serves(inner, sought, made.factor):
            compared = min(inner.ntotal, max(k, made.factor * candidates(inner, sought)))
            how = faiss.IndexRefineSearchParameters(k_factor=max(1, compared / k))
            probes = inner.nprobe if isinstance(inner, faiss.IndexIVF) else 1
            step = max(1, _NUMBERS // (256 * inner.code_size + _MERGED * coarse_places(inner) * probes))
            for some in (slice(first, first + step) for first in range(0, len(Q), step)):
                if compare is None:
                    scores[some], positions[some] = faiss.IndexRefine(made.scan, inner).search(Q[some], k, params=how)
                else:
                    scanned = _scanned(made, inner, Q[some], compared)
                    scores[some], positions[some] = compare(Q[some], k, scanned)
        # FAISS's fast scan divides by the range of its table, and leaves out rows of the lowest inner product
        return scores, positions, np.logical_or((positions < 0).any(axis=1), ~np.isfinite(scores).all(axis=1))

    def cut(self, n_rows: int) -> None:
        """Leave the first rows; no thread may search meanwhile."""
        if self._made is not None and n_rows < self._made.n_rows:
            tried = self._made.tried if n_rows >= self._made.tried else 0
            self._made = self._made._replace(n_rows=n_rows, tried=tried)


def _scanned(made: _Made, inner: Coded, Q: np.ndarray, compared: int) -> np.ndarray:
    """Positions (q, compared) of the candidates for queries Q (q, d'), -1 for none."""
    if not isinstance(inner, faiss.IndexIVF):
        return made.scan.search(Q, compared)[1]
    lists = cast(faiss.IndexIVF, made.scan)
    return search_lists(lists, Q, compared, *nearest_lists(inner, Q, inner.nprobe))[1]


def _following(made: _Made | None, inner: Coded, tried: Tried) -> _Made:
    """The coarse codes of all rows, those that were made before included; of the first rows if they do not serve. A
    power of two of them is tried, so that the result depends on these rows alone, not on how they came."""
    first = 1 << min(inner.ntotal, _TRIED_ROWS).bit_length() >> 1
    if made is None or made.n_rows > inner.ntotal:  # rows were taken out of FAISS's index itself
        made = _merged(inner)
    if first != made.tried:
        made = _translated(made, inner, first)
        made = made._replace(tried=first, factor=_factor(made, inner, *tried(first)))
    if made.n_rows == made.scan.ntotal == inner.ntotal or not made.factor:
        return made
    return _translated(made, inner, inner.ntotal)


def _merged(inner: Coded) -> _Made:
    """Coarse codebooks, without rows."""
    axes, numbers = None, None
    if isinstance(inner, faiss.IndexPQ | faiss.IndexIVFPQ):
        if inner.pq.nbits == _PLAIN:
            return _Made(inner, inner, 0, None, None, None, 0, 1)
        means, numbers = merged(faiss.vector_to_array(inner.pq.centroids).reshape(inner.pq.M, -1, inner.pq.dsub))
    else:
        sums = inner.aq.decode(np.random.default_rng(0).integers(0, 256, (_SUMS, inner.code_size), np.uint8))
        with serial_products(sums.shape[0] * sums.shape[1] ** 2):
            axes = _dealt(sums - sums.mean(axis=0), coarse_places(inner))
        means = merged(_in_places(sums @ axes, coarse_places(inner)))[0]
    codes = faiss.IndexPQ(means.shape[0] * means.shape[2], len(means), _PLAIN, inner.metric_type)
    faiss.copy_array_to_vector(means.ravel(), codes.pq.centroids)
    codes.is_trained = True
    return _Made(codes, codes, 0, means, numbers, axes, 0, 1)


def _translated(made: _Made, inner: Coded, last: int) -> _Made:
    """With the coarse codes of the rows up to `last`, and their scan."""
    codes, step = inner if made.means is None else made.codes, max(1, _STEP // inner.d)
    if codes is not inner or last < codes.ntotal:
        codes = faiss.clone_index(codes)
        if made.means is None and isinstance(codes, faiss.IndexPQ):
            follow(codes, inner, last)
        else:
            cut(codes, last if made.means is None else min(made.n_rows, last))
    for start in range(codes.ntotal, last, step):
        whole = np.ascontiguousarray(byte_codes(inner)[start : min(start + step, last)])
        if made.numbers is None:
            sums = cast(faiss.IndexAdditiveQuantizer, inner).aq.decode(whole)
            by_place = _nearest(_in_places(sums @ made.axes, coarse_places(inner)), cast(np.ndarray, made.means))
        else:
            by_place = np.stack([place.take(code) for place, code in zip(made.numbers, whole.T, strict=True)])
        add_codes(codes, faiss.pack_bitstrings(np.ascontiguousarray(by_place.T, np.int32), _PLAIN))
    if isinstance(codes, faiss.IndexIVFPQ):
        scan = fast_scan(codes)
        scan.nprobe = scan.nlist  # in the trial; a search names its lists
    else:
        scan = faiss.IndexPQFastScan(cast(faiss.IndexPQ, codes))
    whole_scan = scan if made.axes is None else faiss.IndexPreTransform(linear_transform(made.axes), scan)
    return made._replace(codes=codes, scan=whole_scan, n_rows=last)


def _dealt(rows: np.ndarray, count: int) -> np.ndarray:
    """The principal axes of centred rows (n, d), those of the largest variance, dealt to `count` places in turn: (d, M
    w); zeros fill up."""
    axes = principal_axes(rows)[0][:, : _AXES * count]
    axes = np.pad(axes, ((0, 0), (0, -axes.shape[1] % count)))
    return np.ascontiguousarray(axes.reshape(len(axes), -1, count).transpose(0, 2, 1).reshape(axes.shape), np.float32)


def _in_places(rows: np.ndarray, count: int) -> np.ndarray:
    """Rows (n, M w) as (M, n, w)."""
    return np.ascontiguousarray(rows.reshape(len(rows), count, -1).transpose(1, 0, 2))


def _factor(made: _Made, inner: Coded, Q: np.ndarray, scores: np.ndarray) -> int:
    """How many times the usual candidates the scan of the first rows must take to find the nearest to queries Q (q, d')
    by scores (q, n); 0 if the most are too few, as where one centroid lies far out: the fast scan rounds its tables to
    8 bits."""
    n_rows, needed = scores.shape[1], 0
    depths = [min(count, n_rows) for count in _NEIGHBOURS]
    positions = made.scan.search(Q, min(n_rows, _FACTORS[-1] * candidates(inner, depths[-1], n_rows)))[1]
    reached = np.where(positions < 0, np.inf, np.take_along_axis(scores, np.maximum(positions, 0), axis=1))
    limits = np.partition(scores, [k - 1 for k in depths], axis=1)
    for k in depths:
        usual, limit = candidates(inner, k, n_rows), limits[:, k - 1 : k]
        near = reached <= limit + _EQUAL * np.abs(limit)
        halves = (np.array_split(np.minimum(near[:, : f * usual].sum(axis=1), k) / k, 2) for f in _FACTORS)
        shares = [min(half.mean() for half in both) for both in halves]
        if shares[-1] < 1 - _LOST:
            return 0
        needed = max(needed, next(factor for factor, share in zip(_FACTORS, shares, strict=True) if share >= 1 - _LOST))
    return needed


def coarse_places(inner: faiss.Index) -> int:
    """Coarse centroids of a row of this index; 0 for one without coarse codes."""
    if isinstance(inner, faiss.IndexPQ | faiss.IndexIVFPQ):
        bits = (_PLAIN, 8) if isinstance(inner, faiss.IndexPQ) else (_PLAIN,)
        return inner.pq.M if inner.pq.nbits in bits else 0
    # by inner products unit vectors of sentences lost .011 of ten neighbours
    if isinstance(inner, faiss.IndexAdditiveQuantizer) and inner.metric_type == faiss.METRIC_L2:
        return inner.aq.tot_bits // 2
    return 0


def candidates(inner: faiss.Index, k: int, n_rows: int | None = None) -> int:
    """The usual number of rows, of all or of some, that are compared by their whole codes where k are wanted; fewer
    than 10 get the candidates of 10. A trial of each index decides how many times as many it takes."""
    k, n = max(k, _NEIGHBOURS[0]), inner.ntotal if n_rows is None else n_rows
    if isinstance(inner, faiss.IndexPQ | faiss.IndexIVFPQ) and inner.pq.nbits == _PLAIN:  # which the scan rounds
        return 3 * k + 30
    share = 50 if isinstance(inner, faiss.IndexPQ) else 100
    return 6 * k + int(share * (k * n) ** 0.5 / coarse_places(inner) ** 1.5)


def serves(inner: faiss.Index, k: int, factor: int = 1) -> TypeGuard[Coded]:
    """Whether coarse codes may serve a search for k rows of this index with `factor` times the usual candidates.
    Without AVX2 or a like set FAISS scans 4-bit codes more slowly than bytes."""
    if not factor or coarse_places(inner) < _PLACES or faiss.SIMDConfig.get_level_name() == "NONE":
        return False
    visited = min(1, inner.nprobe / inner.nlist) if isinstance(inner, faiss.IndexIVF) else 1
    rows = _ROWS if isinstance(inner, faiss.IndexPQ) else _ROWS_BY_US
    return inner.ntotal * visited >= rows * factor * candidates(inner, k)


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


def best_of(scores: np.ndarray, candidates: np.ndarray, k: int, by_distance: bool) -> Found:
    """The best k of each query's candidates (n, c) by their scores (n, c), best first; candidates of -1 are last.

    Equal scores keep their order, except about the k-th.
    """
    scores[candidates < 0] = np.float32(np.inf if by_distance else -np.inf)
    keys, rows, c = scores if by_distance else -scores, np.arange(len(scores))[:, None], scores.shape[1]
    if 2 * k < c:
        few = np.sort(keys.argpartition(k - 1, axis=1)[:, :k], axis=1) + c * rows
        order = few.take(keys.take(few).argsort(axis=1, kind="stable") + k * rows)
    else:
        order = keys.argsort(axis=1, kind="stable")[:, :k] + c * rows
    return scores.take(order), candidates.take(order)
