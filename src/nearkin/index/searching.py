"""From queries to the nearest vectors, by position: candidates by codes, rescored at their norms or by kept vectors.

FAISS searches codes; flat ones of many vectors by candidates, `CoarseScan`. Where it would decode every vector for
every query (sums of centroids without a norm, by distance), few queries of a flat index are answered from tables,
`CodeSums`, and others by one decoding of the vectors. Exact vectors and bits are compared directly.

Decoded vectors are too short, each by a different factor, which biases their scores. FAISS compares with them: it finds
candidates, which are rescored here at their norms, if the index knows these (`Norms`). Where a vector y becomes
c + (1 + e)(y - c), with a further column of square r, the score follows from FAISS's: with d = |q - y|^2,

    |q - y'|^2 = d - e (|q - c|^2 - |y - c|^2 - d) + e^2 |y - c|^2 + r,

which is d + e (d - |q - c|^2) and a number of the vector: it and e, once known, replace decoding: eight bytes a vector
of a searched index.
"""

# pyright: reportConstantRedefinition=false

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

import faiss
import numpy as np

from nearkin import _exact
from nearkin._check import check_real
from nearkin._faiss import FaissIndex, innermost
from nearkin._fields import Extra
from nearkin._guard import cached_property
from nearkin._types import ArrayLike
from nearkin.contracts import BitCodes, Callback, LinearBits, Quantizer
from nearkin.index import faiss_index
from nearkin.index.coarse_scan import CoarseScan, CodeSums, best_of, serves
from nearkin.index.faiss_index import codes_at, codes_of_list, flat_codes, places_in_lists, search_lists
from nearkin.index.guard import alone
from nearkin.index.identifiers import Found, Selection
from nearkin.index.kept_vectors import KeptVectors, rescore
from nearkin.linalg.norms import Norms, widened
from nearkin.linalg.orthonormal import unit_rows

_QUERIES = 4_096  # answered at a time
_ANSWERS = 1 << 22  # sought at a time
_NUMBERS = 1 << 20  # of allowed exact vectors copied at a time, and of decoded ones compared at a time
_DEPTH, _DEEPER = 64, 4  # answers first sought within a radius, and the factor where these are not all
_MANY = 128  # with as many queries, decoding all rows once is faster than tables (2026-11)
_CHUNK = 65_536  # rows decoded at a time for their norm
_COMPARED = 256, 1 << 26  # queries whose candidates are decoded at a time, and numbers of these
_TRIED, _MIXES = 512, ([0, 1], [0, 0, 1])  # queries of a trial, and the rows between which a half of them lies each
_WITH_NORMS = 2  # times as many candidates where rows have different norms, by which FAISS ranks worse
Part: TypeAlias = tuple[np.ndarray, np.ndarray]  # numbers of queries, and positions of rows to compare them with


@dataclass(frozen=True)
class Defaults:
    """How many candidates are rescored at their norm.

    So few candidates have 99.8 % of the nearest 1, 10 and 100 by codes at their norm, of 12,000 rows of one norm
    (2026-11): sentences, 8 bytes 4, 25, 207, 24 bytes 3, 21, 184; SIFT, 8 bytes 2, 13, 117; product codes of 8 bytes:
    GIST 6, 31, 167, digits 3, 20, 220.
    """

    times: int = 4  # candidates for each of the k wanted
    spare: int = 80  # candidates beyond these


DEFAULTS = Defaults()


