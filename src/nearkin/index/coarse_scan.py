"""Candidates of product codes by FAISS's fast scan, compared by their bytes.

The 256 centroids of each byte are merged to 16 by k-means. A row's coarse code is then four bits a byte, which FAISS
scans many times faster than bytes (Andre et al., VLDB 2015), and its `IndexRefine` compares the candidates by their
bytes. Coarse codes follow from the bytes. They are made for indexes that are searched often enough, are not saved, and
take half as much memory again as the codes.
"""

from threading import Lock

import faiss
import numpy as np

from nearkin._faiss import add_codes

_BITS = 8  # of a code that is merged to 4
_MERGED, _ROUNDS = 16, 10  # centroids of a coarse codebook, and rounds of k-means
_ROWS = 8  # rows a candidate, at least; with fewer, FAISS compares all bytes
_QUERIES, _TABLES = 64, 20_000  # queries whose search takes as long as coarse codes; rows that take as long as merging
_CHUNK = 65_536  # rows translated at a time
_TRIED, _NEIGHBOURS, _FOUND = 32, 10, 0.98  # rows searched, of which the coarse codes must find that share
_EQUAL = 1e-5  # part by which equal scores may differ
Found = tuple[np.ndarray, np.ndarray]  # scores and positions (q, k)


class CoarseScan:
    """The coarse codes of the rows of one flat index of product codes; threads may search at the same time."""

    def __init__(self) -> None:
        self._scan: faiss.IndexPQFastScan | None = None
        self._numbers = np.empty((0, 0), np.uint8)  # (M, 256) of the coarse centroids
        self._good, self._asked, self._lock = True, 0, Lock()

    def search(self, inner: faiss.IndexPQ, Q: np.ndarray, k: int, wanted: int) -> Found | None:
        """FAISS's scores and positions (q, k) of the rows of `inner` for queries Q (q, d'), nearest first; of these
        the best `wanted` will be needed. None while there were few queries, and where coarse codes find too little."""
        if not self._good or not self._lock.acquire(blocking=False):  # a forked process lacks the thread that holds it
            return None
        try:
            scan = self._following(inner, len(Q))
        finally:
            self._lock.release()
        if scan is None:
            return None
        scores, positions = _refined(scan, inner, Q, k, candidates(inner, wanted))
        # FAISS's fast scan divides by the range of its table, and leaves out rows of the lowest inner product
        failed = (positions < 0).any(axis=1) | ~np.isfinite(scores).all(axis=1)
        if failed.any():
            scores[failed], positions[failed] = inner.search(Q[failed], k)
        return scores, positions

    def cut(self, n_rows: int) -> None:
        """Leave the first rows, where those behind them change; no thread may search meanwhile."""
        if self._scan is None or n_rows >= self._scan.ntotal:
            return
        if not n_rows:
            self._scan.reset()
            return
        self._scan.ntotal = n_rows
        add_codes(self._scan, np.empty((0, self._scan.code_size), np.uint8))

    def _following(self, inner: faiss.IndexPQ, n_queries: int) -> faiss.IndexPQFastScan | None:
        """The coarse codes of all rows. None until the searches without them took as long as making those that are
        missing, or if the coarse codes are not good enough."""
        if self._scan is not None and self._scan.ntotal > inner.ntotal:  # rows were taken out of FAISS's index itself
            self.cut(0)
        missing = inner.ntotal + _TABLES if self._scan is None else inner.ntotal - self._scan.ntotal
        self._asked += n_queries
        if self._asked * inner.ntotal < _QUERIES * missing:
            return None
        codes = faiss.rev_swig_ptr(inner.codes.data(), inner.codes.size()).reshape(inner.ntotal, -1)
        scan = self._scan
        if scan is None:
            scan = self._merged(inner)
            self._add(scan, codes[:_CHUNK])
            self._good = _finds(scan, inner, codes[:_CHUNK])
            if not self._good:
                return None
        for first in range(scan.ntotal, inner.ntotal, _CHUNK):
            self._add(scan, codes[first : first + _CHUNK])
        self._scan, self._asked = scan, 0
        return scan

    def _merged(self, inner: faiss.IndexPQ) -> faiss.IndexPQFastScan:
        """An index without rows for the coarse codes."""
        pq = inner.pq
        coarse, self._numbers = merged(faiss.vector_to_array(pq.centroids).reshape(pq.M, -1, pq.dsub))
        scan = faiss.IndexPQFastScan(inner.d, pq.M, 4, inner.metric_type)
        faiss.copy_array_to_vector(coarse.ravel(), scan.pq.centroids)
        scan.is_trained = True
        return scan

    def _add(self, scan: faiss.IndexPQFastScan, codes: np.ndarray) -> None:
        """Add the coarse codes of codes (n, M)."""
        pairs = np.zeros((len(codes), (codes.shape[1] + 1) // 2), np.uint8)
        for m, numbers in enumerate(self._numbers):
            pairs[:, m // 2] |= (numbers << 4 * (m % 2))[codes[:, m]]
        add_codes(scan, pairs)


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

    They have 99 % of the k nearest by bytes (k of 10, 40, 100; 2026-11): SIFT, 12,500 and 100,000 rows, 8 to 32 bytes;
    30,000 sentences, axis codes of 50, 98, 194; 200,000 normal rows of variances 1/i, 16 and 32; MNIST, 16.
    """
    return 6 * k + int(50 * (k * inner.ntotal) ** 0.5 / inner.pq.M**1.5)


def serves(inner: faiss.Index, k: int) -> bool:
    """Whether coarse codes may serve a search for k rows of this index. Without AVX2 or a like set FAISS scans
    4-bit codes more slowly than bytes."""
    if not isinstance(inner, faiss.IndexPQ) or inner.pq.nbits != _BITS:
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
