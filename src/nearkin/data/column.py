"""One column of a table and its types: ids (text or exact integers), numbers, times."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from typing import Any
from uuid import UUID

import narwhals as nw
import numpy as np
import pyarrow as pa
from pyarrow import compute

from nearkin._check import MAX_TEXT, too_long
from nearkin._fields import Extra, counted
from nearkin._guard import cached_property
from nearkin._pairs import Coded, check_exact, coded
from nearkin._types import Chosen

_MISSING_WORDS = frozenset(("None", "nan", "NaN", "null", "NULL", "<NA>", "NaT", "N/A", "NA", "#N/A"))
DECIMAL = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?", re.ASCII)
COMMAS = re.compile(r"[+-]?\d[\d,]*([eE][+-]?\d+)?", re.ASCII)  # decimals or thousands
_WHOLE = re.compile(r"0|-?[1-9]\d{0,19}", re.ASCII)
_PLAIN = re.compile(r"[+-]?((\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_COMMA = re.compile(r"[+-]?([1-9]\d{0,2}([.' \u00a0\u202f]\d{3})+|\d+)?(,\d+)?([eE][+-]?\d+)?")  # 1.234,5 or 1 234,5
_POINT = re.compile(r"[+-]?([1-9]\d{0,2}([,'\u2019]\d{3})+|\d+)?(\.\d+)?([eE][+-]?\d+)?")  # 1,234.5 or 1'234.5
_GROUPS = {",": r"[.' \u00a0\u202f]", ".": r"[,'\u2019]"}  # what parts groups of thousands
_FORMS = [  # of dates that are no ISO dates
    f"{date}{time}"
    for date, time in product(
        ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d"),
        ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p"),
    )
]
_UNIT = re.compile(r"\D*\d[\d.,/ ]*([^\d.,/ ]\D*)?")  # a number with a unit, or a fraction: "80%", "4/5", "3 EUR"
_SHORTENED = re.compile(r"[+-]?\d([.,]\d*)?[eE](\+?)(\d{1,3})", re.ASCII)  # scientific notation of a number
_WHOLE_FLOAT = re.compile(r"-?\d+\.\d*([eE][+-]?\d+)?", re.ASCII)  # of pandas 7.0, of np.savetxt 7.000e+00
_MONTH = re.compile(r"\d{4}-\d{2}", re.ASCII)
_FEW = 100  # cells that show whether a column may hold numbers


@dataclass(frozen=True, eq=False)
class Column:
    """Values (n,): int64 or uint64 if every one is an integer in canonical decimal, else text (object of str).

    Typed tables also hold floats of any width, bool and datetime64. What is missing is NaN, NaT, or empty text: a
    column of integers with nulls is float64. `cells` are these values, or Arrow's, which are converted when wanted:
    strings are untyped text without blanks around it, a dictionary of strings is text.
    """

    name: str
    cells: "np.ndarray | pa.Array | Coded"
    source: str = "the table"
    note: str = ""  # how its ids were written

    def __len__(self) -> int:
        return len(self.cells.codes if isinstance(self.cells, Coded) else self.cells)

    @property
    def _title(self) -> str:
        return f"column {self.name!r} of {self.source}" if self.name else self.source

    @cached_property
    def _whole(self) -> np.ndarray | None:
        """Untyped text as integers, if it is."""
        return integers(self.cells) if self._untyped else None

    @property
    def _untyped(self) -> bool:
        return isinstance(self.cells, pa.Array) and pa.types.is_string(self.cells.type)

    @cached_property
    def _typed(self) -> "np.ndarray | Coded":
        """The values, text by its distinct values."""
        if not isinstance(self.cells, pa.Array):
            return self.cells
        if not self._untyped:
            return _plain(self.cells)
        return coded(self.cells) if self._whole is None else self._whole

    @property
    def _texts(self) -> "tuple[np.ndarray | slice, pa.Array]":
        """Some texts, all that occur, and for every cell its number among them."""
        return (slice(None), self.cells) if self._untyped and self._whole is None else self.coded

    @cached_property
    def values(self) -> np.ndarray:
        if not isinstance(self._typed, Coded):
            return self._typed
        return self._typed.names.to_numpy(zero_copy_only=False)[self._typed.codes]

    def cell(self, row: int) -> object:
        """One value."""
        if not isinstance(self._typed, Coded):
            return self._typed[row]
        return self._typed.names[int(self._typed.codes[row])].as_py()

    @property
    def is_text(self) -> bool:
        return self.kind == "string"

    @cached_property
    def kind(self) -> str:
        """ "list", "string", "integer", "float", or another type, such as "struct" of nested objects."""
        if isinstance(self.cells, pa.Array) and not self._untyped:
            return arrow_kind(self.cells.type)
        if isinstance(self.cells, Coded) or (self._untyped and self._whole is None):
            return "string"
        if self._typed.dtype.kind == "O":
            types = {type(value).__name__ for value in self._typed.tolist() if value is not None}
            return "string" if types <= {"str"} else ", ".join(sorted(types))
        kinds = {"i": "integer", "u": "integer", "f": "float"}
        return kinds.get(self.values.dtype.kind, str(self.values.dtype))

    @cached_property
    def coded(self) -> Coded:
        """The distinct values (k,), and for every cell its number among them."""
        if isinstance(self._typed, Coded):
            return self._typed
        if self.is_text:
            return coded(pa.array(self._typed, pa.string()))
        names, codes = np.unique(self._typed, return_inverse=True)
        return Coded(codes.reshape(-1), pa.array(names))

    @property
    def distinct(self) -> pa.Array:
        """The distinct values (k,), of text in the order of their first cells."""
        return self.coded.names

    def as_ids(self) -> "Column":
        """The column itself, or as integers where all of its text is whole numbers written as floats, each in one way:
        "7.0" of pandas, "7.000000000000000000e+00" of np.savetxt; ValueError for ids without all digits."""
        column = self.unrounded()
        if not self.is_text or not len(self) or not (written := whole_float(str(self.cell(0)))):
            return column
        codes, names = self.coded
        whole = [whole_float(name) for name in names.tolist()]
        if None in whole or len(set(whole)) < len(whole):
            return column
        note = f"ids of column {self.name!r} are whole numbers, {self.cell(0)} is read as {written}"
        return replace(column, cells=np.array(list(map(int, filter(None, whole))), np.int64)[codes], note=note)

    def ids(self) -> np.ndarray:
        """Text (object of str) or integers; ValueError for missing ids, fractions, and all other types."""
        values = self.unrounded().values
        self._complete("ids", self.without_id())
        if values.dtype.kind == "f":
            if not (values == np.floor(check_exact(values, self._title))).all():
                raise ValueError(f"{self._title} has ids that are no exact integers; write them as text")
            return values.astype(np.int64)
        if self.kind not in ("string", "integer"):
            way = ": write a row for each entry of a list" if self.kind == "list" else ""
            raise ValueError(f"{self._title} has ids of type {self.kind}; ids are text or whole numbers{way}")
        return values

    def id_codes(self) -> "np.ndarray | Coded":
        """As `ids`, text by its distinct values."""
        if not isinstance(self._typed, Coded):
            return self.ids()
        self._complete("ids", self.unrounded().gaps())
        return self._typed

    def short(self) -> "Column":
        """The column itself; ValueError for text that is too long for ids and labels."""
        if self.is_text:
            codes, names = self._texts
            long = compute.greater(compute.utf8_length(names), MAX_TEXT)
            if (place := compute.index(long, True).as_py()) >= 0:
                row = place if isinstance(codes, slice) else int((codes == place).argmax())
                raise too_long(f"{self._title} has in row {row}", names[place].as_py())
        return self

    def texts(self) -> np.ndarray:
        """All cells (n,) as strings of one width."""
        return self.short().values.astype(str)

    def unrounded(self) -> "Column":
        """The column itself, `short`; ValueError where one of its ids, all of them numbers, is in scientific notation
        without all digits, as spreadsheets and R write long ones: different ids are one there. "1e5" is a name."""
        if not self.short().is_text or not len(self) or not is_number(str(self.cell(0))):
            return self
        codes, names = self._texts
        if not compute.any(compute.match_substring_regex(names, r"\d[eE]")).as_py():
            return self
        cells = names.to_pylist()
        place = next((place for place, cell in enumerate(cells) if _lacks_digits(cell)), None)
        if place is not None and all(is_number(cell) for cell in cells if cell not in ("", *_MISSING_WORDS)):
            row = place if isinstance(codes, slice) else int((codes == place).argmax())
            raise ValueError(
                f"{self._title} holds {cells[place]!r} in row {row}: spreadsheets and R round long numbers so, and "
                "different ids become one. Write ids in full: in a spreadsheet give the column the format 0 or text, "
                "in R type options(scipen=999). If it is a name, put a letter before all ids"
            )
        return self

    def gaps(self) -> np.ndarray:
        """Marks (n,) of the cells without an id: nulls and, of a text column, empty cells, or words for a missing value
        where all other cells are integers."""
        if not self.is_text:
            if self.values.dtype.kind == "O":
                return np.array([cell is None for cell in self.values.tolist()], bool)
            return self.values != self.values  # NaN and NaT
        codes, names = self._texts
        gone, empty = _among(names, _MISSING_WORDS), _among(names, [""])
        if gone.any() and not gone.all():
            known = names.filter(pa.array(~gone))
            if integers(known) is not None or all(map(whole_float, known.unique().to_pylist())):
                empty = empty | gone
        return empty[codes]

    def without_id(self) -> np.ndarray:
        """`gaps`, and cells of -1, which pandas' codes have for a missing value."""
        numbers = None if self.is_text else self.maybe_numbers
        return self.gaps() if numbers is None else self.gaps() | (numbers == -1)

    def numbers(self) -> np.ndarray:
        """Numbers (n,), integers unchanged and all others float64; ValueError for what is no number or missing."""
        found = self.maybe_numbers
        if found is None:
            row, cell = self._fault()
            if COMMAS.fullmatch(cell):
                fault, way = f"has commas, as in {cell!r}, for decimals or for thousands", "write points, or no commas"
            else:
                fault, way = f"is not numeric: row {row} holds {cell!r}", "correct it"
                if self.kind == "list":
                    way = "write one number a row"
                elif _UNIT.fullmatch(cell):
                    way = "write plain numbers, without a unit or a fraction"
                way += ", name a column of numbers, or rename this one if it means something else"
            raise ValueError(f"{self._title} {fault}; {way}")
        self._complete("numbers", np.isnan(found))
        return found

    def _fault(self) -> tuple[int, str]:
        """The row, and the cell, that is most surely no number."""
        cells = [str(value).strip() for value in (self.distinct if self.is_text else self.values).tolist()]
        for fits in (lambda cell: cell in ("", *_MISSING_WORDS) or COMMAS.fullmatch(cell), lambda cell: not cell):
            for place, cell in enumerate(cells):
                if not fits(cell) and not is_number(cell):
                    return int((self.coded.codes == place).argmax()) if self.is_text else place, cell[:40]
        return 0, cells[0][:40]

    @cached_property
    def maybe_numbers(self) -> np.ndarray | None:
        """Numbers (n,), NaN where missing, or None if some value is no number."""
        if isinstance(self._typed, np.ndarray) and self._typed.dtype.kind in "iufb":
            return self._typed.astype(np.float64) if self._typed.dtype.kind == "f" else self._typed
        if not self.is_text:
            return None
        codes, names = self._texts
        known = ~_among(names, ["", *_MISSING_WORDS])
        numbers = decimals(names.filter(pa.array(known)) if known.any() else names) if len(names) else None
        if numbers is None or not known.any():
            return None if numbers is None else numbers[codes]
        out = np.full(len(names), np.nan)
        out[known] = numbers
        return out[codes]

    @property
    def is_numeric(self) -> bool:
        """Whether every cell is a number."""
        return not self.is_text or decimals(self._texts[1]) is not None

    def times(self, pattern: str | None = None) -> np.ndarray:
        """Numbers, or datetime64 (UTC) from ISO dates or by a `pattern` of strptime; ValueError for anything else."""
        codes, names = self._texts if self.is_text else (slice(None), None)
        self._complete("times", self.gaps() if names is None else _among(names, [""])[codes])
        if names is None and self.values.dtype.kind == "M":
            return self.values
        found = self.maybe_numbers if pattern is None else None
        if found is not None:
            self._complete("times", np.isnan(found))
            return found
        if names is None:
            codes, names = self.coded
        elif pattern is None:
            for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):  # with the offset that every one then has
                with suppress(pa.ArrowInvalid):
                    names[:1].cast(kind)  # a cast that fails is slow
                    return names.cast(kind).to_numpy(zero_copy_only=False)[codes]
        times = _parsed(list(map(str, names.tolist())), pattern)
        if isinstance(times, str):
            forms = self.date_forms() or ["%d.%m.%Y"]
            typed = " or ".join(f"'{self.name}={form}'" if form else f"'{self.name}'" for form in forms)
            fault = "neither a number nor an ISO date" if pattern is None else f"which is not of the form {pattern!r}"
            raise ValueError(
                f"{self._title} holds {times[:40]!r}, {fault}; name the form of its dates, timestamp={typed} (on the "
                "command line --read timestamp=...), correct it, or rename the column if it holds no times"
            )
        return np.array(times, dtype="datetime64[us]")[codes]

    def date_forms(self) -> list[str | None]:
        """The forms of dates that all cells of a text column have, None for ISO; empty if they are no dates."""
        cells = self.distinct.tolist() if self.is_text else []
        return [form for form in (None, *_FORMS) if cells and not isinstance(_parsed(cells, form), str)]

    def doubts(self) -> list[str]:
        """How ids were written; words for a missing value that occur among text, since they may be names."""
        if not self.is_text:
            return [self.note] if self.note else []
        codes, names = self._texts
        found = names.filter(pa.array(_among(names, _MISSING_WORDS))).unique().to_pylist()
        return [
            f"{counted(_among(names, [word])[codes].sum(), 'cell')} of {self.name}: {word!r}, taken for a name"
            for word in sorted(found)
        ]

    def take(self, keep: Chosen) -> "Column":
        if not isinstance(self._typed, Coded):
            return replace(self, cells=self._typed[keep])
        codes = self._typed.codes[keep]
        met = np.zeros(len(self._typed.names), bool)
        met[codes] = True
        codes = codes if met.all() else (np.cumsum(met) - 1)[codes]
        return replace(
            self, cells=Coded(codes, self._typed.names if met.all() else self._typed.names.filter(pa.array(met)))
        )

    def retyped(self) -> "Column":
        """The column after some cells went: integers, if all text that is left is."""
        whole = integers(self.distinct) if self.is_text else None
        return self if whole is None else replace(self, cells=whole[self.coded.codes])

    def _complete(self, what: str, missing: np.ndarray) -> None:
        if missing.any():
            row = int(missing.argmax())
            raise ValueError(
                f"{self._title} has {counted(int(missing.sum()), f'missing {what[:-1]}')}, the first in row {row} "
                f"({str(self.cell(row))!r}); fill them or remove these rows, of pairs by missing='drop' (embed, train: "
                "--missing drop)"
            )


