"""Text tables, .csv, .tsv and .txt: one row a vector; a header line and a first column of ids are allowed."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import TextIOWrapper
from itertools import count, islice

import numpy as np

from nearkin.data.column import as_text, is_number, names_rows, text_column, understood
from nearkin.data.files import EXCEL_MARK, Locator
from nearkin.data.formats.file_rows import MAX_WIDTH, FileRows, check_layout, streamed_rows

_MAX_LINE = 64 * MAX_WIDTH  # characters
_LOOK = 50  # lines that the layout is read off
DELIMITER = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_DECIMAL = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_WHOLE = re.compile(r"0|[1-9]\d{0,17}")  # 0 or more, in canonical decimal


@dataclass(frozen=True)
class Layout:
    """How cells and decimals are written, the first line's cells, whether it is a header, and its first column ids."""

    delimiter: str | None
    commas: bool
    names: list[str]
    header: bool
    ids: bool


def cells_of(line: str, delimiter: str | None) -> list[str]:
    """The cells of one line, without quotes and the blanks around them."""
    if delimiter is None:
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))]


def layout_of(where: Locator, lines: list[str]) -> Layout:
    """Read off the first lines of a table how it is cut; ValueError where two readings of its commas are possible."""
    marks = dict.fromkeys((DELIMITER[where.suffix], "\t", ";", "|", ","))
    delimiter = next((mark for mark in marks if mark in lines[0]), None)
    widths = {len(line.split()) for line in lines[:2]}
    if delimiter is None and (len(widths) > 1 or widths == {1}):  # no white space parts as many cells in both
        delimiter = DELIMITER[where.suffix]
    table = [cells_of(line, delimiter) for line in lines]
    marked = [cell for row in table for cell in row[len(row) > 1 :] if delimiter != "," and _DECIMAL.fullmatch(cell)]
    if marked and all(_THOUSANDS.fullmatch(cell) for cell in marked):
        point, whole = marked[0].replace(",", "."), marked[0].replace(",", "")
        raise ValueError(f"{where} holds {marked[0]!r}, which may be {point} or {whole}; write {point} or {whole}")
    names = table[0]
    if marked:
        table = [[cell.replace(",", ".") for cell in row] for row in table]
    header = _is_header(table)
    layout = Layout(delimiter, bool(marked), names, header, _has_ids(table, header))
    rows = [row for row in table[header:] if len(row) == len(names)]
    if not layout.ids and len(names) >= 3 and len(rows) >= 10:
        _check_first(where, layout, rows)
    return layout


def _is_header(table: list[list[str]]) -> bool:
    first, *rest = table
    numbers = list(map(is_number, first))
    if all(numbers):
        return len(first) > 1 and _counts(first, 0)
    if len(first) == 1 or not all(numbers[1:]):
        return True
    if _counts(first[1:], 0) or _counts(first[1:], 1):  # an id's name above the column numbers that pandas writes
        return True
    return bool(rest) and is_number(rest[0][0])


def _counts(cells: list[str], start: int) -> bool:
    return cells == [str(i) for i in range(start, start + len(cells))]


def _has_ids(table: list[list[str]], header: bool) -> bool:
    """Whether the first column names the rows: text before numbers, or whole numbers under a name of ids."""
    named = header and len(table[0]) > 1 and names_rows(table[0][0])
    if len(table) == header:
        return named
    name, *numbers = table[header]
    text = bool(name) and not is_number(name)
    return any(map(is_number, numbers)) and (text or (named and bool(_WHOLE.fullmatch(name))))


def _check_first(where: Locator, layout: Layout, rows: list[list[str]]) -> None:
    """ValueError where the first column may hold ids without a name: another whole number in every row, where the first
    `rows` of the other columns have fractions or its numbers simply count."""
    whole, *others = ([_WHOLE.fullmatch(cell) is not None for cell in column] for column in zip(*rows, strict=True))
    counts = all(whole) and _counts([row[0] for row in rows], int(rows[0][0]))
    if not all(whole) or (any(map(all, others)) and not counts):
        return
    first = [cells_of(line, layout.delimiter)[0] for _, line in _lines(where, layout.header)]
    if len(set(first)) == len(first) and all(map(_WHOLE.fullmatch, first)):
        how = f"call column {layout.names[0]!r}" if layout.header else "begin the file with a line of names and call it"
        raise ValueError(
            f"{where}: the first column is another whole number in every row: ids, or a coordinate? If they are ids, "
            f"{how} id; for a coordinate, write 7.0 in place of 7"
        )


