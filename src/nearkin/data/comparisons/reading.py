"""Reading comparisons: `read_comparisons` for files, and the same from arrays and from names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from nearkin import _check
from nearkin._fields import FileOrFrame, counted, quoted
from nearkin._pairs import Coded, joined, number_ids
from nearkin._types import ArrayLike, Record
from nearkin.data.column import Column, as_text, whole_float
from nearkin.data.comparisons.roles import FORMS as READ_FORMS
from nearkin.data.comparisons.roles import Roles, assign_roles
from nearkin.data.files import TextOptions, TextWords, brief
from nearkin.data.interactions import read_interactions
from nearkin.data.lists import list_cells
from nearkin.data.tables import ARRAYS, Table, kind_of, read_table
from nearkin.records import Answers, Comparisons, Reading, as_indices, describe_invalid, invalid_rows

_NO_ANSWER = ("", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "<NA>", "#N/A", ".", "-99", "-999")
_CODES = ("-99", "-999")  # of surveys, for no answer
_CODE = re.compile(r"-\d+|[89]|(77|88|98|99)\d?")  # what may be one
MOST_OBJECTS = 10_000_000  # of an array of numbers that has fewer comparisons
_SHORT = 12  # most steps of a rating scale; sliders have more


@brief()
def read_comparisons(
    path: FileOrFrame,
    *,
    anchor: str | None = None,
    near: str | None = None,
    far: str | None = None,
    response: str | None = None,
    form: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    comment: str | None = None,
    on_invalid: str = "raise",
    missing: str = "raise",
    objects: Sequence[object] | None = None,
) -> Comparisons:
    r"""Read comparisons from .csv, .tsv, .parquet, .npz or a DataFrame.

    Columns: 3 object columns (i, j, k) mean d(i, j) < d(i, k), 4 columns (i, j, l, k) mean d(i, j) < d(l, k); names
    are text or exact integers. Columns are taken by the names given (without a header they are "0", "1", ...),
    else by usual names (anchor or ref, near or winner, far or loser; left and right, a and b with a response), else by
    position. Further columns: `weight` (or `votes`, `count`), `annotator` (or `worker`, `subject`, `user`) and
    `response` (or `answer`, `choice`); times and trial numbers are left aside. An .npz holds `triplets` or
    `quadruplets` and optionally `objects` (names), `weights`, `annotators`, `responses`.

    Parameters
    ----------
    path: file or DataFrame.
    anchor, near, far: columns of objects.
    response: the column with the chosen object: +1 (as in the row) or -1 (reversed), 1 or 2, left or right, the
        column's or the object's name. "column=value" names the value that chooses the first of the two.
    form: None (look), "triplet", "quadruplet"; "odd-one-out" and "most-central" are rows of three whose *first*, or the
        one that the response names, is the odd or the most central one; each becomes two comparisons
        (`comparison_forms`). "similarity" and "dissimilarity" are rated pairs (`ratings`): a high rating means near, or
        far; "rating" takes the direction from the column's name.
    header, delimiter, encoding, comment: as in `nearkin.data.read_table`.
    on_invalid: "raise" a ValueError with the row numbers of rows that repeat an index, or "drop" and count them in
        `n_dropped`.
    missing: "raise" a ValueError for rows without an answer or an object, or "drop" them; `source` counts them for each
        annotator. An answer is missing if its cell is empty, NA, NaN, null, None, "." or one of the codes -99, -999;
        "9,skip" drops rows with these answers too.
    objects: all objects in the order wanted, also those without comparisons; None takes those met, sorted.

    Returns
    -------
    comparisons: `Comparisons`; `source` describes the reading.

    Raises
    ------
    ValueError: two possible readings (it names the options to type), a missing column, invalid or missing answers.
    FileNotFoundError: no such file.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("answers.csv").write_text("anchor,near,far\nOslo,Bonn,Rome\nRome,Bonn,Oslo\n")
    >>> nk.read_comparisons("answers.csv").indices.tolist()  # rows of objects: Bonn, Oslo, Rome
    [[1, 0, 2], [2, 0, 1]]
    """
    _check.check_choice(form, "form", (None, *READ_FORMS))
    _check.check_instance(missing, "missing", str)
    text = TextOptions(header, delimiter, encoding, comment)
    table = read_table(path, **vars(text), named=(anchor, near, far))
    if table.archive and (table.matrices or len(table.columns) < 3):
        return _read_archive(table, form, on_invalid, objects)
    asked = {"anchor": anchor, "near": near, "far": far, "response": response}
    roles = assign_roles(table, asked, form)
    if (gone := _without_answer(roles, missing, table.name)).any():
        table = _complete(table, roles, gone, missing)
        roles = assign_roles(table, asked, form)
    ids = [column.as_ids() for column in roles.objects]
    roles.objects = roles.objects if any(column.is_text for column in ids) else ids
    for column in roles.objects:
        if list_cells(column) is not None:
            raise ValueError(
                f"column {column.name!r} of {table.name} holds lists; a comparison has one object a cell: write the "
                "columns anchor, near and far"
            )
    rows = _id_rows(roles)
    options: Record = {
        "weights": None if roles.weight is None else roles.weight.numbers(),
        "annotators": None if roles.annotator is None else _names(roles.annotator),
    }
    if roles.rating is not None:
        high = roles.form == "similarity"
        rows, origin = rated_quadruplets(rows, roles.rating.numbers(), options["annotators"], high_is_near=high)
        options = {name: None if values is None else values[origin[:, 0]] for name, values in options.items()}
        options["judgements"] = origin
        if not len(rows):
            raise ValueError(f"{table.name}: no two pairs are rated differently by one person; nothing is compared")
    else:
        rows = answered(roles, rows, response, table.name)
    shape = roles.form if roles.form in FORMS else "ordered"
    found = comparisons_from_names(rows, **options, form=shape, on_invalid=on_invalid, objects=objects)
    return replace(found, source=_understood(table, roles, found))


@brief()
def describe(source: FileOrFrame, *, kind: str | None = None, **options: Any) -> Reading:
    """Describe how a table of pairs or of comparisons is read; `str` of the result is one line.

    kind: "pairs", "comparisons" or None (by the options given, else look). options: those of `read_interactions` or of
    `read_comparisons`.
    Raises ValueError, with the options to type, where two readings are possible.
    """
    _check.check_choice(kind, "kind", (None, "pairs", "comparisons"))
    text: Record = {name: options[name] for name in TextWords.__annotations__ if name in options}
    if (kind or kind_of(source, given=options, **text)) == "pairs":
        found = read_interactions(source, **options).source
    else:
        found = read_comparisons(source, on_invalid="drop", **options).source
    return cast(Reading, found)


def _without_answer(roles: Roles, missing: str, source: str) -> np.ndarray:
    """Rows (m,) that lack an object, or an answer: an empty cell, a word for none, or a code of surveys for none."""
    gone = np.any([c.without_id() | np.isin(_distinct(c), _CODES)[c.coded.codes] for c in roles.objects], axis=0)
    more = [] if missing in ("raise", "drop") else missing.split(",")
    column = roles.rating if roles.response is None else roles.response
    texts = np.zeros(len(gone), "U1") if column is None else _texts(column)
    if more and not np.isin(texts, more).any():
        raise ValueError(
            f"missing is {missing!r}; it must be 'raise', 'drop' or answers that {source} holds, as '9,99'"
        )
    if column is not None:
        named = np.any([texts == objects.texts() for objects in roles.objects], axis=0)
        gone |= column.gaps() | (np.isin(texts, [*_NO_ANSWER, *more]) & ~named)
    return gone


def _apart(rating: Column) -> tuple[str, ...]:
    """A question about ratings that may be codes for no answer: far from the others, such as 99 on a scale to 7."""
    values = np.unique(rating.numbers()).tolist()
    codes = sorted((value for value in values if _CODE.fullmatch(f"{value:g}")), key=abs)
    scale = [value for value in values if value not in codes]
    for code in list(codes):
        if scale and scale[0] - 1 <= code <= scale[-1] + 1:
            codes.remove(code)
            scale = sorted([*scale, code])
    found = ",".join(f"{code:g}" for code in codes if code < 0 or len(scale) <= _SHORT)
    if len(scale) < 3 or not found:
        return ()
    return (
        f"{rating.name} holds {found} besides {scale[0]:g} to {scale[-1]:g}: does {found} mean no answer? "
        f"missing={found!r} (--missing {found}) leaves these rows out",
    )


def _complete(table: Table, roles: Roles, gone: np.ndarray, missing: str) -> Table:
    """The rows of a table that are not `gone`, a note counts the others; ValueError unless `missing` drops."""
    rows = np.flatnonzero(gone)
    if missing == "raise" or gone.all():
        way = "" if gone.all() else "; type missing='drop' (--missing drop) to leave them out, or correct them"
        many = f"{counted(len(rows), 'row')} of {len(gone):,}"
        raise ValueError(f"{table.name}: {many} without an answer or an object ({_listed(rows)}){way}")
    whose = ""
    if roles.annotator is not None:
        names, counts = np.unique(roles.annotator.texts()[gone], return_counts=True)
        whose = f" ({', '.join(f'{name} {count}' for name, count in zip(names, counts, strict=True))})"
    columns = {name: column.take(~gone).retyped() for name, column in table.columns.items()}
    notes = (*table.notes, f"{counted(len(rows), 'row')} without an answer{whose}")
    return replace(table, columns=columns, notes=notes)


def _id_rows(roles: Roles) -> Any:
    """Ids (m, 3) or (m, 4) of the objects; text by its distinct values where no answer is to be compared with it."""
    ids = [column.id_codes() for column in roles.objects]
    known = [found for found in ids if isinstance(found, Coded)]
    if len(known) == len(ids) and roles.response is None and roles.rating is None:
        return joined(known)
    return np.stack(_one_type([column.ids() for column in roles.objects]), axis=1)


def _one_type(columns: list[np.ndarray]) -> list[np.ndarray]:
    """Columns of ids, all integers or all text: an object called 7 in a column of names is the text "7"."""
    if len({column.dtype for column in columns}) == 1:
        return columns
    return [as_text([str(value) for value in column.tolist()]) for column in columns]


def _names(column: Column) -> np.ndarray:
    values = column.ids()
    return values.astype(str) if values.dtype.kind == "O" else values


def _read_archive(table: Table, form: str | None, on_invalid: str, objects: Sequence[object] | None) -> Comparisons:
    held = [key for key in ARRAYS if key in table.matrices]
    if len(held) != 1:
        names = sorted({*table.matrices, *table.columns})
        raise ValueError(f"{table.name} holds {names}; it must hold 'triplets' (m, 3) or 'quadruplets' (m, 4)")
    rows = table.matrices[held[0]]
    if rows.ndim != 2 or rows.shape[1] not in (3, 4):
        raise ValueError(f"{table.name}: {held[0]} has shape {rows.shape}; it must be (m, 3) or (m, 4)")
    known = ("weights", "responses", "annotators", "judgements")
    flat = {name: table.columns[name] for name in known if name in table.columns}
    if odd := [
        name for name, column in table.columns.items() if name not in (*known, "objects") and len(column) == len(rows)
    ]:
        raise ValueError(
            f"{table.name} holds {odd[0]!r}, an entry a comparison, next to {held[0]}; call it one of "
            f"{', '.join(known)} (True, or 1, where the row is the answer; else False, or -1), or leave it out"
        )
    optional = {name: _names(column) if name == "annotators" else column.values for name, column in flat.items()}
    optional |= {name: table.matrices[name] for name in ("judgements",) if name in table.matrices}  # of two ratings
    shape = form if form in FORMS else "ordered"
    if "objects" in table.columns:
        names = _names(table.columns["objects"]) if objects is None else objects
        found = comparisons_from_array(rows, objects=names, form=shape, on_invalid=on_invalid, **optional)
    else:
        found = comparisons_from_names(rows, form=shape, on_invalid=on_invalid, objects=objects, **optional)
    kind = "triplet" if rows.shape[1] == 3 else "quadruplet"
    roles = Roles([Column(held[0], rows)], form or kind)
    return replace(found, source=_understood(table, roles, found, sorted(set(table.matrices) - {*held, "judgements"})))


def _understood(table: Table, roles: Roles, found: Comparisons, aside: Iterable[str] | None = None) -> Reading:
    """How a table was read: the role of each column, counts, and the first row in words."""
    letters = {"triplet": ("anchor", "near", "far"), "quadruplet": ("i", "j", "l", "k")}.get(roles.form, ())
    if roles.response is not None and roles.form == "triplet":
        letters = ("anchor", "first", "second")
    named = [(letters[at] if at < len(letters) else f"object {at + 1}", c) for at, c in enumerate(roles.objects)]
    others = (("response", roles.response), ("rating", roles.rating), ("weight", roles.weight))
    named += [(role, c) for role, c in (*others, ("annotator", roles.annotator)) if c is not None]
    notes = [f"dropped for repeating an object: {counted(found.n_dropped, 'row')}"] if found.n_dropped else []
    notes += [counted(len(roles.objects[0]), "rating")] if roles.rating is not None else []
    names = [str(name) for name in found.objects[found.indices[0]].tolist()]
    first = "{} is nearer to {} than to {}" if len(names) == 3 else "{} and {} are nearer than {} and {}"
    return table.reading(
        dict(named),
        notes,
        aside,
        kind="comparisons",
        form=roles.form,
        rows=len(found),
        distinct={"objects": found.n_objects},
        first=first.format(*names),
        questions=() if roles.rating is None else _apart(roles.rating),
    )


def comparisons_from_names(
    rows: "ArrayLike | Coded", *, objects: Sequence[object] | None = None, **options: Any
) -> Comparisons:
    """Comparisons from rows (m, 3) or (m, 4) of names of any one type; options as in `comparisons_from_array`.

    >>> comparisons_from_names([["Rome", "Milan", "Oslo"]]).objects.tolist()
    ['Milan', 'Oslo', 'Rome']
    """
    rows = rows if isinstance(rows, Coded) else _check.as_array(rows, "rows")
    shape = rows.codes.shape if isinstance(rows, Coded) else rows.shape
    if len(shape) != 2 or shape[1] not in (3, 4):
        raise ValueError(f"rows has shape {shape}; it must be (m, 3) or (m, 4)")
    flat = Coded(rows.codes.ravel(), rows.names) if isinstance(rows, Coded) else rows.ravel()
    numbers, names = number_ids(flat, cast("ArrayLike | None", objects), "rows", "objects")
    return comparisons_from_array(numbers.reshape(shape), objects=names, **options)


def comparisons_from_array(
    indices: ArrayLike,
    *,
    objects: ArrayLike | Sequence[object] | None = None,
    weights: ArrayLike | None = None,
    annotators: ArrayLike | None = None,
    responses: ArrayLike | None = None,
    judgements: ArrayLike | None = None,
    form: str = "ordered",
    on_invalid: str = "raise",
) -> Comparisons:
    """Comparisons from integer rows (m, 3) or (m, 4); `objects` are the names, None for 0 ... the largest index.

    `judgements`, (m,) or (m, 2), are those of `Comparisons`; rows of odd or central ones are a judgement each.

    Raises ValueError or TypeError for an empty table, indices that are no objects, NaN and text, and for rows that
    repeat an index unless on_invalid="drop".
    """
    _check.check_choice(on_invalid, "on_invalid", ("raise", "drop"))
    _check.check_choice(form, "form", FORMS)
    rows = as_indices(indices, "comparisons")
    if len(rows) == 0:
        raise ValueError("comparisons is empty; at least one row is needed")
    largest = int(rows.max())
    if objects is None and largest > max(MOST_OBJECTS, 10 * rows.size):
        raise ValueError(
            f"comparisons has the index {largest:,}; an embedding has a row for each index from 0. For ids, use "
            "nearkin.data.comparisons_from_names(rows)"
        )
    names = np.arange(largest + 1) if objects is None else _check.as_array(cast("ArrayLike", objects), "objects")
    n_rows = len(rows)
    if responses is not None:
        turned = _check.as_array(responses, "responses")
        rows = orient(rows, turned)
        if judgements is not None and np.ndim(judgements) == 2:
            judgements = orient(_check.as_array(judgements, "judgements"), turned)
    rows, source = expand_form(rows, form)
    bad = invalid_rows(rows)
    if bad.any() and on_invalid == "raise":
        raise ValueError(describe_invalid(bad, rows))
    keep = source[~bad]
    if len(keep) == 0:
        raise ValueError(f"all {len(rows)} comparisons repeat an index; none is left")
    columns: Record = {"events": keep} if form == "odd-one-out" else {}
    judgements = np.arange(n_rows) if judgements is None and form != "ordered" else judgements
    for name, column in (("weights", weights), ("annotators", annotators), ("judgements", judgements)):
        if column is not None and np.shape(column)[:1] != (n_rows,):
            raise ValueError(f"{name} has shape {np.shape(column)}; it must be {(n_rows,)}, a value for each row")
        if column is not None:
            columns[name] = _check.as_array(column, name)[keep]
    return Comparisons(rows[~bad], names, n_dropped=int(bad.sum()), **columns)


def as_comparisons(comparisons: Answers, y: object = None) -> Comparisons:
    """`comparisons` itself if it is a `Comparisons`, otherwise `comparisons_from_array` of it.

    With responses y (m,) it is reversed where y is False or -1, as cblearn reads them: (i, j, k) becomes (i, k, j)
    and (i, j, l, k) becomes (l, k, i, j). ValueError if y has another length or other values.
    """
    if not isinstance(comparisons, Comparisons):
        comparisons = comparisons_from_array(comparisons)
    return comparisons if y is None else turn(comparisons, _check.as_array(cast("ArrayLike", y), "y"), "y")


def turn(comparisons: Comparisons, responses: np.ndarray, name: str = "responses") -> Comparisons:
    """`comparisons` with those reversed for which `orient` reverses the row."""
    indices, judgements = orient(comparisons.indices, responses, name), comparisons.judgements
    if judgements is not None and judgements.ndim == 2:
        judgements = orient(judgements, responses, name)
    return replace(comparisons, indices=indices, judgements=judgements)


Ways = Mapping[str, np.ndarray]
"""Ways to read responses: in words, and the place (m,) of the object that each response chooses, -1 for none."""
_NAMES = ((["left"], ["right"]), (["l"], ["r"]), (["a"], ["b"]), (["first"], ["second"]))
_CODED = (  # in words, the response that chooses the first object, and the second
    ("+1 as in the row, -1 reversed", "1", "-1"),
    ("1 the first, 2 the second", "1", "2"),
    ("1 as in the row, 0 reversed", "1", "0"),
    ("0 the first, 1 the second", "0", "1"),
    ("true as in the row, false reversed", "true", "false"),
)


def answered(roles: Roles, rows: np.ndarray, response: str | None, source: str) -> np.ndarray:
    """Rows (m, 3) or (m, 4) of ids, ordered by the responses.

    rows: the ids of `roles.objects`. Of three objects without an anchor the chosen one comes first (forms "odd-one-out"
    and "most-central"). ValueError with what to type where the responses have two readings.
    """
    column = roles.response
    if column is None:
        return rows
    texts, names = _texts(column), [c.name for c in roles.objects]
    if roles.form in ("odd-one-out", "most-central"):
        places = _places(column, _of_three(column, texts, rows, names), texts, rows, source)
        return np.take_along_axis(rows, np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1]])[places], axis=1)
    value = None if response is None or "=" not in response else response.partition("=")[2]
    if value is not None:
        kinds = set(texts.tolist())
        if value not in kinds or len(kinds) > 2:
            raise ValueError(f"{source}: column {column.name!r} has {_some(kinds)}; {value!r} cannot choose the first")
        return orient(rows, np.where(texts == value, 1, -1))
    ways = _of_two(column, texts, rows, names, options=roles.options)
    both = rows[:, 1:] if rows.shape[1] == 3 else rows[:, :0]
    return orient(rows, 1 - 2 * _places(column, ways, texts, both, source))


def _texts(column: Column) -> np.ndarray:
    """The cells as text; whole numbers without ".0", which pandas appends where other cells are missing."""
    return _distinct(column)[column.coded.codes]


def _distinct(column: Column) -> np.ndarray:
    cells = [re.sub(r"^\+(\d)", r"\1", str(cell)) for cell in column.short().distinct.tolist()]
    return np.array([whole_float(cell) or cell for cell in cells])


def _of_two(column: Column, texts: np.ndarray, rows: np.ndarray, names: list[str], *, options: bool) -> Ways:
    """The ways to read responses that choose between two objects, or between two pairs."""
    lower, ways = np.char.lower(texts), dict[str, np.ndarray]()
    for words, first, second in _CODED:
        if "0" not in (first, second) or (options if first == "0" else np.isin(("0", "1"), lower).all()):
            ways[words] = _chosen(lower, [first], [second])
    # the name of the chosen column, a word of it, or left and right, a and b, first and second
    words = [{name.lower(), *re.split(r"[^a-z0-9]+", name.lower())} for name in names[-2:]]
    called = [_chosen(lower, *pair) for pair in ((words[0] - words[1], words[1] - words[0]), *_NAMES)]
    ways["the column of the chosen object"] = max(called, key=lambda places: (places >= 0).sum())
    if rows.shape[1] == 3:
        ways["the name of the chosen object"] = _named(column, texts, rows[:, 1:])
    return ways


def _of_three(column: Column, texts: np.ndarray, rows: np.ndarray, names: list[str]) -> Ways:
    """The ways to read responses that choose one of three objects: its position, its column, or its name."""
    ways = {"1, 2, 3": ["1", "2", "3"], "0, 1, 2": ["0", "1", "2"], "the column of the chosen object": names}
    found = {words: _chosen(texts, *([value] for value in values)) for words, values in ways.items()}
    return found | {"the name of the chosen object": _named(column, texts, rows)}


def _chosen(texts: np.ndarray, *names: Iterable[str]) -> np.ndarray:
    """The first place (m,) one of whose `names` a response is, or -1."""
    return np.select([np.isin(texts, list(own)) for own in names], range(len(names)), -1)


def _named(column: Column, texts: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The place (m,) of the object of each row that the response names, or -1."""
    names = rows.astype(str)
    marks = (names == texts[:, None]) | (names == column.texts()[:, None])
    return np.where(marks.any(axis=1), marks.argmax(axis=1), -1)


