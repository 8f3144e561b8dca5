"""Read a file, several parts of one, a DataFrame or a sparse matrix into columns, and give roles to columns by name."""

import os
import zipfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date, time
from itertools import zip_longest
from typing import TypedDict, Unpack

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from nearkin._fields import Extra, FileOrFrame, counted
from nearkin._pairs import MatrixLike, real_matrix
from nearkin.data.column import Column, plain_cells
from nearkin.data.files import SHEET, TABLES, TEXT, Locator, brief, extra, locate_all, reading, unknown_ending
from nearkin.data.formats.binary import archive_keys, is_sparse, read_npz, read_sparse
from nearkin.data.formats.parquet import read_frame
from nearkin.data.names import NAMES, listed, plain
from nearkin.data.text import TextWords, any_number, read_text, text_of, unparted
from nearkin.records import Reading


class About(TypedDict):
    """Fields of `Reading` that a table lacks."""

    kind: str
    form: str | None
    rows: int
    distinct: dict[str, int]
    first: str


@dataclass(frozen=True)
class Table:
    """Columns by name, in the file's order; without a header they are called "0", "1", ...

    `header` is None where the format names columns itself; `matrices` are an archive's arrays of other shapes; `shape`
    is that of a sparse matrix, whose entries are then the columns left, right, weight.
    """

    name: str
    columns: dict[str, Column]
    header: bool | None = None
    delimiter: str | None = None
    matrices: dict[str, np.ndarray] = field(default_factory=dict)
    shape: tuple[int, int] | None = None

    def column(self, name: str, role: str) -> Column:
        """The column called `name`; ValueError that lists what there is."""
        if name not in self.columns:
            raise ValueError(f"{role} is {name!r}, which {self.name} lacks; its columns are {listed(self.columns)}")
        return self.columns[name]

    def role(
        self, role: str, typed: str | None = None, *, needed: bool = True, taken: Iterable[str] = ()
    ) -> Column | None:
        """The column that is typed, or the only one with a usual name of the role that is not `taken`.

        ValueError that names what to type for several, and for none where it is `needed`.
        """
        if typed is not None:
            if not isinstance(typed, str):
                raise TypeError(f"{role} is {typed!r}; it must be the name of a column, or None")
            return self.column(typed, role)
        usual = [name for name in self.columns if name not in taken and plain(name) in NAMES[role]]
        if len(usual) > 1:
            raise ValueError(
                f"{self.name} has columns {listed(usual)}, which may each be {role}; type {role}={usual[0]!r}"
            )
        if usual:
            return self.columns[usual[0]]
        if not needed:
            return None
        raise self.lacks(role)

    def lacks(self, *roles: str) -> ValueError:
        """The error for a table without a column of one or two roles, with what to type."""
        if len(self.columns) == 1 and self.delimiter is None and self.header is not None:
            ((name, column),) = self.columns.items()
            return unparted(self.name, name if self.header else str(column.cells[0]))
        usual = " and of ".join(f"{role} ({', '.join(NAMES[role][:6])}, ...)" for role in roles)
        typed = " and ".join(f"{role}=..." for role in roles)
        text = f"{self.name} has no column with a usual name of {usual}; type {typed}, of {listed(self.columns)}"
        if self.header and any_number(self.columns):
            text += "; if the first line is data, header=False"
        return ValueError(text + "; comparisons, surveys: see docs/reading.md" * ("left" in roles and "right" in roles))

    def rows(self, keep: np.ndarray) -> "Table":
        """The rows (mask) of a table."""
        return replace(self, columns={name: column.take(keep) for name, column in self.columns.items()})

    def reading(self, columns: dict[str, Column], notes: Iterable[str], **more: Unpack[About]) -> Reading:
        """How the table was read: columns by role; all others are left aside."""
        roles = {role: column.name for role, column in columns.items()}
        aside = [name for name in self.columns if name not in roles.values()]
        return Reading(
            source=self.name,
            columns=(*self.columns, *self.matrices),
            header=self.header,
            delimiter=self.delimiter,
            roles=roles,
            notes=(*([f"left aside: {listed(aside)}"] if aside else []), *notes),
            **more,
        )


