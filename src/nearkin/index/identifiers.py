"""The users' own names for vectors: integers or strings, next to FAISS's positions."""

from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple, cast

import numpy as np

from nearkin._check import each_once
from nearkin._fields import counted
from nearkin._guard import cached_property
from nearkin._pairs import as_ids
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
        found = self.positions(ids)
        new = ids[found < 0]
        if len(new) and self.n and self._counted:
            raise ValueError(f"ids hold {new[0].item()!r}, but this index counts its vectors; `add` takes no ids")
        self._addable(new)
        return found[found >= 0]

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
