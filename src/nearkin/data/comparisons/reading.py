"""Reading comparisons from tables: each form by the names of its columns (docs/reading.md has the table)."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from nearkin._check import check_choice
from nearkin._fields import FileOrFrame, counted
from nearkin._pairs import Coded, coded
from nearkin._types import Record
from nearkin.data.accompanying import whole_or_text
from nearkin.data.comparisons.forms import comparisons_from_array, comparisons_from_names, rated_quadruplets
from nearkin.data.comparisons.votes import triplets_of
from nearkin.data.files import TABLES, brief, locate_all, numbered
from nearkin.data.interactions import read_interactions
from nearkin.data.tables import NAMES, Column, Table, complete, listed, plain, read_table
from nearkin.data.vectors import ROWS, open_vectors, table_rows
from nearkin.records import Comparisons, Reading

ARRAYS = ("triplets", "quadruplets", "comparisons", "indices")  # of comparisons, in an archive
SCALE = "scale=(1, 7), the rating that means farthest first"
ANSWERED = f"form='triplet' (the nearer of two), 'odd-one-out', 'ranking', or 'rated' with {SCALE}"
_RATINGS = ("similarity", "dissimilarity")
_MEASURED = {"distance": (np.inf, 0.0), "dissimilarity": (np.inf, -np.inf)}  # scales; the latter may be a difference


class _Way(NamedTuple):
    """A form: the roles of its objects in order, and of the column that chooses among them or rates them.

    The names of columns alone tell it if it `is_told` and the table has no column of a role in `without`.
    """

    form: str
    objects: tuple[str, ...]
    answer: str | None = None
    is_told: bool = True
    without: tuple[str, ...] = ("response",)


_WAYS = (
    _Way("quadruplet", ("i", "j", "l", "k")),
    _Way("triplet", ("anchor", "near", "far")),
    _Way("triplet", ("anchor", "first", "second"), "response", without=("third", "odd")),
    _Way("odd-one-out", ("odd", "one", "other")),
    _Way("odd-one-out", ("first", "second", "third"), "response", is_told=False),
    _Way("rated", ("first", "second"), "dissimilarity", without=()),
    _Way("rated", ("first", "second"), "similarity", is_told=False),
)


@brief("columns=['0', '1', '2'], or write a first line anchor,near,far")
def read_comparisons(
    path: FileOrFrame, *,
    form: str | None = None, columns: Sequence[str] | None = None, response: str | None = None,
    scale: tuple[float, float] | None = None, rater: str | None = None,
    header: bool | None = None, delimiter: str | None = None, encoding: str | None = None,
    missing: str = "raise", objects: Sequence[object] | None = None,
) -> Comparisons:  # fmt: skip
    r"""Read comparisons from a table (see `nearkin.data.read_table`), a DataFrame or an .npz.

    Three columns (anchor, near, far) mean d(anchor, near) < d(anchor, far); four (i, j, l, k) mean d(i, j) < d(l, k).
    Columns go by their usual names (docs/reading.md has the table), or by `columns`, never by their places. Further
    columns: `weight` (or votes) and `rater` (or annotator, worker, participant). An .npz holds `triplets` or
    `quadruplets` and optionally `objects` (names), `weights`, `annotators`, `responses`, `judgements`.

    Parameters
    ----------
    path: file, folder or pattern of parts, or DataFrame. Columns behind a file's name, file.csv:p,q,r, are
        `columns` if their names tell no form, but for ratings, answers, weights and raters.
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

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("answers.csv").write_text("anchor,near,far\nOslo,Bonn,Rome\nRome,Bonn,Oslo\n")
    >>> nk.read_comparisons("answers.csv").indices.tolist()  # rows of objects: Bonn, Oslo, Rome
    [[1, 0, 2], [2, 0, 1]]
    """
    check_choice(form, "form", (None, "triplet", "odd-one-out", "ranking", "rated"))
    table = read_table(path, header=header, delimiter=delimiter, encoding=encoding)
    if any(name in table.matrices for name in ARRAYS):
        return _read_archive(table, missing, objects)
    answer, _, value = (response or "").partition("=")
    if columns is None and (columns := _typed(table, form, answer or None)):
        table = replace(table, columns=table.columns | (table.rest or {}))
    form, shown, others = _roles(table, form, columns, answer or None)
    if scale is not None and not ("rating" in others and len(scale) == 2 and len({*map(float, scale)}) == 2):
        raise ValueError(f"scale is {scale!r}; it must be the ratings that mean farthest and nearest, of form='rated'")
    others |= table.without([*shown.values(), *others.values()]).roles([], weight=None, rater=rater)
    kept, notes = complete(shown | others, missing)
    shape = "odd-one-out" if form == "odd-one-out" else "ordered"
    rows, more = _rows(form, [kept[role] for role in shown], kept, value or None, scale)
    answers = comparisons_from_names(rows, form=shape, missing=missing, objects=objects, **more)
    if (ratings := kept.get("rating")) is not None:
        notes.append(f"{counted(len(ratings), 'rating')}, the farthest and the nearest {_ends(ratings, scale)}")
    return _described(table, kept, form, answers, notes)


def _typed(table: Table, form: str | None = None, answer: str | None = None) -> list[str] | None:
    """The columns of objects behind a file's name, if their names tell no form, and without one no pairs."""
    others = {name for role in ("weight", "rater", "response", *_RATINGS) for name in NAMES[role]}
    names = [name for name in table.columns if plain(name) not in others and name != answer]
    is_told = table.rest is None or len(names) < 2 + (form is None) or _way(table, form, None, answer)
    return names if not is_told and (form or None in map(table.role, ("left", "right"))) else None


