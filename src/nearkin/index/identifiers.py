"""The users' own names for vectors, integers or strings, next to FAISS's positions; the vectors that may be answers.


Vectors of `among` are the only ones that a search compares. Vectors of `exclude` are dropped from the answers of a
search for as many more, which costs less for few vectors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import NamedTuple, Self, TypeAlias, cast

import numpy as np

from nearkin._check import as_array, each_once
from nearkin._fields import counted
from nearkin._guard import cached_property
from nearkin._pairs import as_ids, unordered
from nearkin._types import ArrayLike


def check_ids(ids: ArrayLike, n: int | None = None) -> np.ndarray:
    """A copy of ids (n,), or of any number without `n`, as int64 or as fixed-width strings; TypeError for other types
    and for mixed ones, ValueError for a wrong count. A single id counts as one."""
    if not n and not np.size(ids):
        return np.empty(0, np.int64)  # `np.array([])` has floats
    single = isinstance(ids, str | Integral) or getattr(ids, "shape", None) == ()
    values = as_ids([ids] if single else ids, "ids")
    if values.dtype.kind not in "iUO":
        way = "int(v)" if values.dtype.kind == "f" else "str(v)"
        raise TypeError(f"ids have dtype {values.dtype}; they must be integers or strings, pass [{way} for v in ids]")
    if n not in (None, len(values)):
        raise ValueError(f"ids have shape {values.shape}; they must be ({n},), one a vector")
    return values.astype(np.int64 if values.dtype.kind == "i" else np.str_)


def given_ids(ids: ArrayLike, n: int | None = None) -> np.ndarray:
    """Ids (n,), maybe none, each once; ValueError or TypeError for others."""
    return each_once(check_ids(ids, n))


@dataclass(frozen=True, eq=False)
class RowIds:
    """The ids of n vectors by position: `ids` (n,), or None for 0, 1, 2, ...; `next_id` is the id of the next vector
    where vectors are counted with gaps; `order` (n,) are their positions by id, None where it is not known yet."""

    ids: np.ndarray | None
    n: int
    next_id: int | None = None
    order: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.ids is not None:  # what is written into them would not be checked
            object.__setattr__(self, "ids", self.ids.view())
            self.ids.flags.writeable = False

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(cast(np.ndarray, self.ids), kind="stable") if self.order is None else self.order

    def positions(self, wanted: np.ndarray) -> np.ndarray:
        """Positions of the ids `wanted`, of any shape; -1 for an unknown one."""
        if not self.n or wanted.dtype.kind != ("i" if self.ids is None else self.ids.dtype.kind):
            return np.full(wanted.shape, -1)
        if self.ids is None:
            return np.where((wanted >= 0) & (wanted < self.n), wanted, -1)
        positions = self._order[np.minimum(np.searchsorted(self.ids, wanted, sorter=self._order), self.n - 1)]
        return np.where(self.ids[positions] == wanted, positions, -1)

    def known(self, wanted: ArrayLike, name: str = "") -> np.ndarray:
        """Positions (m,) of ids, each named once; ValueError or TypeError, which begins with `name`, unless all are
        there."""
        wanted = given_ids(wanted)
        positions = self.positions(wanted)
        if (positions < 0).any():
            missing = wanted[positions < 0]
            which = counted(len(missing), "id is", "ids are")
            raise ValueError(f"{name}{which} not in the index, the first is {missing[0].item()!r}")
        return positions

    def found(self, wanted: ArrayLike) -> np.ndarray:
        """Positions (m,) of ids that must all be there, and may be named more than once."""
        ids, places = np.unique(check_ids(wanted), return_inverse=True)
        return self.known(ids)[places]

    @property
    def _all(self) -> np.ndarray:
        return np.arange(self.n) if self.ids is None else self.ids

    @property
    def _counted(self) -> bool:
        return self.ids is None or self.next_id is not None

    def with_more(self, ids: ArrayLike | None, m: int) -> "NewIds":
        """The ids after m vectors under `ids` are added; an index without vectors takes names and numbers."""
        if self.n and (ids is None) != self._counted:
            if self._counted:
                raise ValueError("ids is given, but this index counts its vectors; leave it out")
            raise ValueError("ids is missing, and this index has ids; give one a vector: ids=FILE, or a column")
        none = np.empty(0, np.int64)
        if ids is not None:
            return self._changed(self._addable(given_ids(ids, m)), none, None)
        if self.next_id is None:
            return NewIds(RowIds(None, self.n + m), none)
        return self._changed(np.arange(self.next_id, self.next_id + m), none, self.next_id + m)

    def with_others(self, ids: np.ndarray, positions: np.ndarray) -> "NewIds":
        """The ids after vectors of `ids`, each once, are added and those at `positions` are taken out."""
        next_id = (self.n if self.ids is None else self.next_id) if self.n and self._counted else None
        return self._changed(ids, np.sort(positions), next_id)

    def replaced(self, ids: np.ndarray) -> np.ndarray:
        """Positions of those of `ids`, each once, that are there; ValueError or TypeError where the others cannot be
        added."""
        positions = self.positions(ids)
        new = ids[positions < 0]
        if len(new) and self.n and self._counted:
            raise ValueError(f"ids hold {new[0].item()!r}, but this index counts its vectors; `add` takes no ids")
        self._addable(new)
        return positions[positions >= 0]

    def _addable(self, new: np.ndarray) -> np.ndarray:
        """`new` ids unchanged; TypeError if they and these are not all strings or all integers, ValueError for one that
        is here."""
        if self.n and len(new) and self._all.dtype.kind != new.dtype.kind:
            names = {"i": "integers", "U": "strings"}
            raise TypeError(
                f"new ids are {names[new.dtype.kind]}, the index has {names[self._all.dtype.kind]}; use one kind"
            )
        if len(there := new[self.positions(new) >= 0]):
            raise ValueError(
                f"{counted(len(there), 'id is', 'ids are')} in the index already, the first is {there[0].item()!r}; "
                "`update` replaces their vectors, `upsert` also adds the others"
            )
        return new

    def _changed(self, new: np.ndarray, gone: np.ndarray, next_id: int | None) -> "NewIds":
        """These ids without those at sorted positions `gone`, then `new` ones. Their order follows from the order
        before: sorting a million strings for every change would take a second."""
        kept, order = np.delete(self._all, gone), None
        if not len(kept):
            return NewIds(RowIds(new, len(new), next_id), gone)
        if self.ids is not None:
            order = self._order
            if len(gone):
                stays = np.ones(self.n, bool)
                stays[gone] = False
                order = (np.cumsum(stays) - 1)[order[stays[order]]]
            by_id = np.argsort(new, kind="stable")
            order = np.insert(order, np.searchsorted(kept, new[by_id], sorter=order), len(kept) + by_id)
        ids = np.concatenate([kept, new]) if len(new) else kept
        return NewIds(RowIds(ids, len(ids), next_id, order), gone)


class NewIds(NamedTuple):
    """The ids after a change, and the sorted positions of the vectors that it takes out."""

    rows: RowIds
    gone: np.ndarray


def named(positions: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
    """Ids at FAISS's positions (..., k); where FAISS found nothing (-1), the id is -1 or ''."""
    if ids is None:
        return positions
    return np.where(positions < 0, -1 if ids.dtype.kind == "i" else "", ids[np.maximum(positions, 0)])


