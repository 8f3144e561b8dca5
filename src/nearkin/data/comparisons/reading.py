"""Reading comparisons from tables: each form by the names of its columns (docs/reading.md has the table)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from nearkin._check import check_choice
from nearkin._fields import FileOrFrame, counted
from nearkin._pairs import Coded, joined
from nearkin._types import Record
from nearkin.data.column import Column
from nearkin.data.comparisons.forms import (
    FORMS,
    comparisons_from_array,
    comparisons_from_names,
    orient,
    rated_quadruplets,
)
from nearkin.data.files import brief
from nearkin.data.interactions import read_interactions
from nearkin.data.names import NAMES, listed, plain
from nearkin.data.tables import Table, complete, read_table
from nearkin.records import Comparisons, Reading

ARRAYS = ("triplets", "quadruplets", "comparisons", "indices")  # of comparisons, in an archive
_FOUR = (("i", "j", "l", "k"), ("near1", "near2", "far1", "far2"))  # names of four columns, as `plain` leaves them
_ODD = ("one", "other", "odd")
_WORDS = {
    "triplet": ("anchor", "near", "far"),
    "quadruplet": ("i", "j", "l", "k"),
    "rated": ("first", "second"),
    "distances": ("first", "second"),
}


@dataclass
class _Roles:
    """Columns by role: `objects` in the order of the form, the `answer` that chooses among them, or their `rating`."""

    form: str
    objects: list[Column]
    answer: Column | None = None
    rating: Column | None = None
    weight: Column | None = None
    rater: Column | None = None

    def named(self) -> dict[str, Column]:
        """The columns in use, by role in words."""
        words = _WORDS.get(self.form, ())
        if self.answer is not None:
            words = ("anchor", "first", "second") if self.form == "triplet" else ()
        names = [words[at] if at < len(words) else f"object {at + 1}" for at in range(len(self.objects))]
        others = {"response": self.answer, "rating": self.rating, "weight": self.weight, "rater": self.rater}
        return dict(zip(names, self.objects, strict=True)) | {
            role: column for role, column in others.items() if column is not None
        }


@brief()
def read_comparisons(
    path: FileOrFrame,
    *,
    form: str | None = None,
    columns: Sequence[str] | None = None,
    response: str | None = None,
    scale: tuple[float, float] | None = None,
    rater: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    missing: str = "raise",
    objects: Sequence[object] | None = None,
) -> Comparisons:
    r"""Read comparisons from a table (see `nearkin.data.read_table`), a DataFrame or an .npz.

    Three columns (anchor, near, far) mean d(anchor, near) < d(anchor, far); four (i, j, l, k) mean d(i, j) < d(l, k).
    Columns go by their usual names (docs/reading.md has the table), or by `columns`, never by their places. Further
    columns: `weight` (or votes) and `rater` (or annotator, worker, participant). An .npz holds `triplets` or
    `quadruplets` and optionally `objects` (names), `weights`, `annotators`, `responses`, `judgements`.

    Parameters
    ----------
    path: file, folder or pattern of parts, or DataFrame.
    form: None (ordered rows, by the names of columns), or what an answer in a row means:
        "triplet": of two shown objects the answer is nearer to the anchor;
        "odd-one-out": of three shown objects the answer is the odd one (without an answer, the column called odd);
        "ranking": an anchor, then objects from the nearest to the farthest;
        "rated": two objects and a rating on a `scale`.
    columns: the columns of objects, in the order of the form: anchor, near, far; i, j, l, k; anchor, first, second; the
        three shown; anchor and those ranked; the two rated.
    response: the column of answers, or of ratings. An answer is the name of a shown object or of its column, or its
        place, 1, 2 or 3; "column=value" names the value that chooses the first object.
    scale: for "rated": the rating that means farthest, and the one that means nearest, (1, 7) or (7, 1). Columns called
        distance or dissimilarity need none.
    rater: the column of who answered.
    header, delimiter, encoding: as in `nearkin.data.read_table`.
    missing: "raise" a ValueError for rows without an answer or an object and for rows that repeat an object, or "drop"
        and count them; `n_dropped` is the number of the latter.
    objects: all objects in the order wanted, also those without comparisons; None takes those met, sorted.

    Returns
    -------
    comparisons: `Comparisons`; `source` describes the reading.

    Raises
    ------
    ValueError: columns whose names do not tell the form (it names what to type), faulty cells, answers that are none of
        the shown objects, ratings outside the scale.
    FileNotFoundError: no such file.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("answers.csv").write_text("anchor,near,far\nOslo,Bonn,Rome\nRome,Bonn,Oslo\n")
    >>> nk.read_comparisons("answers.csv").indices.tolist()  # rows of objects: Bonn, Oslo, Rome
    [[1, 0, 2], [2, 0, 1]]
    """
    check_choice(form, "form", (None, *_NEEDED))
    check_choice(missing, "missing", ("raise", "drop"))
    table = read_table(path, header=header, delimiter=delimiter, encoding=encoding)
    if any(name in table.matrices for name in ARRAYS):
        return _read_archive(table, missing, objects)
    answer, _, value = (response or "").partition("=")
    roles = _assign(table, form, columns, answer or None)
    roles.weight = table.role("weight", needed=False, taken=[c.name for c in roles.named().values()])
    roles.rater = table.role("rater", rater, needed=False, taken=[c.name for c in roles.named().values()])
    notes = list[str]()
    if missing == "drop":
        keep, notes = complete(roles.named())
        table = table.rows(keep)
        again = {role: table.columns[column.name] for role, column in roles.named().items()}
        n = len(roles.objects)
        roles = _Roles(
            roles.form, list(again.values())[:n], *(again.get(r) for r in ("response", "rating", "weight", "rater"))
        )
    rows, more, shape = _rows(roles, value or None, scale)
    found = comparisons_from_names(rows, form=shape, missing=missing, objects=objects, **more)
    return replace(found, source=_understood(table, roles, found, notes))


def _assign(table: Table, form: str | None, columns: Sequence[str] | None, answer: str | None) -> _Roles:
    """The form, and the columns of objects and answers: those typed, else those with the form's usual names."""
    form = _form_of(table, columns, answer) if form is None else form
    if columns is not None:
        shown = [table.column(name, "columns") for name in columns]
        form = "quadruplet" if form == "triplet" and len(shown) == 4 else form
        if len(shown) not in _NEEDED[form]:
            raise ValueError(
                f"columns are {listed(columns)}; form {form!r} needs {' or '.join(map(str, _NEEDED[form]))} of objects"
            )
    else:
        shown = _usual_objects(table, form, answer)
    taken = [column.name for column in shown]
    rest = replace(table, columns={name: column for name, column in table.columns.items() if name not in taken})
    roles = _Roles(form, shown)
    if form in ("rated", "distances"):
        roles.rating = _rating(rest, answer)
    elif answer is not None or (form in ("triplet", "odd-one-out") and not _is_ordered(shown, form, columns)):
        roles.answer = rest.role("response", answer)
    return roles