def _roles(
    table: Table, form: str | None, columns: Sequence[str] | None, answer: str | None
) -> tuple[str, dict[str, Column], dict[str, Column]]:
    """The form, the columns of objects by role, and that of answers or ratings: those typed, else those with the form's
    usual names."""
    if form == "ranking":
        ranks = (name for name in table.columns if plain(name).startswith("rank"))
        names = columns or [table.roles(["anchor"])["anchor"].name, *numbered(ranks)]
        if len(names) < 3:
            raise ValueError(f"{table.name} has no rank1, rank2, ...; type columns=['anchor', 'nearest', ..., 'last']")
        words = ["anchor", *(f"rank {place}" for place in range(1, len(names)))]
        return form, {word: table.column(name, "columns") for word, name in zip(words, names, strict=True)}, {}
    way = _way(table, form, columns, answer)
    if way is None:
        raise _untold(table, form)
    typed = {} if columns is None else dict(zip(way.objects, columns, strict=True))
    objects = table.roles(way.objects, **typed)
    rest = table.without(objects.values())
    if way.answer is None:
        return way.form, objects, {}
    if way.answer == "response":
        return way.form, objects, rest.roles(["response"], response=answer)
    ratings = rest.roles([], **dict.fromkeys(_RATINGS[: 1 if answer else 2], answer)) or rest.roles([], response=None)
    if len(ratings) != 1:
        raise ValueError(f"{table.name}: name the ratings, response=..., of {listed(rest.columns)}, and {SCALE}")
    return way.form, objects, {"rating": next(iter(ratings.values()))}


def _usual(table: Table) -> set[str]:
    """The roles that columns have the usual names of."""
    return {role for role in NAMES if any(plain(name) in NAMES[role] for name in table.columns)}


def _way(table: Table, form: str | None, columns: Sequence[str] | None, answer: str | None) -> _Way | None:
    """The way to read the rows, by what is typed and the names of columns, or None."""
    usual = _usual(table)
    # left, right and an answer are no pairs: they lack the anchor, which the error then names
    usual |= {"anchor"} if {"first", "second", "response"} <= usual else set()
    usual -= {"response"} if {"first", "second", "near", "far"} <= usual else set()  # near and far tell it already
    for way in _WAYS:
        is_usual = answer is None or (way.answer == "response" and plain(answer) in NAMES["response"])
        fits = form == way.form or (form is None and is_usual and way.is_told and not usual & {*way.without})
        if columns is None:
            told = {way.answer} if form is None and way.answer is not None else set()
            fits &= {*way.objects} | told <= usual and (answer is None or way.answer is not None)
        else:
            fits &= len(way.objects) == len(columns) and (way.answer is None) == (answer is None and form is None)
        if fits:
            return way
    return None


def _untold(table: Table, form: str | None) -> ValueError:
    """The error for a table that the names of columns do not tell how to read."""
    if len(table.columns) == 1:
        return table.lacks("anchor")
    ways = [way for way in _WAYS if form == (way.form if form else way.answer)]  # untyped: those without an answer
    usual = " or ".join(", ".join(filter(None, (*way.objects, way.answer))) for way in ways)
    answers = [column for role in ("response", *_RATINGS) if (column := table.role(role)) is not None]
    ends = next((_ends(column) for column in answers if column.is_numeric), "(1, 7)")
    more = {None: f", and {ANSWERED}", "rated": f", and {SCALE}"}.get(form, "").replace("(1, 7)", ends)
    typed = "columns=[...], those of objects" + ", response=..., that of answers" * (not answers) + more
    told = f"do not tell how to read a row{'' if form is None else f' as {form!r}'}. Call them {usual}; or type {typed}"
    return ValueError(f"{table.name} has the columns {listed(table.columns)}, which {told}{table.if_data}")


