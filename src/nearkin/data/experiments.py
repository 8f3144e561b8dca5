"""Comparisons collected by other programs: Salmon, jsPsych, cblearn's arrays."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from nearkin import _check
from nearkin._fields import FileOrFrame
from nearkin._storage import regular_file
from nearkin._types import ArrayLike, Record
from nearkin.data.column import Column, as_integers, text_column
from nearkin.data.comparisons import comparisons_from_array, comparisons_from_names, understood
from nearkin.data.comparisons.reading import chosen_first
from nearkin.data.comparisons.roles import Roles
from nearkin.data.tables import Table, read_table
from nearkin.records import Comparisons

_NO_ANSWER = ("", "null", "None")


def read_salmon(path: FileOrFrame, *, names: str | None = None) -> Comparisons:
    """Answers that Salmon collected: its "responses" as .csv (from the dashboard) or .json (older versions).

    The columns are `head`, `winner` and `loser` (in older versions `left` and `right` for `loser`), numbers of targets,
    and `puid`, the participant. names: None takes the numbers, "filename", "html" or "object" the columns
    `head_filename` and so on. `source` describes what was understood. ValueError for a file without these columns.
    """
    table = _read_records(path)
    end = "" if names is None else f"_{names}"
    wanted = [f"{role}{end}" for role in ("head", "winner", "loser", "left", "right")]
    needed = wanted[:3] if wanted[2] in table.columns else [*wanted[:2], *wanted[3:]]
    for name in needed:
        table.column(name, "a column of Salmon's")
    cells = {name: table.columns[name].ids() for name in needed}
    if wanted[2] not in table.columns:
        won, left, right = (cells[name].astype(object) for name in (wanted[1], *wanted[3:]))
        if not ((won == left) | (won == right)).all():
            row = int(((won != left) & (won != right)).argmax())
            raise ValueError(f"{table.name}: row {row} has the winner {won[row]!r}, which is neither left nor right")
        cells[wanted[2]] = np.where(won == left, right, left).astype(cells[wanted[3]].dtype)
    rows = np.stack([cells[name] for name in wanted[:3]], axis=1)
    who = table.columns.get("puid")
    found = comparisons_from_names(rows, annotators=None if who is None else who.ids())
    objects = [Column(name, cells[name]) for name in wanted[:3]]
    roles = Roles(objects, "triplet", annotator=who, aside=_others(table, [*wanted[:3], "puid"]))
    return replace(found, source=understood(table, roles, found))


def read_jspsych(
    path: FileOrFrame,
    *,
    items: Sequence[str],
    response: str | None = None,
    choices: Sequence[str] | None = None,
    rater: str | None = None,
    form: str = "triplet",
) -> Comparisons:
    """Answers that a jsPsych experiment wrote, .csv or .json (an array of trials, or a line of JSON an array).

    jsPsych names what its plugins record, not what an experiment shows: `items` are the columns that the experiment's
    `data` added. form "triplet": (anchor, first, second), the response names which of the last two is more like the
    anchor; "odd-one-out": three items, the response names the odd one. response: the column; None takes
    `response` (version 7 on), else `button_pressed`. choices: the responses in the order of what they choose; None is
    "0", "1", ... (buttons), ("f", "j") would be keys. rater: the column that names the participant.

    Trials without items (instructions, fixation) are left aside, those without an answer in time are dropped;
    `source.notes` counts both. ValueError for other responses.
    """
    _check.check_choice(form, "form", ("triplet", "odd-one-out"))
    if len(items) != 3:
        raise ValueError(f"items names {len(items)} columns; it must name 3, as they were shown")
    table = _read_records(path)
    if response is None:
        response = "response" if "response" in table.columns else "button_pressed"
    shown = np.stack([_texts(table.column(name, "items")) for name in items], axis=1)
    responses = _texts(table.column(response, "response"))
    trials = ~np.isin(shown, _NO_ANSWER).any(axis=1)
    answered = trials & ~np.isin(responses, _NO_ANSWER)
    codes = [str(n) for n in range(2 if form == "triplet" else 3)] if choices is None else list(choices)
    known = np.isin(responses, codes) | ~answered
    if not known.all():
        row = int((~known).argmax())
        raise ValueError(
            f"{table.name}: row {row} has the {response} {str(responses[row])!r}; it must be one of "
            f"{', '.join(codes)}. Give choices=..., the responses in the order of what they choose"
        )
    if not answered.any():
        raise ValueError(f"{table.name}: no trial has items in {', '.join(items)} and an answer in {response!r}")
    place = np.array([codes.index(text) for text in responses[answered].tolist()])
    rows = shown[answered]
    if form == "triplet":
        rows = np.where(place[:, None] == 1, rows[:, [0, 2, 1]], rows)
    rows = _as_ids(rows if form == "triplet" else chosen_first(rows, place))
    who = None if rater is None else table.column(rater, "rater")
    annotators = None if who is None else _as_ids(_texts(who)[answered])
    shape = "ordered" if form == "triplet" else form
    found = comparisons_from_names(rows, annotators=annotators, form=shape)
    objects = [table.columns[name] for name in items]
    roles = Roles(objects, form, options=True, response=table.columns[response], annotator=who)
    roles.aside = _others(table, [*items, response, rater or ""])
    source = understood(table, roles, found)
    counts = (
        f"{int((~trials).sum())} trials that show no items left aside",
        f"{int((trials & ~answered).sum())} without an answer dropped",
    )
    return replace(found, source=replace(source, notes=(*source.notes, *counts)))


def comparisons_from_cblearn(X: ArrayLike, y: object = None, *, form: str | None = None) -> Comparisons:
    """Comparisons from cblearn's arrays X and y.

    form: None is "triplet" for 3 columns (i, j, k) and "quadruplet" for 4 (i, j, l, k), with y of True and False or 1
    and -1, or none where all are true. "odd-one-out" and "most-central": 3 columns, y (m,) the column of the chosen
    object. "pivot": (i, j_1, ..., j_k), y (m,) which of the j, from 0, is nearest to i: one event each.
    """
    form = ("quadruplet" if np.shape(X)[-1:] == (4,) else "triplet") if form is None else form
    _check.check_choice(form, "form", ("triplet", "quadruplet", "odd-one-out", "most-central", "pivot"))
    if form in ("triplet", "quadruplet"):
        return comparisons_from_array(X, responses=None if y is None else np.asarray(y))
    rows = np.asarray(X)
    chosen = np.zeros(len(rows), np.int64) if y is None else np.asarray(y)
    options = rows.shape[1] - (form == "pivot")
    if chosen.shape != (len(rows),) or chosen.dtype.kind not in "iu" or not ((chosen >= 0) & (chosen < options)).all():
        raise ValueError(f"y must be ({len(rows)},) integers from 0 to {options - 1}, the columns chosen")
    if form != "pivot":
        return comparisons_from_array(chosen_first(rows, chosen), form=form)
    near = np.take_along_axis(rows, chosen[:, None] + 1, axis=1)
    rest = rows[:, 1:][np.arange(options) != chosen[:, None]].reshape(len(rows), -1)
    triplets = np.stack([np.repeat(rows[:, 0], options - 1), np.repeat(near[:, 0], options - 1), rest.ravel()], axis=1)
    return replace(comparisons_from_array(triplets), events=np.repeat(np.arange(len(rows)), options - 1))


def _read_records(path: FileOrFrame) -> Table:
    """A table from .csv and all that `read_table` reads, or from .json: an array of objects, or such arrays by line."""
    if not isinstance(path, str | Path) or Path(path).suffix.lower() not in (".json", ".jsonl"):
        return read_table(path, header=True)
    try:
        text = regular_file(path).read_text(encoding="utf-8-sig")
        try:
            parts = [json.loads(text)]
        except ValueError:
            parts = [json.loads(line) for line in text.splitlines() if line.strip()]
        records = _flat(parts)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON in UTF-8 ({error}); export it again") from error
    if not records:
        raise ValueError(f"{path} holds no trials: an array of objects is needed")
    keys = list(dict.fromkeys(key for record in records for key in record))
    columns = {key: ["" if (value := record.get(key)) is None else str(value) for record in records] for key in keys}
    return Table(str(path), {key: replace(text_column(key, cells), source=str(path)) for key, cells in columns.items()})


def _flat(parts: list) -> list[Record]:
    """The objects of arrays (of arrays) of objects; ValueError for anything else."""
    found: list[Record] = []
    for part in parts:
        if isinstance(part, dict):
            found.append(part)
        elif isinstance(part, list):
            found += _flat(part)
        else:
            raise ValueError(f"{str(part)[:40]!r} is no object")
    return found


def _texts(column: Column) -> np.ndarray:
    return np.array([str(value) for value in column.values.tolist()])


def _as_ids(texts: np.ndarray) -> np.ndarray:
    """Text, or integers if every one is written as one: columns that other trials leave empty are text."""
    whole = as_integers(texts.ravel().tolist())
    return texts if whole is None else whole.reshape(texts.shape)


def _others(table: Table, used: list[str]) -> list[str]:
    return [name for name in table.columns if name not in used]
