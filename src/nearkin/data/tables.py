"""Read a file or a DataFrame into typed columns; pairs, comparisons and features then assign roles to columns."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Unpack

import numpy as np
import scipy.sparse as sp

from nearkin._fields import FileOrFrame, counted, quoted
from nearkin._pairs import MatrixLike, matrix_entries
from nearkin.data.column import Column, arrow_cells, by_name, frame_columns, is_frame
from nearkin.data.coordinates import goes_up_by_one, pick_columns
from nearkin.data.files import FRAMES, TEXT, Locator, TextOptions, TextWords, brief, locate, reading, unknown_ending
from nearkin.data.formats.binary import archive_keys, is_sparse, read_npz, read_sparse
from nearkin.data.formats.parquet import read_frame
from nearkin.data.header import is_header
from nearkin.data.names import COMPARISONS, DISSIMILARITY, OPTIONS, PAIRS, SIMILARITY, means, normal
from nearkin.data.text import named_columns, table_cells
from nearkin.records import Reading


@dataclass(frozen=True)
class Table:
    """Columns by name, in the file's order. Without a header they are called "0", "1", ...

    `header` is None where the format names columns itself; `matrices` are an archive's arrays of other shapes; `notes`
    say what was left aside; `lists` is the number of lines that had a user and its items; `shape` is that of a sparse
    matrix, whose entries are then the columns left, right, weight.
    """

    name: str
    columns: dict[str, Column]
    header: bool | None = None
    delimiter: str | None = None
    matrices: dict[str, np.ndarray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    archive: bool = False
    lists: int = 0
    shape: tuple[int, int] | None = None

    def column(self, name: str, role: str) -> Column:
        """The column called `name`, or at that position without a header; ValueError that lists what there is."""
        if name not in self.columns:
            raise ValueError(
                f"{role} is {name!r}, which {self.name} lacks; its columns are {', '.join(self.columns) or 'none'}"
            )
        return self.columns[name]

    def headed(self) -> "Table":
        """The table of a text file, read without a header, whose first row names the columns after all."""
        columns = [Column(str(column.cell(0)), column.cells[1:]) for column in self.columns.values()]
        columns, notes = _named(columns, self.name)
        return replace(self, columns=by_name(columns, self.name), header=True, notes=(*self.notes, *notes))

    def reading(
        self, columns: dict[str, Column], notes: Iterable[str] = (), aside: Iterable[str] | None = None, **found: Any
    ) -> Reading:
        """How the table was read: columns by role, notes, and what was left aside, by default all other columns."""
        roles = {role: column.name for role, column in columns.items()}
        others = (name for name in self.columns if name not in roles.values()) if aside is None else aside
        left = ", ".join((*self.notes, *others))
        lines = [f"{counted(self.lists, 'line')} of a user and its items read as one pair an item"] * bool(self.lists)
        doubts = (note for column in columns.values() for note in column.doubts())
        return Reading(
            source=self.name,
            columns=(*self.columns, *self.matrices),
            header=self.header,
            delimiter=self.delimiter,
            roles=roles,
            notes=(*([f"left aside: {left}"] if left else []), *lines, *notes, *doubts),
            **found,
        )


@brief()
def read_table(source: FileOrFrame, *, named: Iterable[str | None] = (), **text: Unpack[TextWords]) -> Table:
    r"""Read a table: .csv, .tsv, .txt (delimited text), .xlsx (its first sheet), .parquet, .feather, .arrow, .jsonl,
    .npz, a DataFrame, or a sparse matrix, also of scipy.sparse.save_npz: its entries are pairs.

    A column is integers if every cell is one in canonical decimal, exact to 64 bits, and text otherwise: "007" and
    "1e5" are text. Where the first lines do not decide, a ValueError names the options to type.

    Parameters
    ----------
    source: file, DataFrame or sparse matrix.
    named: what the caller calls columns; a first line that holds all of these names is a header ("0" is a place, None
        nothing).
    text: `header`, whether the first line names the columns; `delimiter`, any text ("::") or comma, semicolon, tab,
        bar, space (any run of blanks); `encoding`, such as cp1252; `comment`, what lines to be left out begin with.
        None looks.

    Returns
    -------
    table: `Table` with the columns by name.

    Raises
    ------
    FileNotFoundError, PermissionError: what cannot be opened.
    ValueError: a file that is damaged, is no table, or has two readings.
    TypeError: what is no file, DataFrame or sparse matrix.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("t.csv").write_text("a;b\n1;x\n2;y\n")
    >>> list(nk.data.read_table("t.csv").columns)
    ['a', 'b']
    """
    options = TextOptions(**text)
    if is_frame(source):
        name = f"the {type(source).__name__}"
        return Table(name, frame_columns(source, name))
    if sp.issparse(source):
        return _of_entries(source, f"the {type(source).__name__}")  # pyright: ignore[reportArgumentType]
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"the table is a {type(source).__name__}; it must be a file, a DataFrame or a sparse matrix")
    return file_table(locate(source).reading(**vars(options)), named)


def file_table(where: Locator, named: Iterable[str | None] = ()) -> Table:
    """As `read_table`, of a file."""
    if where.suffix not in _ENDINGS:
        raise unknown_ending(where, _ENDINGS)
    with reading(where):
        table = _read_file(where, {name for name in named if name and not name.isdigit()})
        if where.key is None:
            return table
        found = pick_columns([*table.columns, *table.matrices], where.key, str(where.path))
        parts = ({name: part[name] for name in found if name in part} for part in (table.columns, table.matrices))
        return replace(table, columns=next(parts), matrices=next(parts))


def _read_file(where: Locator, named: set[str]) -> Table:
    if where.suffix in TEXT:
        return _read_text(where, named | set(filter(str.isidentifier, (where.key or "").split(","))))
    if where.suffix != ".npz":
        return Table(str(where), frame_columns(read_frame(where), str(where)))
    if is_sparse(names := archive_keys(where)):
        return _of_entries(read_sparse(where), str(where))
    arrays = {name: read_npz(where, name) for name in names}
    flat = [Column(name, arrow_cells(array)) for name, array in arrays.items() if array.ndim == 1]
    others = {name: array for name, array in arrays.items() if array.ndim != 1}
    return Table(str(where), by_name(flat, str(where)) if flat else {}, matrices=others, archive=True)


def _of_entries(matrix: MatrixLike, name: str) -> Table:
    """The stored entries of a sparse matrix as pairs: rows are left, columns are right, values are weights."""
    left, right, weight, shape = matrix_entries(matrix, name)
    parts = {"left": left.astype(np.int64), "right": right.astype(np.int64), "weight": weight * 1}  # no bools
    return Table(name, by_name((Column(*part) for part in parts.items()), name), shape=shape)


def _read_text(where: Locator, named: set[str]) -> Table:
    cut, cells = table_cells(where)
    source, first, notes = str(where), cut.first, cut.notes
    header = cut.headed
    columns = named_columns(first, cells, True, source)
    if header is None and named and named <= set(first):
        header = True
    headed = is_header(first, columns, source) if header is None else header
    if not headed:
        columns = named_columns(first, cells, False, source)
    else:
        columns, more = _named(columns, source)
        notes = (*notes, *more)
    mark = None if where.suffix == ".xlsx" else cut.word
    return Table(source, by_name(columns, source), headed, mark, notes=notes, lists=cut.lists)


def _named(columns: list[Column], source: str) -> tuple[list[Column], list[str]]:
    """Columns under a header, without a first one that has no name, and a note of that; ValueError without rows."""
    if not len(columns[0]):
        raise ValueError(f"{source} has a header and no rows; at least one row is needed")
    if not columns[0].name and len(columns) > 1:  # pandas writes its index so
        return columns[1:], ["the first column, which has no name"]
    return columns, []


_ENDINGS = (*TEXT, ".parquet", *FRAMES, ".npz")


UNIX = 10**8  # whole numbers all above are seconds since 1970 rather than weights
_COUNTED = 10  # whole numbers in a row that are the numbers of rows
POSITIONS = ("left", "right", "weight", "timestamp")  # of the columns of a table without a header
_WIDE = 12  # columns: long tables have fewer
ARRAYS = ("triplets", "quadruplets", "comparisons", "indices")  # of comparisons, in an archive


DECIDE: dict[str, tuple[str, ...]] = {  # options of the readers that tell the kind of a table
    "comparisons": ("anchor", "near", "far", "response", "form"),
    "pairs": (
        *("left", "right", "weight", "min_weight", "duplicates", "timestamp", "split"),
        *("left_features", "right_features"),
    ),
}


@brief()
def kind_of(source: FileOrFrame, *, given: Iterable[str] = (), **text: Unpack[TextWords]) -> str:
    """ "pairs" or "comparisons": by the options `given`, else by the usual names of columns; else two columns are
    pairs, and three or four columns of the same objects, or others with "missing" given, are comparisons. ValueError
    for other tables.

    `text` is as in `read_table`.
    """
    given = set(given)
    for kind, options in DECIDE.items():
        if not set(options).isdisjoint(given):
            return kind
    table = read_table(source, **text)
    if asks_comparisons(table):
        return "comparisons"
    if has_pairs(table) or len(table.columns) == 2:
        return "pairs"
    if "missing" in given:
        return "comparisons"
    objects = list(table.columns.values()) if len(table.columns) in (3, 4) else []
    if objects and all(column.is_text or column.values.dtype.kind in "iu" for column in objects):
        values = [set(map(str, column.distinct.tolist())) for column in objects]
        if all(3 * len(a & b) >= len(a | b) for a, b in combinations(values, 2)):  # each two share a third of theirs
            return "comparisons"
    names = list(table.columns)
    if len(names) > _WIDE:
        raise ValueError(
            f"{table.name} has {counted(len(names), 'column')} ({', '.join(names[:3])}, ...): is it a wide table, a "
            "column for "
            "every item? Write it long, a row for every pair (user, item, value, or object, object, distance). If it "
            "is long already, type left=... and right=... (on the command line --left and --right) for pairs, or "
            "form='triplet' (--read form=triplet) for comparisons"
        )
    if len(names) < 2:
        raise ValueError(f"{table.name} has {counted(len(names), 'column')}; pairs need two, comparisons three or four")
    check_lines(table)
    shown = [quoted(name) for name in names]
    raise ValueError(
        f"{table.name} can hold pairs or comparisons (columns {', '.join(names)}); for pairs type "
        f"left={names[0]!r}, right={names[1]!r} (on the command line --left {shown[0]} --right {shown[1]}), for "
        "comparisons form='triplet' (--read form=triplet)"
    )


def lists_items(table: Table) -> bool:
    """Whether each line may be a user and all its items, as many in every line."""
    user, *items = table.columns.values()
    if table.header is not False or len(items) < len(POSITIONS) or any(c.values.dtype.kind not in "iu" for c in items):
        return False
    return len(user.distinct) == len(user) and len(set(np.concatenate([c.values for c in items]).tolist())) > 2


def check_lines(table: Table) -> None:
    """ValueError where each line may be a user and all its items."""
    if lists_items(table):
        raise ValueError(
            f"{table.name} has {counted(len(table.columns), 'column')} without names, whole numbers: is each line a "
            "user and all "
            "its items? Write a row for every pair (user, item). Otherwise type left='0', right='1' (on the command "
            "line --left 0 --right 1) with the columns of the pairs"
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


def no_ids(column: Column, *, first: bool) -> str:
    """What a column that would be ids by its place plainly holds, "times" or "row numbers"; "" if it may hold ids. The
    first one may count rows, as pandas writes its index, or hold seconds since 1970, most of them different."""
    if column.date_forms():
        return "times"
    numbers = column.values if first and not column.is_text else np.zeros(0)
    if len(numbers) < _COUNTED or numbers.dtype.kind not in "iu":
        return ""
    if numbers[0] in (0, 1) and goes_up_by_one(numbers):
        return "row numbers"
    return "times" if numbers.min() >= UNIX and 2 * len(column.distinct) > len(numbers) else ""