def _places(column: Column, ways: Ways, texts: np.ndarray, options: np.ndarray, source: str) -> np.ndarray:
    """The place (m,) of the chosen object; ValueError for responses of no reading or of several."""
    whole = {words: places for words, places in ways.items() if (places >= 0).all()}
    if len({places.tobytes() for places in whole.values()}) == 1:
        return next(iter(whole.values()))
    kinds = set(texts.tolist())
    if whole:
        value = sorted(kinds)[-1]
        typed = (
            f"type response='{column.name}={value}' (--read {quoted(f'response={column.name}={value}')}) with the "
            "value that chooses"
        )
        way = "write the names of the objects" if options.shape[1] == 3 else f"{typed} the first"
        means = " or ".join(whole)
        raise ValueError(f"{source}: column {column.name!r} holds {_some(kinds)}, which can mean {means}; {way}")
    best = max(ways, key=lambda words: (ways[words] >= 0).sum())
    odd = np.flatnonzero(ways[best] < 0)
    if 2 * len(odd) > len(texts):
        rule = _PLACES if options.shape[1] == 3 else _SIGNS
        raise ValueError(f"{source}: column {column.name!r} holds {_some(kinds)}. A response must be {rule}")
    wrong = list(dict.fromkeys(texts[odd].tolist()))
    here = f" (here {' or '.join(options[odd[0]].astype(str))})" if "name" in best else ""
    codes = ",".join(wrong[:4])
    raise ValueError(
        f"{source}: column {column.name!r} holds {_some(wrong)} in {counted(len(odd), 'row')} of {len(texts):,} "
        f"({_listed(odd)}); the others hold {best}{here}. If that means no answer, type missing={codes!r} "
        f"(--missing {quoted(codes)}) to leave these rows out; else correct them"
    )