def whole_float(cell: str) -> str | None:
    """The whole number, in canonical decimal, that a cell has as a float with a point: 7 for 7.0 and 7.000e+00."""
    number = float(cell) if _WHOLE_FLOAT.fullmatch(cell) else 0.5
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else None


def _lacks_digits(cell: str) -> bool:
    """Whether a cell is a number such as 1.23457E+10, whose last digits are missing; 1e5 may be a name."""
    found = _SHORTENED.fullmatch(cell)
    return found is not None and any(found.groups()[:2]) and len(found[1] or ",") <= int(found[3])


def _parsed(cells: list[str], pattern: str | None) -> list[datetime] | str:
    """Times in UTC of ISO dates, or by the pattern; else the first cell that is none, or lacks the others' offset."""
    times = []
    for cell in cells:
        try:
            if pattern is None:
                times.append(datetime.fromisoformat(f"{cell}-01" if _MONTH.fullmatch(cell) else cell))
            else:
                times.append(datetime.strptime(cell, pattern))
        except ValueError:
            return cell
        if (times[-1].tzinfo is None) != (times[0].tzinfo is None):
            return cell
    return [time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None) for time in times]


def text_column(name: str, cells: list[str]) -> Column:
    """The column of the cells of a text file."""
    return Column(name, compute.ascii_trim(pa.array(cells, pa.string()), " \t"))


