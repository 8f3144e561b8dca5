"""The nearest vectors by their codes, rescored after rescaling to their norm, or by exact vectors if the index keeps
them.

FAISS searches; of many vectors by candidates, `CoarseScan`, in inverted lists too. Where it would decode every vector
for every query (sums of centroids without a norm, by "l2"), few queries are answered from tables, `CodeTables`, and
many by one decoding of the vectors.

Decoded vectors are too short, each by a different factor, which biases their scores. FAISS compares with them: it finds
candidates, which are rescored here at their norms, if the index knows these (`Norms`). Where a vector y becomes
c + (1 + e)(y - c), with a further column of square r, the score follows from FAISS's: with d = |q - y|^2,

    |q - y'|^2 = d - e (|q - c|^2 - |y - c|^2 - d) + e^2 |y - c|^2 + r,

which is d + e (d - |q - c|^2) and a number of the vector: it and e, once known, replace decoding: eight bytes a vector
of a searched index.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

import faiss
import numpy as np

from nearkin._exact import nearest_lists
from nearkin._faiss import bias, byte_codes, innermost
from nearkin._fields import Extra
from nearkin._guard import cached_property
from nearkin._types import ArrayLike
from nearkin.index.coarse_scan import CoarseScan, serves
from nearkin.index.code_tables import CodeTables, best_of, probed
from nearkin.index.faiss_index import codes_at, codes_of_list, places_in_lists, search_lists
from nearkin.index.identifiers import Found
from nearkin.linalg.norms import Norms, widened
from nearkin.linalg.orthonormal import unit_rows

_BLOCK = 1 << 20  # numbers of decoded rows that are compared at a time
_MANY = 128  # with as many queries, decoding all rows once is faster than tables (2026-11)
_FEW = 8  # with fewer queries, FAISS's tables are faster than decoding the allowed rows of lists once
_CHUNK = 65_536  # rows decoded at a time for their norm
_TRIED, _MIXES = 512, ([0, 1], [0, 0, 1])  # queries of a trial, and the rows between which a half of them lies each
# by distance at one norm, candidates are found for queries 1.5 times as far from the origin: longer decoded vectors
# are not preferred as much. .002 of the 100 nearest sentences, 24 bytes, need 308 candidates and not 1,235 (2026-11)
_FARTHER = 1.5
_WITH_NORMS = 2  # times as many candidates where rows have different norms, by which FAISS ranks worse
Part: TypeAlias = tuple[np.ndarray, np.ndarray]  # numbers of queries, and positions of rows to compare them with


@dataclass(frozen=True)
class Defaults:
    """How many candidates are rescored at their norm.

    So few candidates have 99.8 % of the nearest 1, 10 and 100 by codes at their norm (2026-11): sentences by cosine, 24
    bytes 19, 57, 376, 8 bytes 37, 119, 424; by l2 4, 28, 308 and 6, 40, 328; SIFT 8, 22, 143 and 61, 81, 271.
    """

    times: int = 4  # candidates for each of the k wanted
    spare: int = 80  # candidates beyond these


DEFAULTS = Defaults()


class Scan:
    """How FAISS's index behind a rotation is searched (in lists or flat, product codes or sums of
    centroids), and what searches of its vectors share."""

    def __init__(self, index: faiss.Index, coarse: CoarseScan | None = None) -> None:
        self.index: faiss.Index = index
        self.inner: Extra = innermost(index)
        self.n_rows, self.coarse = int(self.inner.ntotal), coarse or CoarseScan()
        turned = isinstance(index, faiss.IndexPreTransform)
        self.turn: Any = faiss.downcast_VectorTransform(index.chain.at(0)) if turned else None
        self.lists: bool = isinstance(self.inner, faiss.IndexIVF)
        self.by_distance: bool = self.inner.metric_type == faiss.METRIC_L2
        self.sums: bool = hasattr(self.inner, "aq")
        self.codec: Any = self.inner.aq if self.sums else getattr(self.inner, "pq", None)  # None: scalar codes, or none
        self.without_norm: bool = self.sums and self.by_distance
        self._ranking: Ranking | None = None

    @property
    def compares(self) -> str:
        """How FAISS alone compares vectors with a query, the fastest first."""
        if self.products or (self.sums and not self.without_norm):
            return "codes by tables"
        return "codes, which it decodes for every query" if self.sums else "numbers"

    @property
    def products(self) -> bool:
        """Whether FAISS adds entries of tables of plain product codes."""
        return self.codec is not None and not self.sums

    @cached_property
    def places(self) -> np.ndarray:
        """List and place in the list (n, 2) of every vector: 8 bytes a vector."""
        return places_in_lists(self.inner)

    @cached_property
    def tables(self) -> CodeTables:
        """The tables of codes in lists, and of sums of centroids without a norm."""
        return CodeTables(self.inner, self.places if self.lists else None)

    @cached_property
    def matrix(self) -> np.ndarray:
        """The matrix (d, d') of the linear transform in front of the index: x -> x A."""
        return faiss.vector_to_array(self.turn.A).reshape(self.turn.d_out, self.turn.d_in).T

    @cached_property
    def _real(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The bias of the rotation, and the columns that queries have; None without a bias and further columns."""
        if self.turn is None:
            return None
        shift, used = bias(self.index), np.asarray(self.matrix.any(axis=0))
        return (shift, used) if shift.any() or not used.all() else None

    @cached_property
    def longest(self) -> float:
        """The largest norm of the vectors of an exact index."""
        rows = byte_codes(self.inner).view(np.float32)
        return float(np.einsum("nd,nd->n", rows, rows).max(initial=0)) ** 0.5

    def real(self, rows: np.ndarray) -> np.ndarray:
        """Decoded vectors (n, d') behind the rotation, without the bias there and the columns that no query has."""
        return rows if self._real is None else (rows - self._real[0]) * self._real[1]

    def ranking(self, norms: Norms | None) -> "Ranking | None":
        """The ranking by the norms of vectors before the rotation; None where FAISS's scores stand."""
        if norms is None:
            return None
        known = self._ranking
        if known is None or known.given is not norms:
            turned = norms if self.turn is None else norms.turned(self.matrix)
            known = self._ranking = Ranking(self, norms, turned)
        return known


class Kept:
    """The scan of one index, and its coarse codes, between searches; `forget` them when vectors change."""

    def __init__(self) -> None:
        self._scan: Scan | None = None
        self._coarse: tuple[faiss.Index, CoarseScan] | None = None

    def __reduce__(self) -> tuple[type["Kept"], tuple[()]]:
        return Kept, ()  # a copy of an index fills its own

    def scan(self, index: faiss.Index) -> Scan:
        """The scan of this index; made again if FAISS's index was changed outside."""
        scan, coarse = self._scan, self._coarse
        if scan is None or scan.index is not index or scan.n_rows != scan.inner.ntotal:
            if coarse is None or coarse[0] is not index:
                coarse = self._coarse = index, CoarseScan()
            scan = self._scan = Scan(index, coarse[1])
        return scan

    def forget(self, first: int = 0) -> None:
        """Clear what follows from the rows from `first` on."""
        self._scan = None
        if self._coarse is not None and first:
            self._coarse[1].cut(first)
        else:
            self._coarse = None


def nearest(scan: Scan, Q: np.ndarray, k: int, norms: Norms | None = None, allowed: np.ndarray | None = None) -> Found:
    """Scores and positions (q, k) of the nearest vectors to queries Q (q, d) float32, nearest first; of vectors
    at their `norms`. `allowed` (m,): the sorted positions of the vectors to compare, None for all. What an
    inverted file does not find has position -1 and an infinite score."""
    asked = np.ascontiguousarray(Q, np.float32)
    ranking = scan.ranking(norms)
    wanted, k = k, k if ranking is None else min(scan.n_rows, ranking.candidates(k))
    if scan.turn is not None:
        asked = scan.turn.apply(asked)
    sought = asked if ranking is None else ranking.sought(asked)
    with np.errstate(over="ignore", invalid="ignore"):  # of centroids beyond float32's squares; of missing rows
        if allowed is None:
            scores, positions = _of_all(scan, sought, k, wanted, ranking)
        else:
            scores, positions = _among(scan, sought, k, allowed)
        if ranking is not None:
            return ranking.ranked(asked, scores, positions, wanted)
    scores[positions < 0] = np.inf if scan.by_distance else -np.inf  # FAISS has the largest float
    return scores, positions


def _of_all(scan: Scan, Q: np.ndarray, k: int, wanted: int, ranking: "Ranking | None") -> Found:
    """Search all rows; of the k found, which are rescored, the best `wanted` will be needed."""
    inner = scan.inner
    if not serves(inner, wanted):
        return _of_whole(scan, Q, k, wanted)
    compare = scan.tables.compare if scan.without_norm or scan.lists else None
    places = scan.places if scan.lists else None
    scores, positions, failed = scan.coarse.search(inner, Q, k, wanted, partial(_tried, scan, ranking), compare, places)
    if failed.any():
        scores[failed], positions[failed] = _of_whole(scan, Q[failed], k, wanted)
    return scores, positions


def _tried(scan: Scan, ranking: "Ranking | None", n_rows: int) -> Found:
    """Queries (q, d') of a trial, and their scores (q, n) of the first rows, smaller is nearer: of the decoded rows, at
    their norms.

    Half of the queries lie in the middle of two rows, half nearer to one. Rows would be too easy: with the usual coarse
    candidates, 24 bytes of sentences, they lose .028 of ten neighbours, usage sentences .059, and what lies between
    rows .063 to .074 (2026-11).
    """
    own, width = np.arange(n_rows), scan.inner.d
    rows = scan.real(decoded(scan, own)[0]) if ranking is None else ranking.rows(own)
    middle = rows.mean(axis=0) * scan.by_distance
    pairs = np.random.default_rng(0).integers(n_rows, size=(2, _TRIED // len(_MIXES)))
    asked = np.concatenate([rows[pairs[mix]].mean(axis=0)[:, :width] for mix in _MIXES])
    Q, rows = widened(asked, rows.shape[1]) - middle, rows - middle
    scores: np.ndarray = faiss.pairwise_distances(Q, rows, scan.inner.metric_type)
    asked = np.ascontiguousarray(asked + bias(scan.index), np.float32)
    return asked if ranking is None else ranking.sought(asked), scores if scan.by_distance else -scores


def _of_whole(scan: Scan, Q: np.ndarray, k: int, wanted: int) -> Found:
    """As `_of_all`, by the whole codes of all rows."""
    inner = scan.inner
    share = min(inner.nprobe, inner.nlist) / inner.nlist if scan.lists else 1.0
    flat_products = scan.products and not scan.lists
    if (scan.without_norm or flat_products) and share * len(Q) >= _MANY:
        return _decoding(scan, Q, k, _visited(scan, Q))
    if scan.without_norm:
        return scan.tables.search(Q, k)
    if not scan.lists:
        return inner.search(Q, k)
    return search_lists(inner, Q, k, *nearest_lists(inner, Q, inner.nprobe))


def _among(scan: Scan, Q: np.ndarray, k: int, allowed: np.ndarray) -> Found:
    """Search the rows at sorted positions `allowed` (m,). In an inverted file, each
    query is compared with as many of them as `n_probe` lists have rows: with those of the nearest lists."""
    inner = scan.inner
    wanted = max(k, inner.ntotal * inner.nprobe // inner.nlist) if scan.lists else len(allowed)
    if len(allowed) <= wanted and not (scan.lists and scan.products and len(Q) < _FEW):
        return _decoding(scan, Q, k, [(np.arange(len(Q)), allowed)])
    mask = np.zeros(inner.ntotal, bool)
    mask[allowed] = True
    counts = np.bincount(scan.places[allowed, 0], minlength=inner.nlist + 1)  # of list -1, for none, 0
    probed = min(inner.nlist, -(-wanted * inner.nlist // len(allowed)))
    while True:
        distances, lists = nearest_lists(inner, Q, probed)
        before = np.cumsum(counts[lists], axis=1) - counts[lists]
        if probed == inner.nlist or (before[:, -1] >= wanted).all():
            break
        probed = min(inner.nlist, 2 * probed)
    lists[(before >= wanted) | (counts[lists] == 0)] = -1
    if not scan.products:
        return _decoding(scan, Q, k, ((some, ids[mask[ids]]) for some, ids in _in_lists(inner, lists)))
    bitmap = np.packbits(mask, bitorder="little")
    selector = faiss.IDSelectorBitmap(inner.ntotal, faiss.swig_ptr(bitmap))
    return search_lists(inner, Q, k, distances, lists, sel=selector)


def _decoding(scan: Scan, Q: np.ndarray, k: int, parts: Iterable[Part]) -> Found:
    """Search decoded rows: in each part, some of the queries (q, d') are compared with the rows at some positions."""
    inner, size = scan.inner, max(1, _BLOCK // scan.inner.d)
    best, middle = faiss.ResultHeap(len(Q), k, keep_max=not scan.by_distance), None
    for some, positions in parts:
        for first in range(0, len(positions), size):
            own = positions[first : first + size]
            rows = decoded(scan, own)[0]
            if middle is None:  # centred on one row, squares lose fewer digits
                middle = rows[0].copy() if scan.by_distance else np.zeros(inner.d, np.float32)
            scores, numbers = faiss.knn(Q[some] - middle, rows - middle, min(k, len(rows)), metric=inner.metric_type)
            best.add_result_subset(some, scores, own[numbers])
    best.finalize()
    return best.D, best.I


def _visited(scan: Scan, Q: np.ndarray) -> Iterable[Part]:
    """The rows that queries (q, d') visit: all, or those of the lists nearest to each."""
    if scan.lists:
        return _in_lists(scan.inner, probed(scan.inner, Q))
    return [(np.arange(len(Q)), np.arange(int(scan.inner.ntotal)))]


def _in_lists(inner: faiss.IndexIVF, visited: np.ndarray) -> Iterator[Part]:
    """For each list the queries that visit it, of the numbers (q, n_probe) of their lists, and its rows' positions."""
    order = np.argsort(visited, axis=None, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(visited.ravel()[order])) + 1):
        number = int(visited.flat[group[0]])
        if number >= 0 and inner.invlists.list_size(number):
            yield group // visited.shape[1], codes_of_list(inner, number)[1]


def decoded(scan: Scan, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vectors (m, d') behind the rotation at `positions` (m,), and their codes (m, bytes) without the list's number."""
    inner = scan.inner
    if not scan.lists:
        own = byte_codes(inner)[positions]
        return inner.sa_decode(own), own
    places = scan.places[positions]
    codes = codes_at(inner, places)
    rows = scan.codec.decode(codes)
    if inner.by_residual:
        rows += inner.quantizer.reconstruct_batch(places[:, 0].astype(np.int64))
    return rows, codes


def normalised(X: ArrayLike) -> np.ndarray:
    """Vectors divided by their norms, as float32; vectors of zeros stay."""
    return unit_rows(np.asarray(X, np.float64)).astype(np.float32)  # the same of float32 and float64


@dataclass(frozen=True)
class Ranking:
    """Candidates of a scan, rescored by vectors at their `norms` behind the rotation; `given` are those before it."""

    scan: Scan
    given: Norms
    norms: Norms

    def candidates(self, k: int) -> int:
        """How many vectors to find by their codes, of which the k best are wanted."""
        most = DEFAULTS.times * k + DEFAULTS.spare
        return _WITH_NORMS * most if self.norms.n_bytes else most

    @cached_property
    def _times(self) -> float:
        """How many times as far from the origin as queries are those that candidates are found for."""
        farther = not self.norms.n_bytes and self.scan.by_distance and not self.scan.lists
        return _FARTHER if farther else 1.0

    def sought(self, Q: np.ndarray) -> np.ndarray:
        """What candidates for queries Q (q, d') behind the rotation are found for."""
        shift = bias(self.scan.index)
        return Q if self._times == 1 else np.ascontiguousarray(shift + self._times * (Q - shift), np.float32)

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Vectors (m, d' + 1) behind the rotation at `positions` (m,), without the bias there, as `Norms.applied`."""
        rows = self.scan.real(decoded(self.scan, positions)[0])
        return self.norms.applied(rows, self.norms.of(positions))

    def ranked(self, Q: np.ndarray, scores: np.ndarray, positions: np.ndarray, k: int) -> Found:
        """Scores and positions (q, k), best first, of `positions` (q, c) for queries Q (q, d') behind the rotation;
        `scores` (q, c) are FAISS's of `sought`."""
        stretched = self._stretched(self.scan.real(Q), scores, positions, self.norms)
        return best_of(stretched, positions, k, self.scan.by_distance)

    @cached_property
    def _known(self) -> np.ndarray:
        """`_stretches` (n, 2) of all vectors; NaN for those that were no candidates yet."""
        return np.full((self.scan.n_rows, 2), np.nan, np.float32)

    def _stretched(self, Q: np.ndarray, scores: np.ndarray, positions: np.ndarray, norms: Norms) -> np.ndarray:
        """FAISS's scores (q, c) of rows at `positions` for what is sought for queries Q (q, d'), as of the rows at
        their norms for Q."""
        known = self._known.take(positions, axis=0, mode="clip")
        if np.isnan(known.sum()):
            new = np.unique(np.maximum(positions[np.isnan(known[..., 0])], 0))
            for first in range(0, len(new), _CHUNK):
                self._known[new[first : first + _CHUNK]] = self._stretches(new[first : first + _CHUNK], norms)
            known = self._known.take(positions, axis=0, mode="clip")
        centred = Q - norms.centre
        base = np.einsum("qd,qd->q", centred, centred) if self.scan.by_distance else Q @ norms.centre
        base, times = base[:, None], self._times
        scores = scores + known[..., 0] * (scores - times**2 * base) + known[..., 1]
        if times == 1:
            return scores
        # |q - y|^2 of |times q - y|^2, with all |y| equal
        return np.maximum(scores / times + (1 - 1 / times) * norms.levels**2 - (times - 1) * base, 0)

    def _stretches(self, positions: np.ndarray, norms: Norms) -> np.ndarray:
        """e, and what to add to a squared distance (m, 2), of the rows at `positions` (m,)."""
        index, whole = self.scan.index, decoded(self.scan, positions)[0]
        rows = self.scan.real(whole)
        sizes = np.linalg.norm(rows - norms.centre, axis=1)
        factors, left = norms.stretches(sizes, norms.of(positions))
        if not self.scan.by_distance:
            return np.column_stack([factors - 1, 0 * factors])
        # FAISS's distances have the column of a code's errors, of which queries have 0
        errors = np.square(whole - bias(index)).sum(axis=1) - np.square(rows).sum(axis=1)
        return np.column_stack([factors - 1, (factors - 1) * factors * sizes**2 + left - factors * errors])


def decoded_rows(scan: Scan, positions: np.ndarray) -> np.ndarray:
    """Decoded vectors (m, d) of an index at `positions` (m,)."""
    return _turned_back(scan, decoded(scan, positions)[0] - bias(scan.index))


def rows_at_norms(scan: Scan, norms: Norms, positions: np.ndarray) -> np.ndarray:
    """Vectors (m, d + 1) of an index at `positions` (m,), at their norms, with the column that queries lack."""
    rows = cast(Ranking, scan.ranking(norms)).rows(positions)
    return np.hstack([_turned_back(scan, rows[:, :-1]), rows[:, -1:]])


def _turned_back(scan: Scan, rows: np.ndarray) -> np.ndarray:
    """Rows (m, d') behind the rotation of an index, without its bias, as (m, d) in front of it."""
    return rows if scan.turn is None else rows @ scan.matrix.T
