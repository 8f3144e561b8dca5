"""A column of a table, and what its cells are read as: ids, numbers, times. Nothing is inferred but integers."""

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyarrow import compute

from nearkin._check import MAX_TEXT, too_long
from nearkin._fields import MISSING, counted
from nearkin._guard import cached_property
from nearkin._pairs import Coded, coded

_FEW = 0.1  # share of cells that are no integers, up to which a column of integers holds faults
_CANONICAL = r"^(0|-?[1-9][0-9]{0,18})$"
_ODD_TEXT = r"""^\s|\s$|^[\[{](.*["',\d].*)?[\]}]$|[\n\r\x00]"""  # blanks at an end, a list, a line break, NUL
_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$|^[-+]?(?i:inf|infinity|nan)$"
_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?$"
_UNITS = (1e8, 1e11, 1e14, 1e17)  # since 1970, from 1973 on: seconds, milliseconds, microseconds, nanoseconds


@dataclass(frozen=True)
class Column:
    """A column called `name` of the table `source`: text of a file, or typed cells of Arrow.

    `line` is the number of the first cell's line in a text file, by which errors name cells; None: by rows from 0.
    """

    name: str
    cells: pa.Array
    source: str = "the table"
    line: int | None = None

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def title(self) -> str:
        return f"column {self.name!r} of {self.source}"

    @property
    def kind(self) -> str:
        """ "text", "integer", "float", "bool", "list", "time", or the name of another Arrow type."""
        return kind_of(self.cells.type)

    @cached_property
    def missing(self) -> np.ndarray:
        """Mask (n,) of cells without a value."""
        if self.kind == "text":
            return _mask(compute.is_in(self.coded.names, pa.array(MISSING)))[self.coded.codes]
        return _mask(compute.is_null(self.cells, nan_is_null=True))

    @cached_property
    def coded(self) -> Coded:
        """Text by its distinct values."""
        return coded(self.cells)

    def take(self, keep: np.ndarray) -> "Column":
        """The cells where the mask (n,) is True."""
        return replace(self, cells=self.cells.filter(pa.array(keep)), line=None)

    def text(self) -> list[str]:
        """The cells (n,) as text, "" where one is missing."""
        cells = self.cells if self.kind == "text" else self.cells.cast(pa.string()).fill_null("")
        return ["" if gone else cell for cell, gone in zip(cells.to_pylist(), self.missing.tolist(), strict=True)]

    def labels(self) -> np.ndarray:
        """int64 (n,) if every cell is a canonical integer, else text; ValueError for a missing cell."""
        if (whole := _integers(self.cells)) is not None:
            return whole
        self.complete("values")
        self.short()
        return np.array(self.text())

    def short(self) -> Coded:
        """The cells as text by its distinct values; ValueError for one that is too long for ids and labels: in an array
        of strings every one takes the room of the longest."""
        codes, names = self.coded if self.kind == "text" else coded(self.cells.cast(pa.string()))
        long = _mask(compute.greater(compute.utf8_length(names), MAX_TEXT))
        if long.any():
            row = int(long[codes].argmax())
            raise too_long(f"{self.title} has in {self._place(row)}", self.cells[row].as_py())
        return Coded(codes, names)

    def ids(self) -> "np.ndarray | Coded":
        """int64 (n,) if every cell is a canonical integer, else text exactly as written, by its distinct values.

        ValueError for missing cells, -1, fractions, dates, lists, blanks at an end of a cell, texts of more than 1,000
        characters, and for a column in which all but a few cells are integers.
        """
        if (whole := _integers(self.cells)) is not None:
            self.refuse(whole == -1, "holds -1, which is no id,", "leave these rows out")
            return whole
        self.complete("ids")
        cells = f"frame[{self.name!r}]"
        if self.kind not in ("text", "integer"):
            way = {"list": f"frame.explode({self.name!r})", "float": f"{cells}.astype('Int64')"}
            raise ValueError(
                f"{self.title} has cells of type {self.kind}; ids are integers or text: type "
                f"{way.get(self.kind, f'{cells}.astype(str)')}"
            )
        codes, names = self.short()
        way = f"type {cells}.str.strip(), of lists {cells}.map(ast.literal_eval).explode()"
        odd = matches(names, _ODD_TEXT)[codes]
        self.refuse(odd, "has ids with blanks at an end, line breaks, or lists in text", way)
        odd = ~matches(names, _CANONICAL)[codes]
        if odd.sum() <= _FEW * len(odd):
            way = f"leave these rows out, or write all ids as text: {cells} = 'i' + {cells}.astype(str)"
            self.refuse(odd, "holds integers but", way)
        return Coded(codes, names)

    def plain_ids(self) -> np.ndarray:
        """`ids` as an array of integers or of text."""
        ids = self.ids()
        return ids if isinstance(ids, np.ndarray) else np.array(ids.names.to_pylist(), str)[ids.codes]

    def numbers(self, *, gaps: bool = False) -> np.ndarray:
        """Numbers (n,), exact as they are typed; ValueError for text that is no plain number, and for missing cells
        unless `gaps` are NaN."""
        if self.kind == "text":  # a plain cast is faster than looking for missing cells first
            with suppress(pa.ArrowInvalid):
                numbers = self.cells.cast(pa.float64()).to_numpy()
                if not np.isnan(numbers).any():
                    return numbers
        if not gaps:
            self.complete("numbers")
        if self.kind == "text":
            wrong = ~(self.missing | matches(self.cells, _NUMBER))
            cells = f"frame[{self.name!r}]"
            way = f"convert units, decimal commas and thousands: {cells} = {cells}.str.replace(',', '.').astype(float)"
            self.refuse(wrong, "holds no plain number", way)
            return compute.if_else(pa.array(self.missing), None, self.cells).cast(pa.float64()).to_numpy(False)
        if self.kind not in ("integer", "float", "bool", "decimal"):
            raise ValueError(f"{self.title} has cells of type {self.kind}; numbers are needed: name another column")
        whole = self.kind in ("integer", "float") and not self.cells.null_count
        return (self.cells if whole else self.cells.cast(pa.float64(), safe=False)).to_numpy(False)

    @property
    def is_numeric(self) -> bool:
        """Whether all cells are numbers, or missing."""
        try:
            return not np.isnan(self.numbers(gaps=True)).all()
        except ValueError:
            return False

    def times(self) -> np.ndarray:
        """Times (n,): numbers of one unit unchanged, dates and ISO dates as seconds since 1970 (UTC).

        ValueError for dates in another form, and for numbers of two units, such as seconds and milliseconds.
        """
        cells = f"frame[{self.name!r}]"
        if self.kind == "time":
            self.complete("times")
            return _seconds(self.cells)
        if self.kind == "text" and not self.is_numeric:
            self.complete("times")
            for form in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
                with suppress(pa.ArrowInvalid):
                    return _seconds(self.cells.cast(form))
            way = f"type {cells} = pandas.to_datetime({cells}, dayfirst=True)"
            odd = ~matches(self.cells, _ISO)
            self.refuse(odd if odd.any() else ~odd, "holds no number and no ISO date (2026-11-28 17:05:00)", way)
        numbers = self.numbers()
        unit = np.searchsorted(_UNITS, np.abs(numbers), side="right")
        way = f"bring them to one: {cells} = {cells}.where({cells} < 1e11, {cells} / 1000)"
        self.refuse(unit < unit.max(), "has times of two units, such as seconds and milliseconds,", way)
        return numbers

    def complete(self, what: str) -> None:
        """ValueError for a missing cell."""
        self.refuse(self.missing, f"has missing {what}", "fill them, or leave these rows out by missing='drop'")

    def refuse(self, wrong: np.ndarray, what: str, way: str) -> None:
        """ValueError for the cells where `wrong` (n,) is True: the first ones, and the way out."""
        rows = np.flatnonzero(wrong)
        if not len(rows):
            return
        if rows[-1] <= 1 and self.line != 1 and len(self) > 2:
            skipped = [*range(1, int(rows[-1]) + 2)]
            way = f"if they are further lines of the header: pandas.read_csv(path, skiprows={skipped}); else {way}"
        shown = ", ".join(f"{str(self.cells[row].as_py())[:60]!r} in {self._place(row)}" for row in rows[:3].tolist())
        more = f" and {len(rows) - 3:,} more" if len(rows) > 3 else ""
        raise ValueError(f"{self.title} {what} in {counted(len(rows), 'cell')}: {shown}{more}; {way}")

    def _place(self, row: int) -> str:
        return f"row {row} (from 0)" if self.line is None else f"line {self.line + row}"