def _among(names: pa.Array, words: Iterable[str]) -> np.ndarray:
    return compute.is_in(names, pa.array(words, pa.string())).to_numpy(zero_copy_only=False)


def integers(cells: pa.Array) -> np.ndarray | None:
    """Text (n,) as int64 or uint64 if every cell is an integer in canonical decimal: "7", not "07", "+7", "7.0"."""
    if not len(cells) or not _WHOLE.fullmatch(cells[0].as_py()):
        return None
    for kind in (pa.int64(), pa.uint64()):
        try:
            numbers = cells.cast(kind)
        except pa.ArrowInvalid:
            continue
        size = compute.sum(compute.binary_length(cells)).as_py()
        return found if _letters(found := numbers.to_numpy()) == size else None
    return None


def _letters(whole: np.ndarray) -> int:
    """The letters of whole numbers in canonical decimal; all other ways to write them are longer."""
    sizes = np.abs(whole).astype(np.uint64)
    digits = range(1, len(str(int(sizes.max()))))
    return len(whole) + int((whole < 0).sum()) + sum(int((sizes >= 10**n).sum()) for n in digits)


def as_text(values: Sequence[object]) -> np.ndarray:
    """Python values as an array of objects, (n,) whatever they are."""
    return np.fromiter(values, dtype=object, count=len(values))