_PLACES = "a place (1, 2, 3 or 0, 1, 2), or the column or name of the chosen object"
_SIGNS = "+1 (as in the row) or -1 (reversed), 1 or 2, left or right, or the name of the chosen object"


def _some(kinds: Iterable[str]) -> str:
    shown = sorted(kinds)
    return ", ".join(repr(kind[:40]) for kind in shown[:4]) + (", ..." if len(shown) > 4 else "")


def _listed(rows: np.ndarray) -> str:
    return "row " + ", ".join(map(str, rows[:10].tolist())) + (", ..." if len(rows) > 10 else "")


FORMS = ("ordered", "most-central", "odd-one-out")


def orient(indices: np.ndarray, responses: np.ndarray, name: str = "responses") -> np.ndarray:
    """Turn (i, j, k) to (i, k, j), (i, j, l, k) to (l, k, i, j) where responses (m,) are -1 or false, not 1 or true."""
    responses = np.asarray(responses.tolist()) if responses.dtype.kind == "O" else responses
    if responses.shape != (len(indices),):
        raise ValueError(f"{name} has shape {responses.shape}; it must be ({len(indices)},), one response a comparison")
    if responses.dtype.kind != "b" and not (responses.dtype.kind in "iuf" and np.isin(responses, (-1, 1)).all()):
        shown = list(dict.fromkeys(map(repr, responses[:100].tolist())))
        raise ValueError(
            f"{name} holds {', '.join(shown[:4])}; it must hold True and False, or 1 and -1: whether the row is the "
            f"answer. For 0 and 1 pass {name} == 1"
        )
    turned = indices[:, {2: [1, 0], 3: [0, 2, 1], 4: [2, 3, 0, 1]}[indices.shape[1]]]  # 2: judgements of two pairs
    return np.where((responses > 0)[:, None], indices, turned)


