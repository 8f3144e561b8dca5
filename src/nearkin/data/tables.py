"""Tables in columns: what cells are read as, and which column has which role, by name. Only integers are inferred."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from string import digits

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pyarrow import compute

from nearkin._check import MAX_TEXT, check_choice, too_long
from nearkin._fields import MISSING, Extra, FileOrFrame, counted
from nearkin._pairs import ODD_ENDS, TWO_UNITS, Coded, MatrixLike, check_exact, coded, eras, real_matrix
from nearkin._storage import reading
from nearkin.data import files
from nearkin.data.formats.binary import archive_keys, is_sparse, read_npz, read_sparse
from nearkin.data.formats.parquet import kind_of, plain_cells, read_frame
from nearkin.data.formats.workbook import read_sheet
from nearkin.records import Reading

NAMES: dict[str, tuple[str, ...]] = {  # the usual names of columns, as `plain` leaves them; docs/reading.md prints it
    # pairs
    "left": ("left", "user", "userid", "query", "queryid", "customer", "customerid", "session", "sessionid"),
    "right": (
        *("right", "item", "itemid", "document", "documentid", "doc", "docid", "corpusid", "product", "productid"),
        *("movie", "movieid", "book", "bookid", "artist", "artistid", "song", "songid", "track", "trackid"),
    ),
    "weight": ("weight", "rating", "count", "plays", "votes"),
    "timestamp": ("timestamp", "time", "date", "datetime"),
    "split": ("split",),
    # comparisons
    "anchor": ("anchor", "head", "reference", "ref", "i"),
    "near": ("near", "nearer", "closer", "positive", "winner", "j"),
    "far": ("far", "farther", "negative", "loser", "k"),
    "i": ("i", "near1"),  # of four columns, d(i, j) < d(l, k)
    "j": ("j", "near2"),
    "l": ("l", "far1"),
    "k": ("k", "far2"),
    "first": ("first", "left", "a", "option1", "object1", "image1", "stimulus1", "item1"),
    "second": ("second", "right", "b", "option2", "object2", "image2", "stimulus2", "item2"),
    "third": ("third", "c", "option3", "object3", "image3", "stimulus3", "item3"),
    "response": ("response", "answer", "choice", "chosen"),
    "odd": ("odd", "oddone", "oddoneout"),
    "one": ("one",),  # with the odd one
    "other": ("other",),
    "similarity": ("similarity", "rating"),
    "dissimilarity": ("dissimilarity", "distance"),
    "rater": ("rater", "raterid", "annotator", "worker", "workerid", "participant", "subject", "subjectid", "user"),
    # rows of vectors and of features
    "id": ("id", "ids", "key", "word", "token"),
    # qrels
    "grade": ("grade", "score", "relevance", "rel"),
}
_USUAL = NAMES | {"id_column": (*NAMES["id"], *NAMES["right"], *NAMES["left"])}  # of features


def plain(name: str) -> str:
    """A name in lower case without blanks, "_", "-", "." and what follows a colon (RecBole's types).

    >>> plain("User_ID"), plain("item_id:token")
    ('userid', 'itemid')
    """
    return re.sub(r"[\s_.-]+", "", name.lower().partition(":")[0])


def listed(names: Iterable[str]) -> str:
    """Names as messages show them: at most twelve and 150 letters, each name cut at 40 letters."""
    shown = [name if len(name) <= 40 else f"{name[:40]}..." for name in names]
    few = [name for name, end in zip(shown[:12], accumulate(map(len, shown)), strict=False) if end <= 150]
    return (", ".join(few) or "none") + (f", ... ({len(shown)} in all)" if len(shown) > len(few) else "")


FEW = 0.1  # share of cells that are no integers, up to which a column of integers holds faults
LISTS = r"""^[\[{](.*["',\d].*)?[\]}]$|^\(.*,.*\)$"""
NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$|^[-+]?(?i:inf|infinity|nan)$"
NUMERIC = ("integer", "float", "bool", "decimal")  # kinds of cells
_CANONICAL = r"^(0|-?[1-9][0-9]{0,18})$"
_ITEMS = LISTS + r"|^\d+((\s*[,;|]\s*|\s+)\d+){2,}$|^(array|tensor|frozenset)\("  # 1|2|3, array([1, 2])
_FLOATS = r"^-?[0-9]+\.0$|^-?[0-9]\.[0-9]+[eE]\+[0-9]+$"  # pandas beside a missing cell; a narrow column of Excel


@dataclass(frozen=True)
class Column:
    """A column called `name` of the table `source`: text of a file, or typed cells of Arrow.

    `line` is the number of the first cell's line in a text file, by which errors name cells; None: by rows from 0.
    Cells that are `words`, each of which names a row, lack a value only as "" and "\\N": vocabularies hold "nan".
    `drop` says how the reader leaves rows out, `before` what makes pandas' frame of the source: parts of errors.
    """

    name: str
    cells: pa.Array
    source: str = "the table"
    line: int | None = None
    before: str = ""
    words: bool = False
    drop: str = ""

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def title(self) -> str:
        return f"column {self.name!r} of {self.source}"

    @property
    def _frame(self) -> str:
        """The column in a line of pandas."""
        return f"frame[{self.name!r}]"

    @property
    def kind(self) -> str:
        """ "text", "integer", "float", "bool", "list", "time", or the name of another Arrow type."""
        return kind_of(self.cells.type)

    @property
    def missing(self) -> np.ndarray:
        """Mask (n,) of cells without a value."""
        if self.kind == "text":
            return _mask(compute.is_in(self.cells, pa.array(["", "\\N"] if self.words else MISSING)))
        return _mask(compute.is_null(self.cells, nan_is_null=True))

    def take(self, keep: np.ndarray) -> "Column":
        """The cells where the mask (n,) is True."""
        return replace(self, cells=self.cells.filter(pa.array(keep)), line=None)

    def strings(self) -> pa.Array:
        """The cells as Arrow's text, "" where one is null."""
        try:
            return self.cells.cast(pa.string()).fill_null("")
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise ValueError(f"{self.title} has cells of type {self.kind}; name a column of text or numbers") from None

    def text(self) -> list[str]:
        """The cells (n,) as text, "" where one is missing."""
        return ["" if gone else cell for cell, gone in zip(self.strings().to_pylist(), self.missing, strict=True)]

    def coded(self, what: str = "values") -> Coded:
        """Integers if every cell is a canonical one, else text exactly as written, by the distinct values.

        ValueError for missing cells, which it calls `what`, and for a text that is too long for ids and labels: in an
        array of strings every one takes the room of the longest.
        """
        if (whole := _integers(self.cells)) is not None:
            return coded(whole)
        codes, names = coded(self.strings())
        if compute.any(compute.is_in(names, pa.array(MISSING))).as_py():
            self.complete(what)
        long = _mask(compute.greater(compute.utf8_length(names), MAX_TEXT))
        if long.any():
            row = int(long[codes].argmax())
            raise too_long(f"{self.title} has in {self._place(row)}", self.cells[row].as_py())
        return Coded(codes, names)

    def labels(self) -> np.ndarray:
        """`coded` as an array (n,): int64 or text."""
        return self.coded().array()

    def ids(self) -> Coded:
        """`coded`; ValueError also for -1, fractions, dates, lists, blanks at an end, and a column in which all
        but a few cells are integers."""
        if self.kind == "float":
            check_exact(self.cells.to_numpy(zero_copy_only=False), self.title)
        if self.kind not in ("text", "integer"):
            field = str(self.cells.type).partition("<")[2].partition(":")[0]  # the first of a struct
            turned = {"float": ".astype('Int64')", "binary": ".map(bytes.hex)", "struct": f".str[{field!r}]"}
            way = f"{self._frame} = {self._frame}{turned.get(self.kind, '.astype(str)')}"
            way = self.before + "type " + (f"frame = frame.explode({self.name!r})" if self.kind == "list" else way)
            raise ValueError(f"{self.title} has cells of type {self.kind}; ids are integers or text: {way}")
        codes, names = self.coded("ids")
        if pa.types.is_integer(names.type):
            faults = [(_mask(compute.equal(names, -1)), "holds -1, which is no id,", "leave these rows out")]
        else:
            words, floats, lists = ~matches(names, _CANONICAL), matches(names, _FLOATS), matches(names, _ITEMS)
            few, cells = words if words[codes].mean() <= FEW else np.zeros_like(words), self._frame
            strip = f"type {cells} = {cells}.map(lambda cell: ' '.join(str(cell).split()).strip('\\u200b\\ufeff\\0'))"
            is_quoted = matches(names.filter(pa.array(lists)), "[\"']").any()
            parted = ".map(ast.literal_eval)" if is_quoted else r".str.findall(r'\b\d+\b')"
            explode = f"type frame = frame.assign(**{{{self.name!r}: {cells}{parted}}}).explode({self.name!r})"
            one = f"type {cells} = 'i' + {cells}.astype(str)"
            whole = f"if no program rounded them, type {cells} = {cells}.astype(float).astype('Int64')"
            faults = [
                (matches(names, ODD_ENDS + r"|[\n\r]"), "has ids with blanks at an end, or line breaks,", strip),
                (lists, "has lists in text", f"{explode}, or where each is one id {one}"),
                (matches(names, "^-1$"), "holds -1, which is no id,", "leave these rows out"),
                (few, "holds integers but", f"leave these rows out, or to write all ids as text {one}"),
                (floats & floats.all(), "holds integers as some program writes floats,", whole),
            ]
        for wrong, what, way in faults:
            if wrong.any():
                self.refuse(wrong[codes], what, way)
        return Coded(codes, names)

    def plain_ids(self) -> np.ndarray:
        """`ids` as an array (n,): int64 or text."""
        return self.ids().array()

    def of_rows(self) -> np.ndarray:
        """`plain_ids` of rows, in which each occurs once: words."""
        return replace(self, words=True).plain_ids()

    def numbers(self, *, gaps: bool = False) -> np.ndarray:
        """Numbers (n,), exact as typed; ValueError for text that is no plain number, and for missing cells
        unless `gaps` are NaN."""
        if self.kind not in ("text", *NUMERIC):
            raise ValueError(f"{self.title} has cells of type {self.kind}; numbers are needed: name another column")
        if self.kind == "integer" and not self.cells.null_count:
            return self.cells.to_numpy()
        with suppress(pa.ArrowInvalid):  # faster than a look for missing cells first
            numbers = self.cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            if gaps or not np.isnan(numbers).any():
                return numbers
        if not gaps:
            self.complete("numbers")
        wrong = ~(self.missing | matches(self.cells, NUMBER))
        if wrong.any():
            cells, odd = (self.take(rows).strings().unique().to_pylist()[:1000] for rows in (~self.missing, wrong))
            way = files.as_number(self._frame, cells, odd, bool(wrong.mean() <= FEW))
            raise self.fault(wrong, "holds no plain number", way)
        present = compute.if_else(pa.array(self.missing), None, self.cells)
        return present.cast(pa.float64()).to_numpy(zero_copy_only=False)

    @property
    def is_numeric(self) -> bool:
        """Whether all cells are numbers, or missing."""
        with suppress(ValueError):
            return not np.isnan(self.numbers(gaps=True)).all()
        return False

    def times(self) -> np.ndarray:
        """Times (n,): numbers of one unit unchanged, dates and ISO dates as datetime64 in UTC.

        ValueError for dates in another form, and for numbers of two units, such as seconds and milliseconds.
        """
        if not replace(self, cells=self.cells[:1]).is_numeric:
            return self._dates()  # its errors name what is neither
        numbers, cells = self.numbers(), self._frame
        days = numbers[:1_000] % 10_000  # 131 of 20240131
        if 19e6 < numbers[0] < 21e6 and ((days > 100) & (days < 1_232) & ((days - 1) % 100 < 31)).all():
            way = f"type {cells} = pandas.to_datetime({cells}.astype(float).astype(int), format='%Y%m%d')"
            raise self.fault(numbers > 0, "holds days written as numbers", way)
        if (low := numbers.min()) < 0 or np.diff(eras(np.array([low, numbers.max()]))):  # else of one unit
            era = eras(numbers)
            last, first = int(era.max()), max(int(era.min()), 1)
            way = f"{cells} = {cells}.where({cells} < {10.0 ** (5 + 3 * last):.0e}, {cells} / {1000 ** (last - first)})"
            way += f"; if they are no times, leave them out: frame = frame[{cells} > 1e8]" * bool(low < 1e8)
            usual = last - np.bincount(era)[::-1].argmax()
            wrong = (era != usual) | ((numbers < 0) & (era < 1))
            self.refuse(wrong, f"has {TWO_UNITS}, or before 1973,", f"bring them to one: {way}")
        return numbers

    def _dates(self) -> np.ndarray:
        self.complete("times")
        cells = self.cells if self.kind == "time" else self.strings()
        for form in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
            with suppress(pa.ArrowInvalid):
                return cells.cast(form, safe=False).to_numpy(zero_copy_only=False)
        days = compute.strptime(compute.utf8_slice_codeunits(cells, 0, 10), "%Y-%m-%d", "s", error_is_null=True)
        odd, order, either = _mask(days.is_null()), "", ""
        if starts := re.findall(r"\n(\d\d?)\D(\d\d?)\D", "\n".join(["", *cells.to_pylist()])):
            day, month = np.array(starts, int).max(axis=0).tolist()
            order = f", dayfirst={day > 12 or month <= 12}"
            either = "; where the month is first, dayfirst=False" * (max(day, month) <= 12)
        way = f"type {self._frame} = pandas.to_datetime({self._frame}, format='mixed', utc=True{order}){either}"
        raise self.fault(odd if odd.any() else ~odd, "holds no number and no ISO date (2026-11-28 17:05:00)", way)

    def complete(self, what: str) -> None:
        """ValueError for a missing cell."""
        self.refuse(self.missing, f"has missing {what}", f"fill them, or leave these rows out{self.drop}")

    def refuse(self, wrong: np.ndarray, what: str, way: str) -> None:
        """ValueError for the cells where `wrong` (n,) is True: the first ones, and the way out."""
        if wrong.any():  # fifty times faster than `flatnonzero`
            raise self.fault(wrong, what, way)

    def fault(self, wrong: np.ndarray, what: str, way: str) -> ValueError:
        """The error of `refuse`."""
        rows = np.flatnonzero(wrong)
        if rows[-1] <= 1 and self.line != 1 and len(self) > 2 and self.kind == "text":
            skipped = [*range(1, int(rows[-1]) + 2)]
            again = self.before.partition(" = ")[2].partition(")")[0] or "pandas.read_csv(path"
            way = f"if they are further lines of the header: {again}, skiprows={skipped}); else {way}"
        elif rows[-1] == 0 and self.line == 1 and len(self) > 1:
            way = f"if line 1 names the columns, leave header=False out; else {way}"
        shown = ", ".join(f"{str(self.cells[row].as_py())[:60]!r} in {self._place(row)}" for row in rows[:3].tolist())
        more, before = f" and {len(rows) - 3:,} more" * (len(rows) > 3), self.before * ("frame" in way)
        return ValueError(f"{self.title} {what} in {counted(len(rows), 'cell')}: {shown}{more}; {before}{way}")

    def _place(self, row: int) -> str:
        return f"row {row} (from 0)" if self.line is None else f"line {self.line + row}"


def _mask(marks: pa.Array) -> np.ndarray:
    return marks.to_numpy(zero_copy_only=False)


def matches(cells: pa.Array, pattern: str) -> np.ndarray:
    """Mask (n,) of the cells of text that hold a pattern."""
    return _mask(compute.match_substring_regex(cells, pattern))


def _integers(cells: pa.Array) -> pa.Array | None:
    """int64 (n,) if every cell is an integer of at most 64 bits, in text a canonical one (7, not 007)."""
    if kind_of(cells.type) not in ("text", "integer") or cells.null_count:
        return None
    try:
        cells[:1000].cast(pa.int64())  # a cast that fails takes a microsecond a cell
        whole = cells.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    if kind_of(cells.type) == "integer":
        return whole
    padded = compute.or_(compute.starts_with(cells, "0"), compute.starts_with(cells, "-0"))  # 007, 0x1F, -0
    return whole if set(cells.filter(padded).to_pylist()) <= {"0"} else None


@dataclass(frozen=True)
class Table:
    """Columns by name, in the file's order; without a header they are called "0", "1", ...

    `header` is None where the format names columns itself; `matrices` are an archive's arrays of other shapes; `shape`
    is that of a sparse matrix, whose entries are then the columns left, right, weight. Where columns are typed
    behind the file's name, file.csv:b,a, `rest` has the others; file.csv:name=a only calls column a by that name.
    """

    name: str
    columns: dict[str, Column]
    header: bool | None = None
    delimiter: str | None = None
    matrices: dict[str, np.ndarray] = field(default_factory=dict)
    shape: tuple[int, int] | None = None
    rest: dict[str, Column] | None = None

    @property
    def if_data(self) -> str:
        """What to type if the header is none, for the end of an error; "" without a header, and where a column of
        numbers has a name that is no number."""
        named = any(column.is_numeric and not files.NUMBER.fullmatch(name) for name, column in self.columns.items())
        return "; if the first line is data, header=False" * (self.header is True and not named)

    def column(self, name: str, role: str) -> Column:
        """The column called `name`; ValueError that lists what there is."""
        if not isinstance(name, str):
            raise TypeError(f"{role} is {name!r}; it must be the name of a column")
        if name not in self.columns:
            raise ValueError(f"{role} is {name!r}, which {self.name} lacks; try {listed(self.columns)}{self.if_data}")
        return self.columns[name]

    def role(self, role: str, typed: str | None = None, *, taken: Iterable[str] = ()) -> Column | None:
        """The column that is typed, or the only one with a usual name of the role that is not `taken`, or None; for
        several a ValueError that names what to type."""
        if typed is not None:
            return self.column(typed, role)
        usual = [name for name in self.columns if name not in taken and plain(name) in _USUAL[role]]
        if len(usual) > 1:
            raise ValueError(f"{listed(usual)} of {self.name} may each be {role}; type {role}={usual[0]!r}")
        return self.columns[usual[0]] if usual else None

    def roles(self, needed: Iterable[str], **typed: str | None) -> dict[str, Column]:
        """The columns of roles, by role: those typed, and where that is None those with a usual name.

        ValueError that names what to type if one of `needed` is lacking, and for one column of two roles.
        """
        asked = dict.fromkeys(needed) | typed
        taken = [name for name in typed.values() if name is not None]
        found = {role: self.role(role, name, taken=taken) for role, name in asked.items()}
        columns = {role: column for role, column in found.items() if column is not None}
        if lacking := [role for role in needed if role not in columns]:
            raise self.lacks(*lacking, typed=typed)
        names = [column.name for column in columns.values()]
        if twice := [role for role in columns if names.count(columns[role].name) > 1]:
            raise ValueError(f"{' and '.join(twice)} are both the column {columns[twice[0]].name!r}; name two columns")
        return columns

    def without(self, columns: Iterable[Column]) -> "Table":
        """The other columns."""
        names = {column.name for column in columns}
        return replace(self, columns={name: column for name, column in self.columns.items() if name not in names})

    def lacks(self, *roles: str, typed: Iterable[str] = ()) -> ValueError:
        """The error for a table without a column of these roles, with what to do: some can be `typed` as arguments."""
        if len(self.columns) == 1 and self.delimiter is None and self.header is not None:
            ((name, column),) = self.columns.items()
            text = files.unparted(self.name, name if self.header else str(column.cells[0]))
        else:
            usual = " and of ".join(f"{role} ({', '.join(_USUAL[role][:6])}, ...)" for role in roles)
            ways = ["rename it", " and ".join(f"{role}=..." for role in roles if role in typed)]
            way = " or type ".join(filter(None, ways))
            text = f"{self.name} has no column with a usual name of {usual}; {way}, of {listed(self.columns)}"
        others = "; comparisons: columns=[...], form='triplet', 'odd-one-out', 'ranking' or 'rated'" * (len(roles) > 1)
        return ValueError(text + self.if_data + others)

    def reading(
        self, columns: dict[str, Column], notes: list[str], kind: str, rows: int, distinct: dict[str, int], first: str,
        form: str | None = None,
    ) -> Reading:  # fmt: skip
        """How the table was read: columns by role; all others are left aside."""
        roles = {role: column.name for role, column in columns.items()}
        if aside := [name for name in self.columns if name not in roles.values()]:
            notes = [f"left aside: {listed(aside)}", *notes]
        return Reading(self.name, kind, self.header, self.delimiter, roles, form, rows, distinct, first, tuple(notes))


@files.brief()
def read_table(
    source: FileOrFrame, *, header: bool | None = None, delimiter: str | None = None, encoding: str | None = None
) -> Table:
    r"""Read a table: text (.csv, .tsv, .txt, .dat), .xlsx (its first sheet), .parquet, .feather, .arrow, .jsonl, .npz,
    a DataFrame, or a sparse matrix, also of scipy.sparse.save_npz: its entries are pairs.

    The first line of text names the columns, and cells are parted by the only one of comma, semicolon, tab and bar
    that it holds. A folder of parts, a pattern or a list of files is one table, by the numbers in their names.

    Parameters
    ----------
    source: file, folder, pattern, list of files, DataFrame or sparse matrix.
    header: False where the first line of text, or of a sheet, is data.
    delimiter: of text: any text ("::"), or comma, semicolon, tab, bar, space.
    encoding: of text, such as cp1252.

    Returns
    -------
    table: `Table` with the columns by name.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("t.csv").write_text("a;b\n1;x\n2;y\n")
    >>> list(nk.data.read_table("t.csv").columns)
    ['a', 'b']
    """
    text: files.TextWords = {"header": header, "delimiter": delimiter, "encoding": encoding}
    if not isinstance(source, str | os.PathLike | list | tuple):
        name = f"the {type(source).__name__}" + " of polars" * type(source).__module__.startswith("polars")
        files.refuse_text(name, text)
        if isinstance(source, Table):  # read before, to see what it holds
            return source
        if is_frame(source):
            return with_rows(
                Table(name, frame_columns(source, name, "with frame = frame.to_pandas(): " * name.endswith("polars")))
            )
        if sp.issparse(source):
            return _of_entries(source, name)  # pyright: ignore[reportArgumentType]
        raise TypeError(f"the table is a {type(source).__name__}; it must be a file, a DataFrame or a sparse matrix")
    parts = [read_located(where, text) for where in files.locate_all(source, files.TABLES, text)]
    return with_rows(parts[0] if len(parts) == 1 else _joined(str(source), parts))


def with_rows(table: Table) -> Table:
    """The table; ValueError for one without rows, and where a row repeats the names of the columns."""
    columns = list(table.columns.values())
    if columns and not len(columns[0]) and not table.shape:
        raise ValueError(f"{table.name} has a header and no rows; at least one row is needed")
    if columns and table.header is not False and all(column.kind == "text" for column in columns):
        again = np.ones(len(columns[0]), bool)
        words = [column for column in columns if not files.NUMBER.fullmatch(column.name)]  # numbers need not recur
        columns = columns if all(plain(column.name) in _USUAL["id_column"] for column in words) else words
        for column in columns:
            if again.any():
                name = "" if column.name.startswith(files.NO_NAME) else column.name
                again &= _mask(compute.equal(column.cells, name))
        way = "leave these rows out, or if the first line is data, type header=False"
        columns[0].refuse(again, "repeats the names of the columns", way)
    return table


def _joined(name: str, parts: list[Table]) -> Table:
    """Parts of one table, in order, with the columns in the order of the first; ValueError for other columns, and for a
    format that is no table of columns."""
    first, names = parts[0], parts[0].columns.keys()
    for part in parts:
        if part.columns.keys() != names or part.matrices or part.shape:
            if first.header and first.delimiter is None and len(names) == 1:
                raise first.lacks()
            columns = f"{part.name} has the columns {listed(part.columns)}, {first.name} has {listed(names)}"
            raise ValueError(f"{columns}; parts of one table have the same columns{first.if_data}")
    try:
        columns = {at: Column(at, pa.concat_arrays([part.columns[at].cells for part in parts]), name) for at in names}
    except pa.ArrowInvalid as error:
        raise ValueError(f"{name}: parts differ in the types of their columns ({error}); write them alike") from error
    return replace(first, name=f"{name} ({counted(len(parts), 'part')})", columns=columns)


def read_located(where: files.Locator, words: files.TextWords) -> Table:
    """The table of one file, with the columns that its name names."""
    with reading(where.path):
        table = _read(where, words)
    if len(lengths := {len(column) for column in table.columns.values()}) > 1 and not table.matrices:
        raise ValueError(f"{where.path} has columns of {sorted(lengths)} rows; all need the same number")
    if where.columns is None:
        return table
    # a column's name may hold "=", and a role's does not
    parts = [[name] if name in table.columns else name.split("=", 1) for name in where.columns]
    roles = {part[0].strip(): part[-1] for part in parts}
    if len({*roles.values()}) < len(parts):
        raise ValueError(f"{where} names a role or a column twice; name each once")
    usual = {name.rstrip(digits) for name in ("idcolumn", "rank", *chain.from_iterable(NAMES.values()))}
    odd = [role for role in roles if role not in where.columns and plain(role).rstrip(digits) not in usual]
    if odd and not table.matrices:  # whose names are those of an archive of comparisons
        raise ValueError(f"{where}: {odd[0]!r} is no usual name of a column, such as user, item, weight or response")
    names = {name: role for role, name in roles.items() if name != role}
    for at, column in table.columns.items() if names and where.suffix in files.TEXT else ():  # for pandas' frame
        table.columns[at] = replace(column, before=f"{(column.before or files.USUAL)[:-2]}.rename(columns={names}): ")
    matrices = {name: table.matrices[name] for name in where.columns if name in table.matrices}
    kept = {role: replace(table.column(roles[role], "the column"), name=role) for role in roles if role not in matrices}
    taken = {*roles.values(), *kept}
    taken |= {name for role in kept for name in table.columns if plain(name) in NAMES.get(role, ())}
    rest = {name: column for name, column in table.columns.items() if name not in taken}
    if all(part[1:] for part in parts):  # columns are renamed, and none is chosen
        return replace(table, columns=kept | rest)
    return replace(table, columns=kept, matrices=matrices, rest=rest)


def _read(where: files.Locator, words: files.TextWords) -> Table:
    name = str(where.path)
    if where.suffix in files.TEXT:
        text = files.read_text(where, files.text_of(words))
        cells, line = text.cells, text.line
        columns = {at: Column(at, plain_cells(cells[at]), name, line, text.before) for at in cells.column_names}
        return Table(name, columns, text.header, text.delimiter)
    if where.suffix == files.SHEET:
        header = files.text_of(words).header
        return Table(name, {at: Column(at, cells, name) for at, cells in read_sheet(where, header).items()}, header)
    if where.suffix != ".npz":
        return Table(name, frame_columns(read_frame(where), name))
    if is_sparse(names := archive_keys(where)):
        return _of_entries(read_sparse(where), name)
    arrays = {at: read_npz(where, at) for at in names}
    flat = {at: Column(at, plain_cells(pa.array(array)), name) for at, array in arrays.items() if array.ndim == 1}
    return Table(name, flat, matrices={at: array for at, array in arrays.items() if array.ndim != 1})


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


def frame_columns(frame: Extra, source: str, before: str = "") -> dict[str, Column]:
    """The columns of a DataFrame or an Arrow table; ValueError for none, and for values of several types."""
    if any(name is not None for name in getattr(getattr(frame, "index", None), "names", ())):  # of pandas
        frame = frame.reset_index()
    table = nw.from_native(frame)
    table = table.collect() if isinstance(table, nw.LazyFrame) else table  # queries of DuckDB and Polars
    columns = {}
    for series in table.iter_columns():
        name = str(series.name)
        try:
            columns[name] = Column(name, plain_cells(series.to_arrow()), source, before=before)
        except (pa.ArrowException, OverflowError, TypeError) as error:
            way = f"{before}type frame[{name!r}] = frame[{name!r}].astype(str)"
            raise ValueError(f"column {name!r} of {source} holds values of several types ({error}); {way}") from error
    if not columns:
        raise ValueError(f"{source} has no columns; it must hold a table")
    return columns


def complete(columns: dict[str, Column], missing: str) -> tuple[dict[str, Column], list[str]]:
    """The rows in which no cell of the columns, by role, is missing if that is "drop", and a note that counts the
    others; ValueError where none is complete."""
    if missing == "raise":
        return {role: replace(column, drop=" by missing='drop'") for role, column in columns.items()}, []
    check_choice(missing, "missing", ("raise", "drop"))
    gone = np.any([column.missing for column in columns.values()], axis=0)
    gaps = ", ".join(f"{c.missing.sum():,} without {c.name}" for c in columns.values() if c.missing.any())
    if gone.all():
        raise ValueError(f"no row of {next(iter(columns.values())).source} is complete ({gaps}); name other columns")
    note = f"{counted(int(gone.sum()), 'row')} with a missing cell left out ({gaps})"
    return {role: column.take(~gone) for role, column in columns.items()}, [note] * bool(gaps)
