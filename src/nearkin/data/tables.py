"""Read a file or a DataFrame into typed columns; pairs, comparisons and features then assign roles to columns."""

import csv
import io
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, time
from itertools import combinations, zip_longest
from typing import Any

import numpy as np
import scipy.sparse as sp

from nearkin._fields import FileOrFrame
from nearkin._pairs import MatrixLike, matrix_entries
from nearkin.data.column import (
    COMPARISONS,
    DISSIMILARITY,
    OPTIONS,
    PAIRS,
    SIMILARITY,
    Column,
    as_64_bits,
    as_decimals,
    as_integers,
    as_text,
    by_name,
    frame_columns,
    is_frame,
    is_number,
    known,
    means,
    normal,
    text_column,
)
from nearkin.data.files import EXCEL_MARK, FRAMES, MAX_CELL, TEXT, Locator, extra, locate, reading, unknown_ending
from nearkin.data.formats.binary import archive_keys, is_sparse, read_npz, read_sparse
from nearkin.data.formats.parquet import read_frame
from nearkin.records import Reading


@dataclass(frozen=True)
class Table:
    """Columns by name, in the file's order. Without a header they are called "0", "1", ...

    `header` is None where the format names columns itself; `matrices` are an archive's arrays of other shapes; `notes`
    say what was left aside; `shape` is that of a sparse matrix, whose entries are then the columns left, right, weight.
    """

    name: str
    columns: dict[str, Column]
    header: bool | None = None
    delimiter: str | None = None
    matrices: dict[str, np.ndarray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    archive: bool = False
    shape: tuple[int, int] | None = None

    def column(self, name: str, role: str) -> Column:
        """The column called `name`, or at that position without a header; ValueError that lists what there is."""
        if name not in self.columns:
            raise ValueError(
                f"{role} is {name!r}, which {self.name} lacks; its columns are {', '.join(self.columns) or 'none'}"
            )
        return self.columns[name]

    def reading(self, **found: Any) -> Reading:
        """How the table was read, with its header and delimiter."""
        mark = None if self.delimiter is None else DELIMITERS.get(self.delimiter, self.delimiter)
        columns = (*self.columns, *self.matrices)
        return Reading(source=self.name, columns=columns, header=self.header, delimiter=mark, **found)


def read_table(
    source: FileOrFrame,
    *,
    header: bool | None = None,
    delimiter: str | None = None,
    named: Iterable[str | None] = (),
) -> Table:
    """Read .csv, .tsv, .txt (delimited text), .xlsx (its first sheet), .parquet, .feather, .arrow, .jsonl, .npz, a
    DataFrame, or a sparse matrix, also of scipy.sparse.save_npz: its entries are pairs.

    header: whether the first line of a text file names the columns; None looks. named: what the caller calls columns; a
    first line that holds all of these names is a header ("0" is a place, None nothing). delimiter: "," ";" tab "|" or
    their names; None looks. Where the first lines do not decide, a ValueError names the options to type. A column is
    integers if every cell is one in canonical decimal, exact to 64 bits, and text otherwise: "007" and "1e5" are text.

    Raises FileNotFoundError, PermissionError, and ValueError for any file that is damaged or is no table.
    """
    if header not in (True, False, None):
        raise ValueError(f"header is {header!r}; it must be True, False or None (look)")
    if is_frame(source):
        name = f"the {type(source).__name__}"
        return Table(name, frame_columns(source, name))
    if sp.issparse(source):
        return _of_entries(source, f"the {type(source).__name__}")  # pyright: ignore[reportArgumentType]
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"the table is a {type(source).__name__}; it must be a file, a DataFrame or a sparse matrix")
    where = locate(source)
    if where.suffix not in _ENDINGS:
        raise unknown_ending(where, _ENDINGS)
    with reading(where):
        if where.suffix in (*TEXT, ".xlsx"):
            return _read_text(where, header, delimiter, {name for name in named if name and not name.isdigit()})
        if where.suffix != ".npz":
            return Table(str(where), frame_columns(read_frame(where), str(where)))
        if is_sparse(names := archive_keys(where)):
            return _of_entries(read_sparse(where), str(where))
        arrays = {name: read_npz(where, name) for name in names}
        flat = [Column(name, _plain(array)) for name, array in arrays.items() if array.ndim == 1]
        others = {name: array for name, array in arrays.items() if array.ndim != 1}
        return Table(str(where), by_name(flat, str(where)) if flat else {}, matrices=others, archive=True)