def _ends(rating: Column, scale: tuple[float, float] | None = None) -> str:
    """The farthest and the nearest of the ratings, on the scale or else that of the column's name."""
    far, near = scale or _MEASURED.get(plain(rating.name), (0, 1))
    return "({:g}, {:g})".format(*np.nanpercentile(rating.numbers(gaps=True), (100, 0) if far > near else (0, 100)))


def _rows(
    form: str, shown: list[Column], columns: dict[str, Column], value: str | None, scale: tuple[float, float] | None
) -> tuple[Coded, Record]:
    """Rows of ids (m, 3) or (m, 4) of the columns `shown`, the chosen object first, and the values of other roles."""
    ids = _joined([column.ids() for column in shown])
    more: Record = {"weights": columns["weight"].numbers()} if "weight" in columns else {}
    more |= {"annotators": columns["rater"].labels()} if "rater" in columns else {}
    rows, judgements = ids.codes, None
    if "response" in columns:
        first = int(form == "triplet")
        titles = [column.name for column in shown[first:]]
        places = _chosen(columns["response"], ids.array()[:, first:], titles, value)
        order = np.argsort(np.arange(len(titles)) != places[:, None], axis=1, kind="stable")
        rows = np.hstack([rows[:, :first], np.take_along_axis(rows[:, first:], order, axis=1)])
    elif "rating" in columns:
        ratings, high_is_near = _on_scale(columns["rating"], scale)
        rows, judgements = rated_quadruplets(rows, ratings, more.get("annotators"), high_is_near=high_is_near)
        if not len(rows):
            raise ValueError(f"{shown[0].source}: no two pairs are rated differently by one rater; nothing is compared")
    elif form == "ranking":
        judgements = np.repeat(np.arange(len(rows)), len(triplets_of(rows[:1])))
        rows = triplets_of(rows)
    if judgements is not None:
        origin = judgements.reshape(len(rows), -1)[:, 0]
        more = {name: values[origin] for name, values in more.items()} | {"judgements": judgements}
    return Coded(rows, ids.names), more


def _joined(parts: list[Coded]) -> Coded:
    """Columns of equal length as one (n, columns) array of codes; of integers and text all are text."""
    kind = parts[0].names.type if len({part.names.type for part in parts}) == 1 else pa.string()
    every = coded(pa.concat_arrays([part.names.cast(kind) for part in parts]))
    starts = np.cumsum([0, *(len(part.names) for part in parts)])
    codes = [every.codes[start:][part.codes] for part, start in zip(parts, starts, strict=False)]
    return Coded(np.stack(codes, axis=1), every.names)


def _on_scale(rating: Column, scale: tuple[float, float] | None) -> tuple[np.ndarray, bool]:
    """Ratings (n,), and whether a high one means near; ValueError for one outside of the scale."""
    scale = scale or _MEASURED.get(plain(rating.name))
    if scale is None:
        ends = f"scale={_ends(rating)} if these are its ends, or round the other way"
        raise ValueError(f"{rating.title} holds ratings; type the scale, the rating that means farthest first: {ends}")
    ratings, (low, high) = rating.numbers().astype(np.float64), sorted(scale)
    outside = (ratings < low) | (ratings > high) | np.isinf(ratings)
    rating.refuse(outside, f"is outside the scale from {low:g} to {high:g}", "leave rows without an answer out")
    return ratings, scale[1] > scale[0]


def _chosen(answer: Column, shown: np.ndarray, names: list[str], value: str | None) -> np.ndarray:
    """The place (m,) of the object that each answer chooses among those `shown` (m, 2) or (m, 3), in columns `names`.

    ValueError for an answer that is none of them, and for answers of two readings.
    """
    cells = answer.plain_ids().astype(str)
    kinds = sorted(set(cells.tolist()))
    if value is not None:
        if value not in kinds or len(kinds) > 2 or shown.shape[1] != 2:
            raise ValueError(f"{answer.title} holds {listed(kinds)}; {value!r} cannot choose the first of two objects")
        return np.where(cells == value, 0, 1)
    ways = shown.astype(str), np.array([names]), np.arange(1, 1 + len(names)).astype(str)[None]
    marks = [cells[:, None] == way for way in ways]  # the object's name, its column's, its place
    best = max(marks, key=lambda mark: mark.any(axis=1).sum())
    for mark in marks:
        if mark.any(axis=1).all() and (mark.argmax(axis=1) != best.argmax(axis=1)).any():
            raise ValueError(f"{answer.title} holds {listed(kinds)}, names of objects and places alike; rename one")
    way = f"an answer is the name of a shown object or of its column ({listed(names)}), or a place"
    if len(names) == len(kinds) == 2:
        way += f"; or type response='{answer.name}={cells[0]}' with the value that chooses {names[0]}"
    if len(names) > 2 and "0" in kinds:
        way += f", which count from 1: of 0, 1, 2 type frame[{answer.name!r}] = frame[{answer.name!r}] + 1"
    elif best.any(axis=1).mean() > 0.5:
        way += "; leave rows without an answer out"
    answer.refuse(~best.any(axis=1), "holds no answer", way)
    return best.argmax(axis=1)