def as_64_bits(numbers: np.ndarray) -> np.ndarray:
    """Integers of any type as int64, or uint64 where one of them needs it."""
    large = numbers.dtype == np.uint64 and numbers.max(initial=0) >= 2**63
    return numbers if large else numbers.astype(np.int64)


def decimals(cells: pa.Array) -> np.ndarray | None:
    """Text (n,) as float64, or None if some value is no number. Numbers may have decimal commas or groups of thousands,
    as far as the column shows which; "1,234" alone may be either, and is none."""
    forms = (_PLAIN, _COMMA, _POINT)
    if not all(any(form.fullmatch(cell) for form in forms) for cell in cells[:_FEW].to_pylist()):
        return None  # a cast that fails is slow
    with suppress(pa.ArrowInvalid):
        return cells.cast(pa.float64()).to_numpy()
    found = cells.dictionary_encode()
    texts = found.dictionary.to_pylist()
    style = number_style(texts)
    if not style:
        return None
    with suppress(pa.ArrowInvalid):
        bare = [re.sub(_GROUPS[style], "", text).replace(",", ".") for text in texts]
        return pa.array(bare, pa.string()).cast(pa.float64()).to_numpy()[found.indices.to_numpy()]
    return None


def number_style(cells: list[str]) -> str | None:
    """How numbers are written: "" plain, "," with decimal commas, "." with groups of thousands parted by commas; None
    if some cell is no number, or may be read in both ways."""
    if all(map(_PLAIN.fullmatch, cells)):
        return ""
    comma, point = (all(map(form.fullmatch, cells)) for form in (_COMMA, _POINT))
    return None if comma == point else "," if comma else "."