def _of_entries(matrix: MatrixLike, name: str) -> Table:
    """The stored entries of a sparse matrix as pairs: rows are left, columns are right, values are weights."""
    left, right, weight, shape = matrix_entries(matrix, name)
    parts = {"left": left.astype(np.int64), "right": right.astype(np.int64), "weight": weight * 1}  # no bools
    return Table(name, by_name((Column(*part) for part in parts.items()), name), shape=shape)


def _read_text(where: Locator, header: bool | None, delimiter: str | None, named: set[str]) -> Table:
    cells, mark = (_read_sheet(where), None) if where.suffix == ".xlsx" else read_cells(where, delimiter)
    first = [str(column[0]) for column in cells]
    columns = [text_column(name, column[1:]) for name, column in zip(first, cells, strict=True)]
    if header is None and named and named <= set(first):
        header = True
    headed = is_header(first, columns, str(where)) if header is None else header
    notes: tuple[str, ...] = ()
    if not headed:
        columns = [text_column(str(place), column) for place, column in enumerate(cells)]
    elif len(cells[0]) == 1:
        raise ValueError(f"{where} has a header and no rows; at least one row is needed")
    elif not columns[0].name and len(columns) > 1:  # pandas writes its index so
        columns, notes = columns[1:], ("the first column, which has no name",)
    return Table(str(where), by_name(columns, str(where)), headed, mark, notes=notes)


def _read_sheet(where: Locator) -> list[list[str]]:
    """The columns of a workbook's first sheet as text, without empty rows and columns."""
    with closing(extra("openpyxl", "excel").load_workbook(where.path, read_only=True, data_only=True)) as book:
        rows = [list(map(_written, row)) for row in book.worksheets[0].iter_rows(values_only=True)]
    columns = [list(column) for column in zip_longest(*filter(any, rows), fillvalue="") if any(column)]
    if not columns:
        raise ValueError(f"{where} has an empty first sheet; it must hold a table")
    return columns


def _written(cell: Any) -> str:
    """The value of a cell as text files have it: dates as ISO dates, and nothing for none."""
    return "" if cell is None else cell.isoformat() if isinstance(cell, date | time) else str(cell).strip()


def _plain(array: np.ndarray) -> np.ndarray:
    """An array of a file as a column holds it: text as objects, integers as 64 bits."""
    if array.dtype.kind == "S":
        return as_text([value.decode() for value in array.tolist()])
    if array.dtype.kind == "U":
        return as_text(array.tolist())
    if array.dtype.kind in "iu":
        return as_64_bits(array)
    return array


_ENDINGS = (*TEXT, ".xlsx", ".parquet", *FRAMES, ".npz")
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
MAX_COLUMNS = 100_000
_SAMPLE = 50  # lines from which the delimiter is found


def read_text(where: Locator) -> str:
    """A text file without its byte order mark; ValueError for what is no UTF-8 by its first look."""
    with where.open() as file:
        data = file.read().removeprefix(b"\xef\xbb\xbf")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data:
        raise ValueError(f"{where} is not UTF-8 text (UTF-16, or no text at all); save it as UTF-8")
    return data.decode("utf-8")


def read_cells(where: Locator, delimiter: str | None = None) -> tuple[list[list[str]], str]:
    """The columns of a text table, still text, and its delimiter, which None finds. ValueError for rows of unequal
    length and for what is no text."""
    text = read_text(where)
    if not text.strip():
        raise ValueError(f"{where} is empty; it must hold a table")
    given = EXCEL_MARK.match(text)
    if given is not None:
        text = text[given.end() :]
        delimiter = delimiter or given[1]
    mark = sniff(text[: 2**20], where) if delimiter is None else _checked(delimiter)
    return _columns(text, mark, where), mark