_ENTRIES = {  # of an archive
    "weights": Column.numbers,
    "annotators": Column.labels,
    "responses": lambda column: np.array(column.cells.to_pylist()),
    "judgements": Column.numbers,
}


def _read_archive(table: Table, missing: str, objects: Sequence[object] | None) -> Comparisons:
    held = [key for key in ARRAYS if key in table.matrices]
    rows = whole_or_text(table.matrices[held[0]], f"{held[0]} of {table.name}")
    if len(held) > 1 or rows.ndim != 2 or rows.shape[1] not in (3, 4):
        raise ValueError(f"{held[0]} of {table.name} has shape {rows.shape}; it must be (m, 3) or (m, 4)")
    lengths = {name: len(entry) for name, entry in (table.columns | table.matrices).items()}
    if odd := [name for name in lengths.keys() - {*_ENTRIES, "objects", *held} if lengths[name] == len(rows)]:
        raise ValueError(f"{table.name} holds {odd[0]!r}, an entry a comparison; call it one of {', '.join(_ENTRIES)}")
    more: Record = {name: read(table.columns[name]) for name, read in _ENTRIES.items() if name in table.columns}
    more |= {name: table.matrices[name] for name in ("judgements",) if name in table.matrices}  # of two ratings
    if objects is None and "objects" in table.columns:
        answers = comparisons_from_array(rows, objects=table.columns["objects"].plain_ids(), missing=missing, **more)
    else:
        answers = comparisons_from_names(rows, objects=objects, missing=missing, **more)
    return _described(table, {}, "triplet" if rows.shape[1] == 3 else "quadruplet", answers, [])


def _described(
    table: Table, roles: dict[str, Column], form: str, answers: Comparisons, notes: list[str]
) -> Comparisons:
    """The comparisons with how they were read: the role of each column, counts, and the first row in words."""
    if answers.n_dropped:
        notes = [*notes, f"dropped for repeating an object: {counted(answers.n_dropped, 'row')}"]
    names = [str(name) for name in answers.objects[answers.indices[0]].tolist()]
    first = "{} is nearer to {} than to {}" if len(names) == 3 else "{} and {} are nearer than {} and {}"
    counts = len(answers), {"objects": answers.n_objects}
    source = table.reading(roles, notes, "comparisons", *counts, first.format(*names), form)
    return replace(answers, source=source)


@brief("left='0', right='1' of pairs, columns=['0', '1', '2'] of comparisons")
def describe(source: FileOrFrame, **options: Any) -> Reading | str:
    """Describe how a table of pairs or of comparisons is read, by `kind_of`, or vectors by `open_vectors`; `str` of the
    result is one line. A table without the usual names of both sides of a pair may hold vectors.

    options: those of `read_interactions` or of `read_comparisons`. Raises ValueError, with what to type, as these do.
    """
    if isinstance(source, str | os.PathLike) and {at.suffix for at in locate_all(source, ROWS, {})}.isdisjoint(TABLES):
        return open_vectors(source).describe()
    table = read_table(source, **{name: options.pop(name, None) for name in ("header", "delimiter", "encoding")})
    if table.matrices.keys() - ARRAYS:
        return open_vectors(source).describe()
    if kind_of(table, **options) == "comparisons":
        return cast(Reading, read_comparisons(table, **{"missing": "drop", **options}).source)
    if table.header is not False and not options and None in map(table.role, ("left", "right")):
        with suppress(ValueError):
            return table_rows(table).about
    return cast(Reading, read_interactions(table, **options).source)


@brief("left='0', right='1' of pairs, columns=['0', '1', '2'] of comparisons")
def kind_of(source: FileOrFrame, **options: Any) -> str:
    """ "comparisons" if an option is theirs alone, or columns have the usual names of a form; else "pairs"."""
    given = {name for name, value in options.items() if value is not None}
    of_pairs, of_comparisons = (signature(read).parameters.keys() for read in (read_interactions, read_comparisons))
    if given & (of_pairs ^ of_comparisons):
        return "comparisons" if given & (of_comparisons - of_pairs) else "pairs"
    table = read_table(source, **{name: options.get(name) for name in ("header", "delimiter", "encoding")})
    is_told = any(name in table.matrices for name in ARRAYS) or _way(table, None, None, None) or _typed(table)
    usual = _usual(replace(table, columns=table.columns | (table.rest or {})))
    is_pairs = {"left", "right"} <= usual or "weight" in usual or usual.isdisjoint(("response", "odd", *_RATINGS))
    return "pairs" if is_pairs and not is_told else "comparisons"