def is_number(cell: str) -> bool:
    """Whether one cell is a number, as `decimals` reads it."""
    return number_style([cell]) is not None


def by_name(columns: Iterable[Column], source: str) -> dict[str, Column]:
    """The columns of one table, called `source`, by their names; ValueError for two of one name, and for none."""
    named = dict[str, Column]()
    for column in columns:
        if column.name in named:
            raise ValueError(f"{source} has two columns called {column.name!r}; rename one")
        named[column.name] = column if column.source == source else replace(column, source=source)
    if not named:
        raise ValueError(f"{source} has no columns; it must hold a table")
    return named


def is_frame(source: Extra) -> bool:
    """Whether `source` is a DataFrame or a query that narwhals supports (not a path, a list or an array)."""
    try:
        return isinstance(nw.from_native(source, pass_through=True), nw.DataFrame | nw.LazyFrame)
    except nw.exceptions.DuplicateError as error:
        twice = ", ".join(dict.fromkeys(re.findall(r"- ('.*') \d+ times", str(error))))
        raise ValueError(f"the {type(source).__name__} has two columns called {twice}; rename one") from error


def frame_columns(frame: Extra, source: str) -> dict[str, Column]:
    """The columns of a DataFrame or an Arrow table."""
    known = nw.from_native(frame)
    read = known.collect() if isinstance(known, nw.LazyFrame) else known  # queries of DuckDB and Polars
    return by_name((Column(str(series.name), _series_cells(series)) for series in read.iter_columns()), source)