def open_text(where: Locator) -> FileRows:
    """Rows of a text table as float64: commas, semicolons, tabs, bars, or else white space.

    The first line is a header if one of its cells is no number, an id before numbers apart, or if it reads 0,1,2,...:
    the column numbers that pandas writes. A first column of text, or of whole numbers under a name such as id, holds
    the rows' ids. Numbers may have decimal commas where commas do not part cells. ValueError names the line and cell
    that is no number, or the line of another width, and names what to type if the first column may be ids or not.
    """
    lines = [line for _, line in islice(_lines(where), _LOOK)] or [""]
    check_layout(str(where), (1, lines[0].count(",") + 1), np.dtype(np.float64))
    layout = layout_of(where, lines)
    n = sum(1 for _ in _lines(where, layout.header))
    shape = check_layout(str(where), (n, len(layout.names) - layout.ids), np.dtype(np.float64))

    def blocks(rows: int) -> Iterator[np.ndarray]:
        found = _lines(where, layout.header)
        converters = {0: lambda _: 0.0} if layout.ids else None
        how = {"delimiter": layout.delimiter, "quotechar": '"', "converters": converters, "comments": None}
        while block := list(islice(found, rows)):
            texts = [line.replace(",", ".") if layout.commas else line for _, line in block]
            try:
                X = np.loadtxt(texts, ndmin=2, **how).reshape(len(block), len(layout.names))
            except ValueError as error:
                raise ValueError(_complaint(block, layout, where, error)) from error
            yield X[:, layout.ids :]

    def ids() -> np.ndarray:
        names = [cells_of(line, layout.delimiter)[0] for _, line in _lines(where, layout.header)]
        return text_column("", names).values if all(names) else as_text(names)

    notes = ", written with decimal commas" if layout.commas else ""
    named = (layout.names[0] if layout.header else "") if layout.ids else None
    about = understood(str(where), *shape, named, [], notes)
    rows = streamed_rows(shape, np.dtype(np.float64), blocks)
    return replace(rows, about=about, ids=ids if layout.ids else None)


def _lines(where: Locator, header: bool = False) -> Iterator[tuple[int, str]]:
    """Lines with something on them, numbered from 1 as an editor does, without the header.

    ValueError for a quoted cell that does not end on its line: rows would be lost between two of them.
    """
    with where.open() as packed, TextIOWrapper(packed, encoding="utf-8-sig") as file:
        for number in count(1):
            line = file.readline(_MAX_LINE)
            if len(line) == _MAX_LINE:
                raise ValueError(f"{where} has a line of more than {_MAX_LINE} characters; it is no table of vectors")
            if line.count('"') % 2:
                raise ValueError(f"{where}, line {number}: a quoted cell does not end on its line; give numbers only")
            if not line:
                return
            if not line.strip() or (number == 1 and EXCEL_MARK.match(line)):
                continue
            if not header:
                yield number, line
            header = False


def _complaint(block: list[tuple[int, str]], layout: Layout, where: Locator, error: Exception) -> str:
    for number, line in block:
        cells, wanted = cells_of(line, layout.delimiter), len(layout.names)
        if len(cells) != wanted:
            return (
                f"{where}, line {number}: {len(cells)} cells where the first line has {wanted}; every row needs as many"
            )
        for column, cell in enumerate(cells, 1):
            if column > layout.ids and not is_number(cell.replace(",", ".") if layout.commas else cell):
                what = f"{cell[:40]!r} is no number" if cell else "the cell is empty"
                return f"{where}, line {number}, column {column}: {what}; give numbers (ids only in the first column)"
    return f"{where} cannot be read ({error})"