class Scan:
    """How FAISS's index behind a rotation is searched (in lists or flat, product codes or sums of centroids), and what
    searches of its vectors share."""

    def __init__(
        self, index: faiss.Index, norms: Norms | None = None, coarse: CoarseScan | None = None, fast: bool = True
    ) -> None:
        self.index: faiss.Index = index
        self.norms: Norms | None = norms  # of vectors before the rotation
        self.inner: Extra = innermost(index)
        self.n_rows, self.coarse, self.fast = int(self.inner.ntotal), coarse or CoarseScan(), fast
        turned = isinstance(index, faiss.IndexPreTransform)
        self.turn: Any = faiss.downcast_VectorTransform(index.chain.at(0)) if turned else None
        self.lists: bool = isinstance(self.inner, faiss.IndexIVF)
        self.by_distance: bool = self.inner.metric_type == faiss.METRIC_L2
        self.sums: bool = hasattr(self.inner, "aq")
        self.codec: Any = self.inner.aq if self.sums else getattr(self.inner, "pq", None)  # None: scalar codes, or none
        self.without_norm: bool = self.sums and self.by_distance

    def ranks_by(self, metric: str) -> str:
        """The metric by which `rows_as_searched` have the order of an index by `metric`."""
        return "l2" if self.norms is None and self.by_distance else metric

    @property
    def compares(self) -> str:
        """How FAISS alone compares vectors with a query, the fastest first."""
        if self.without_norm:
            return "codes, which it decodes for every query"
        return "numbers" if self.codec is None else "codes by tables"

    @cached_property
    def places(self) -> np.ndarray:
        """List and place in the list (n, 2) of every vector: 8 bytes a vector."""
        return places_in_lists(self.inner)

    @cached_property
    def code_sums(self) -> CodeSums:
        """The tables of flat sums of centroids without a norm."""
        return CodeSums(self.inner)

    @cached_property
    def matrix(self) -> np.ndarray:
        """The matrix (d, d') of the linear transform in front of the index: x -> x A. Float64, as products of float32
        depend on the batch, which far from 0 changes the order."""
        return faiss.vector_to_array(self.turn.A).reshape(self.turn.d_out, self.turn.d_in).T.astype(np.float64)

    @cached_property
    def _real(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The bias of the rotation, and the columns that queries have; None without a bias and further columns."""
        if self.turn is None:
            return None
        shift, used = faiss_index.bias(self.index), np.asarray(self.matrix.any(axis=0))
        return (shift, used) if shift.any() or not used.all() else None

    @cached_property
    def longest(self) -> float:
        """The largest norm of the vectors of an exact index."""
        rows = faiss_index.byte_codes(self.inner).view(np.float32)
        return float(np.einsum("nd,nd->n", rows, rows).max(initial=0)) ** 0.5

    def real(self, rows: np.ndarray) -> np.ndarray:
        """Decoded vectors (n, d') behind the rotation, without the bias there and the columns that no query has."""
        return rows if self._real is None else (rows - self._real[0]) * self._real[1]

    @cached_property
    def ranking(self) -> "Ranking | None":
        """The ranking by the norms of vectors; None where FAISS's scores stand."""
        if self.norms is None:
            return None
        # in a cycle the numbers of its rows would stay in memory after a change
        return Ranking(weakref.proxy(self), self.norms if self.turn is None else self.norms.turned(self.matrix))


class Kept:
    """The scan of one index, and its coarse codes, if it is `fast`, between searches; `forget` them when vectors
    change."""

    def __init__(self, fast: bool = True) -> None:
        self._fast = fast
        self._scan: Scan | None = None
        self._made: _Made | None = None

    def __reduce__(self) -> tuple[type["Kept"], tuple[()]]:
        return Kept, ()  # a copy of an index fills its own

    def scan(self, index: faiss.Index, norms: Norms | None) -> Scan:
        """The scan of this index, of vectors of these norms; made again if FAISS's index was changed outside."""
        with alone:
            made, scan, n_rows = self._made, self._scan, int(innermost(index).ntotal)
            one = norms is not None and not norms.n_bytes
            if made is None or made.of is not index or made.one != one:
                made = self._made = _Made(index, one, faiss_index.by_distance(index) if one else index, CoarseScan())
                scan = None
            here = faiss_index.shows(made.searched, index)
            if scan is None or scan.norms is not norms or scan.n_rows != n_rows or not here:
                if made.searched is not index:
                    faiss_index.follow(made.searched, index, n_rows)
                scan = self._scan = Scan(made.searched, norms, made.coarse, self._fast)
            if scan.lists:
                scan.inner.nprobe = cast(Any, innermost(index)).nprobe
            return scan

    def forget(self, first: int = 0) -> None:
        """Clear what follows from the rows from `first` on."""
        self._scan = None
        if self._made is not None and first:
            self._made.coarse.cut(first)
        else:
            self._made = None


class _Made(NamedTuple):
    """What rows that are added later leave standing."""

    of: faiss.Index
    one: bool  # whether all rows have one norm
    searched: faiss.Index  # that index, or a view of it by distance
    coarse: CoarseScan


@dataclass(frozen=True, eq=False)
class Query:
    """How the vectors of an index are searched. `quantizer` of bits alone; `norms` of vectors, `kept` vectors, or None;
    `oversample` and `asymmetric` as in `Index.search`. ValueError where the index has no such search."""

    faiss_index: FaissIndex
    metric: str
    quantizer: Quantizer | None
    norms: Norms | None
    kept: KeptVectors | None
    searched: Kept
    oversample: float | None = None
    asymmetric: bool = False

    def __post_init__(self) -> None:
        if self.oversample is not None:
            check_real(self.oversample, "oversample", low=1)
            if self.kept is None:
                raise ValueError("oversample needs kept vectors; build the index with keep_vectors=True")
        if self.asymmetric and not isinstance(self.quantizer, LinearBits):
            raise ValueError("asymmetric needs metric='hamming' and a linear hasher, for example nk.ITQ(n_bits=64)")

    @property
    def by_distance(self) -> bool:
        """Whether smaller scores are nearer."""
        if self.metric == "hamming":
            return self.oversample is not None or not self.asymmetric
        return self.metric == "l2"

    def nearest(self, Q: np.ndarray, k: int, selection: Selection, callback: Callback | None = None) -> Found:
        """Scores and positions (q, min(k, n)) of the vectors nearest to queries Q (q, d), or (q, bytes) uint8 of
        bits."""
        k, done = min(k, self.faiss_index.ntotal), 0
        if not len(Q) or not k:
            return np.empty((len(Q), k), np.float32), np.empty((len(Q), k), np.int64)
        numbers, parts = list[np.ndarray](), list[Found]()
        for queries, allowed, more in selection.chunks(k, _QUERIES, _ANSWERS):
            numbers.append(queries)
            parts.append(self._some(Q[queries], k, selection, queries, allowed, more))
            done += len(queries)
            if callback is not None:
                callback(done, {"total": len(Q)})
        order = np.argsort(np.concatenate(numbers))
        scores, positions = (np.concatenate(part)[order] for part in zip(*parts, strict=True))
        return scores, positions

    def within(
        self, Q: np.ndarray, r: float, selection: Selection, callback: Callback | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Limits (q + 1,), scores (m,) and positions (m,) of the vectors nearer than r. Depths of a search are tried
        until at most half of its answers are."""
        n, done, pending, depth = self.faiss_index.ntotal, 0, np.arange(len(Q)), _DEPTH
        owners, parts = [pending[:0]], [(np.empty(0, np.float32), pending[:0])]
        while len(pending) and n:
            step, again = max(1, _ANSWERS // depth), [pending[:0]]
            for some in (pending[first : first + step] for first in range(0, len(pending), step)):
                scores, positions = self.nearest(Q[some], depth, selection.take(some))
                near = (scores < r if self.by_distance else scores > r) & (positions >= 0)
                more = (near.sum(axis=1) > depth // 2) & (positions[:, -1] >= 0) & (depth < n)
                near[more] = False
                owners.append(some[np.nonzero(near)[0]])
                parts.append((scores[near], positions[near]))
                again.append(some[more])
                done += int((~more).sum())
                if callback is not None:
                    callback(done, {"total": len(Q)})
            pending, depth = np.concatenate(again), _DEEPER * depth
        owner = np.concatenate(owners)
        order = np.argsort(owner, kind="stable")
        scores, positions = (np.concatenate(part[len(parts) > 1 :])[order] for part in zip(*parts, strict=True))
        return np.searchsorted(owner[order], np.arange(len(Q) + 1)), scores, positions

    def _some(
        self, Q: np.ndarray, k: int, selection: Selection, queries: np.ndarray, allowed: np.ndarray | None, more: int
    ) -> Found:
        """Scores and positions (q, k) for Q (q, d), these `queries` of the selection; `more` may have to be dropped."""
        if self.metric != "hamming":  # whose bits of queries are formed like those of vectors, in the type given
            Q = normalised(Q) if self.metric == "cosine" else Q.astype(np.float32, copy=False)
        n = self.faiss_index.ntotal
        wanted = k if self.oversample is None else int(min(n, np.ceil(k * self.oversample)))
        scores, positions = self.candidates(Q, min(n, wanted + more), allowed)
        if more:
            scores, positions = selection.left(queries, scores, positions, wanted, self._missing(scores))
        if self.oversample is None or self.kept is None:
            return scores, positions
        return rescore(Q, positions, self.kept, k, "l2" if self.metric == "hamming" else self.metric)

    def _missing(self, scores: np.ndarray) -> float:
        """The score of a place without an answer among candidates."""
        if scores.dtype.kind == "i":
            return np.iinfo(np.int32).max
        return np.inf if self.metric == "l2" else -np.inf

    def candidates(self, Q: np.ndarray, k: int, allowed: np.ndarray | None = None) -> Found:
        """Scores and positions (q, k) without rescoring, of queries (q, d) float32, of norm 1 for "cosine", or of bits
        (q, bytes) uint8; of the vectors at sorted positions `allowed` (m,) or of all."""
        if self.metric != "hamming":
            scan = self.searched.scan(cast(faiss.Index, self.faiss_index), self.norms)
            if isinstance(scan.inner, faiss.IndexFlat):
                return self._exact(scan, Q, k, allowed)
            return nearest(scan, Q, k, self.metric, allowed)
        codes, index = flat_codes(self.faiss_index), self.faiss_index
        if allowed is not None:  # the allowed codes alone, filled up to k places
            codes, index = codes[allowed], faiss.IndexBinaryFlat(index.d)
            index.add(codes)
        most = min(k, len(codes))
        if self.asymmetric:
            scores, numbers = cast(LinearBits, self.quantizer).search(Q, codes, most, asymmetric=True)
        else:
            asked = Q if Q.dtype == np.uint8 else cast(BitCodes, self.quantizer).encode(Q)
            scores, numbers = index.search(asked, most)
        return self._filled(scores, numbers if allowed is None else allowed[numbers], k)

    def _exact(self, scan: Scan, Q: np.ndarray, k: int, allowed: np.ndarray | None) -> Found:
        """`candidates` of an exact index."""
        rows, step = faiss_index.byte_codes(scan.inner).view(np.float32), max(1, _NUMBERS // scan.inner.d)
        if allowed is None:
            scores, positions = _exact.nearest(rows, Q, k, self.metric, scan.longest if self.metric == "ip" else None)
        else:
            parts = (allowed[first : first + step] for first in range(0, len(allowed), step))
            scores, positions = _exact.nearest_of_parts(((some, rows[some]) for some in parts), Q, k, self.metric)
        return self._filled(scores.astype(np.float32), positions, k)

    def _filled(self, scores: np.ndarray, positions: np.ndarray, k: int) -> Found:
        """Scores and positions (q, k), the last places without an answer."""
        places = (0, 0), (0, k - scores.shape[1])
        scores = np.pad(scores, places, constant_values=self._missing(scores))
        return scores, np.pad(positions, places, constant_values=-1)


def nearest(scan: Scan, Q: np.ndarray, k: int, metric: str, allowed: np.ndarray | None = None) -> Found:
    """Scores by the metric and positions (q, k) of the nearest vectors to queries Q (q, d) float32, nearest first, at
    their norms. `allowed` (m,): the sorted positions of the vectors to compare, None for all. What an inverted file
    does not find has position -1 and an infinite score."""
    asked, ranking = np.ascontiguousarray(Q, np.float32), scan.ranking
    wanted, k = k, k if ranking is None else min(scan.n_rows, ranking.candidates(k))
    if scan.turn is not None:
        asked = (asked.astype(np.float64) @ scan.matrix + faiss_index.bias(scan.index)).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # of centroids beyond float32's squares; of missing rows
        sought = asked if ranking is None else ranking.sought(asked)
        if allowed is None:
            scores, positions = _of_all(scan, sought, k, wanted)
        else:
            scores, positions = _among(scan, sought, k, allowed)
        if ranking is not None:
            return ranking.ranked(asked, sought, scores, positions, wanted, metric)
    scores[positions < 0] = np.inf if scan.by_distance else -np.inf  # FAISS has the largest float
    return (1 - scores / 2 if metric == "cosine" and scan.by_distance else scores), positions


def _of_all(scan: Scan, Q: np.ndarray, k: int, wanted: int) -> Found:
    """Search all rows; of the k found, which are rescored, the best `wanted` will be needed."""
    if not scan.fast or not serves(scan.inner, wanted):
        return _of_whole(scan, Q, k)
    compare, tried = scan.code_sums.compare if scan.without_norm else None, partial(_tried, scan)
    if scan.lists:
        compare = partial(_compared, scan)
    scores, positions, failed = scan.coarse.search(scan.inner, Q, k, wanted, tried, compare)
    if failed.any():
        scores[failed], positions[failed] = _of_whole(scan, Q[failed], k)
    return scores, positions


def _tried(scan: Scan, n_rows: int) -> Found:
    """Queries (q, d') of a trial, and their scores (q, n) of the first rows, smaller is nearer: of the decoded rows, at
    their norms.

    Half of the queries lie in the middle of two rows, half nearer to one. Rows would be too easy: with the usual coarse
    candidates, 24 bytes of sentences, they lose .028 of ten neighbours, usage sentences .059, and what lies between
    rows .063 to .074 (2026-11).
    """
    own, width, ranking = np.arange(n_rows), scan.inner.d, scan.ranking
    rows = scan.real(decoded(scan, own)) if ranking is None else ranking.rows(own)
    middle = rows.mean(axis=0) * scan.by_distance
    pairs = np.random.default_rng(0).integers(n_rows, size=(2, _TRIED // len(_MIXES)))
    asked = np.concatenate([rows[pairs[mix]].mean(axis=0)[:, :width] for mix in _MIXES])
    Q, rows = widened(asked, rows.shape[1]) - middle, rows - middle
    scores: np.ndarray = faiss.pairwise_distances(Q, rows, scan.inner.metric_type)
    asked = np.ascontiguousarray(asked + faiss_index.bias(scan.index), np.float32)
    return asked if ranking is None else ranking.sought(asked), scores if scan.by_distance else -scores


def _of_whole(scan: Scan, Q: np.ndarray, k: int) -> Found:
    """As `_of_all`, by the whole codes of all rows."""
    inner, many = scan.inner, len(Q) >= _MANY
    if (scan.without_norm and (scan.lists or many)) or (many and isinstance(inner, faiss.IndexPQ)):
        return _decoding(scan, Q, k, _visited(scan, Q))
    if scan.without_norm:
        return scan.code_sums.search(Q, k)
    if not scan.lists:
        return inner.search(Q, k)
    return search_lists(inner, Q, k, *faiss_index.nearest_lists(inner, Q, inner.nprobe))


def _among(scan: Scan, Q: np.ndarray, k: int, allowed: np.ndarray) -> Found:
    """Search the rows at sorted positions `allowed` (m,). In an inverted file, each query is compared with as many of
    them as `n_probe` lists have rows: with those of the nearest lists."""
    inner = scan.inner
    wanted = max(k, inner.ntotal * inner.nprobe // inner.nlist) if scan.lists else len(allowed)
    if len(allowed) <= wanted:
        return _decoding(scan, Q, k, [(np.arange(len(Q)), allowed)])
    mask = np.zeros(inner.ntotal, bool)
    mask[allowed] = True
    counts = np.bincount(scan.places[allowed, 0], minlength=inner.nlist)
    probed = min(inner.nlist, -(-wanted * inner.nlist // len(allowed)))
    while True:
        lists = faiss_index.nearest_lists(inner, Q, probed)[1]
        before = np.cumsum(counts[lists], axis=1) - counts[lists]
        if probed == inner.nlist or (before[:, -1] >= wanted).all():
            break
        probed = min(inner.nlist, 2 * probed)
    lists[before >= wanted] = -1
    return _decoding(scan, Q, k, ((some, rows[mask[rows]]) for some, rows in _in_lists(inner, lists)))


def _decoding(scan: Scan, Q: np.ndarray, k: int, parts: Iterable[Part]) -> Found:
    """Search decoded rows: in each part, some of the queries (q, d') are compared with the rows at some positions."""
    inner, size = scan.inner, max(1, _NUMBERS // scan.inner.d)
    best, middle = faiss.ResultHeap(len(Q), k, keep_max=not scan.by_distance), None
    for some, positions in parts:
        for first in range(0, len(positions), size):
            part = positions[first : first + size]
            rows = decoded(scan, part)
            if middle is None:  # centred on one row, squares lose fewer digits
                middle = rows[0].copy() if scan.by_distance else np.zeros(inner.d, np.float32)
            scores, numbers = faiss.knn(Q[some] - middle, rows - middle, min(k, len(rows)), metric=inner.metric_type)
            best.add_result_subset(some, scores, part[numbers])
    best.finalize()
    return best.D, best.I


def _compared(scan: Scan, Q: np.ndarray, k: int, candidates: np.ndarray) -> Found:
    """Scores and positions (q, k), best first, of candidates (q, c) for queries Q (q, d'), by decoded rows."""
    scores, (queries, numbers) = np.empty(candidates.shape, np.float32), _COMPARED
    measure = faiss.fvec_L2sqr_by_idx if scan.by_distance else faiss.fvec_inner_products_by_idx
    step = max(1, min(queries, numbers // max(1, candidates.shape[1] * Q.shape[1])))
    for first in range(0, len(Q), step):
        asked, some = np.ascontiguousarray(Q[first : first + step]), candidates[first : first + step]
        distinct, places = np.unique(np.maximum(some, 0), return_inverse=True)  # each row is decoded once
        rows, places = decoded(scan, distinct), places.reshape(some.shape)
        out, queried, of, which = map(faiss.swig_ptr, (scores[first : first + step], asked, rows, places))
        measure(out, queried, of, which, Q.shape[1], *some.shape)
    return best_of(scores, candidates, k, scan.by_distance)


def _visited(scan: Scan, Q: np.ndarray) -> Iterable[Part]:
    """The rows that queries (q, d') visit: all, or those of the lists nearest to each."""
    if scan.lists:
        return _in_lists(scan.inner, faiss_index.nearest_lists(scan.inner, Q, scan.inner.nprobe)[1])
    return [(np.arange(len(Q)), np.arange(int(scan.inner.ntotal)))]


def _in_lists(inner: faiss.IndexIVF, visited: np.ndarray) -> Iterator[Part]:
    """For each list the queries that visit it, of the numbers (q, n_probe) of their lists, and its rows' positions."""
    order = np.argsort(visited, axis=None, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(visited.ravel()[order])) + 1):
        number = int(visited.flat[group[0]])
        if number >= 0 and inner.invlists.list_size(number):
            yield group // visited.shape[1], codes_of_list(inner, number)[1]


def decoded(scan: Scan, positions: np.ndarray) -> np.ndarray:
    """Vectors (m, d') behind the rotation at `positions` (m,)."""
    inner = scan.inner
    if scan.lists:
        places = scan.places[positions]
        rows = scan.codec.decode(codes_at(inner, places))
        return rows + inner.quantizer.reconstruct_batch(places[:, 0].astype(np.int64)) if inner.by_residual else rows
    return inner.sa_decode(faiss_index.byte_codes(inner)[positions])


def normalised(X: ArrayLike) -> np.ndarray:
    """Vectors divided by their norms, as float32; vectors of zeros stay."""
    return unit_rows(np.asarray(X, np.float64)).astype(np.float32)  # the same of float32 and float64


@dataclass(frozen=True)
class Ranking:
    """Candidates of a scan, rescored by vectors at their `norms` behind the rotation.

    Of rows y of one norm N it does not matter how long a query is: their order by distances, inner products and angles
    is one. Candidates are found by distance, which a direction common to all rows does not change, as it changes inner
    products of decoded rows: of GIST by cosine, 8 bytes, these find .172 and distances .210 of ten neighbours. Queries
    of norm N^2 / m, of decoded rows of norm m on average, rank these most like rows of norm N: with N itself the 100
    nearest sentences, 8 bytes, are among 582 of 12,000 candidates, so among 299 (2026-11).
    """

    scan: Scan
    norms: Norms

    def candidates(self, k: int) -> int:
        """How many vectors to find by their codes, of which the k best are wanted."""
        most = DEFAULTS.times * k + DEFAULTS.spare
        return _WITH_NORMS * most if self.norms.n_bytes else most

    @cached_property
    def _reach(self) -> float:
        """The norm of the queries that candidates are found for and lists chosen by, of rows of one norm."""
        norm, n = float(self.norms.levels[0]), self.scan.n_rows
        some = np.unique(np.linspace(0, n - 1, min(n, max(1, _NUMBERS // self.scan.inner.d))).astype(np.int64))
        mean = np.linalg.norm(self.scan.real(decoded(self.scan, some)), axis=1).mean()
        return norm**2 / float(mean) if mean else norm

    def _sizes(self, Q: np.ndarray) -> np.ndarray:
        """The norms (q, 1) of queries Q (q, d') behind the rotation."""
        return np.linalg.norm(self.scan.real(Q).astype(np.float64), axis=1, keepdims=True)

    def sought(self, Q: np.ndarray) -> np.ndarray:
        """What candidates for queries Q (q, d') behind the rotation are found for."""
        if self.norms.n_bytes:
            return Q
        sizes, shift = self._sizes(Q), faiss_index.bias(self.scan.index)
        return np.ascontiguousarray(shift + self._reach / np.where(sizes == 0, 1, sizes) * (Q - shift), np.float32)

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Vectors (m, d' + 1) behind the rotation at `positions` (m,), without the bias there, as `Norms.applied`."""
        rows = self.scan.real(decoded(self.scan, positions))
        return self.norms.applied(rows, self.norms.of(positions))

    def ranked(
        self, Q: np.ndarray, sought: np.ndarray, scores: np.ndarray, positions: np.ndarray, k: int, metric: str
    ) -> Found:
        """Scores by the metric and positions (q, k), best first, of `positions` (q, c) for queries Q (q, d') behind the
        rotation; `scores` (q, c) are FAISS's for what was `sought`."""
        scores = self._stretched(self.scan.real(sought), scores, positions)
        if not self.norms.n_bytes:  # <q, y> from |s - y|^2 of s = q |s| / |q|
            sizes, norm = self._sizes(Q), float(self.norms.levels[0])
            scores = sizes / self._reach * (self._reach**2 + norm**2 - scores) / 2
            scores = np.maximum(sizes**2 + norm**2 - 2 * scores, 0) if metric == "l2" else scores
        scores, positions = best_of(scores, positions, k, metric == "l2")
        return scores.astype(np.float32), positions

    @cached_property
    def _known(self) -> np.ndarray:
        """`_stretches` (n, 2) of all vectors; NaN for those that were no candidates yet."""
        return np.full((self.scan.n_rows, 2), np.nan, np.float32)

    def _stretched(self, Q: np.ndarray, scores: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """FAISS's scores (q, c) of rows at `positions` for queries Q (q, d'), as of the rows at their norms."""
        known = self._known.take(positions, axis=0, mode="clip")
        if np.isnan(known.sum()):
            new = np.unique(np.maximum(positions[np.isnan(known).any(axis=-1)], 0))
            for first in range(0, len(new), _CHUNK):
                self._known[new[first : first + _CHUNK]] = self._stretches(new[first : first + _CHUNK])
            known = self._known.take(positions, axis=0, mode="clip")
        centred = Q - self.norms.centre
        base = np.einsum("qd,qd->q", centred, centred) if self.scan.by_distance else Q @ self.norms.centre
        return scores + known[..., 0] * (scores - base[:, None]) + known[..., 1]

    def _stretches(self, positions: np.ndarray) -> np.ndarray:
        """e, and what to add to a squared distance (m, 2), of the rows at `positions` (m,)."""
        index, norms, whole = self.scan.index, self.norms, decoded(self.scan, positions)
        rows = self.scan.real(whole)
        sizes = np.linalg.norm(rows - norms.centre, axis=1)
        factors, left = norms.stretches(sizes, norms.of(positions))
        if not self.scan.by_distance:
            return np.column_stack([factors - 1, 0 * factors])
        # FAISS's distances have the column of a code's errors, of which queries have 0
        errors = np.square(whole - faiss_index.bias(index)).sum(axis=1) - np.square(rows).sum(axis=1)
        return np.column_stack([factors - 1, (factors - 1) * factors * sizes**2 + left - factors * errors])


def decoded_rows(scan: Scan, positions: np.ndarray) -> np.ndarray:
    """Decoded vectors (m, d) of an index at `positions` (m,)."""
    return _turned_back(scan, decoded(scan, positions) - faiss_index.bias(scan.index))


def rows_as_searched(scan: Scan, positions: np.ndarray) -> np.ndarray:
    """Vectors (m, d + 1) of an index at `positions` (m,), at their norms if these are known, with the column that
    queries lack: queries, of norm 1 for "cosine", are compared with them by `Scan.ranks_by`."""
    if scan.ranking is not None:
        rows = scan.ranking.rows(positions)
    else:  # with the column of codes' errors
        whole = decoded(scan, positions)
        rows, whole = scan.real(whole), whole - faiss_index.bias(scan.index)
        rows = np.column_stack([rows, np.linalg.norm(whole - rows, axis=1)])
    return np.hstack([_turned_back(scan, rows[:, :-1]), rows[:, -1:]])


def _turned_back(scan: Scan, rows: np.ndarray) -> np.ndarray:
    """Rows (m, d') behind the rotation of an index, without its bias, as (m, d) in front of it."""
    return rows if scan.turn is None else (rows @ scan.matrix.T).astype(np.float32)