def _series_cells(series: "nw.Series[Any]") -> "pa.Array | np.ndarray":
    try:
        return arrow_cells(series.to_arrow())
    except _NO_TYPE:
        return arrow_cells(series.to_list())


_NO_TYPE = (pa.ArrowException, OverflowError)  # of values without a common type


def arrow_cells(values: "pa.Array | list[Any] | np.ndarray") -> "pa.Array | np.ndarray":
    """Values as a typed table holds them: text by its distinct values, "" if missing; what no type fits as objects."""
    try:
        cells = values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)
    except _NO_TYPE:
        with suppress(*_NO_TYPE, TypeError):
            return pa.array(values, pa.uint64())
        return as_text(list(values))
    if isinstance(cells.type, pa.BaseExtensionType):
        uuids, cells = cells.type.extension_name == "arrow.uuid", cells.storage
        if uuids:
            cells = pa.array([None if cell is None else str(UUID(bytes=cell)) for cell in cells.to_pylist()])
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_null(cells.type) or arrow_kind(cells.type) in ("string", "binary", "large_binary"):
        with suppress(pa.ArrowInvalid):  # bytes that are no UTF-8
            return cells.cast(pa.large_string()).fill_null("").dictionary_encode()
    return cells


def arrow_kind(kind: pa.DataType) -> str:
    """An Arrow type as `Column.kind` calls it."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return "string" if kind.extension_name == "arrow.uuid" else arrow_kind(kind.storage_type)
    if types.is_dictionary(kind):
        return arrow_kind(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "list"
    if any(same(kind) for same in (types.is_string, types.is_large_string, types.is_string_view)):
        return "string"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "float"
    return "integer" if types.is_integer(kind) else str(kind).partition("<")[0]


def _plain(cells: pa.Array) -> "np.ndarray | Coded":
    """The values of Arrow cells that are no untyped text."""
    kind = arrow_kind(cells.type)
    if kind == "string":
        return coded(cells)
    if kind == "list":
        return as_text([cell or [] for cell in cells.to_pylist()])
    if pa.types.is_decimal(cells.type) or (kind == "bool" and cells.null_count):
        cells = cells.cast(pa.float64())
    values = cells.to_numpy(zero_copy_only=False)
    if values.dtype.kind != "M":
        return as_64_bits(values) if values.dtype.kind in "iu" else values
    exact, whole = (values.astype(f"datetime64[{unit}]") for unit in ("us", "s"))
    return exact if (exact != whole)[~np.isnat(values)].any() else whole
