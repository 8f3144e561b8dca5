"""Roles of the columns of a table of comparisons: objects, response, rating, weight or annotator."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nearkin._fields import counted, quoted
from nearkin.data.column import Column
from nearkin.data.names import ASIDE, COMPARISONS, DISSIMILARITY, OPTIONS, SIMILARITY, normal, usual
from nearkin.data.tables import Table, has_pairs, no_ids

FORMS = ("triplet", "quadruplet", "odd-one-out", "most-central", "rating", "similarity", "dissimilarity")
_SHARED_ROWS = 10  # rows from which on columns of objects must share some of them


@dataclass
class Roles:
    """Columns by role: `objects` in the order of the form; `options`: a response chooses among them."""

    objects: list[Column]
    form: str
    options: bool = False
    response: Column | None = None
    weight: Column | None = None
    annotator: Column | None = None
    rating: Column | None = None


def assign_roles(table: Table, asked: Mapping[str, str | None], form: str | None = None) -> Roles:
    """Give each column its role: by the names given, by usual names, and the objects by position where nothing else is.

    `asked` has the name of the column, or None, for "anchor", "near", "far" and "response".
    """
    given = {
        role: table.column(name.partition("=")[0] if role == "response" else name, role)  # "column=value" names a value
        for role, name in asked.items()
        if name is not None
    }
    free = {name: column for name, column in table.columns.items() if column not in given.values()}
    extra = {role: _usual(free, role) for role in ("weight", "annotator")}
    if "response" not in given and (found := _usual(free, "response")) is not None:
        given["response"] = found
    if "anchor" not in given and "near" not in given and form in (None, "rating", "similarity", "dissimilarity"):
        rating = _usual(free, "rating")
        if rating is not None and "response" not in given:
            return _rated(table, rating, extra, form)
    taken = [*given.values(), *(column for column in extra.values() if column is not None)]
    rest = {n: c for n, c in free.items() if c not in taken and normal(n) not in ASIDE}
    objects, options = _objects(table, given, rest, form)
    shape = form if form in ("odd-one-out", "most-central") else {3: "triplet", 4: "quadruplet"}.get(len(objects))
    if shape is None or (form in ("triplet", "quadruplet") and form != shape):
        raise _too_many(table, [column.name for column in objects], form)
    return Roles(objects, shape, options, given.get("response"), extra["weight"], extra["annotator"])


def _usual(columns: dict[str, Column], role: str) -> Column | None:
    return next((columns[name] for name in usual(columns, COMPARISONS[role])), None)


def _objects(
    table: Table, given: dict[str, Column], rest: dict[str, Column], form: str | None
) -> tuple[list[Column], bool]:
    """The columns of objects, and whether a response must choose between the last two (or among all)."""
    named = {role: given.get(role) or _usual(rest, role) for role in ("anchor", "near", "far")}
    if form in ("odd-one-out", "most-central"):
        return _first_is_odd(table, given, rest), "response" in given
    odd = _usual(rest, "odd")
    if odd is not None and form is None and named["near"] is None:
        raise ValueError(f"{table.name} has a column {odd.name!r}; type form='odd-one-out' (--read form=odd-one-out)")
    known = [column for column in named.values() if column is not None]
    if len(known) == 3:
        return known, False
    by_name = {normal(name): column for name, column in rest.items()}
    options = next(([by_name[a], by_name[b]] for a, b in OPTIONS if a in by_name and b in by_name), [])
    if options and not {"a", "b", "c"} <= set(by_name):  # three letters in a row name three places, not two options
        others = [column for column in rest.values() if column not in options]
        first = named["anchor"] or (others[0] if len(others) == 1 else None)
        if first is None:
            raise _too_many(table, list(rest), form)
        if "response" not in given:
            a, b = (column.name for column in options)
            raise ValueError(
                f"{table.name} does not say which of {a!r} and {b!r} is nearer to {first.name!r}; type near={a!r}, "
                f"far={b!r} (--read {quoted(f'near={a},far={b}')}), or response=... (--read response=...), the column "
                "of answers"
            )
        return [first, *options], True
    if {"anchor", "near", "far"} & set(given):
        missing = [role for role, column in named.items() if column is None]
        left = [column for column in rest.values() if column not in known]
        if len(missing) == len(left) == 1:
            return [left[0] if column is None else column for column in named.values()], False
        raise _too_many(table, list(rest), form)
    objects = list(rest.values())
    in_order = table.header is False or [normal(column.name) for column in objects] == ["i", "j", "k"]
    if len(objects) == 3 and "response" in given and not in_order:
        return objects, True
    if len(objects) in (3, 4):
        _check_objects(table, objects)
    return objects, False


def _first_is_odd(table: Table, given: dict[str, Column], rest: dict[str, Column]) -> list[Column]:
    """Three objects, the odd (or the central) one first, unless a response names it."""
    odd = _usual(rest, "odd")
    objects = list(rest.values())
    if odd is not None and len(objects) == 3:
        return [odd, *(column for column in objects if column is not odd)]
    if odd is not None and len(objects) == 4:
        given["response"] = odd
        return [column for column in objects if column is not odd]
    if len(objects) != 3:
        raise _too_many(table, list(rest), None)
    return objects


def _check_objects(table: Table, objects: list[Column]) -> None:
    """ValueError for a column of objects that holds something else: times, row numbers, or values of which it shares
    none with another. Anchors of triplets may be other objects."""
    typed = "Type anchor=..., near=..., far=... (--read anchor=...,near=...,far=...)"
    for place, column in enumerate(objects):
        if held := no_ids(column, first=place == 0):
            raise ValueError(
                f"{table.name}: column {column.name!r} would be objects by its place, but seems to hold {held} "
                f"({column.cell(0)}, ...). {typed} with the columns of objects"
            )
    if len(objects[0]) < _SHARED_ROWS:
        return
    *others, last = (column.texts() for column in objects)
    same = [last == other for other in others]
    if len(objects) == 4 and np.any(same, axis=0).all() and not any(each.all() for each in same):
        name = objects[-1].name
        raise ValueError(
            f"{table.name}: column {name!r} repeats an object of its row: is it the answer? Type response={name!r} "
            f"(--read {quoted(f'response={name}')}), with form='odd-one-out' if it names the odd one of three"
        )
    values = [set(map(str, column.distinct.tolist())) for column in objects]
    for place in range(len(objects) == 3, len(objects)):
        column = objects[place]
        if not any(values[place] & other for at, other in enumerate(values) if at != place):
            others = ", ".join(other.name for other in objects if other is not column)
            raise ValueError(
                f"{table.name}: column {column.name!r} shares no value with {others}; are these comparisons? {typed}, "
                "or for pairs read_interactions (--left and --right)"
            )


def _rated(table: Table, rating: Column, extra: dict[str, Column | None], form: str | None) -> Roles:
    used = [rating, *(column for column in extra.values() if column is not None)]
    rest = {name: column for name, column in table.columns.items() if column not in used and normal(name) not in ASIDE}
    if len(rest) != 2:
        if form is None and len(rest) in (3, 4):
            raise ValueError(
                f"{table.name} has {counted(len(rest), 'column')} of objects ({', '.join(rest)}) and a rating "
                f"{rating.name!r}; "
                "type form='triplet' (--read form=triplet) to leave it aside, with anchor=..., near=..., far=..."
            )
        raise _too_many(table, list(rest), form or "rating")
    words = dict.fromkeys(SIMILARITY, "similarity") | dict.fromkeys(DISSIMILARITY, "dissimilarity")
    shape = form if form in ("similarity", "dissimilarity") else words.get(normal(rating.name))
    if shape is None:
        raise ValueError(
            f"{table.name} rates pairs in {rating.name!r}; type form='similarity' if a high rating means near, or "
            "form='dissimilarity' if it means far (--read form=...), or read pairs of users and items with "
            "read_interactions (--left and --right)"
        )
    return Roles(list(rest.values()), shape, rating=rating, weight=extra["weight"], annotator=extra["annotator"])


def _too_many(table: Table, names: list[str], form: str | None) -> ValueError:
    wanted = {"triplet": 3, "quadruplet": 4, "rating": 2, "similarity": 2, "dissimilarity": 2}.get(form or "")
    needed = f"form {form!r} needs {wanted}" if wanted else "3 mean d(i, j) < d(i, k) and 4 mean d(i, j) < d(l, k)"
    listed = ", ".join([name[:40] for name in names[:6]] + ["..."] * (len(names) > 6))
    if form is None and has_pairs(table):
        return ValueError(
            f"{table.name} reads as pairs ({', '.join(table.columns)}): use read_interactions (on the command line "
            "leave out options for comparisons), or name the columns of comparisons: anchor=..., "
            "near=..., far=... (--read anchor=...,near=...,far=...)"
        )
    return ValueError(
        f"{table.name} has {counted(len(names), 'object column')} ({listed or 'none'}); {needed}. Name their roles: "
        "anchor=..., near=..., far=..., response=... (--read anchor=...,near=..., and so on). A header may name "
        "further columns: weight, annotator, response"
    )
