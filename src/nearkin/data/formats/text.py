"""Text tables, .csv, .tsv and .txt: one row a vector; a header line and a first column of ids are allowed."""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import TextIOWrapper
from itertools import count, islice

import numpy as np

from nearkin.data.column import as_text, names_rows, text_column, understood
from nearkin.data.files import EXCEL_MARK, Locator
from nearkin.data.formats.file_rows import MAX_WIDTH, FileRows, check_layout, streamed_rows

_MAX_LINE = 64 * MAX_WIDTH  # characters
_LOOK = 50  # lines that the layout is read off
DELIMITER = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_DECIMAL = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_QUOTED = re.compile(r'\s*"((?:[^"]|"")*)"\s*')
_WHOLE = re.compile(r"0|[1-9]\d{0,17}")  # 0 or more, in canonical decimal


@dataclass(frozen=True)
class Layout:
    """The first line's cells, the name of a column of `ids` or None, and how cells and decimals are written."""

    delimiter: str | None
    names: list[str]
    header: bool
    ids: str | None
    commas: bool

    @property
    def d(self) -> int:
        """Numbers in a row."""
        return len(self.names) - (self.ids is not None)

    def cut(self, line: str) -> tuple[str, str]:
        """A line's id, "" without ids, and the text of its numbers, their decimal commas made points."""
        name, rest = "", line
        if self.ids is not None:
            if (quoted := _QUOTED.match(line)) is not None:
                name, rest = quoted[1].replace('""', '"'), line[quoted.end() + 1 :]
            else:
                first, *others = line.split(self.delimiter, 1)
                name, rest = first.strip(), "".join(others)
        return name, rest.replace(",", ".") if self.commas else rest


def cells_of(line: str, delimiter: str | None) -> list[str]:
    """The cells of one line, without quotes and the blanks around them."""
    if delimiter is None:
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter))]


def is_number(cell: str, commas: bool = False) -> bool:
    """Whether Python reads the cell as a float, without underscores; with `commas`, a comma may be the decimal mark."""
    try:
        float(cell.replace(",", ".") if commas else cell)
    except ValueError:
        return False
    return "_" not in cell


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
    commas = bool(marked)
    first, second = table[0], table[1] if len(table) > 1 else None
    header = _is_header(first, second, commas)
    row = second if header else first
    return Layout(delimiter, first, header, _ids(first, row, header, commas), commas)


def _is_header(first: list[str], second: list[str] | None, commas: bool) -> bool:
    numbers = [is_number(cell, commas) for cell in first]
    if all(numbers):
        return len(first) > 1 and _counts(first, 0)
    if len(first) == 1 or not all(numbers[1:]):
        return True
    if _counts(first[1:], 0) or _counts(first[1:], 1):  # an id's name above the column numbers that pandas writes
        return True
    return second is not None and is_number(second[0], commas)


def _counts(cells: list[str], start: int) -> bool:
    return cells == [str(i) for i in range(start, start + len(cells))]


def _ids(first: list[str], row: list[str] | None, header: bool, commas: bool) -> str | None:
    """The name of the first column if it names the rows: text before numbers, or whole numbers under a name of ids."""
    if row is None:
        return first[0] if header and len(first) > 1 and names_rows(first[0]) else None
    if len(row) < 2 or not any(is_number(cell, commas) for cell in row[1:]):
        return None
    text = bool(row[0]) and not is_number(row[0], commas)
    if text or (header and names_rows(first[0]) and _WHOLE.fullmatch(row[0])):
        return first[0] if header else ""
    return None