_NEEDED = {  # columns of objects
    "triplet": (3, 4),
    "quadruplet": (4,),
    "odd-one-out": (3,),
    "most-central": (3,),
    "ranking": range(3, 100),
    "rated": (2,),
    "distances": (2,),
}


def _form_of(table: Table, columns: Sequence[str] | None, answer: str | None) -> str:
    """The form that the names of columns tell; ValueError that names what to type for others."""
    names = set(map(plain, table.columns))
    usual = {role for role in NAMES if names & set(NAMES[role])}
    if columns is not None and answer is None:
        form = {3: "triplet", 4: "quadruplet"}.get(len(columns))
        if form is not None:
            return form
    elif columns is None:
        ordered = answer is None and "response" not in usual
        if ordered and any(names >= set(four) for four in _FOUR):
            return "quadruplet"
        if ordered and {"anchor", "near", "far"} <= usual:
            return "triplet"
        if names >= set(_ODD) and answer is None:
            return "odd-one-out"
        if {"anchor", "first", "second", "response"} <= usual and answer is None and not usual & {"third", "odd"}:
            return "triplet"
        if {"first", "second", "dissimilarity"} <= usual and answer is None:
            return "distances"
    raise ValueError(
        f"{table.name} has the columns {listed(table.columns)}, which do not tell how to read a row. Call them anchor, "
        "near and far, or i, j, l and k; or type columns=[...], those of objects, and form='triplet' (response=... is "
        f"the nearer of two), form='odd-one-out', form='ranking', or form='rated' with scale={_extremes(table)}"
    )


