"""One index over exact vectors, bytes or bits, searched by FAISS, under the users' own ids."""

# pyright: reportConstantRedefinition=false

import copy
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Self, cast

import faiss
import numpy as np

from nearkin._check import check_choice, check_integer, check_magnitude, check_names, check_not_vanishing, check_vectors
from nearkin._faiss import add_codes
from nearkin._fields import StrPath, counted
from nearkin._pairs import unordered
from nearkin._storage import one_version, verification
from nearkin._types import ArrayLike, Seed
from nearkin.contracts import Callback, Quantizer, VectorCodes, ignore
from nearkin.data.vectors import VectorFile
from nearkin.index import faiss_index, identifiers, parts, searching
from nearkin.index.faiss_index import METRICS, FaissIndex, inverted_file
from nearkin.index.guard import Guard, alone, uninterrupted
from nearkin.index.identifiers import NewIds, RowIds, Rows, Selection, named
from nearkin.index.kept_vectors import KeptVectors
from nearkin.index.parts import Parts, SavedQuantizer, empty_faiss, fitted
from nearkin.index.searching import Query, normalised
from nearkin.linalg.norms import Norms

_CHUNK = 65_536  # rows encoded at a time


@dataclass(frozen=True)
class Defaults:
    """Inverted lists that a search visits where `n_probe` is None.

    Recall 10@10 in 8, 16, 32 and 64 of 256 lists, SIFT, product codes of 16 bytes: .636 .661 .669 .669 (2026-11).
    In 16 of 128 lists in place of 8, of 100,000 vectors of SIFT and 39,000 sentences: .649 to .663 and .595 to .612.
    """

    least_probed: int = 16
    lists_per_probe: int = 16  # a sixteenth of the lists, where that is more


DEFAULTS = Defaults()