def open_text(where: Locator) -> FileRows:
    """Rows of a text table as float64: commas, semicolons, tabs, bars, or else white space.

    The first line is a header if one of its cells is no number, an id before numbers apart, or if it reads 0,1,2,...:
    the column numbers that pandas writes. A first column of text, or of whole numbers under a name such as id, holds
    the rows' ids. Numbers may have decimal commas where commas do not part cells. ValueError names the line and cell
    that is no number, or the line of another width, and names what to type if the first column may be ids or not.
    """
    lines = [line for _, line in islice(_lines(where, False), _LOOK)] or [""]
    check_layout(str(where), (1, lines[0].count(",") + 1), np.dtype(np.float64))
    layout = layout_of(where, lines)
    n = _count(where, layout, lines)
    shape = check_layout(str(where), (n, layout.d), np.dtype(np.float64))

    def blocks(rows: int) -> Iterator[np.ndarray]:
        found = _lines(where, layout.header)
        while block := list(islice(found, rows)):
            try:
                numbers = [layout.cut(line)[1] for _, line in block]
                X = np.loadtxt(numbers, np.float64, None, layout.delimiter, ndmin=2, quotechar='"')
            except ValueError as error:
                raise ValueError(_complaint(block, layout, where, error)) from error
            if X.shape != (len(block), layout.d):
                raise ValueError(_complaint(block, layout, where, None))
            yield X

    def ids() -> np.ndarray:
        names = [layout.cut(line)[0] for _, line in _lines(where, layout.header)]
        return text_column("", names).values if all(names) else as_text(names)

    notes = ", written with decimal commas" if layout.commas else ""
    about = understood(str(where), n, layout.d, layout.ids, [], notes)
    rows = streamed_rows(shape, np.dtype(np.float64), blocks)
    return replace(rows, about=about, ids=None if layout.ids is None else ids)


def _count(where: Locator, layout: Layout, lines: list[str]) -> int:
    """The number of rows, of which `lines` are the first.

    ValueError where the first column may hold ids without a name: other whole numbers in every row, where the other
    columns have fractions or the numbers simply count.
    """
    table = [cells_of(line, layout.delimiter) for line in lines[layout.header :]]
    rows = [row for row in table if len(row) == len(layout.names)]
    if layout.ids is None and len(layout.names) >= 3 and len(rows) >= 10:
        whole, *others = zip(*rows, strict=True)
        if all(map(_WHOLE.fullmatch, whole)):
            counts = list(map(int, whole)) == list(range(int(whole[0]), int(whole[0]) + len(rows)))
            if counts or not any(all(map(_WHOLE.fullmatch, column)) for column in others):
                return _check_repeats(where, layout)
    return sum(1 for _ in _lines(where, layout.header))


def _check_repeats(where: Locator, layout: Layout) -> int:
    """The number of rows; ValueError if the first column is another whole number in every row."""
    first = [cells_of(line, layout.delimiter)[:1] for _, line in _lines(where, layout.header)]
    whole = {cells[0] for cells in first if cells and _WHOLE.fullmatch(cells[0])}
    if len(whole) == len(first):
        how = f"call column {layout.names[0]!r}" if layout.header else "begin the file with a line of names and call it"
        raise ValueError(
            f"{where}: the first column is another whole number in every row: ids, or a coordinate? If they are ids, "
            f"{how} id; for a coordinate, write 7.0 in place of 7"
        )
    return len(first)


def _lines(where: Locator, header: bool) -> Iterator[tuple[int, str]]:
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


def _complaint(block: Iterable[tuple[int, str]], layout: Layout, where: Locator, error: Exception | None) -> str:
    for number, line in block:
        cells = cells_of(line, layout.delimiter)
        if len(cells) != len(layout.names):
            wanted = len(layout.names)
            return (
                f"{where}, line {number}: {len(cells)} cells where the first line has {wanted}; every row needs as many"
            )
        for column, cell in enumerate(cells, 1):
            if not is_number(cell, layout.commas) and (column > 1 or layout.ids is None):
                what = f"{cell[:40]!r} is no number" if cell else "the cell is empty"
                return f"{where}, line {number}, column {column}: {what}; give numbers (ids only in the first column)"
    return f"{where} cannot be read ({error or 'its rows and its lines differ in number'})"