def _extremes(table: Table) -> str:
    """The extreme values of a column of ratings, as a scale to type."""
    usual = (*NAMES["similarity"], *NAMES["dissimilarity"])
    ratings = [c for name, c in table.columns.items() if plain(name) in usual and c.is_numeric]
    if not ratings:
        return "(1, 7)"
    values = ratings[0].numbers_or_nan()
    return f"({np.nanmin(values):g}, {np.nanmax(values):g})"


def _usual_objects(table: Table, form: str, answer: str | None) -> list[Column]:
    """The columns of objects with the usual names of a form."""
    by_name = {plain(name): column for name, column in table.columns.items()}
    if form == "quadruplet":
        four = next((names for names in _FOUR if set(names) <= set(by_name)), None)
        if four is None:
            raise ValueError(f"{table.name} has the columns {listed(table.columns)}; type columns=['i', 'j', 'l', 'k']")
        return [by_name[name] for name in four]
    if form in ("odd-one-out", "most-central") and set(_ODD) <= set(by_name) and answer is None:
        return [by_name["odd"], by_name["one"], by_name["other"]]
    ordered = form == "triplet" and answer is None and _has(table, "near") and _has(table, "far")
    if form == "ranking":
        anchor = cast(Column, table.role("anchor"))
        numbered = [column for name, column in table.columns.items() if name[-1:].isdigit()]
        if len(numbered) < 2:
            raise ValueError(
                f"{table.name} has no rank1, rank2, ...; type columns=['anchor', 'nearest', ..., 'farthest']"
            )
        return [anchor, *numbered]
    roles = {
        "triplet": ("anchor", "near", "far") if ordered else ("anchor", "first", "second"),
        "odd-one-out": ("first", "second", "third"),
        "most-central": ("first", "second", "third"),
    }.get(form, ("first", "second"))
    return [cast(Column, table.role(role)) for role in roles]


def _has(table: Table, role: str) -> bool:
    return table.role(role, needed=False) is not None


def _is_ordered(shown: list[Column], form: str, columns: Sequence[str] | None) -> bool:
    """Whether the columns of objects tell the answer by their names alone."""
    if form == "triplet":
        return columns is not None or plain(shown[1].name) in NAMES["near"]
    return columns is None and plain(shown[0].name) in NAMES["odd"]


def _rating(table: Table, typed: str | None) -> Column:
    roles = [c for role in ("similarity", "dissimilarity") if (c := table.role(role, typed, needed=False)) is not None]
    if not roles or roles[0] != roles[-1]:
        raise ValueError(
            f"{table.name} has not one column of ratings; type response=..., one of {listed(table.columns)}"
        )
    return roles[0]


def _rows(
    roles: _Roles, value: str | None, scale: tuple[float, float] | None
) -> "tuple[np.ndarray | Coded, Record, str]":
    """Rows of ids (m, 3) or (m, 4), columns that go with them, and their form for `comparisons_from_names`."""
    ids = _joined([column.ids() for column in roles.objects])
    more: Record = {
        "weights": None if roles.weight is None else roles.weight.numbers(),
        "annotators": None if roles.rater is None else roles.rater.labels(),
    }
    if roles.rating is not None:
        ratings, high_is_near = _on_scale(roles.rating, roles.form, scale)
        rows, origin = rated_quadruplets(_array(ids), ratings, more["annotators"], high_is_near=high_is_near)
        if not len(rows):
            raise ValueError(
                f"{roles.rating.source}: no two pairs are rated differently by one rater; nothing is compared"
            )
        more = {name: None if values is None else values[origin[:, 0]] for name, values in more.items()}
        return rows, more | {"judgements": origin}, "ordered"
    if roles.form == "ranking":
        width = len(roles.objects) - 1
        near, far = np.triu_indices(width, 1)
        places = np.stack([0 * near, 1 + near, 1 + far], axis=1)  # every pair of ranks
        rows = _array(ids)[:, places].reshape(-1, 3)
        origin = np.repeat(np.arange(len(roles.objects[0])), len(near))
        more = {name: None if values is None else values[origin] for name, values in more.items()}
        return rows, more | {"judgements": origin}, "ordered"
    shape = roles.form if roles.form in FORMS else "ordered"
    if roles.answer is None:
        return ids, more, shape
    names = _array(ids)
    first = 1 if roles.form == "triplet" else 0
    places = _chosen(roles.answer, names[:, first:], [c.name for c in roles.objects[first:]], value)
    if roles.form == "triplet":
        return orient(names, 1 - 2 * places), more, shape
    return np.take_along_axis(names, np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1]])[places], axis=1), more, shape