Found: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Scores and positions (q, k) of a search."""
Rows: TypeAlias = ArrayLike | Sequence[ArrayLike] | None
"""Ids, or a bool mask (n,) in the order of the vectors; or one of these for each query, or a mask (q, n)."""


@dataclass(frozen=True, eq=False)
class Selection:
    """The vectors that may be answers of each of q queries, by position: the sorted positions of those `among` which
    they are, None for all, and the positions of those to `exclude`."""

    n: int
    among: list[np.ndarray | None]
    exclude: list[np.ndarray]

    @classmethod
    def of(cls, rows: RowIds, among: Rows, exclude: Rows, q: int) -> Self:
        """ValueError or TypeError, which names the query, for an unknown id and where no vector is allowed."""
        allowed, left_out = (_sets(rows, sets, q, name) for sets, name in ((among, "among"), (exclude, "exclude")))
        for query, each in enumerate(allowed):
            if each is not None and not len(each):
                where = "" if _each(among) is None else f"query {query}: "
                raise ValueError(f"{where}among allows no vector; give at least one id, or None for all vectors")
        return cls(rows.n, allowed, [np.empty(0, np.int64) if each is None else each for each in left_out])

    def without(self, positions: np.ndarray) -> Self:
        """The same without the vector at that one of the `positions` (q,) as an answer of each query."""
        return replace(self, exclude=[np.append(*each) for each in zip(self.exclude, positions, strict=True)])

    def take(self, queries: np.ndarray) -> Self:
        """The selection of some queries (m,)."""
        return replace(self, among=[self.among[i] for i in queries], exclude=[self.exclude[i] for i in queries])

    def chunks(self, k: int, most: int, answers: int) -> Iterator[tuple[np.ndarray, np.ndarray | None, int]]:
        """Up to `most` queries (m,) that are allowed the same vectors, of about `answers` together; these vectors, and
        how many to find beyond k."""
        groups, sizes = dict[int, list[int]](), np.array([len(each) for each in self.exclude])
        for query, each in enumerate(self.among):
            groups.setdefault(id(each), []).append(query)
        for group in groups.values():
            queries = np.array(group)[np.argsort(sizes[group], kind="stable")]  # many excluded slow no others down
            while len(queries):
                some = queries[:most]
                some = some[: max(1, answers // max(1, k + int(sizes[some[-1]])))]
                yield some, self.among[some[0]], int(sizes[some[-1]])
                queries = queries[len(some) :]

    def left(self, queries: np.ndarray, scores: np.ndarray, positions: np.ndarray, k: int, missing: float) -> Found:
        """The first k answers (m, k) of queries (m,) among scores and positions (m, c), without the vectors that are
        none; -1 and the score `missing` if fewer remain."""
        left_out, owners = self.take(queries).exclude, np.arange(len(queries))
        keys = np.repeat(owners, [len(each) for each in left_out]) * self.n + np.concatenate(left_out)
        gone = np.isin(owners[:, None] * self.n + positions, keys)
        scores, positions = np.where(gone, missing, scores).astype(scores.dtype), np.where(gone, -1, positions)
        order = np.argsort(gone, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(scores, order, axis=1), np.take_along_axis(positions, order, axis=1)


def _each(given: Rows) -> list[ArrayLike] | None:
    """The sets of all queries if there is one for each, else None."""
    if not isinstance(given, list | tuple | np.ndarray):
        return None
    sets = [unordered(each) for each in cast(Sequence[ArrayLike], given)]
    return sets if sets and all(np.ndim(each) for each in sets) else None


def _sets(rows: RowIds, given: Rows, q: int, name: str) -> list[np.ndarray | None]:
    """Sorted positions of the rows given for each query, None for none given; equal sets are one array."""
    sets, distinct, chosen = _each(given), dict[bytes, np.ndarray](), list[np.ndarray | None]()
    if sets is None:
        return [None if given is None else _positions(rows, cast(ArrayLike, given), name)] * q
    if len(sets) != q:
        raise ValueError(
            f"{name} has {len(sets)} sets of vectors and there are {counted(q, 'query', 'queries')}; give one, or one "
            "for each"
        )
    for query, each in enumerate(sets):
        try:
            positions = _positions(rows, each, name)
        except (TypeError, ValueError) as error:
            raise type(error)(f"query {query}: {error}") from error
        chosen.append(distinct.setdefault(positions.tobytes(), positions))
    return chosen


def _positions(rows: RowIds, given: ArrayLike, name: str) -> np.ndarray:
    """Sorted positions (m,) of the rows that a mask (n,) or ids name; ValueError for an unknown id."""
    given = unordered(given)
    values = as_array(given, name)
    if values.dtype.kind != "b":
        return np.sort(rows.known(given, f"{name} has ids: "))
    if values.shape != (rows.n,):
        raise ValueError(f"{name} is a mask of shape {values.shape}; it must be ({rows.n},), one value a vector")
    return np.flatnonzero(values)
