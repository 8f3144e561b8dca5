"""Candidates of product codes by FAISS's fast scan, compared by their bytes.

The 256 centroids of each byte are merged to 16 by k-means. A row's coarse code is then four bits a byte, which FAISS
scans many times faster than bytes (Andre et al., VLDB 2015), and its `IndexRefine` compares the candidates by their
bytes. Coarse codes follow from the bytes alone: the first search makes them, whatever was searched or changed before.
They are not saved, and take half as much memory again as the codes.
"""

from typing import NamedTuple

import faiss
import numpy as np

from nearkin._faiss import add_codes, byte_codes
from nearkin.index import faiss_index

_BITS = 8  # of a code that is merged to 4
_BYTES = 8  # of a row, at least: with fewer, coarse codes tell too little
_MERGED, _ROUNDS = 16, 10  # centroids of a coarse codebook, and rounds of k-means
_ROWS = 8  # rows a candidate, at least; with fewer, FAISS compares all bytes
_CHUNK = 16_384  # rows translated at a time; the first of them are tried
_TRIED, _NEIGHBOURS, _FOUND = 32, 10, 0.98  # rows searched, of which the coarse codes must find that share
_EQUAL = 1e-5  # part by which equal scores may differ
Found = tuple[np.ndarray, np.ndarray]  # scores and positions (q, k)


class _Made(NamedTuple):
    """Coarse codes, which threads share: nothing but `cut` changes them."""

    scan: faiss.IndexPQFastScan
    numbers: np.ndarray  # (M, 256) of the coarse centroids
    tried: int  # first rows, which decided `good`
    good: bool


class CoarseScan:
    """The coarse codes of the rows of one flat index of product codes; threads may search at the same time."""

    def __init__(self) -> None:
        self._made: _Made | None = None

    def search(self, inner: faiss.IndexPQ, Q: np.ndarray, k: int, wanted: int) -> Found | None:
        """FAISS's scores and positions (q, k) of the rows of `inner` for queries Q (q, d'), nearest first; of these
        the best `wanted` will be needed. None where coarse codes find too little."""
        made = self._made = _following(self._made, inner)
        if not made.good:
            return None
        scores, positions = _refined(made.scan, inner, Q, k, candidates(inner, wanted))
        # FAISS's fast scan divides by the range of its table, and leaves out rows of the lowest inner product
        failed = (positions < 0).any(axis=1) | ~np.isfinite(scores).all(axis=1)
        if failed.any():
            scores[failed], positions[failed] = inner.search(Q[failed], k)
        return scores, positions

    def cut(self, n_rows: int) -> None:
        """Leave the first rows, where those behind them change; no thread may search meanwhile."""
        if self._made is None:
            return
        faiss_index.cut(self._made.scan, n_rows)
        if n_rows < self._made.tried:
            self._made = self._made._replace(tried=0)


def _following(made: _Made | None, inner: faiss.IndexPQ) -> _Made:
    """The coarse codes of all rows, those that were made before included; of the first rows if they are not good."""
    codes = byte_codes(inner)
    first = min(inner.ntotal, _CHUNK)
    if made is None or made.scan.ntotal > inner.ntotal:  # rows were taken out of FAISS's index itself
        made = _merged(inner)
    if made.tried == first and (made.scan.ntotal == inner.ntotal or not made.good):
        return made
    made = made._replace(scan=faiss.clone_index(made.scan))
    if made.tried != first:
        _translate(made, codes[:first])
        made = made._replace(tried=first, good=_finds(made.scan, inner, codes[:first]))
    if made.good:
        _translate(made, codes)
    return made


def _merged(inner: faiss.IndexPQ) -> _Made:
    """Coarse codebooks, without rows."""
    pq = inner.pq
    coarse, numbers = merged(faiss.vector_to_array(pq.centroids).reshape(pq.M, -1, pq.dsub))
    scan = faiss.IndexPQFastScan(inner.d, pq.M, 4, inner.metric_type)
    faiss.copy_array_to_vector(coarse.ravel(), scan.pq.centroids)
    scan.is_trained = True
    return _Made(scan, numbers, 0, True)


