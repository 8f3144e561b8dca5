"""Workbooks of Excel: the first sheet as text."""

import zipfile
from contextlib import closing
from datetime import date, time
from itertools import zip_longest

import pyarrow as pa

from nearkin.data.files import Locator, extra, named

_SHEET_MB, _SHEET_RATIO = 10, 100  # what a part of a workbook may be unpacked to in any case, and how many times larger


def read_sheet(where: Locator, header: bool) -> dict[str, pa.Array]:
    """The columns of a workbook's first sheet as text, dates as ISO dates."""
    with zipfile.ZipFile(where.path) as archive:
        for part in archive.infolist():
            if part.file_size > max(_SHEET_MB * 1_000_000, _SHEET_RATIO * part.compress_size):
                raise ValueError(f"{where.path} announces {part.file_size:,} bytes of {part.filename}; save it as CSV")
    with closing(extra("openpyxl", "excel").load_workbook(where.path, read_only=True, data_only=True)) as book:
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # a size that it announces is filled with empty cells
        rows = [list(map(_written, row)) for row in sheet.iter_rows(values_only=True)]
    columns = [column for column in zip_longest(*filter(any, rows), fillvalue="") if any(column)]
    names = named(where, [column[0] for column in columns], header)
    return {name: pa.array(column[header:], pa.string()) for name, column in zip(names, columns, strict=True)}


def _written(cell: object) -> str:
    if isinstance(cell, int | float) and not isinstance(cell, bool):  # a workbook has no integers
        if abs(cell) >= 2**53:
            raise ValueError(f"a cell holds {cell:.0f}: a workbook rounds numbers of this size; write them as CSV")
        return str(int(cell) if float(cell).is_integer() else cell)
    return "" if cell is None else cell.isoformat() if isinstance(cell, date | time) else str(cell)
