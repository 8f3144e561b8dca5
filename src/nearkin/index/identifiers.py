"""The users' own names for vectors: integers or strings, next to FAISS's positions."""

from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import NamedTuple, cast

import numpy as np

from nearkin._check import repeated
from nearkin._fields import counted
from nearkin._pairs import as_ids
from nearkin._types import ArrayLike


def check_ids(ids: ArrayLike, n: int | None = None) -> np.ndarray:
    """A copy of ids (n,), or of any number without `n`, as int64 or as fixed-width strings; TypeError for other types
    and for mixed ones, ValueError for a wrong count. A single id counts as one."""
    single = isinstance(ids, str | Integral) or getattr(ids, "shape", None) == ()
    values = as_ids([ids] if single else ids, "ids")
    if values.dtype.kind == "u":
        raise ValueError(f"ids hold {values.max()}; integers must fit into 64 bits with a sign, or be text")
    if values.dtype.kind not in "iUO":
        way = "int(v)" if values.dtype.kind == "f" else "str(v)"
        raise TypeError(f"ids have dtype {values.dtype}; they must be integers or strings, pass [{way} for v in ids]")
    if n not in (None, len(values)):
        raise ValueError(f"ids have shape {values.shape}; they must be ({n},), one a vector")
    return values.astype(np.int64 if values.dtype.kind == "i" else np.str_)


def unordered(ids: ArrayLike | Set[ArrayLike]) -> ArrayLike:
    """Ids whose order means nothing: a set as a list, anything else unchanged."""
    return cast(ArrayLike, list(ids)) if isinstance(ids, Set) else ids


def given_ids(ids: ArrayLike, n: int | None = None) -> np.ndarray:
    """Ids (n,), maybe none, each once; ValueError or TypeError for others."""
    none = np.empty(0, np.int64)
    return join_ids(none, check_ids(ids, n)) if n or np.size(ids) else none  # `np.array([])` has floats


def join_ids(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Both in order; TypeError if one holds strings and the other integers, ValueError for a repeated id."""
    if len(old) and len(new) and old.dtype.kind != new.dtype.kind:
        names = {"i": "integers", "U": "strings"}
        raise TypeError(f"new ids are {names[new.dtype.kind]}, the index has {names[old.dtype.kind]}; use one kind")
    if len(twice := repeated(new)):
        raise ValueError(
            f"{counted(len(twice), 'id occurs', 'ids occur')} more than once, the first is {twice[0].item()!r}; ids "
            "must be unique"
        )
    if len(old) and len(there := new[np.isin(new, old)]):
        raise ValueError(
            f"{counted(len(there), 'id is', 'ids are')} in the index already, the first is {there[0].item()!r}; "
            "`update` replaces their vectors, `upsert` (nearkin add --upsert) also adds the others"
        )
    return np.concatenate([old, new]) if len(old) else new


def _unreserved(ids: np.ndarray) -> np.ndarray:
    """`ids` unchanged; ValueError for one that marks a place without a result."""
    if (none := ids == _none(ids)).any():
        raise ValueError(f"ids hold {ids[none][0].item()!r}, which marks a place without a result; give another id")
    return ids


def _none(ids: np.ndarray) -> int | str:
    """What stands where no vector was found."""
    return -1 if ids.dtype.kind == "i" else ""


class NewIds(NamedTuple):
    """Ids after a change (n,), None where vectors are numbered; sorted positions of the vectors that it takes out; the
    number of the next vector where vectors are counted with gaps."""

    ids: np.ndarray | None
    gone: np.ndarray
    next_id: int | None


@dataclass(frozen=True, eq=False)
class RowIds:
    """The ids of n vectors by position: `ids` (n,), or None for 0, 1, 2, ...; `next_id` is the id of the next vector
    where vectors are counted with gaps."""

    ids: np.ndarray | None
    n: int
    next_id: int | None = None

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(cast(np.ndarray, self.ids), kind="stable")

    def positions(self, wanted: np.ndarray) -> np.ndarray:
        """Positions of the ids `wanted`, of any shape; -1 for an unknown one."""
        if not self.n or wanted.dtype.kind != ("i" if self.ids is None else self.ids.dtype.kind):
            return np.full(wanted.shape, -1)
        if self.ids is None:
            return np.where((wanted >= 0) & (wanted < self.n), wanted, -1)
        found = self._order[np.minimum(np.searchsorted(self.ids, wanted, sorter=self._order), self.n - 1)]
        return np.where(self.ids[found] == wanted, found, -1)

    def known(self, wanted: ArrayLike, name: str = "") -> np.ndarray:
        """Positions (m,) of ids, each named once; ValueError or TypeError, which begins with `name`, unless all are
        there."""
        wanted = given_ids(wanted)
        found = self.positions(wanted)
        if (found < 0).any():
            first = wanted[found < 0][0].item()
            raise ValueError(
                f"{name}{counted((found < 0).sum(), 'id is', 'ids are')} not in the index, the first is {first!r}"
            )
        return found

    def found(self, wanted: ArrayLike) -> np.ndarray:
        """Positions (m,) of ids that must all be there, and may be named more than once."""
        ids, places = (
            np.unique(check_ids(wanted), return_inverse=True) if np.size(wanted) else (wanted, np.empty(0, int))
        )
        return self.known(ids)[places]

    def named(self, positions: np.ndarray) -> np.ndarray:
        """Ids at positions (..., k); -1 or "" for a missing answer (-1)."""
        return named(positions, self.ids)

    @property
    def _all(self) -> np.ndarray:
        return np.arange(self.n) if self.ids is None else self.ids

    @property
    def _counted(self) -> bool:
        return self.ids is None or self.next_id is not None

    def with_more(self, ids: ArrayLike | None, m: int) -> NewIds:
        """The ids after m vectors under `ids` are added; an index without vectors takes names and numbers."""
        none = np.empty(0, np.int64)
        if self.n and (ids is None) != self._counted:
            if self._counted:
                raise ValueError("ids is given, but this index counts its vectors; leave it out (--ids, a column)")
            raise ValueError("ids is missing, and this index has ids; give one a vector (--ids FILE, or a column)")
        if ids is not None:
            return NewIds(join_ids(none if self.ids is None else self.ids, _unreserved(check_ids(ids, m))), none, None)
        if self.next_id is None:
            return NewIds(None, none, None)
        last = self.next_id + m
        return NewIds(np.concatenate([self._all, np.arange(self.next_id, last)]), none, last)

    def with_others(self, ids: np.ndarray, positions: np.ndarray) -> NewIds:
        """The ids after vectors of `ids` are added and those at `positions` are taken out."""
        gone = np.sort(positions)
        if not self.n:
            return NewIds(ids, gone, None)
        next_id = (self.n if self.ids is None else self.next_id) if self._counted else None
        return NewIds(np.delete(np.concatenate([self._all, ids]), gone), gone, next_id)

    def replaced(self, ids: np.ndarray) -> np.ndarray:
        """Positions of those of `ids` that are there; ValueError or TypeError where the others cannot be added."""
        found = self.positions(ids)
        new = _unreserved(join_ids(self._all[:0], ids)[found < 0])
        if len(new) and self.n and self._counted:
            raise ValueError(f"ids hold {new[0].item()!r}, but this index counts its vectors; `add` takes no ids")
        join_ids(self._all, new)
        return found[found >= 0]


def named(positions: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
    """Ids at FAISS's positions (..., k); where FAISS found nothing (-1), the id is -1 or ''."""
    if ids is None:
        return positions
    return np.where(positions < 0, _none(ids), ids[np.maximum(positions, 0)])
