"""A column of a table, and what its cells are read as: ids, numbers, times. Nothing is inferred but integers."""

from collections.abc import Callable
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
_UNITS = {"seconds": 1e8, "milliseconds": 1e11, "microseconds": 1e14, "nanoseconds": 1e17}  # since 1970, from 1973 on


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

    def text(self) -> list[str]:
        """The cells (n,) as text, "" where one is missing."""
        cells = self.cells if self.kind == "text" else self.cells.cast(pa.string()).fill_null("")
        return ["" if gone else cell for cell, gone in zip(cells.to_pylist(), self.missing.tolist(), strict=True)]

    def labels(self, *, long: bool = False) -> np.ndarray:
        """int64 (n,) if every cell is a canonical integer, else text, `long` text as objects; ValueError for a missing
        cell."""
        self._complete("value")
        if long:
            return np.array(self.text(), object)
        whole = _mask(compute.match_substring_regex(self.short().coded.names, _CANONICAL)).all()
        return np.array(self.text()).astype(np.int64 if whole else str)

    def short(self) -> "Column":
        """The column itself; ValueError for text that is too long for ids and labels: in an array of strings every one
        takes the room of the longest."""
        text = self if self.kind == "text" else replace(self, cells=self.cells.cast(pa.string()).fill_null(""))
        codes, names = text.coded
        long = _mask(compute.greater(compute.utf8_length(names), MAX_TEXT))
        if long.any():
            row = int(long[codes].argmax())
            raise too_long(f"{self.title} has in {self.place(row)}", text.cells[row].as_py())
        return text

    def take(self, keep: np.ndarray) -> "Column":
        """The cells where the mask (n,) is True, or at these rows."""
        rows = np.flatnonzero(keep) if keep.dtype == bool else keep
        return replace(self, cells=self.cells.take(pa.array(rows)), line=None)

    def place(self, row: int) -> str:
        """Where a cell stands, in words."""
        return f"row {row} (from 0)" if self.line is None else f"line {self.line + row}"

    def shown(self, rows: np.ndarray) -> str:
        """The first cells at some rows, with their places."""
        cells = [f"{str(self.cells[row].as_py())[:60]!r} in {self.place(row)}" for row in rows[:3].tolist()]
        return ", ".join(cells) + (f" and {len(rows) - 3:,} more" if len(rows) > 3 else "")

    def ids(self) -> "np.ndarray | Coded":
        """int64 (n,) if every cell is a canonical integer, else text exactly as written, by its distinct values.

        ValueError for missing cells, -1, fractions, dates, lists, blanks at an end of a cell, texts of more than 1,000
        characters, and for a column in which all but a few cells are integers.
        """
        self._complete("id")
        if self.kind == "integer":
            whole = self.cells.cast(pa.uint64() if pa.types.is_unsigned_integer(self.cells.type) else pa.int64())
            if compute.max(whole).as_py() is None or compute.max(whole).as_py() < 2**63:
                return self._counted(whole.to_numpy().astype(np.int64))
        elif self.kind != "text":
            way = {"list": f".explode({self.name!r})", "float": f".astype({{{self.name!r}: 'Int64'}})"}
            raise ValueError(
                f"{self.title} has cells of type {self.kind}; ids are integers or text: type "
                f"frame{way.get(self.kind, f'.astype({{{self.name!r}: str}})')}"
            )
        codes, names = self.short().coded
        odd, way = _mask(compute.match_substring_regex(names, _ODD_TEXT)), f".str.strip() or .explode({self.name!r})"
        self._refuse(odd, codes, "has ids with blanks at an end, line breaks, or lists in text", way)
        whole = _mask(compute.match_substring_regex(names, _CANONICAL))
        odd = np.flatnonzero(~whole[codes])
        if 0 < len(odd) <= _FEW * len(codes):
            raise ValueError(
                f"{self.title} holds integers but for {counted(len(odd), 'cell')}: {self.shown(odd)}; "
                + self._way_of(
                    odd,
                    "leave these rows out, or write all ids as text: "
                    f"frame[{self.name!r}] = 'i' + frame[{self.name!r}].astype(str)",
                )
            )
        if not len(odd):
            try:
                return self._counted(names.cast(pa.int64()).to_numpy()[codes])
            except pa.ArrowInvalid:
                pass  # beyond 64 bits: text
        return Coded(codes, names)

    def _counted(self, whole: np.ndarray) -> np.ndarray:
        if (none := np.flatnonzero(whole == -1)).size:
            raise ValueError(
                f"{self.title} holds -1 in {counted(len(none), 'cell')}, the first in {self.place(int(none[0]))}; -1 "
                "is no id: leave these rows out"
            )
        return whole

    def _refuse(self, odd: np.ndarray, codes: np.ndarray, what: str, way: str) -> None:
        rows = np.flatnonzero(odd[codes])
        if len(rows):
            way = self._way_of(rows, f"type frame[{self.name!r}]{way}")
            raise ValueError(f"{self.title} {what}: {self.shown(rows)}; {way}")

    def _way_of(self, rows: np.ndarray, way: str) -> str:
        """What to type for faulty cells: `way`, or to skip the first two lines if only they are faulty."""
        if rows[-1] > 1 or self.line == 1 or len(self) < 3:
            return way
        skipped = [*range(1, int(rows[-1]) + 2)]
        return f"if they are further lines of the header: pandas.read_csv(path, skiprows={skipped}); else {way}"

    def numbers(self) -> np.ndarray:
        """Numbers (n,), exact as they are typed; ValueError for missing cells and for text that is no plain number."""
        if self.kind == "text":  # a plain cast is faster than looking for missing cells first
            with suppress(pa.ArrowInvalid):
                numbers = self.cells.cast(pa.float64()).to_numpy()
                if not np.isnan(numbers).any():
                    return numbers
        self._complete("number")
        return self.numbers_or_nan()

    def numbers_or_nan(self) -> np.ndarray:
        """As `numbers`, NaN where a cell is missing."""
        if self.kind == "text":
            gaps = pa.array(self.missing)
            return self._cast(compute.if_else(gaps, None, self.cells), lambda cells: cells.cast(pa.float64()))
        if self.kind not in ("integer", "float", "bool") and not pa.types.is_decimal(self.cells.type):
            raise ValueError(f"{self.title} has cells of type {self.kind}; numbers are needed: name another column")
        whole = self.kind == "integer" and not self.cells.null_count
        return (self.cells if whole else self.cells.cast(pa.float64(), safe=False)).to_numpy(zero_copy_only=False)

    @property
    def is_numeric(self) -> bool:
        """Whether all cells are numbers, or missing."""
        try:
            return bool((~self.missing).any()) and self.numbers_or_nan() is not None
        except ValueError:
            return False

    def _cast(self, cells: pa.Array, cast: Callable[[pa.Array], pa.Array]) -> np.ndarray:
        """Cells of text as another type; ValueError that names the first one that is none."""
        try:
            return cast(cells).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            rows = self._first_wrong(cells, cast)
            raise ValueError(
                f"{self.title} holds {self.shown(rows)}, no plain number; "
                + self._way_of(
                    rows,
                    "convert units, decimal commas and thousands: "
                    f"frame[{self.name!r}] = frame[{self.name!r}].str.replace(',', '.').astype(float)",
                )
            ) from None

    def _first_wrong(self, cells: pa.Array, cast: Callable[[pa.Array], pa.Array]) -> np.ndarray:
        """The row of the first cell that does not cast, found by halves, and those of the next two that do not."""
        first, stop = 0, len(cells)
        while stop - first > 1:
            middle = (first + stop) // 2
            first, stop = (first, middle) if not _casts(cells[first:middle], cast) else (middle, stop)
        return np.array(
            [row for row in range(first, min(first + 3, len(cells))) if not _casts(cells[row : row + 1], cast)]
        )

    def times(self) -> np.ndarray:
        """Times (n,): numbers of one unit unchanged, dates and ISO dates as seconds since 1970 (UTC).

        ValueError for dates in another form, and for numbers of two units, such as seconds and milliseconds.
        """
        self._complete("time")
        if self.kind == "time":
            return _seconds(self.cells)
        if self.kind == "text" and not self.is_numeric:
            for form in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
                if _casts(self.cells, lambda cells, form=form: cells.cast(form)):
                    return _seconds(self.cells.cast(form))
            rows = self._first_wrong(self.cells, lambda cells: cells.cast(pa.timestamp("us")))
            raise ValueError(
                f"{self.title} holds {self.shown(rows)}, no number and no ISO date (2026-11-28 17:05:00); type "
                f"frame[{self.name!r}] = pandas.to_datetime(frame[{self.name!r}], dayfirst=True)"
            )
        numbers = self.numbers()
        unit = np.searchsorted([*_UNITS.values()], np.abs(numbers), side="right")
        if len(set(unit.tolist())) > 1 and unit.max() > 0:
            low, high = (np.flatnonzero(unit == of) for of in (unit.min(), unit.max()))
            names = ["no time since 1973", *_UNITS]
            cells = f"frame[{self.name!r}]"
            raise ValueError(
                f"{self.title} has times of two units, {names[unit.min()]} ({self.shown(low[:1])}) and "
                f"{names[unit.max()]} ({self.shown(high[:1])}); bring them to one: "
                f"{cells} = {cells}.where({cells} < 1e11, {cells} / 1000)"
            )
        return numbers

    def _complete(self, what: str) -> None:
        if self.missing.any():
            rows = np.flatnonzero(self.missing)
            raise ValueError(
                f"{self.title} has {counted(len(rows), f'missing {what}')}, the first in {self.place(int(rows[0]))}; "
                "fill them, or leave these rows out by missing='drop'"
            )


def _mask(marks: pa.Array) -> np.ndarray:
    return marks.to_numpy(zero_copy_only=False)


def _casts(cells: pa.Array, cast: Callable[[pa.Array], pa.Array]) -> bool:
    try:
        cast(cells)
    except pa.ArrowInvalid:
        return False
    return True


def _seconds(cells: pa.Array) -> np.ndarray:
    """Arrow dates as seconds since 1970: whole numbers unless one has a fraction."""
    micros = cells.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    return micros / 1e6 if (micros % 1_000_000).any() else micros // 1_000_000


_TEXT = (
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null),
    *(pa.types.is_binary, pa.types.is_large_binary),
)


def kind_of(kind: pa.DataType) -> str:
    """An Arrow type as `Column.kind` calls it."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return "text" if kind.extension_name == "arrow.uuid" else kind_of(kind.storage_type)
    if types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "list"
    if any(is_text(kind) for is_text in _TEXT):
        return "text"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "time"
    if types.is_floating(kind):
        return "float"
    return "integer" if types.is_integer(kind) else "bool" if types.is_boolean(kind) else str(kind).partition("<")[0]


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