def _checked(delimiter: str) -> str:
    words = {word: mark for mark, word in DELIMITERS.items()} | {"\\t": "\t"}
    mark = words.get(delimiter, delimiter)
    if len(mark) != 1 or mark in '"\r\n':
        raise ValueError(f"delimiter is {delimiter!r}; it must be one character, or one of {', '.join(words)}")
    return mark


def sniff(text: str, where: Locator) -> str:
    """The delimiter that cuts all of the first lines into equally many cells, at least two; ValueError for several."""
    lines = [line for line in text.splitlines()[: _SAMPLE + 1] if line.strip()]
    lines = lines[:-1] if len(lines) > _SAMPLE else lines  # the last may be cut
    marks = [mark for mark in DELIMITERS if mark != " "]
    fits = [mark for mark in marks if _width(lines, mark) > 1]
    if len(fits) > 1:
        named = " or ".join(f"delimiter={DELIMITERS[mark]!r}" for mark in fits)
        raise ValueError(
            f"{where} can be read with several delimiters; type {named} (on the command line --delimiter "
            f"{DELIMITERS[fits[0]]})"
        )
    if fits:
        return fits[0]
    if where.suffix != ".csv" and _width(lines, " ") > 1:
        return " "
    most = max(marks, key=lines[0].count)
    return most if most in lines[0] else "\t" if where.suffix == ".tsv" else ","


def _width(lines: list[str], mark: str) -> int:
    """Cells of each line, 0 if they differ."""
    try:
        widths = {len(row) for row in csv.reader(lines, delimiter=mark)}
    except csv.Error:
        return 0
    return widths.pop() if len(widths) == 1 else 0


def _columns(text: str, delimiter: str, where: Locator) -> list[list[str]]:
    cells, first = list[str](), list[str]()  # one list of all cells: a million lists of rows take four times as long
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            if len(row) < 2 and not "".join(row).strip():
                continue
            first = first or row
            if len(row) != len(first):
                number, title = len(cells) // len(first) + 1, f"is {first[0][:40]!r} the title of the table? Delete it"
                raise ValueError(
                    f"{where}: row {number} has {len(row)} cells, the first row has {len(first)}; "
                    f"{title if len(first) == 1 else 'correct that row'}"
                )
            cells += row
    except csv.Error as error:
        raise ValueError(
            f"{where} cannot be read as a table ({error}): a quoted cell does not end, or one has more than {MAX_CELL} "
            "characters"
        ) from error
    if not 0 < len(first) <= MAX_COLUMNS:
        raise ValueError(f"{where} has {len(first)} columns; a table has at least one and at most {MAX_COLUMNS}")
    return [[cell.strip(" \t") for cell in cells[place :: len(first)]] for place in range(len(first))]


_CHANCE = 0.05  # at most, that a line of data is taken for a header


def is_header(first: list[str], body: list[Column], source: str) -> bool:
    """Decide by four signs, in this order; ValueError that names what to type if two readings are left.

    1. The line has a name that columns usually have ("user", "anchor", "rating"), and no cell of it stands below it.
    2. Text above a column of numbers is a name. A number above a column of numbers is data.
    3. A cell that occurs again below it is data.
    4. A line none of whose cells ever recurs is a header where other lines recur: in exchangeable data the first is
       the only such line with a chance below 1 in n + 1, and 1 in 20 is enough.
    """
    if not len(body[0]):
        return any(known(cell) for cell in first) and not any(is_number(cell) for cell in first)
    numeric = [not column.is_text or as_decimals(column.values) is not None for column in body]
    above = list(zip(map(is_number, first), numeric, strict=True))
    says_data = any(cell and column for cell, column in above)
    says_header = any(not cell and column for cell, column in above)
    recurs = any(_stands_in(cell, column) for cell, column in zip(first, body, strict=True))
    if not says_data and not recurs and any(known(cell) for cell in first):
        return True
    if says_header != says_data:
        return says_header
    if recurs or any(_stands_in(cell, column) for cell in first for column in body):
        return False
    if not says_data and len(body[0]) > 1:
        counts = Counter[object]()
        for column in body:
            counts.update(column.values.tolist())
        cells = zip(*(column.values.tolist() for column in body), strict=True)
        fresh = sum(all(counts[cell] == 1 for cell in row) for row in cells)  # rows whose cells occur in no other
        if (fresh + 1) / (len(body[0]) + 1) <= _CHANCE:
            return True
    raise ValueError(
        f"{source} begins with {', '.join(map(repr, first[:4]))}, which may be names of columns or data; type "
        "header=True or header=False (on the command line --header or --no-header)"
    )


