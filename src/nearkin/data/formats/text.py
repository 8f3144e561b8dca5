"""Text tables, .csv, .tsv and .txt: one row a vector; a header line and a first column of ids are allowed."""

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from nearkin.data.column import as_text, text_column
from nearkin.data.delimited import EXCEL_MARK
from nearkin.data.formats.file_rows import MAX_WIDTH, FileRows, check_layout, streamed_rows
from nearkin.data.formats.text_layout import Layout, is_whole, layout_of, looks_counted
from nearkin.data.locator import Locator
from nearkin.data.row_ids import understood

_MAX_LINE = 64 * MAX_WIDTH  # characters
_LOOK = 50  # lines that the layout is read off


def open_text(where: Locator) -> FileRows:
    """Rows of a text table as float64: commas, semicolons, tabs, bars or (where there is none of them) white space.

    The first line is a header if one of its cells is no number, an id before numbers apart, or if it reads 0,1,2,...:
    the column numbers that pandas writes. A first column of text, or of whole numbers under a name such as id, holds
    the rows' ids. Numbers may have decimal commas where commas do not part cells. ValueError names the line and cell
    that is no number, or the line of another width, and says what to type where the first column may be ids or not.
    """
    lines = [line for _, line in islice(_lines(where, False), _LOOK)] or [""]
    check_layout(str(where), (1, lines[0].count(",") + 1), np.dtype(np.float64))
    layout = layout_of(where, lines)
    n = _count(where, layout, looks_counted(layout, lines))
    shape = check_layout(str(where), (n, layout.d), np.dtype(np.float64))

    def blocks(rows: int) -> Iterator[np.ndarray]:
        found = _lines(where, layout.header)
        while block := list(islice(found, rows)):
            yield _parse(block, layout, where)

    def ids() -> np.ndarray:
        names = [layout.cut(line).id for _, line in _lines(where, layout.header)]
        return text_column("", names).values if all(names) else as_text(names)

    notes = ", written with decimal commas" if layout.commas else ""
    about = understood(str(where), n, layout.d, layout.ids, [], notes)
    rows = streamed_rows(shape, np.dtype(np.float64), blocks)
    return rows.described(about, None if layout.ids is None else ids)


def _count(where: Locator, layout: Layout, perhaps_ids: bool) -> int:
    """The number of rows; ValueError if `perhaps_ids`, and the first column is another whole number in every row."""
    if not perhaps_ids:
        return sum(1 for _ in _lines(where, layout.header))
    first = [layout.cells(line)[:1] for _, line in _lines(where, layout.header)]
    whole = {cells[0] for cells in first if cells and is_whole(cells[0])}
    if len(whole) == len(first):
        how = f"call column {layout.names[0]!r}" if layout.header else "begin the file with a line of names and call it"
        raise ValueError(
            f"{where}: the first column is another whole number in every row: ids, or a coordinate? If they are ids, "
            f"{how} id; for a coordinate, write 7.0 in place of 7"
        )
    return len(first)


def _lines(where: Locator, header: bool) -> Iterator[tuple[int, str]]:
    """Lines with something on them, numbered from 1 as an editor does, without the header."""
    with where.path.open(encoding="utf-8-sig") as file:
        full = (
            (number, line)
            for number, line in enumerate(_bounded(file, where), 1)
            if line.strip() and not (number == 1 and EXCEL_MARK.match(line))
        )
        yield from islice(full, int(header), None)


def _bounded(file, where: Locator) -> Iterator[str]:
    while line := file.readline(_MAX_LINE):
        if len(line) == _MAX_LINE:
            raise ValueError(f"{where} has a line of more than {_MAX_LINE} characters; it is no table of vectors")
        yield line


def _parse(block: list[tuple[int, str]], layout: Layout, where: Locator) -> np.ndarray:
    """One row a line: a quoted cell must end on its line, so that no row is lost between two of them."""
    open_cell = next((number for number, line in block if line.count('"') % 2), None)
    if open_cell is not None:
        raise ValueError(f"{where}, line {open_cell}: a quoted cell does not end on its line; give numbers only")
    try:
        numbers = [layout.cut(line).numbers for _, line in block]
        X = np.loadtxt(numbers, np.float64, None, layout.delimiter, ndmin=2, quotechar='"')
    except ValueError as error:
        raise ValueError(_complaint(block, layout, where, error)) from error
    if X.shape != (len(block), layout.d):
        raise ValueError(_complaint(block, layout, where, None))
    return X


def _complaint(block: Iterable[tuple[int, str]], layout: Layout, where: Locator, error: Exception | None) -> str:
    for number, line in block:
        cells = layout.cells(line)
        if len(cells) != len(layout.names):
            wanted = len(layout.names)
            return (
                f"{where}, line {number}: {len(cells)} cells where the first line has {wanted}; every row needs as many"
            )
        for column, cell in enumerate(cells, 1):
            if not layout.is_number(cell) and (column > 1 or layout.ids is None):
                what = f"{cell[:40]!r} is no number" if cell else "the cell is empty"
                return f"{where}, line {number}, column {column}: {what}; give numbers (ids only in the first column)"
    return f"{where} cannot be read ({error or 'its rows and its lines differ in number'})"