def _mask(marks: pa.Array) -> np.ndarray:
    return marks.to_numpy(zero_copy_only=False)


def matches(cells: pa.Array, pattern: str) -> np.ndarray:
    """Mask (n,) of the cells of text that hold a pattern."""
    return _mask(compute.match_substring_regex(cells, pattern))


def _integers(cells: pa.Array) -> np.ndarray | None:
    """int64 (n,) if every cell is an integer of at most 64 bits, in text a canonical one (7, not 007)."""
    whole = None
    if kind_of(cells.type) in ("text", "integer") and not cells.null_count:
        with suppress(pa.ArrowInvalid):
            cells[:1000].cast(pa.int64())  # a cast that fails takes a microsecond a cell
            whole = cells.cast(pa.int64())
    return None if whole is None or not whole.cast(cells.type).equals(cells) else whole.to_numpy()


def _seconds(cells: pa.Array) -> np.ndarray:
    """Arrow dates as seconds since 1970: whole numbers unless one has a fraction."""
    micros = cells.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    return micros / 1e6 if (micros % 1_000_000).any() else micros // 1_000_000


_KINDS = {
    "text": ("is_string", "is_large_string", "is_string_view", "is_null", "is_binary", "is_large_binary"),
    "list": ("is_list", "is_large_list", "is_fixed_size_list"),
    "time": ("is_timestamp", "is_date"),
    "float": ("is_floating",),
    "integer": ("is_integer",),
    "bool": ("is_boolean",),
    "decimal": ("is_decimal",),
}


def kind_of(kind: pa.DataType) -> str:
    """An Arrow type as `Column.kind` calls it."""
    if isinstance(kind, pa.BaseExtensionType):
        return "text" if kind.extension_name == "arrow.uuid" else kind_of(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return kind_of(kind.value_type)
    ours = (name for name, tests in _KINDS.items() if any(getattr(pa.types, test)(kind) for test in tests))
    return next(ours, str(kind).partition("<")[0])


def plain_cells(values: "pa.Array | pa.ChunkedArray") -> pa.Array:
    """Cells in the form of tables: one array, without dictionaries and extension types, bytes and UUIDs as text, text
    that is null as ""."""
    cells = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(cells, pa.ChunkedArray):  # older versions keep no chunk unchanged
        cells = pa.concat_arrays(cells.chunks) if cells.num_chunks else pa.array([], cells.type)
    if isinstance(cells, pa.ExtensionArray):
        uuid = cells.type.extension_name == "arrow.uuid"
        cells = pa.array([None if cell is None else str(cell) for cell in cells.to_pylist()]) if uuid else cells.storage
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if kind_of(cells.type) != "text":
        return cells
    return cells.cast(pa.string()).fill_null("") if cells.null_count else cells.cast(pa.string())