def _stands_in(cell: str, column: Column) -> bool:
    if column.is_text:
        return bool((column.values == cell).any())
    number = as_integers([cell])
    return number is not None and bool((column.values == number[0]).any())


_OF_COMPARISONS = {"anchor", "near", "far", "response", "form", "raters"}
_OF_PAIRS = {"left", "right", "weight", "timestamp", "start"}
_WIDE = 12  # columns: long tables have fewer
ARRAYS = ("triplets", "quadruplets", "comparisons", "indices")  # of comparisons, in an archive


def kind_of(
    source: FileOrFrame, *, header: bool | None = None, delimiter: str | None = None, given: Iterable[str] = ()
) -> str:
    """ "pairs" or "comparisons", by the options given, else by the table's columns; ValueError if it can be either."""
    if not _OF_COMPARISONS.isdisjoint(given):
        return "comparisons"
    if not _OF_PAIRS.isdisjoint(given):
        return "pairs"
    table = read_table(source, header=header, delimiter=delimiter)
    if asks_comparisons(table):
        return "comparisons"
    if has_pairs(table) or len(table.columns) == 2:
        return "pairs"
    objects = [column for column in table.columns.values() if column.is_text or column.values.dtype.kind in "iu"]
    if len(objects) == len(table.columns) and len(objects) in (3, 4):
        values = [set(map(str, column.values.tolist())) for column in objects]
        if all(3 * len(a & b) >= len(a | b) for a, b in combinations(values, 2)):  # each two share a third of theirs
            return "comparisons"
    names = list(table.columns)
    if len(names) > _WIDE:
        raise ValueError(
            f"{table.name} has {len(names)} columns ({', '.join(names[:3])}, ...): is it a wide table, a column for "
            "every item? Write it long, a row for every pair (user, item, value, or object, object, distance). If it "
            "is long already, type left=... and right=... (on the command line --left and --right), or "
            "kind='comparisons' (--kind comparisons)"
        )
    raise ValueError(
        f"{table.name} can hold pairs or comparisons (columns {', '.join(names)}); type kind='pairs' with "
        "left=... and right=..., or kind='comparisons' (on the command line --kind pairs --left --right, or --kind "
        "comparisons)"
    )


def has_pairs(table: Table) -> bool:
    return all(any(means(name, PAIRS[role]) is not None for name in table.columns) for role in ("left", "right"))


def asks_comparisons(table: Table) -> bool:
    """Whether the columns' names are those of comparisons: anchor, near, far; options with an answer or an anchor."""
    if any(key in table.matrices for key in ARRAYS):
        return True
    names = {normal(name) for name in table.columns}
    near, far, anchor, response, odd = (
        names & set(COMPARISONS[role]) for role in ("near", "far", "anchor", "response", "odd")
    )
    if {"i", "j", "k"} <= names or (near - {"j"} and far - {"k"}) or odd:
        return True
    if not has_pairs(table) and names & {*SIMILARITY, *DISSIMILARITY}:
        return True
    options = any(first in names and second in names for first, second in OPTIONS)
    answered = (
        (response - {"label"})
        or (anchor - {"i"})
        or (names & set(COMPARISONS["rating"]) and not {"left", "right"} <= names)
    )
    return bool(options and answered and len(names) > 2)
