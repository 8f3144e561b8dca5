"""The vectors that may be answers: those of `among`, without those of `exclude`.

Vectors of `among` are the only ones that a search compares. Vectors of `exclude` are dropped from the answers of a
search for as many more, which costs less for few vectors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias, cast

import numpy as np

from nearkin._check import as_array
from nearkin._fields import counted
from nearkin._pairs import unordered
from nearkin._types import ArrayLike
from nearkin.index.code_tables import Found
from nearkin.index.identifiers import RowIds

Rows: TypeAlias = ArrayLike | Sequence[ArrayLike] | None
"""Ids, or a bool mask (n,) in the order of the vectors; or one of these for each query, or a mask (q, n)."""


@dataclass(frozen=True, eq=False)
class Selection:
    """The vectors that may be answers of q queries, by position.

    `groups`: queries (m,) that are allowed the same vectors, and these vectors' sorted positions, None for all.
    `shared` (s,): vectors that are no answer of any query. `own` (t,), sorted: query * n + position of vectors that are
    no answer of that query.
    """

    n: int
    groups: list[tuple[np.ndarray, np.ndarray | None]]
    shared: np.ndarray
    own: np.ndarray

    @classmethod
    def of(cls, rows: RowIds, among: Rows, exclude: Rows, q: int) -> Self:
        """ValueError or TypeError, which names the query, for an unknown id and where no vector is allowed."""
        none = np.empty(0, np.int64)
        sets = _sets(rows, among, q, "among")
        for query, each in enumerate(sets):
            if not len(each):
                where = f"query {query}: " if len(sets) > 1 else ""
                raise ValueError(f"{where}among allows no vector; give at least one id, or None for all vectors")
        groups = dict[bytes, list[int]]()
        for query, each in enumerate(sets if len(sets) == q else ()):
            groups.setdefault(each.tobytes(), []).append(query)
        found: list[tuple[np.ndarray, np.ndarray | None]] = [
            (np.array(queries), np.frombuffer(allowed, np.int64)) for allowed, queries in groups.items()
        ]
        without = _sets(rows, exclude, q, "exclude")
        selection = cls(rows.n, found or [(np.arange(q), sets[0] if sets else None)], none, none)
        if _each(exclude) is None:
            return replace(selection, shared=without[0] if without else none)._with_fewer()
        return selection.without(np.repeat(np.arange(q), list(map(len, without))), np.concatenate([none, *without]))

    def _with_fewer(self) -> Self:
        """Rows that no query may have are taken from those allowed, where most rows are left out."""
        if 2 * len(self.shared) <= self.n or len(self.shared) == self.n:
            return self
        everything = np.arange(self.n)
        groups = [
            (queries, np.setdiff1d(everything if allowed is None else allowed, self.shared, assume_unique=True))
            for queries, allowed in self.groups
        ]
        return replace(self, groups=groups, shared=self.shared[:0]) if all(len(each[1]) for each in groups) else self

    def without(self, queries: np.ndarray, positions: np.ndarray) -> Self:
        """The same without the vector at each of the `positions` (t,) as an answer of that one of the `queries`
        (t,)."""
        return replace(self, own=np.union1d(self.own, queries * self.n + positions))

    def take(self, queries: np.ndarray) -> Self:
        """The selection of some queries (m,), sorted."""
        new = np.full(1 + max((int(of.max(initial=0)) for of, _ in self.groups), default=0), -1)
        new[queries] = np.arange(len(queries))
        groups = [(new[of][new[of] >= 0], allowed) for of, allowed in self.groups]
        owner, position = np.divmod(self.own, max(self.n, 1))
        there = new[owner] >= 0
        own = new[owner[there]] * self.n + position[there]
        return replace(self, groups=[group for group in groups if len(group[0])], own=own)

    def chunks(self, k: int, most: int, answers: int) -> Iterator[tuple[np.ndarray, np.ndarray | None, int]]:
        """Up to `most` queries (m,) that are allowed the same vectors, of about `answers` together; these vectors, and
        how many to find beyond k."""
        for queries, allowed in self.groups:
            own = np.diff(np.searchsorted(self.own, [queries * self.n, (queries + 1) * self.n]), axis=0)
            more = len(self.shared) + own[0]
            order, first = np.argsort(more, kind="stable"), 0
            queries, more = queries[order], more[order]  # one query that drops many rows does not slow others down
            while first < len(queries):
                last = min(len(queries), first + most)
                last = min(last, first + max(1, answers // max(1, k + int(more[last - 1]))))
                yield queries[first:last], allowed, int(more[last - 1])
                first = last

    def left(self, queries: np.ndarray, scores: np.ndarray, positions: np.ndarray, k: int, missing: float) -> Found:
        """The first k answers (m, k) of queries (m,) among scores and positions (m, c), without the vectors that are
        none; -1 and the score `missing` if fewer remain."""
        if not len(self.shared) and not len(self.own):
            return scores[:, :k], positions[:, :k]
        gone = np.isin(positions, self.shared)
        if len(self.own):
            keys = queries[:, None] * self.n + positions
            gone |= self.own[np.minimum(np.searchsorted(self.own, keys), len(self.own) - 1)] == keys
        scores, positions = np.where(gone, missing, scores).astype(scores.dtype), np.where(gone, -1, positions)
        order = np.argsort(gone, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(scores, order, axis=1), np.take_along_axis(positions, order, axis=1)


def _each(given: Rows) -> list[ArrayLike] | None:
    """The sets of all queries if there is one for each, else None."""
    sets = (
        [unordered(each) for each in cast(Sequence[ArrayLike], given)]
        if isinstance(given, list | tuple | np.ndarray)
        else []
    )
    return sets if sets and all(np.ndim(each) for each in sets) else None


def _sets(rows: RowIds, given: Rows, q: int, name: str) -> list[np.ndarray]:
    """Sorted positions of one set of rows, of one for each query, or of none."""
    sets, found = _each(given), list[np.ndarray]()
    if sets is None:
        return [] if given is None else [_positions(rows, cast(ArrayLike, given), name)]
    if len(sets) != q:
        raise ValueError(
            f"{name} has {len(sets)} sets of vectors and there are {counted(q, 'query', 'queries')}; give one, or one "
            "for each"
        )
    for query, each in enumerate(sets):
        try:
            found.append(_positions(rows, each, name))
        except (TypeError, ValueError) as error:
            raise type(error)(f"query {query}: {error}") from error
    return found


def _positions(rows: RowIds, given: ArrayLike, name: str) -> np.ndarray:
    """Sorted positions (m,) of the rows that a mask (n,) or ids name; ValueError for an unknown id."""
    given = unordered(given)
    values = as_array(given, name)
    if values.dtype.kind != "b":
        return np.sort(rows.known(given, f"{name} has ids: "))
    if values.shape != (rows.n,):
        raise ValueError(f"{name} is a mask of shape {values.shape}; it must be ({rows.n},), one value a vector")
    return np.flatnonzero(values)