def _on_scale(rating: Column, form: str, scale: tuple[float, float] | None) -> tuple[np.ndarray, bool]:
    """Ratings (n,), and whether a high one means near; ValueError for one outside of the scale."""
    ratings = rating.numbers().astype(np.float64)
    if form == "distances" or (scale is None and plain(rating.name) in NAMES["dissimilarity"]):
        return ratings, False
    if scale is None:
        raise ValueError(
            f"{rating.title} holds ratings from {ratings.min():g} to {ratings.max():g}; type the scale, the rating "
            f"that means farthest first: scale=({ratings.min():g}, {ratings.max():g}) if these are its ends and a high "
            "rating means near"
        )
    far, near = scale
    low, high = min(far, near), max(far, near)
    outside = np.flatnonzero((ratings < low) | (ratings > high))
    if len(outside):
        raise ValueError(
            f"{rating.title} holds {rating.shown(outside)}, outside the scale from {low:g} to {high:g}; if this means "
            "no answer, leave these rows out"
        )
    return ratings, near > far


def _joined(ids: "list[np.ndarray | Coded]") -> "np.ndarray | Coded":
    """Columns of ids (m, columns), all integers or all text: an object called 7 in a column of names is "7"."""
    coded = [part for part in ids if isinstance(part, Coded)]
    if len(coded) == len(ids):
        return joined(coded)
    arrays = [_array(part) for part in ids]
    return np.stack([array.astype(str).astype(object) for array in arrays] if coded else arrays, axis=1)


def _array(ids: "np.ndarray | Coded") -> np.ndarray:
    return np.asarray(ids.names.to_numpy(zero_copy_only=False))[ids.codes] if isinstance(ids, Coded) else ids


def _chosen(answer: Column, shown: np.ndarray, names: list[str], value: str | None) -> np.ndarray:
    """The place (m,) of the object that each answer chooses among those `shown` (m, 2) or (m, 3), in columns `names`.

    ValueError for an answer that is none of them, and for answers of two readings.
    """
    cells = _array(answer.ids()).astype(str)
    if value is not None:
        kinds = sorted(set(cells.tolist()))
        if value not in kinds or len(kinds) > 2 or shown.shape[1] != 2:
            raise ValueError(f"{answer.title} holds {listed(kinds)}; {value!r} cannot choose the first of two objects")
        return np.where(cells == value, 0, 1)
    ways = [shown.astype(str), np.array([names]), np.arange(1, 1 + len(names)).astype(str)[None]]
    marks = [cells[:, None] == way for way in ways]  # the object's name, its column's, its place
    whole = [mark.argmax(axis=1) for mark in marks if mark.any(axis=1).all()]
    if any((other != whole[0]).any() for other in whole):
        raise ValueError(
            f"{answer.title} holds {listed(sorted(set(cells)))}, names of objects and places alike; rename one"
        )
    if whole:
        return whole[0]
    best = max(marks, key=lambda mark: mark.any(axis=1).sum())
    odd = np.flatnonzero(~best.any(axis=1))
    typed = (
        f"; type response='{answer.name}={cells[0]}' with the value that chooses {names[0]}" if len(names) == 2 else ""
    )
    raise ValueError(
        f"{answer.title} holds {answer.shown(odd)}; an answer is the name of a shown object (here "
        f"{listed(shown[odd[0]].astype(str))}) or of its column ({listed(names)}), or a place{typed}; leave rows "
        "without an answer out"
    )


