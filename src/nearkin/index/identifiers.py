"""The users' own names for rows: integers or strings, next to FAISS's positions."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, cast

import numpy as np

from nearkin._fields import counted
from nearkin._pairs import check_exact
from nearkin._types import ArrayLike


def check_ids(ids: ArrayLike, n: int | None = None) -> np.ndarray:
    """A copy of ids (n,), or of any number without `n`, as int64 or as fixed-width strings; TypeError for other types
    and for mixed ones, ValueError for a wrong count. A single id counts as one."""
    values = np.atleast_1d(np.array(ids, dtype=object if isinstance(ids, list | tuple | str) else None))
    if values.dtype.kind in "Ou":  # unsigned ones may be too large for int64
        values = _one_type(values)
    if values.dtype.kind not in "iU":
        way = "np.int64" if check_exact(values, "ids").dtype.kind == "f" else "str"
        raise TypeError(f"ids have dtype {values.dtype}; they must be integers or strings, pass ids.astype({way})")
    if values.ndim != 1 or n not in (None, len(values)):
        raise ValueError(f"ids have shape {values.shape}; they must be ({'m' if n is None else n},), one for each row")
    return values if values.dtype.kind == "U" else values.astype(np.int64)


def _one_type(values: np.ndarray) -> np.ndarray:
    """Objects as an array of strings or of integers; TypeError for a mixture, ValueError for what NumPy cannot hold."""
    flat = values.ravel().tolist()
    if all(isinstance(value, str) for value in flat):
        if any(value.endswith("\0") for value in flat):
            raise ValueError("ids hold a string that ends with a NUL character, which NumPy drops; take it off")
        return values.astype(np.str_)
    if not all(isinstance(value, Integral) and not isinstance(value, bool | np.bool_) for value in flat):
        names = ", ".join(sorted({type(value).__name__ for value in flat}))
        raise TypeError(f"ids hold values of type {names}; they must all be integers or all be strings")
    try:
        return values.astype(np.int64)
    except OverflowError:
        largest = max(flat, key=abs)
        raise ValueError(f"ids hold {largest}; integers must fit into 64 bits with a sign") from None


def join_ids(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Both in order; TypeError if one holds strings and the other integers, ValueError for a repeated id."""
    if len(old) and len(new) and old.dtype.kind != new.dtype.kind:
        names = {"i": "integers", "U": "strings"}
        raise TypeError(f"new ids are {names[new.dtype.kind]}, the index has {names[old.dtype.kind]}; use one kind")
    values, counts = np.unique(new, return_counts=True)
    if len(twice := values[counts > 1]):
        raise ValueError(
            f"{counted(len(twice), 'id occurs', 'ids occur')} more than once, the first is {twice[0].item()!r}; ids "
            "must be unique"
        )
    if len(old) and len(there := new[np.isin(new, old)]):
        raise ValueError(
            f"{counted(len(there), 'id is', 'ids are')} in the index already, the first is {there[0].item()!r}; "
            "`update` replaces their rows, `upsert` (nearkin add --upsert) also adds the others"
        )
    return np.concatenate([old, new]) if len(old) else new


def positions(own: np.ndarray | None, n: int, wanted: np.ndarray) -> np.ndarray:
    """Positions of the ids `wanted`, of any shape, in `own` (n,), None for 0, 1, 2, ...; -1 for an unknown one."""
    if not n or wanted.dtype.kind != ("i" if own is None else own.dtype.kind):
        return np.full(wanted.shape, -1)
    if own is None:
        return np.where((wanted >= 0) & (wanted < n), wanted, -1)
    order = np.argsort(own, kind="stable")
    place = np.minimum(np.searchsorted(own, wanted, sorter=order), n - 1)
    return np.where(own[order[place]] == wanted, order[place], -1)


def known_positions(own: np.ndarray | None, n: int, wanted: ArrayLike, name: str = "") -> np.ndarray:
    """Positions (m,) of ids that must all be there, each named once; ValueError or TypeError otherwise, which begins
    with `name`."""
    if not np.size(wanted):  # also of a float array, which is what `np.array([])` is
        return np.empty(0, np.int64)
    wanted = join_ids(np.empty(0, np.int64), check_ids(wanted))
    found = positions(own, n, wanted)
    if (found < 0).any():
        first = wanted[found < 0][0].item()
        raise ValueError(
            f"{name}{counted((found < 0).sum(), 'id is', 'ids are')} not in the index, the first is {first!r}"
        )
    return found


def allowed_positions(own: np.ndarray | None, n: int, among: ArrayLike) -> np.ndarray:
    """Sorted positions (m,) that `among` allows, a mask (n,) or ids; ValueError for an unknown id or none allowed."""
    mask = np.asarray(among)
    if mask.dtype.kind == "b":
        if mask.shape != (n,):
            raise ValueError(f"among is a mask of shape {mask.shape}; it must be ({n},), one value for each row")
        found = np.flatnonzero(mask)
    else:
        found = np.sort(known_positions(own, n, np.unique(check_ids(among)) if mask.size else mask, "among has ids: "))
    if not len(found):
        raise ValueError("among allows no row; give at least one id, or None for all rows")
    return found


def allowed_groups(
    own: np.ndarray | None, n: int, among: ArrayLike | Sequence[ArrayLike] | None, q: int
) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Queries (m,) that are allowed the same rows, and these rows' sorted positions, None for all; ValueError names the
    query. `among`: None, one set as `allowed_positions` takes it, a mask (q, n) or a sequence of q sets."""
    if among is None:
        return [(np.arange(q), None)]
    given: list[Any] = list(cast(Any, among)) if isinstance(among, list | tuple | np.ndarray) else []
    if not given or not all(np.ndim(each) for each in given):
        return [(np.arange(q), allowed_positions(own, n, cast(ArrayLike, among)))]
    if len(given) != q:
        raise ValueError(
            f"among has {len(given)} sets of rows and there are {counted(q, 'query', 'queries')}; give one, or one "
            "for each"
        )
    groups: dict[bytes, list[int]] = {}
    for query, each in enumerate(given):
        try:
            groups.setdefault(allowed_positions(own, n, each).tobytes(), []).append(query)
        except (TypeError, ValueError) as error:
            raise type(error)(f"query {query}: {error}") from error
    return [(np.array(queries), np.frombuffer(allowed, np.int64)) for allowed, queries in groups.items()]


def named(positions: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
    """Ids at FAISS's positions (..., k); where FAISS found nothing (-1), the id is -1 or ''."""
    if ids is None:
        return positions
    missing = -1 if ids.dtype.kind == "i" else ""
    return np.where(positions < 0, missing, ids[np.maximum(positions, 0)])