@brief()
def read_table(source: FileOrFrame, **text: Unpack[TextWords]) -> Table:
    r"""Read a table: text (.csv, .tsv, .txt, .dat), .xlsx (its first sheet), .parquet, .feather, .arrow, .jsonl, .npz,
    a DataFrame, or a sparse matrix, also of scipy.sparse.save_npz: its entries are pairs.

    The first line of text names the columns, and cells are parted by the only one of comma, semicolon, tab and bar
    that it holds. A folder of parts, a pattern or a list of files is one table, in the order of the numbers in their
    names.

    Parameters
    ----------
    source: file, folder, pattern, list of files, DataFrame or sparse matrix.
    text: `header`, False where the first line is data; `delimiter`, any text ("::") or comma, semicolon, tab, bar,
        space; `encoding`, such as cp1252.

    Returns
    -------
    table: `Table` with the columns by name.

    Raises
    ------
    FileNotFoundError, PermissionError: what cannot be opened.
    ValueError: a file that is damaged or is no table; it names what to type.
    TypeError: what is no file, DataFrame or sparse matrix.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("t.csv").write_text("a;b\n1;x\n2;y\n")
    >>> list(nk.data.read_table("t.csv").columns)
    ['a', 'b']
    """
    if is_frame(source):
        name = f"the {type(source).__name__}"
        return Table(name, frame_columns(source, name))
    if sp.issparse(source):
        return _of_entries(source, f"the {type(source).__name__}")  # pyright: ignore[reportArgumentType]
    if not isinstance(source, str | os.PathLike | list | tuple):
        raise TypeError(f"the table is a {type(source).__name__}; it must be a file, a DataFrame or a sparse matrix")
    parts = [_read_file(where, text) for where in locate_all(source)]
    return parts[0] if len(parts) == 1 else _joined(str(source), parts)


def _joined(name: str, parts: list[Table]) -> Table:
    """Parts of one table, in order; ValueError for other columns, and for a format that is no table of columns."""
    for part in parts:
        if list(part.columns) != list(parts[0].columns) or part.matrices or part.shape:
            raise ValueError(
                f"{part.name} has the columns {listed(part.columns)}, {parts[0].name} has "
                f"{listed(parts[0].columns)}; parts of one table have the same"
            )
    try:
        columns = {
            at: Column(at, pa.concat_arrays([part.columns[at].cells for part in parts]), name)
            for at in parts[0].columns
        }
    except pa.ArrowInvalid as error:
        raise ValueError(f"{name}: parts differ in the types of their columns ({error}); write them alike") from error
    return replace(parts[0], name=f"{name} ({counted(len(parts), 'part')})", columns=columns)


def _read_file(where: Locator, words: TextWords) -> Table:
    if where.suffix not in TABLES:
        raise unknown_ending(where, TABLES)
    with reading(where):
        table = _read(where, words)
    if where.columns is None:
        return table
    kept = {name: table.column(name, "the column") for name in where.columns if name not in table.matrices}
    return replace(table, columns=kept, matrices={n: m for n, m in table.matrices.items() if n in where.columns})


def _read(where: Locator, words: TextWords) -> Table:
    name = str(where.path)
    if where.suffix in TEXT:
        text = read_text(where, text_of(words))
        columns = text.table()
        line = text.line if text.data.count(b"\n") <= columns.num_rows + text.header else None
        named = {at: Column(at, plain_cells(columns.column(at)), name, line) for at in columns.column_names}
        return _with_rows(Table(name, named, text.header, text.delimiter))
    if where.suffix == SHEET:
        return _with_rows(Table(name, {at: replace(c, source=name) for at, c in _sheet(where, words).items()}, True))
    if where.suffix != ".npz":
        return Table(name, frame_columns(read_frame(where), name))
    if is_sparse(names := archive_keys(where)):
        return _of_entries(read_sparse(where), name)
    arrays = {at: read_npz(where, at) for at in names}
    flat = {at: Column(at, plain_cells(pa.array(array)), name) for at, array in arrays.items() if array.ndim == 1}
    return Table(name, flat, matrices={at: array for at, array in arrays.items() if array.ndim != 1})