def _read_archive(table: Table, missing: str, objects: Sequence[object] | None) -> Comparisons:
    held = [key for key in ARRAYS if key in table.matrices]
    rows = table.matrices[held[0]]
    if len(held) > 1 or rows.ndim != 2 or rows.shape[1] not in (3, 4):
        raise ValueError(
            f"{table.name}: {held[0]} has shape {rows.shape}; it must hold triplets (m, 3) or quadruplets (m, 4)"
        )
    known = ("weights", "responses", "annotators", "judgements")
    odd = [name for name in (*table.columns, *table.matrices) if name not in (*known, "objects", *held)]
    if odd and any(len(table.columns.get(name, table.matrices.get(name, ""))) == len(rows) for name in odd):
        raise ValueError(f"{table.name} holds {odd[0]!r}, an entry a comparison; call it one of {', '.join(known)}")
    optional: Record = {
        name: table.columns[name].labels() if name == "annotators" else table.columns[name].numbers()
        for name in known
        if name in table.columns
    }
    if "responses" in optional and table.columns["responses"].kind == "bool":
        optional["responses"] = optional["responses"] == 1
    optional |= {name: table.matrices[name] for name in ("judgements",) if name in table.matrices}  # of two ratings
    if objects is None and "objects" in table.columns:
        found = comparisons_from_array(
            rows, objects=_array(table.columns["objects"].ids()), missing=missing, **optional
        )
    else:
        found = comparisons_from_names(rows, missing=missing, objects=objects, **optional)
    roles = _Roles("triplet" if rows.shape[1] == 3 else "quadruplet", [])
    return replace(found, source=_understood(table, roles, found, []))


def _understood(table: Table, roles: _Roles, found: Comparisons, notes: list[str]) -> Reading:
    """How a table was read: the role of each column, counts, and the first row in words."""
    dropped = [f"dropped for repeating an object: {counted(found.n_dropped, 'row')}"] if found.n_dropped else []
    rated = [counted(len(roles.objects[0]), "rating")] if roles.rating is not None else []
    names = [str(name) for name in found.objects[found.indices[0]].tolist()]
    first = "{} is nearer to {} than to {}" if len(names) == 3 else "{} and {} are nearer than {} and {}"
    return table.reading(
        roles.named(),
        [*notes, *dropped, *rated],
        kind="comparisons",
        form=roles.form,
        rows=len(found),
        distinct={"objects": found.n_objects},
        first=first.format(*names),
    )


@brief()
def describe(source: FileOrFrame, *, kind: str | None = None, **options: Any) -> Reading:
    """Describe how a table of pairs or of comparisons is read; `str` of the result is one line.

    kind: "pairs", "comparisons" or None: comparisons if an option or the names of columns say so, else pairs.
    options: those of `read_interactions` or of `read_comparisons`. Raises ValueError, with what to type, as these do.
    """
    check_choice(kind, "kind", (None, "pairs", "comparisons"))
    if (kind or kind_of(source, **options)) == "pairs":
        return cast(Reading, read_interactions(source, **options).source)
    return cast(Reading, read_comparisons(source, **{"missing": "drop", **options}).source)


def kind_of(source: FileOrFrame, **options: Any) -> str:
    """ "comparisons" if an option is theirs alone, or columns have the usual names of a form; else "pairs"."""
    typed = {name for name, given in options.items() if given is not None}
    if typed & {"form", "columns", "response", "scale", "rater"}:
        return "comparisons"
    if typed & {"left", "right", "weight", "timestamp", "split", "min_weight", "left_features", "right_features"}:
        return "pairs"
    table = read_table(source, **{name: options.get(name) for name in ("header", "delimiter", "encoding")})
    if any(name in table.matrices for name in ARRAYS):
        return "comparisons"
    try:
        _form_of(table, None, None)
    except ValueError:
        return "pairs"
    return "comparisons"