def _translate(made: _Made, codes: np.ndarray) -> None:
    """Add the coarse codes of those of all rows, by their codes (n, M), that lack them."""
    for start in range(made.scan.ntotal, len(codes), _CHUNK):
        by_place = np.ascontiguousarray(codes[start : start + _CHUNK].T)
        pairs = np.zeros(((len(by_place) + 1) // 2, by_place.shape[1]), np.uint8)
        for m, numbers in enumerate(made.numbers):
            pairs[m // 2] |= (numbers << 4 * (m % 2)).take(by_place[m])
        add_codes(made.scan, np.ascontiguousarray(pairs.T))


def _refined(scan: faiss.IndexPQFastScan, inner: faiss.IndexPQ, Q: np.ndarray, k: int, compared: int) -> Found:
    """The best k for queries Q (q, d') of candidates of the scan, `compared` in number and at least k."""
    some = faiss.IndexRefineSearchParameters(k_factor=max(1, compared / k))
    return faiss.IndexRefine(scan, inner).search(Q, k, params=some)


def _finds(scan: faiss.IndexPQFastScan, inner: faiss.IndexPQ, codes: np.ndarray) -> bool:
    """Whether the scan of rows of these codes (n, M) finds the nearest of some of them. It does not if one centroid
    lies far out: the fast scan rounds its tables to 8 bits."""
    some = faiss.IndexPQ(inner.d, inner.pq.M, _BITS, inner.metric_type)
    some.pq, some.is_trained = inner.pq, True
    some.add_sa_codes(codes)
    Q, k = some.sa_decode(codes[:: -(-len(codes) // _TRIED)]), min(_NEIGHBOURS, len(codes))
    true, found = some.search(Q, k)[0], _refined(scan, some, Q, k, candidates(some, k))[0]
    if inner.metric_type == faiss.METRIC_INNER_PRODUCT:
        true, found = -true, -found
    return float((found <= true[:, -1:] + _EQUAL * np.abs(true[:, -1:])).mean()) >= _FOUND


def candidates(inner: faiss.IndexPQ, k: int) -> int:
    """Rows that are compared by their bytes where k are wanted.

    They have 99 % of the k nearest by bytes (k of 10, 40, 100; 2026-11), and of fewer, which get the candidates of 10:
    SIFT, 12,500 and 100,000 rows, 8 to 32 bytes; 30,000 sentences, axis codes of 50, 98, 194; 200,000 normal rows of
    variances 1/i, 16 and 32; MNIST, 16.
    """
    k = max(k, _NEIGHBOURS)
    return 6 * k + int(50 * (k * inner.ntotal) ** 0.5 / inner.pq.M**1.5)


def serves(inner: faiss.Index, k: int) -> bool:
    """Whether coarse codes may serve a search for k rows of this index. Without AVX2 or a like set FAISS scans
    4-bit codes more slowly than bytes."""
    if not isinstance(inner, faiss.IndexPQ) or inner.pq.nbits != _BITS or inner.pq.M < _BYTES:
        return False
    return inner.ntotal >= _ROWS * candidates(inner, k) and faiss.SIMDConfig.get_level_name() != "NONE"


def merged(books: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """16 centroids (M, 16, w) float32 for the 256 of each codebook (M, 256, w), and the number (M, 256) uint8 of each
    one's."""
    points = books.astype(np.float64)
    # at random: the points that lie farthest apart would spoil the scan's tables
    means = points[:, np.random.default_rng(0).permutation(points.shape[1])[:_MERGED]]
    for _ in range(_ROUNDS):
        members = (_nearest(points, means)[:, None] == np.arange(_MERGED)[:, None]).astype(np.float64)
        sizes = members.sum(axis=2, keepdims=True)
        means = np.where(sizes > 0, members @ points / np.maximum(sizes, 1), means)
    return means.astype(np.float32), _nearest(points, means).astype(np.uint8)


def _nearest(points: np.ndarray, means: np.ndarray) -> np.ndarray:
    """The number (M, K) of the mean (M, 16, w) nearest to each point (M, K, w)."""
    return (np.square(means).sum(axis=2)[:, None] - 2 * points @ means.transpose(0, 2, 1)).argmin(axis=2)
