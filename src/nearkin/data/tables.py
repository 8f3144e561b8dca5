"""A file or a DataFrame to typed columns, once: pairs, comparisons and features only say what each column is for."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from nearkin._fields import FileOrFrame
from nearkin.data.column import Column, as_text
from nearkin.data.delimited import read_cells
from nearkin.data.formats.npz import archive_keys, read_npz
from nearkin.data.formats.parquet import open_file
from nearkin.data.frames import frame_columns, is_frame
from nearkin.data.header import is_header
from nearkin.data.locator import PACKED, Locator, locate, unpack_first
from nearkin.data.read_errors import reading


@dataclass(frozen=True)
class Table:
    """Columns by name, in the file's order. Without a header they are called "0", "1", ...

    `header` is None where the format names columns itself; `matrices` are an archive's arrays of other shapes; `notes`
    say what was left aside.
    """

    name: str
    columns: dict[str, Column]
    header: bool | None = None
    delimiter: str | None = None
    matrices: dict[str, np.ndarray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    archive: bool = False

    @property
    def rows(self) -> int:
        return max((len(column) for column in self.columns.values()), default=0)

    def column(self, name: str, role: str) -> Column:
        """The column called `name`, or at that position without a header; ValueError that lists what there is."""
        if name not in self.columns:
            raise ValueError(
                f"{role} is {name!r}, which {self.name} lacks; its columns are {', '.join(self.columns) or 'none'}"
            )
        return self.columns[name]


def read_table(
    source: FileOrFrame,
    *,
    header: bool | str | None = None,
    delimiter: str | None = None,
    named: Iterable[str | None] = (),
) -> Table:
    """Read .csv, .tsv, .txt (delimited text), .parquet, .npz, or a DataFrame (pandas, Polars, Arrow).

    header: whether the first line of a text file names the columns; None looks. named: what the caller calls columns; a
    first line that holds all of these names is a header ("0" is a place, None nothing). delimiter: "," ";" tab "|" or
    their names; None looks. A ValueError says what to type where they cannot tell. A column is integers if every cell
    is one in canonical decimal, exact to 64 bits, and text otherwise: "007", "1_000" and "1e5" are text.

    Raises FileNotFoundError, PermissionError, and ValueError for any file that is damaged or is no table.
    """
    if header not in (True, False, None, "auto"):
        raise ValueError(f"header is {header!r}; it must be True, False or None (look)")
    if is_frame(source):
        return Table(f"the {type(source).__name__}", _named(frame_columns(source), "the DataFrame"))
    where = _locate(source)
    with reading(where):
        if where.suffix in (".csv", ".tsv", ".txt"):
            said = None if header == "auto" or header is None else bool(header)
            return _read_text(where, said, delimiter, {name for name in named if name and not name.isdigit()})
        return _READERS[where.suffix](where)


def _locate(source: str | os.PathLike) -> Locator:
    endings = (".csv", ".tsv", ".txt", *_READERS)
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"the table is a {type(source).__name__}; it must be the name of a file, or a DataFrame")
    ending = Path(source).suffix.lower()
    if ending in PACKED and os.path.exists(source):
        raise ValueError(unpack_first(Path(source)))
    if ending not in endings and os.path.exists(source):
        raise ValueError(f"{source} ends in {ending!r}; a table is read from {', '.join(endings)}")
    return locate(source)


def _read_text(where: Locator, header: bool | None, delimiter: str | None, named: set[str]) -> Table:
    cells = read_cells(where, delimiter)
    places = range(len(cells.first))
    columns = [cells.column(place, str(place), 1) for place in places]
    if header is None and named and named <= set(cells.first):
        header = True
    headed = is_header(cells.first, columns, str(where)) if header is None else header
    notes: tuple[str, ...] = ()
    if not headed:
        columns = [cells.column(place, str(place), 0) for place in places]
    else:
        columns = [Column(name, column.values) for name, column in zip(cells.first, columns, strict=True)]
        if cells.rows == 1:
            raise ValueError(f"{where} has a header and no rows; at least one row is needed")
        if not columns[0].name and len(columns) > 1:  # pandas writes its index so
            columns, notes = columns[1:], ("the first column, which has no name",)
    return Table(str(where), _named(columns, str(where)), headed, cells.delimiter, notes=notes)


def _named(columns: list[Column], source: str) -> dict[str, Column]:
    named = {column.name: replace(column, source=source) for column in columns}
    if len(named) < len(columns):
        names = [column.name for column in columns]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{source} has two columns called {twice!r}; rename one")
    if not named:
        raise ValueError(f"{source} has no columns; it must hold a table")
    return named


def _read_parquet(where: Locator) -> Table:
    with open_file(where.path) as file:
        table = file.read()
    return Table(str(where), _named(frame_columns(table), str(where)))


def _read_npz(where: Locator) -> Table:
    arrays = {name: read_npz(where, name) for name in archive_keys(where)}
    flat = [Column(name, _plain(array)) for name, array in arrays.items() if array.ndim == 1]
    others = {name: array for name, array in arrays.items() if array.ndim != 1}
    return Table(str(where), _named(flat, str(where)) if flat else {}, matrices=others, archive=True)


def _plain(array: np.ndarray) -> np.ndarray:
    """An array of a file as a column holds it: text as objects, integers as 64 bits."""
    if array.dtype.kind == "S":
        return as_text([value.decode() for value in array.tolist()])
    if array.dtype.kind == "U":
        return as_text(array.tolist())
    if array.dtype.kind in "iu" and len(array):
        return array.astype(np.int64) if array.dtype != np.uint64 or array.max() < 2**63 else array
    return array.astype(np.float64) if array.dtype.kind == "f" else array


_READERS: dict[str, Callable[[Locator], Table]] = {".parquet": _read_parquet, ".npz": _read_npz}