def _with_rows(table: Table) -> Table:
    if not len(next(iter(table.columns.values()))):
        raise ValueError(f"{table.name} has a header and no rows; at least one row is needed")
    return table


_SHEET_MB, _SHEET_RATIO = 10, 100  # what a part of a workbook may be unpacked to in any case, and how many times larger


def _sheet(where: Locator, words: TextWords) -> dict[str, Column]:
    """The columns of a workbook's first sheet as text, dates as ISO dates."""
    with zipfile.ZipFile(where.path) as archive:
        for part in archive.infolist():
            if part.file_size > max(_SHEET_MB * 1_000_000, _SHEET_RATIO * part.compress_size):
                raise ValueError(f"{where.path} announces {part.file_size:,} bytes of {part.filename}; save it as CSV")
    with closing(extra("openpyxl", "excel").load_workbook(where.path, read_only=True, data_only=True)) as book:
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # a size that it announces is filled with empty cells
        rows = [
            list(map(_written, row)) for row in sheet.iter_rows(values_only=True) if any(c is not None for c in row)
        ]
    header = text_of(words).header
    cells = [column for column in zip_longest(*rows, fillvalue="") if any(column)]
    names = [column[0] if header else str(place) for place, column in enumerate(cells)]
    return {
        name: Column(name, pa.array(column[header:], pa.string())) for name, column in zip(names, cells, strict=True)
    }


def _written(cell: object) -> str:
    if isinstance(cell, float) and cell.is_integer():  # a workbook has no integers
        return str(int(cell))
    return "" if cell is None else cell.isoformat() if isinstance(cell, date | time) else str(cell)


def _of_entries(matrix: MatrixLike, name: str) -> Table:
    """The stored entries of a sparse matrix as pairs: rows are left, columns are right, values are weights."""
    own = real_matrix(matrix, name)
    parts = {"left": own.row.astype(np.int64), "right": own.col.astype(np.int64), "weight": own.data * 1}  # no bools
    return Table(name, {at: Column(at, pa.array(values), name) for at, values in parts.items()}, shape=own.get_shape())


def is_frame(source: Extra) -> bool:
    """Whether `source` is a DataFrame or a query that narwhals supports (not a path, a list or an array)."""
    try:
        return isinstance(nw.from_native(source, pass_through=True), nw.DataFrame | nw.LazyFrame)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"the {type(source).__name__} has two columns of one name; rename one") from error


def frame_columns(frame: Extra, source: str) -> dict[str, Column]:
    """The columns of a DataFrame or an Arrow table; ValueError for none, and for values of several types."""
    table = nw.from_native(frame)
    read = table.collect() if isinstance(table, nw.LazyFrame) else table  # queries of DuckDB and Polars
    columns = {
        str(series.name): Column(str(series.name), _cells(series, source), source) for series in read.iter_columns()
    }
    if not columns:
        raise ValueError(f"{source} has no columns; it must hold a table")
    return columns


def _cells(series: Extra, source: str) -> pa.Array:
    try:
        return plain_cells(series.to_arrow())
    except (pa.ArrowException, OverflowError, TypeError):
        values = series.to_list()
        try:
            return plain_cells(pa.array(values, from_pandas=True))
        except (pa.ArrowException, OverflowError, TypeError) as error:
            raise ValueError(
                f"column {series.name!r} of {source} holds values of several types ({error}); type "
                f"frame[{series.name!r}] = frame[{series.name!r}].astype(str)"
            ) from error


def complete(columns: dict[str, Column]) -> tuple[np.ndarray, list[str]]:
    """Mask (n,) of the rows in which no cell of the columns, by role, is missing, and a note that counts the others.

    ValueError where none is complete.
    """
    gone = np.any([column.missing for column in columns.values()], axis=0)
    if not gone.any():
        return ~gone, []
    gaps = ", ".join(f"{c.missing.sum():,} without {c.name}" for c in columns.values() if c.missing.any())
    if gone.all():
        raise ValueError(f"no row of {next(iter(columns.values())).source} is complete ({gaps}); name other columns")
    return ~gone, [f"{counted(int(gone.sum()), 'row')} with a missing cell left out ({gaps})"]