def expand_form(indices: np.ndarray, form: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of `form` as ordered comparisons, and for each the number of the row it came from.

    "most-central": in (a, b, c), a is between the others: d(b, a) < d(b, c) and d(c, a) < d(c, b).
    "odd-one-out": in (a, b, c), a is the odd one: d(b, c) < d(b, a) and d(c, b) < d(c, a).
    """
    source = np.arange(len(indices))
    if form == "ordered":
        return indices, source
    if indices.shape[1] != 3:
        raise ValueError(f"form={form!r} needs rows of three objects; these have {indices.shape[1]}")
    first, second = ([1, 0, 2], [2, 0, 1]) if form == "most-central" else ([1, 2, 0], [2, 1, 0])
    rows = np.stack([indices[:, first], indices[:, second]], axis=1).reshape(-1, 3)
    return np.ascontiguousarray(rows), np.repeat(source, 2)


_MOST = 40  # comparisons of one rated pair at most


def rated_quadruplets(
    pairs: np.ndarray, ratings: np.ndarray, raters: np.ndarray | None, *, high_is_near: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Rows (m, 4) of ids (i, j, l, k), and (m, 2) the numbers of the two ratings compared, the nearer pair's first.

    pairs (n, 2), ratings (n,). Two ratings are compared if one rater gave both and they differ. Each is compared with
    at most 40 others, evenly spaced among the rater's ratings; the rows are the same in every run.
    """
    nearness = ratings if high_is_near else -ratings
    groups = np.zeros(len(pairs), np.int64) if raters is None else np.unique(raters, return_inverse=True)[1].reshape(-1)
    near, far = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for group in range(int(groups.max()) + 1):
        rows = np.flatnonzero(groups == group)
        rows = rows[np.argsort(nearness[rows], kind="stable")]
        most = len(rows) - 1
        for stride in np.unique(np.linspace(1, most, min(_MOST, most)).astype(np.int64)):
            low, high = rows[:-stride], rows[stride:]
            differ = nearness[high] > nearness[low]
            near.append(high[differ])
            far.append(low[differ])
    first, second = np.concatenate(near), np.concatenate(far)
    swapped = (pairs[first] == pairs[second][:, ::-1]).all(axis=1)
    apart = ~swapped & (pairs[first] != pairs[second]).any(axis=1)  # a pair rated twice does not rank another
    first, second = first[apart], second[apart]
    return np.concatenate([pairs[first], pairs[second]], axis=1), np.stack([first, second], axis=1)