class Index:
    """Vectors under ids, searched exactly or through the codes of a quantizer; made by `Index.build` or `Index.load`.

    Scores are squared L2 distances (smaller is nearer) for "l2", inner products (larger is nearer) for "ip" and, of
    normalised vectors, for "cosine", and numbers of differing bits for "hamming".

    Decoded vectors are too short, which biases scores. FAISS finds candidates by its own scores, and they are rescored
    at their `norms`: one for all vectors that have the same (1 for "cosine"), or a byte a vector in an index
    built with `norms`.

    Threads may share an index. Searches run at the same time, and wait for a change; a change while a search runs is a
    RuntimeError. What raises or is interrupted changes nothing. A copy or pickle is of one moment and shares nothing
    with its index.

    Parameters
    ----------
    faiss_index: the FAISS index itself, whose positions count vectors in the order they were added.
    d: columns of the vectors.
    metric: "l2", "ip", "cosine" or "hamming".
    quantizer: fitted, or None.
    kept: the vectors kept for rescoring, or None.
    ids: (n,) the users' ids, or None for 0, 1, 2, ...
    next_id: the number that the next vector without an id gets.
    norms: one norm for all vectors, or a byte a vector; None where FAISS's scores stand.
    errors: (2, 2) numbers of vectors and totals of their codes' errors: of those it was built from, of those since.

    Attributes
    ----------
    faiss_index, metric, kept, ids, norms, errors, quantizer: see above; ids may be set.
    n_features: columns of the vectors.
    bytes_per_vector: size of a code with its norm.
    n_lists, n_probe: inverted lists, and those that a search visits; None without lists.

    Raises
    ------
    ValueError, TypeError: by each call, before anything changes: another width, NaN, unknown or repeated ids, ids of
        another kind, an unknown metric.
    RuntimeError: a change while a search runs, in its callback too, a change of a view, and a view of what has changed.

    Examples
    --------
    >>> X = np.eye(4, dtype=np.float32)
    >>> scores, ids = nk.Index.build(X, ids=["a", "b", "c", "d"]).search(X[:2], k=1)
    >>> ids.tolist(), scores.tolist()
    ([['a'], ['b']], [[0.0], [0.0]])
    """

    def __init__(
        self,
        faiss_index: FaissIndex,
        d: int,
        metric: str,
        quantizer: Quantizer | SavedQuantizer | None,
        kept: KeptVectors | None,
        ids: np.ndarray | None = None,
        next_id: int | None = None,
        norms: Norms | None = None,
        errors: np.ndarray | None = None,
    ) -> None:
        self.faiss_index = faiss_index
        self.n_features = d
        self.metric = metric
        self._quantizer = quantizer
        self.kept = kept
        self.norms: Norms | None = norms
        self.errors: np.ndarray = np.zeros((2, 2)) if errors is None else errors
        self._rows = RowIds(ids, len(self), next_id)
        self._folders = set[str]()  # it was loaded from them, or saved to them
        self._guard = Guard()
        self._searched = searching.Kept()

    @classmethod
    def empty(
        cls,
        d: int,
        quantizer: Quantizer | None = None,
        metric: str = "l2",
        *,
        keep_vectors: bool | str = False,
        n_probe: int | None = None,
        norms: Norms | None = None,
    ) -> Self:
        """An index without vectors, for vectors of width d; arguments as in `build`, the quantizer already fitted and
        the levels of `norms` trained.

        The index keeps a copy of the quantizer: codes of later vectors must not change when the caller fits it again.
        """
        inner = empty_faiss(d, quantizer, metric)
        lists = inverted_file(inner)
        if lists is not None:
            probed = max(DEFAULTS.least_probed, lists.nlist // DEFAULTS.lists_per_probe)
            lists.nprobe = min(lists.nlist, n_probe or probed)
        kept = KeptVectors.wanted(keep_vectors, d)
        if norms is not None and norms.n_bytes and (metric not in ("l2", "ip") or quantizer is None):
            raise ValueError(f"norms are for codes by metric 'l2' or 'ip', and metric is {metric!r}; leave norms out")
        if norms is None or not norms.n_bytes:  # that of all rows follows from these
            shared = metric == "cosine" and isinstance(quantizer, VectorCodes) and not quantizer.ranks_by
            norms = Norms.one(1.0, d) if shared else None
        return cls(inner, d, metric, copy.deepcopy(quantizer), kept, norms=norms and norms.alone())

    @classmethod
    def build(
        cls,
        X: ArrayLike,
        quantizer: Quantizer | int | None = None,
        ids: ArrayLike | None = None,
        metric: str = "l2",
        *,
        keep_vectors: bool | str = False,
        fast_scan: bool | None = None,
        n_probe: int | None = None,
        norms: bool | Norms | None = None,
        random_state: Seed = 0,
        callback: Callback | None = None,
    ) -> Self:
        """Index the vectors X (n, d).

        quantizer: None for exact search; bytes a vector for the codec that `nk.quantization.best` chooses, as `nearkin
            compress --bytes` does; a ProductQuantizer for bytes; a hasher (with metric="hamming") for bits, which are
            searched by Hamming distance always. One that is not fitted is cloned and fitted on X (on its normalised
            vectors for "cosine"). `index.quantizer`, here what was chosen, is a copy, which must not be fitted again.
        ids: (n,) integers or strings, each once; None for 0, 1, 2, ...
        metric: "l2", "ip", "cosine" or "hamming".
        keep_vectors: keep the vectors too, so that `search(..., oversample=...)` can re-rank by them: as "float32",
            "float16" (half the bytes) or "int8" (a quarter, and four bytes a vector). True takes the shorter of the
            first two that holds X exactly: float16 if X is of float16 or of 8-bit integers.
        fast_scan: False to compare all codes with each query, without coarse codes in memory. A copy, and an index that
            was saved and loaded, has them again.
        n_probe: inverted lists visited by a search; None for a sixteenth of them, at least 16.
        norms: add a byte to each vector for its norm, for vectors of different norms by "l2" and "ip"; True trains the
            levels of the byte from X. None: where `quantizer` is a size in bytes (a number, or an AxisQuantizer that is
            not fitted) and held-out queries find more with one of its bytes for the norm.
        random_state: seed or NumPy generator of the choice by bytes; by default 0, so that it is repeatable.
        callback(rows_done, {"total": n}) follows the adding.

        ValueError for vectors that float32 cannot hold, and for a quantizer that was fitted on normalised vectors where
        X are others, or the other way round.
        """
        check_choice(metric, "metric", METRICS)
        check_choice(fast_scan, "fast_scan", (None, True, False))
        given, X = X, check_not_vanishing(check_magnitude(check_vectors(X, small=True), metric=metric), metric)
        kept = KeptVectors.wanted(keep_vectors, X.shape[1], X.dtype)
        levels = norms if isinstance(norms, Norms) else Norms.learned(X) if norms else None
        if quantizer is not None:
            own, (quantizer, chosen) = quantizer, fitted(quantizer, X, metric, random_state, norms=norms is None)
            check_names(quantizer, () if quantizer is own else given, reset=True)
            levels = chosen if levels is None else levels
        index = cls.empty(X.shape[1], quantizer, metric, n_probe=n_probe, norms=levels)
        index.kept, index._searched = kept, searching.Kept(fast_scan is not False)
        index.add(X, ids, callback=callback)
        index.errors = index.errors[::-1]
        return index

    def __len__(self) -> int:
        return int(self.faiss_index.ntotal)

    def __contains__(self, id: object) -> bool:
        """Whether a row has that id."""
        with self._guard.reading():
            return isinstance(id, str | Integral) and bool(self._rows.positions(np.array(id)) >= 0)

    def __repr__(self) -> str:
        code = "exact" if self._quantizer is None else type(self.quantizer).__name__
        kept = "" if self.kept is None else f" and {self.kept.dtype} vectors"
        size = f"{self.bytes_per_vector:,} bytes each{kept}"
        return f"Index({counted(len(self), 'vector')} of {self.n_features}, {self.metric}, {code}: {size})"

    def view(self, ids: ArrayLike | None = None, vectors: np.ndarray | KeptVectors | None = None) -> Self:
        """The same vectors in the same memory, to be searched only: under other `ids` (n,), None for 0, 1, 2, ..., and
        rescored by `vectors` (n, d), the vectors in their order, None for no rescoring. ValueError for another
        shape; RuntimeError for a change of the view, and for a search of it once this index has changed."""
        if isinstance(vectors, np.ndarray):
            if vectors.shape != (shape := (len(self), self.n_features)):
                way = "give the vectors it was made of, in their order"
                raise ValueError(f"vectors have shape {vectors.shape}, the index has {shape}; {way}")
            vectors = KeptVectors([np.ascontiguousarray(vectors, np.float32)])
        with self._guard.reading():
            rows = RowIds(None, 0).with_more(ids, len(self)).rows
            view = type(self)(**vars(replace(self._parts(), ids=rows.ids, next_id=None, kept=vectors)))
            view._guard, view._searched = Guard(self._guard), self._searched
            return view

    def __reduce__(self) -> tuple[object, ...]:
        """What pickle, `copy.copy` and `copy.deepcopy` take: a copy that shares nothing with this index."""
        with self._guard.reading():
            content = vars(self._parts()) | {"faiss_index": faiss_index.packed(self.faiss_index)}
        return parts.restored, (type(self), content)

    def _parts(self) -> Parts:
        shown = self.faiss_index, self.n_features, self.metric, self._quantizer, self.kept
        return Parts(*shown, self.ids, self._rows.next_id, self.norms, self.errors)

    @property
    def quantizer(self) -> Quantizer | None:
        """The fitted quantizer, or None; that of a loaded index is made on first use."""
        if isinstance(self._quantizer, SavedQuantizer):
            self._quantizer = self._quantizer.open()
        return self._quantizer

    @property
    def ids(self) -> np.ndarray | None:
        """The ids of the vectors (n,), read-only; None for 0, 1, 2, ... New ones may be set, as many."""
        return self._rows.ids

    @ids.setter
    def ids(self, ids: ArrayLike | None) -> None:
        with self._guard.writing(), uninterrupted():
            self._rows = RowIds(None, 0).with_more(ids, len(self)).rows

    @property
    def row_ids(self) -> np.ndarray:
        """The ids of the vectors (n,), or their numbers."""
        return np.arange(len(self)) if self.ids is None else self.ids

    @property
    def bytes_per_vector(self) -> int:
        """Size of one vector's code and norm, ids and kept vectors not counted."""
        return self._parts().bytes_per_vector

    def add(self, X: ArrayLike | VectorFile, ids: ArrayLike | None = None, *, callback: Callback | None = None) -> Self:
        """Add vectors X (n, d), or those of a file opened by `nk.data.open_vectors`, which may exceed memory; `ids` are
        needed where the index has ids, and refused where it counts 0, 1, 2, ...

        All vectors are encoded before any is added.
        """
        X = self._checked(X)
        if isinstance(X, np.ndarray) and not len(self):
            check_not_vanishing(X, self.metric)
        return self._put(X, lambda rows: rows.with_more(ids, len(X)), callback)

    def remove(self, ids: ArrayLike, *, unknown: str = "raise") -> Self:
        """Take out the vectors of those ids (m,); ValueError, and nothing changes, if the index lacks one of them,
        unless `unknown` is "drop".

        The ids of the other vectors stay. Where vectors are numbered 0, 1, 2, ..., numbering continues after the
        highest number ever given. Kept vectors of removed vectors leave the memory when the index is saved and loaded.
        """
        dropped = check_choice(unknown, "unknown", ("raise", "drop")) == "drop"
        ids = unordered(ids)
        with self._guard.writing(), uninterrupted():
            rows, none = self._rows, np.empty((0, self.n_features), np.float32)
            positions = rows.positions(identifiers.given_ids(ids)) if dropped else rows.known(ids)
            if (positions >= 0).any():
                self._change(none, none, rows.with_others(self.row_ids[:0], positions[positions >= 0]))
        return self

    def update(self, ids: ArrayLike, X: ArrayLike | VectorFile, *, callback: Callback | None = None) -> Self:
        """Put vectors X (m, d), as in `add`, in the place of those of ids (m,); ValueError if the index lacks one of
        them."""
        X = self._checked(X)
        names = identifiers.given_ids(ids, len(X))
        return self._put(X, lambda rows: rows.with_others(names, rows.known(names)), callback)

    def upsert(self, X: ArrayLike | VectorFile, ids: ArrayLike, *, callback: Callback | None = None) -> Self:
        """Put vectors X (m, d), as in `add`, in the place of those of ids (m,), and add the vectors whose ids the index
        lacks.

        All or nothing: ValueError, and nothing changes, for an id given twice, and for a new id in an index that counts
        its vectors 0, 1, 2, ...; TypeError for ids of another type than the index's.
        """
        X = self._checked(X)
        names = identifiers.given_ids(ids, len(X))
        return self._put(X, lambda rows: rows.with_others(names, rows.replaced(names)), callback)

    def recode(self, quantizer: Quantizer, X: ArrayLike, *, callback: Callback | None = None) -> Self:
        """Encode all vectors by another fitted quantizer; X (n, d) are the most exact vectors that you have, in the
        index's order.

        Ids and kept vectors stay. ValueError, and no change, for another number of vectors.
        """
        with alone:
            before, fresh = self._rows, type(self).empty(self.n_features, quantizer, self.metric, norms=self.norms)
            if self.n_lists is not None and self.n_lists == fresh.n_lists:
                fresh.n_probe = cast(int, self.n_probe)
        if (n := len(check_vectors(X, n_features=self.n_features))) != before.n:
            raise ValueError(f"X has {counted(n, 'vector')} and the index {before.n}; give all, in its order")
        fresh.add(X, callback=callback)
        with self._guard.writing(), uninterrupted():
            if self._rows is not before:
                raise RuntimeError("the index was changed while `recode` ran; call it again with the vectors of now")
            self.faiss_index, self._quantizer, self.norms = fresh.faiss_index, fresh._quantizer, fresh.norms
            self.errors = fresh.errors[::-1]
            self._searched.forget()
        return self

    def _put(self, X: np.ndarray | VectorFile, plan: Callable[[RowIds], NewIds], callback: Callback | None) -> Self:
        """Add rows X (m, d) as `plan` determines, which raises where the index cannot take them."""
        while True:
            with alone:  # other threads may plan, or search
                before, inner, quantizer = self._rows, self.faiss_index, self.quantizer
                after = plan(before)  # errors come before the work
            if not len(X):
                return self
            codes, error = self._codes(X, inner, quantizer, callback or ignore)
            with self._guard.writing(), uninterrupted():
                if self.faiss_index is inner:  # else `recode` came in between: codes of another quantizer
                    self._change(X, codes, after if self._rows is before else plan(self._rows))
                    self.errors = self.errors + np.array([(0, 0), (len(X), error)])
                    return self

    def _checked(self, X: ArrayLike | VectorFile) -> np.ndarray | VectorFile:
        """Rows X (n, d) that the index can take, kept vectors included; those of a file are checked when read."""
        if isinstance(X, VectorFile):
            if X.shape[1] != self.n_features:
                wrong = f"{X.name} has {counted(X.shape[1], 'column')}"
                raise ValueError(f"{wrong}; it must have {self.n_features}, as the vectors before")
            return X
        if np.shape(X) in ((0,), (0, self.n_features)):
            return np.empty((0, self.n_features), np.float32)
        X = check_magnitude(check_vectors(X, n_features=self.n_features, small=True), metric=self.metric)
        if self.kept is not None:
            self.kept.check(X)
        return X

    def merge(self, other: Self) -> Self:
        """Add the vectors of another index of the same quantizer behind these; `other` is empty afterwards.

        For indexes without given ids, such as the parts that several processes make. ValueError for an index
        of another kind, metric, width or quantizer.
        """
        if other is self:
            raise ValueError("other is this index itself; give another one")
        with self._guard.writing(), other._guard.writing(), uninterrupted():
            if any(index.ids is not None or index.kept is not None for index in (self, other)):
                raise ValueError("an index with ids or kept vectors cannot be merged; merge first, then set `ids`")
            parts.check_mergeable(self._parts(), other._parts())
            norms = self.norms if len(self) else other.norms
            if len(self) and len(other):
                norms = self.norms and other.norms and self.norms.joined(other.norms)
            add_codes(self.faiss_index, faiss_index.stored(other.faiss_index))
            faiss_index.cut(other.faiss_index, 0)
            self.norms, other.norms = norms, other.norms and other.norms.alone()
            self.errors, other.errors = self.errors + other.errors, np.zeros((2, 2))
            for index in (self, other):
                index._rows = RowIds(None, len(index))
                index._searched.forget()
        return self

    @property
    def n_lists(self) -> int | None:
        """Lists of the inverted file, None without one."""
        return None if (lists := inverted_file(self.faiss_index)) is None else int(lists.nlist)

    @property
    def n_probe(self) -> int | None:
        """Lists of the inverted file that a search visits, None without an inverted file; may be set."""
        return None if (lists := inverted_file(self.faiss_index)) is None else int(lists.nprobe)

    @n_probe.setter
    def n_probe(self, count: int) -> None:
        if (lists := inverted_file(self.faiss_index)) is None:
            raise ValueError("n_probe is for an inverted file, and this index has none; make it with n_lists > 0")
        with self._guard.writing():
            lists.nprobe = check_integer(count, "n_probe", low=1, high=lists.nlist)

    def search(
        self,
        Q: ArrayLike,
        k: int = 10,
        *,
        among: Rows = None,
        exclude: Rows = None,
        oversample: float | None = None,
        asymmetric: bool = False,
        callback: Callback | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest vectors of each query Q (q, d): (scores, ids), both (q, min(k, len(self))), nearest first.

        among: the vectors that may be answers: ids, or a bool mask (len(self),) in the order of the vectors; or one for
            each query, as a list of q of these or a mask (q, len(self)). An inverted file compares as many of them as
            `n_probe` lists have vectors, those of the lists nearest to the query, so that k answers are found if k
            vectors are allowed. ValueError for an unknown id, or if no vector is allowed.
        exclude: the vectors that may not be answers, for example what each user has seen; in the same forms, or none.
        oversample: take `oversample * k` candidates by their codes and re-rank them by the vectors that `keep_vectors`
            kept; the scores are then those of the kept vectors (squared L2 distances where the metric is "hamming").
        asymmetric: for bits, keep the queries real: scores are inner products with the signs, larger is nearer.
        callback(queries_done, {"total": q}) follows the search.

        Where fewer than k vectors are allowed, or an inverted file visits fewer, the last places have id -1 (or "") and
        an infinite score (the largest int32 for "hamming").
        """
        Q, k = self._asked(Q), check_integer(k, "k", low=1)
        with self._guard.reading():
            query, rows = self._query(oversample, asymmetric), self._rows
            found = query.nearest(Q, k, Selection.of(rows, among, exclude, len(Q)), callback)
            return found[0], named(found[1], rows.ids)

    def search_radius(
        self,
        Q: ArrayLike,
        r: float,
        *,
        among: Rows = None,
        exclude: Rows = None,
        oversample: float | None = None,
        asymmetric: bool = False,
        callback: Callback | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All vectors nearer than r to each query Q (q, d): (limits (q + 1,), scores (m,), ids (m,)), as FAISS's
        `range_search`. The results of query i are `limits[i]:limits[i + 1]`, nearest first.

        r: limit of the scores, itself not included: of squared distances for "l2" (r=4 for a distance below 2), of
            inner products or cosines, which are larger than r, and of differing bits (r=3 for up to two).

        Other arguments as in `search`, whose answers these are: an inverted file visits `n_probe` lists, and where
        vectors are rescored, more candidates are taken until half of them are not nearer than r.
        """
        Q = self._asked(Q)
        if not isinstance(r, Real) or np.isnan(float(r)):
            raise ValueError(f"r is {r!r}; it must be a number, the limit of scores")
        with self._guard.reading():
            query, rows = self._query(oversample, asymmetric), self._rows
            found = query.within(Q, float(r), Selection.of(rows, among, exclude, len(Q)), callback)
            return *found[:2], named(found[2], rows.ids)

    def similar(
        self,
        ids: ArrayLike,
        k: int = 10,
        *,
        among: Rows = None,
        exclude: Rows = None,
        oversample: float | None = None,
        callback: Callback | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k vectors nearest to those of ids (m,), each without itself: (scores, ids), as `search`, whose arguments
        these are. Vectors that equal it are answers.

        Queries are the kept vectors, else the decoded vectors, for "hamming" the bits. ValueError for an unknown id.
        """
        k = check_integer(k, "k", low=1)
        with self._guard.reading():
            query, rows = self._query(oversample), self._rows
            positions = rows.found(ids)
            selection = Selection.of(rows, among, exclude, len(positions))
            bits = self.metric == "hamming" and oversample is None
            Q = faiss_index.flat_codes(self.faiss_index)[positions] if bits else self._vectors(positions)
            found = query.nearest(Q, k, selection.without(positions), callback)
            return found[0], named(found[1], rows.ids)

    def vectors(self, ids: ArrayLike) -> np.ndarray:
        """The vectors (m, d) float32 of ids (m,): the kept vectors, else the decoded codes, which for "cosine" are of
        the normalised vectors. ValueError for an unknown id, and for bits without kept vectors."""
        with self._guard.reading():
            return self._vectors(self._rows.found(ids))

    def _vectors(self, positions: np.ndarray) -> np.ndarray:
        return self.decoded(positions) if self.kept is None else self.kept.rows(positions)

    def decoded(self, positions: np.ndarray) -> np.ndarray:
        """Decoded codes (m, d) float32 of the vectors at `positions` (m,), of normalised vectors for "cosine"."""
        if self.metric == "hamming":
            raise ValueError("bits cannot be decoded, and the index keeps no vectors; build it with keep_vectors=True")
        with self._guard.reading():
            scan = self._searched.scan(cast(faiss.Index, self.faiss_index), self.norms)
            return searching.decoded_rows(scan, positions)

    def _asked(self, Q: ArrayLike) -> np.ndarray:
        return check_magnitude(check_vectors(Q, name="Q", n_features=self.n_features, finite=False), "Q", self.metric)

    def candidates(self, Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores and positions (q, k) without rescoring, of queries (q, d) float32, of norm 1 for "cosine"."""
        with self._guard.reading():
            return self._query().candidates(Q, k)

    def _query(self, oversample: float | None = None, asymmetric: bool = False) -> Query:
        quantizer = self.quantizer if self.metric == "hamming" else None  # others stay unopened
        parts = self.faiss_index, self.metric, quantizer, self.norms, self.kept, self._searched
        return Query(*parts, oversample, asymmetric)

    def save(self, path: StrPath, *, overwrite: bool = False) -> None:
        """Write a folder: config.json, index.faiss, arrays.safetensors, and if the index has them the
        quantizer's own folder and the kept vectors in vectors.npy.

        It appears whole or not at all. A folder that this index was loaded from or saved to is replaced; any other that
        exists is a ValueError without `overwrite`. `index.faiss` opens with plain `faiss.read_index`
        (`read_index_binary` for bits) and answers with the same ids if these are integers. FAISS has no strings: it
        answers with positions, and `Index.load(path).ids[positions]` are the names.
        """
        with self._guard.reading():
            place = os.path.realpath(path)
            parts.write_parts(self._parts(), path, overwrite or place in self._folders)
            self._folders.add(place)

    @classmethod
    def load(cls, path: StrPath, *, verify: bool = True) -> Self:
        """Read a folder that `save` wrote. Kept vectors are memory-mapped, not read.

        All files are compared with the checksums in the folder's manifest, kept vectors block by block when they are
        first used; `verify=False` compares lengths only. While another process saves there, it is the old index or the
        new. Raises FileNotFoundError or ValueError for a folder that is missing, damaged, of a newer format, or whose
        parts do not belong together.
        """
        with verification(verify):
            found = one_version(path, parts.read_parts)
        index = cls(**vars(found))
        index._folders.add(os.path.realpath(path))
        if found.metric == "hamming":  # every search encodes with it
            index._quantizer = index.quantizer
        return index

    def _read(self, X: np.ndarray | VectorFile, size: int) -> Iterable[np.ndarray]:
        """Rows X (n, d) in order, `size` at a time; of a file `_CHUNK` at most."""
        if isinstance(X, VectorFile):
            return (cast(np.ndarray, self._checked(chunk)) for chunk in X.chunks(min(size, _CHUNK)))
        return (X[first : first + size] for first in range(0, len(X), size))

    def _codes(
        self, X: np.ndarray | VectorFile, inner: FaissIndex, quantizer: Quantizer | None, callback: Callback
    ) -> tuple[np.ndarray, float]:
        """The input of FAISS's index `inner` for rows X (n, d), and the total of their errors, as `parts.encoded`."""
        encoded, done = list[tuple[np.ndarray, float]](), 0
        for rows in self._read(X, _CHUNK):
            done += len(rows)
            rows = rows.astype(np.promote_types(rows.dtype, np.float32), copy=False)
            encoded.append(parts.encoded(normalised(rows) if self.metric == "cosine" else rows, inner, quantizer))
            callback(done, {"total": len(X)})
        codes, errors = zip(*encoded, strict=True)
        return codes[0] if len(codes) == 1 else np.concatenate(codes), sum(errors)

    def _change(self, X: np.ndarray | VectorFile, codes: np.ndarray, after: NewIds) -> None:
        """Add rows X (m, d), maybe none, under their codes, then take out those of `after`; all or nothing."""
        before, kept, norms = len(self), self.kept, self.norms
        self._searched.forget(int(after.gone[0]) if len(after.gone) else before)
        # what can fail for want of memory comes first, so that only FAISS's rows must be taken back
        first = not before
        for rows in self._read(X, len(X)) if len(X) and (first or kept is not None or norms is not None) else ():
            kept, norms = None if kept is None else kept.with_rows(rows), self._norms_with(rows, norms, first)
            first = False
        if len(after.gone):
            kept, norms = None if kept is None else kept.without(after.gone), norms and norms.without(after.gone)
        try:
            if len(X):
                add_codes(self.faiss_index, codes)
            if len(after.gone):
                faiss_index.remove(self.faiss_index, after.gone)
        except BaseException:
            faiss_index.cut(self.faiss_index, before)
            raise
        self._rows, self.kept, self.norms = after.rows, kept, norms

    def _norms_with(self, X: np.ndarray, norms: Norms | None, first: bool) -> Norms | None:
        """These norms of all rows when rows X (n, d) follow, the `first` ones or others."""
        if self.metric == "cosine":
            return norms
        if not first or (norms is not None and norms.n_bytes):
            return norms and norms.with_rows(X)
        if not isinstance(self.quantizer, VectorCodes) or self.metric in self.quantizer.ranks_by:
            return None
        return Norms.shared(X, bool(self.quantizer.normalized_))
