"""Text tables, .csv and .tsv: one row a vector, all cells numbers, a header line allowed."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from nearkin.data.formats.rows import MAX_WIDTH, Rows, check_layout, streamed_rows
from nearkin.data.locator import Locator

DELIMITER = {".csv": ",", ".tsv": "\t"}
_MAX_LINE = 64 * MAX_WIDTH  # characters


def open_text(where: Locator) -> Rows:
    """Rows of a .csv (comma) or .tsv (tab) file as float64; semicolons and bars are understood.

    The first line is a header if one of its cells is no number, or if it reads 0,1,2,...: the column numbers that
    pandas writes. ValueError names the line and cell that is no number, or the line of another width.
    """
    first = next(_lines(where, False), (0, ""))[1]
    delimiter = next((mark for mark in (DELIMITER[where.suffix], "\t", ";", "|", ",") if mark in first), ",")
    check_layout(str(where), (1, first.count(delimiter) + 1), np.dtype(np.float64))
    cells = _cells(first, delimiter)
    header = _is_header(cells)
    if header and not cells[0]:
        raise ValueError(f"{where}: the first column has no name, as pandas writes its index; use to_csv(index=False)")
    n = sum(1 for _ in _lines(where, header))
    shape = check_layout(str(where), (n, len(cells)), np.dtype(np.float64))

    def blocks(rows: int) -> Iterator[np.ndarray]:
        lines = _lines(where, header)
        while block := list(islice(lines, rows)):
            yield _parse(block, delimiter, shape[1], where)

    return streamed_rows(shape, np.dtype(np.float64), blocks)


def _cells(line: str, delimiter: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.rstrip("\n").split(delimiter)]


def _is_header(cells: list[str]) -> bool:
    if len(cells) > 1 and cells == [str(i) for i in range(len(cells))]:
        return True
    return not all(_is_number(cell) for cell in cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _lines(where: Locator, header: bool) -> Iterator[tuple[int, str]]:
    """Lines with something on them, numbered from 1 as an editor does, without the header."""
    with where.path.open(encoding="utf-8-sig") as file:
        full = ((number, line) for number, line in enumerate(_bounded(file, where), 1) if line.strip())
        yield from islice(full, int(header), None)


def _bounded(file, where: Locator) -> Iterator[str]:
    while line := file.readline(_MAX_LINE):
        if len(line) == _MAX_LINE:
            raise ValueError(f"{where} has a line of more than {_MAX_LINE} characters; it is no table of vectors")
        yield line


def _parse(block: list[tuple[int, str]], delimiter: str, d: int, where: Locator) -> np.ndarray:
    """One row a line: a quoted cell must end on its line, so that no row is lost between two of them."""
    open_cell = next((number for number, line in block if line.count('"') % 2), None)
    if open_cell is not None:
        raise ValueError(f"{where}, line {open_cell}: a quoted cell does not end on its line; give numbers only")
    try:
        X = np.loadtxt([line for _, line in block], np.float64, None, delimiter, ndmin=2, quotechar='"')
    except ValueError as error:
        raise ValueError(_complaint(block, delimiter, d, where, error)) from error
    if X.shape != (len(block), d):
        raise ValueError(_complaint(block, delimiter, d, where, None))
    return X


def _complaint(block: list[tuple[int, str]], delimiter: str, d: int, where: Locator, error: Exception | None) -> str:
    for number, line in block:
        cells = _cells(line, delimiter)
        if len(cells) != d:
            return f"{where}, line {number}: {len(cells)} cells where the first line has {d}; every row needs as many"
        for column, cell in enumerate(cells, 1):
            if not _is_number(cell):
                what = f"{cell[:40]!r} is no number" if cell else "the cell is empty"
                return f"{where}, line {number}, column {column}: {what}; give numbers only (ids go into another file)"
    return f"{where} cannot be read ({error or 'its rows and its lines differ in number'})"
