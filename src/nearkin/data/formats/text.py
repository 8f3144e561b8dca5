"""Text tables, .csv and .tsv: one row a vector, all cells numbers, a header line allowed."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from nearkin.data.formats.rows import Rows, check_layout, streamed_rows
from nearkin.data.locator import Locator

DELIMITER = {".csv": ",", ".tsv": "\t"}


def open_text(where: Locator) -> Rows:
    """Rows of a .csv (comma) or .tsv (tab) file as float64.

    The first line is a header if one of its cells is no number, or if it reads 0,1,2,...: the column numbers that
    pandas writes. ValueError names the line and cell that is no number, or the line of another width.
    """
    delimiter = DELIMITER[where.suffix]
    with where.path.open(encoding="utf-8-sig") as file:
        first = next((line for line in file if line.strip()), "")
    cells = [cell.strip().strip('"') for cell in first.rstrip("\n").split(delimiter)]
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


def _is_header(cells: list[str]) -> bool:
    if len(cells) > 1 and cells == [str(i) for i in range(len(cells))]:
        return True
    return not all(_is_number(cell) for cell in cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _lines(where: Locator, header: bool) -> Iterator[tuple[int, str]]:
    """Lines with something on them, numbered from 1 as an editor does, without the header."""
    with where.path.open(encoding="utf-8-sig") as file:
        full = ((number, line) for number, line in enumerate(file, 1) if line.strip())
        yield from islice(full, int(header), None)


def _parse(block: list[tuple[int, str]], delimiter: str, d: int, where: Locator) -> np.ndarray:
    try:
        X = np.loadtxt([line for _, line in block], np.float64, None, delimiter, ndmin=2, quotechar='"')
    except ValueError as error:
        raise ValueError(_complaint(block, delimiter, d, where, error)) from error
    if X.shape[1] != d:
        raise ValueError(_complaint(block, delimiter, d, where, None))
    return X


def _complaint(block: list[tuple[int, str]], delimiter: str, d: int, where: Locator, error: Exception | None) -> str:
    for number, line in block:
        cells = [cell.strip().strip('"') for cell in line.rstrip("\n").split(delimiter)]
        if len(cells) != d:
            return f"{where}, line {number}: {len(cells)} cells where the first line has {d}; every row needs as many"
        for column, cell in enumerate(cells, 1):
            if not _is_number(cell):
                what = f"{cell!r} is no number" if cell else "the cell is empty"
                return f"{where}, line {number}, column {column}: {what}; give numbers only (ids go into another file)"
    return f"{where} cannot be read ({error})"
