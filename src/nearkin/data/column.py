"""One column of a table and its types: ids (text or exact integers), numbers, times."""

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import product
from typing import Any, cast

import numpy as np

from nearkin._fields import Extra, counted
from nearkin._pairs import check_exact
from nearkin._types import Chosen

_MISSING_WORDS = frozenset(("None", "nan", "NaN", "null", "NULL", "<NA>", "NaT", "N/A", "NA", "#N/A"))
_DECIMAL = re.compile(r"[+-]?\d+(,\d+)?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?([1-9]\d{0,2},\d{3}|\d+)", re.ASCII)
_FORMS = [  # of dates that are no ISO dates
    f"{date}{time}"
    for date, time in product(
        ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d"),
        ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p"),
    )
]
_UNIT = re.compile(r"\D*\d[\d.,/ ]*\D*")  # a number with a unit, or a fraction: "80%", "4/5", "3 EUR"
_MONTH = re.compile(r"\d{4}-\d{2}", re.ASCII)


@dataclass(frozen=True, eq=False)
class Column:
    """Values (n,): int64 or uint64 if every one is an integer in canonical decimal, else text (object of str).

    Typed tables also hold floats of any width, bool and datetime64. What is missing is NaN, NaT, or empty text: a
    column of integers with nulls is float64.
    """

    name: str
    values: np.ndarray
    source: str = "the table"

    def __len__(self) -> int:
        return len(self.values)

    @property
    def _title(self) -> str:
        return f"column {self.name!r} of {self.source}"

    @property
    def is_text(self) -> bool:
        return self.kind == "string"

    @cached_property
    def kind(self) -> str:
        """ "list", "string", "integer", "float", or another type, such as "dict" of nested objects."""
        if self.values.dtype.kind == "O":
            types = {type(value).__name__ for value in self.values.tolist() if value is not None}
            return "string" if types <= {"str"} else ", ".join(sorted(types))
        kinds = {"i": "integer", "u": "integer", "f": "float"}
        return kinds.get(self.values.dtype.kind, str(self.values.dtype))

    def ids(self) -> np.ndarray:
        """Text (object of str) or integers; ValueError for missing ids, fractions, and all other types."""
        values = self.values
        self._complete("ids", self.gaps())
        if values.dtype.kind == "f":
            if not (values == np.floor(check_exact(values, self._title))).all():
                raise ValueError(f"{self._title} has ids that are no exact integers; write them as text")
            return values.astype(np.int64)
        if self.kind not in ("string", "integer"):
            way = ": write a row for each entry of a list" if self.kind == "list" else ""
            raise ValueError(f"{self._title} has ids of type {self.kind}; ids are text or whole numbers{way}")
        return values

    def gaps(self) -> np.ndarray:
        """Marks (n,) of the cells without an id: nulls and, of a text column, empty cells, or words for a missing value
        where all other cells are integers."""
        if not self.is_text:
            if self.values.dtype.kind == "O":
                return np.array([cell is None for cell in self.values.tolist()], bool)
            return self.values != self.values  # NaN and NaT
        words = _MISSING_WORDS & self._distinct
        if words:
            gone = np.isin(self.values, list(words))
            if not gone.all() and as_integers(self.values[~gone].tolist()) is not None:
                return gone | (self.values == "")
        return self.values == ""

    @cached_property
    def _distinct(self) -> set[str]:
        return set(self.values.tolist())

    def numbers(self) -> np.ndarray:
        """Numbers (n,), integers unchanged and all others float64; ValueError for what is no number or missing."""
        found = self.maybe_numbers
        if found is None:
            row, cell = self._fault()
            if _DECIMAL.fullmatch(cell):
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
        cells = [str(value).strip() for value in self.values.tolist()]
        for fits in (lambda cell: cell in ("", *_MISSING_WORDS) or _DECIMAL.fullmatch(cell), lambda cell: not cell):
            for row, cell in enumerate(cells):
                if not fits(cell) and not is_number(cell):
                    return row, cell[:40]
        return 0, cells[0][:40]

    @cached_property
    def maybe_numbers(self) -> np.ndarray | None:
        """Numbers (n,), NaN where missing, or None if some value is no number."""
        if self.values.dtype.kind in "iufb":
            return self.values.astype(np.float64) if self.values.dtype.kind == "f" else self.values
        found = as_decimals(self.values) if self.is_text else None
        if found is not None or not self.is_text:
            return found
        empty = np.isin(self.values, ["", *_MISSING_WORDS])
        numbers = as_decimals(self.values[~empty]) if empty.any() and not empty.all() else None
        if numbers is None:
            return None
        out = np.full(len(self), np.nan)
        out[~empty] = numbers
        return out

    def times(self, pattern: str | None = None) -> np.ndarray:
        """Numbers, or datetime64 (UTC) from ISO dates or by a `pattern` of strptime; ValueError for anything else."""
        self._complete("times", self.values == "" if self.is_text else self.gaps())
        if self.values.dtype.kind == "M":
            return self.values
        found = self.maybe_numbers if pattern is None else None
        if found is not None:
            self._complete("times", np.isnan(found))
            return found
        cells = list(map(str, self.values.tolist()))
        times = _parsed(cells, pattern)
        if isinstance(times, str):
            typed = " or ".join(f"'{self.name}={form}'" for form in self.date_forms() or ["%d.%m.%Y"])
            fault = "neither a number nor an ISO date" if pattern is None else f"which is not of the form {pattern!r}"
            raise ValueError(
                f"{self._title} holds {times[:40]!r}, {fault}; name the form of its dates, timestamp={typed} (on the "
                "command line --timestamp), correct it, or rename the column if it holds no times"
            )
        return np.array(times, dtype="datetime64[us]")

    def date_forms(self) -> list[str]:
        """The forms of dates, other than ISO, that all cells of a text column have."""
        cells = self.values.tolist()
        return [form for form in _FORMS if self.is_text and cells and not isinstance(_parsed(cells, form), str)]

    def doubts(self) -> list[str]:
        """Words for a missing value that occur among text; they are reported since they may be names."""
        if not self.is_text:
            return []
        words = sorted(_MISSING_WORDS & self._distinct)
        return [f"{int((self.values == word).sum())} cells of {self.name} read {word!r}, a name" for word in words]

    def take(self, keep: Chosen) -> "Column":
        return replace(self, values=self.values[keep])

    def _complete(self, what: str, missing: np.ndarray) -> None:
        if missing.any():
            raise ValueError(
                f"{self._title} has {int(missing.sum())} missing {what}, the first in row "
                f"{int(missing.argmax())}; fill them or remove these rows"
            )


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
    """The column of the cells of a text file, stripped of spaces."""
    integers = as_integers(cells)
    return Column(name, as_text(cells) if integers is None else integers)


def as_text(values: Sequence[object]) -> np.ndarray:
    """Python values as an array of objects, (n,) whatever they are."""
    return np.fromiter(values, dtype=object, count=len(values))


def as_integers(cells: list[str]) -> np.ndarray | None:
    """The cells as int64 or uint64 if every one is an integer in canonical decimal ("7", not "07", "+7", "7.0")."""
    try:
        if not cells or str(int(cells[0])) != cells[0] or max(map(len, cells)) > 20:
            return None
        numbers = list(map(int, cells))
        if list(map(str, numbers)) != cells:
            return None
        return exact_integers(numbers)
    except ValueError:
        return None


def exact_integers(numbers: list[int]) -> np.ndarray | None:
    """Integers as int64, or uint64 where int64 is too small; None where both are."""
    low, high = min(numbers), max(numbers)
    if low >= -(2**63) and high < 2**63:
        return np.array(numbers, np.int64)
    return np.array(numbers, np.uint64) if low >= 0 and high < 2**64 else None


def as_64_bits(numbers: np.ndarray) -> np.ndarray:
    """Integers of any type as int64, or uint64 where one of them needs it."""
    large = numbers.dtype == np.uint64 and numbers.max(initial=0) >= 2**63
    return numbers if large else numbers.astype(np.int64)


def as_decimals(values: np.ndarray) -> np.ndarray | None:
    """Text (n,) as float64, or None if some value is no number. Numbers may have decimal commas, but "1,234" alone may
    be a thousand as well, and is none."""
    cells = values.tolist()
    try:
        joined = "".join(cells)
        if "_" in joined or not joined.isascii():  # Python reads 1_000 and the digits of other scripts
            return None
        if "," in joined and all(map(_DECIMAL.fullmatch, cells)) and not all(map(_THOUSANDS.fullmatch, cells)):
            cells = [cell.replace(",", ".") for cell in cells]
        return np.array(list(map(float, cells)))
    except (ValueError, TypeError):  # TypeError: a column of lists
        return None


def is_number(cell: str) -> bool:
    """Whether one cell is a number, as `as_decimals` reads it."""
    return as_decimals(as_text([cell])) is not None


def is_code(column: Column) -> bool:
    """Whether a column of digits is a code, such as "007" or a postal code: some cell begins with a needless zero."""
    return column.is_text and any(cell[:1] == "0" and cell[1:2].isdigit() for cell in column.values.tolist())


def is_frame(source: Extra) -> bool:
    """Whether `source` is a DataFrame or a query that narwhals supports (not a path, a list or an array)."""
    import narwhals as nw  # only where tables are read

    return isinstance(nw.from_native(source, pass_through=True), nw.DataFrame | nw.LazyFrame)


_ARRAY = re.compile(r"(?:array|tensor)\((.*?)(?:, ?dtype=[^()]*)?\)", re.DOTALL)  # as NumPy and torch print them
_FEW = 100  # cells that show whether a column may hold lists
_COUNTED_WORDS = re.compile(r"\d+( \d+)*")


def list_cells(column: Column, marks: str = "") -> list[list[Any]] | None:
    """The lists in the cells of a column, or None if it holds something else.

    Lists are those of a typed column and text such as "[1, 2]", "('a', 'b')" and NumPy's "[0.1 0.2]". With `marks`,
    also parts between one of these characters in most cells, and whole numbers between spaces, if cells differ in their
    number: ids have parts, too, but always as many. ValueError for "[0.1 ... 0.2]", whose numbers are lost.
    """
    if not column.is_text:
        return column.values.tolist() if column.kind == "list" else None
    few = [cell for cell in column.values[:_FEW].tolist() if cell]
    if not few or not (few[0][0] in "[(at" or any(mark in "".join(few) for mark in (*marks, *" "[: len(marks)]))):
        return None
    cells = [cell.strip() for cell in column.values.tolist()]
    cells = [found[1] if (found := _ARRAY.fullmatch(cell)) else cell for cell in cells]
    known = [cell for cell in cells if cell]
    if known and all(cell[0] + cell[-1] in ("[]", "()") for cell in known):
        if cut := next((cell for cell in known if "..." in cell), None):
            raise ValueError(
                f"column {column.name!r} of {column.source}: row {cells.index(cut)} holds {cut[:40]!r}, which lacks "
                'the numbers at "..."; write whole lists, for example as .parquet or .jsonl'
            )
        found = [_listed(cell) if cell else [] for cell in cells]
        return None if None in found else cast("list[list[Any]]", found)
    for mark in marks:
        counts = {cell.count(mark) for cell in known}
        if len(counts) > 1 and 2 * sum(mark in cell for cell in known) > len(known):
            return [[part.strip() for part in cell.split(mark) if part.strip()] for cell in cells]
    if marks and all(map(_COUNTED_WORDS.fullmatch, known)) and len({cell.count(" ") for cell in known}) > 1:
        return [cell.split() for cell in cells]
    return None


def spread_column(column: Column, entries: list[Any]) -> Column:
    """The entries of a column's lists as a column: those of text as in text files, typed ones with their type."""
    if column.is_text:
        return replace(text_column(column.name, list(map(str, entries))), source=column.source)
    return Column(column.name, _objects(entries, np.array([entry is None for entry in entries], bool)), column.source)


def _listed(cell: str) -> list[Any] | None:
    """The entries of a list as JSON, Python or NumPy writes it, or None."""
    inner = cell[1:-1].strip().removesuffix(",")
    with suppress(ValueError):
        return json.loads(f"[{inner}]")
    if all(map(is_number, words := inner.split())):
        numbers = as_integers(words)
        return list(map(float, words)) if numbers is None else numbers.tolist()
    with suppress(ValueError, SyntaxError):
        return list(ast.literal_eval(f"({inner},)"))
    return None


def by_name(columns: Iterable[Column], source: str) -> dict[str, Column]:
    """The columns of one table, called `source`, by their names; ValueError for two of one name, and for none."""
    named = dict[str, Column]()
    for column in columns:
        if column.name in named:
            raise ValueError(f"{source} has two columns called {column.name!r}; rename one")
        named[column.name] = replace(column, source=source)
    if not named:
        raise ValueError(f"{source} has no columns; it must hold a table")
    return named


def frame_columns(frame: Extra, source: str) -> dict[str, Column]:
    """The columns of a DataFrame or an Arrow table."""
    import narwhals as nw  # only where tables are read

    known = nw.from_native(frame)
    read = known.collect() if isinstance(known, nw.LazyFrame) else known  # queries of DuckDB and Polars
    return by_name((Column(str(series.name), _values(series, nw)) for series in read.iter_columns()), source)


def _values(series: Extra, nw: Extra) -> np.ndarray:
    kind, missing = series.dtype, series.is_null().to_numpy().astype(bool)
    if kind.is_integer() and not missing.any():
        return as_64_bits(series.to_numpy())
    if kind.is_float():
        return np.asarray(series.to_numpy())
    if kind.is_decimal() or (kind == nw.Boolean and missing.any()):
        return np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)
    if kind == nw.Boolean:
        return np.array(series.to_list(), bool)
    if kind in (nw.Datetime, nw.Date):
        if getattr(kind, "time_zone", None) is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        exact, whole = (series.to_numpy().astype(f"datetime64[{unit}]") for unit in ("us", "s"))
        return exact if (exact[~missing] != whole[~missing]).any() else whole
    return _objects(series.to_list(), missing)


def _objects(values: list[Any], nulls: np.ndarray) -> np.ndarray:
    """Python objects as text, lists or numbers if all are, but for nulls and NaN; others unchanged, nulls as None."""
    missing = nulls | np.array([isinstance(value, float) and value != value for value in values], bool)
    kinds = {type(value) for value, gone in zip(values, missing, strict=True) if not gone}
    if kinds - {str, list}:
        values = list(map(_python, values))
        kinds = {type(value) for value, gone in zip(values, missing, strict=True) if not gone}

    def filled(gap: object) -> list[Any]:
        return [gap if gone else value for value, gone in zip(values, missing, strict=True)]

    if kinds == {list}:
        return as_text(filled([]))
    if kinds <= {str}:
        return as_text(filled(""))
    if (kinds == {int} and missing.any()) or (kinds <= {int, float} and float in kinds):
        return np.array(filled(np.nan), np.float64)
    if kinds == {int} and (found := exact_integers(values)) is not None:
        return found
    return as_text(filled(None))


def _python(value: object) -> object:
    """A value of NumPy, a tuple or UTF-8 bytes as Python's numbers, lists and text."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode()
    return list(value) if isinstance(value, tuple) else value


PAIRS = {  # role -> names of columns that mean it, as `normal` leaves them
    "left": ("left", "user", "query", "instance", "customer", "session", "reader", "member", "account", "u"),
    "right": (
        *("right", "item", "movie", "product", "document", "doc", "label", "artist", "book", "song", "track"),
        *("business", "place", "location", "poi", "venue", "article", "video", "i"),
    ),
    "weight": ("weight", "rating", "count", "value", "score", "plays", "stars"),
    "timestamp": ("timestamp", "time", "unixtime", "datetime", "date"),
    "split": ("split", "fold"),
}
COMPARISONS = {
    "anchor": ("anchor", "ref", "reference", "head", "standard", "probe", "target", "i"),
    "near": ("near", "nearer", "nearest", "close", "closer", "closest", "winner", "similar", "positive", "pos", "j"),
    "far": ("far", "farther", "further", "farthest", "loser", "dissimilar", "negative", "neg", "k"),
    "odd": ("odd", "oddone", "oddoneout", "outlier", "oddity"),
    "response": ("response", "answer", "choice", "chosen", "selected", "judgment", "judgement", "decision", "label"),
    "rating": ("rating", "similarity", "dissimilarity", "distance", "score", "likert"),
    "weight": ("weight", "weights", "vote", "votes", "count", "counts"),
    "annotator": (
        *("annotator", "annotators", "worker", "subject", "user", "participant", "rater", "observer", "judge"),
        "respondent",
    ),
}
ASIDE = (  # columns of comparisons that hold no object and have no role
    *("rt", "reactiontime", "responsetime", "latency", "timestamp", "time", "datetime", "date", "duration", "trial"),
    *("block", "session", "index", "row", "question", "questionnumber", "order", "condition", ""),
)
OPTIONS = (  # pairs of names of two objects of which a response chooses one
    *(("left", "right"), ("a", "b"), ("option1", "option2"), ("optiona", "optionb"), ("choice1", "choice2")),
    *(("choicea", "choiceb"), ("candidate1", "candidate2"), ("first", "second"), ("comparison1", "comparison2")),
    *(("x", "y"), ("stimulusa", "stimulusb"), ("stimulus1", "stimulus2"), ("item1", "item2"), ("object1", "object2")),
)
SIMILARITY, DISSIMILARITY = ("similarity",), ("dissimilarity", "distance")
_ALL = {
    *(name for names in (*PAIRS.values(), *COMPARISONS.values(), *OPTIONS) for name in names),
    *(set(ASIDE) - {""}),
} - {"x", "y", "u", "a", "b"}  # too short to be told from data


def means(name: str, usual: Sequence[str]) -> int | None:
    """The place of a column's name, or of its singular, among the `usual` ones; None if it is none of them."""
    found = [word for word in (normal(name), normal(name).removesuffix("s")) if word in usual]
    return usual.index(found[0]) if found else None


def normal(name: str) -> str:
    """`name` in lower case, without punctuation and without a final "id"."""
    letters = "".join(letter for letter in name.lower() if letter.isalnum())
    return letters.removesuffix("id") or letters


def known(name: str) -> bool:
    """Whether columns are usually called so."""
    return normal(name) in _ALL


_NAMES = re.compile(
    r"(.*[\W_])?(id|ids|key|uid|uuid|guid|index|idx|row|name|sku|isbn|doi|url|word|token)", re.IGNORECASE
)
_CAMEL = re.compile(r".*[a-z](Id|ID|Key|Name)")


def names_rows(column: str) -> bool:
    """Whether a column of this name holds ids rather than a coordinate; pandas writes its index without a name.

    >>> [name for name in ("id", "doc_id", "productId", "", "x", "f0", "price", "grid") if names_rows(name)]
    ['id', 'doc_id', 'productId', '']
    """
    name = column.strip()
    return not name or bool(_NAMES.fullmatch(name) or _CAMEL.fullmatch(name))


def choose_ids(text: list[str], whole: list[str]) -> tuple[str | None, list[str]]:
    """The column that names the rows: `id`, else the only one called so, else the only one of text, else None.

    Also the columns that might be it, where several are called so or are text.
    """
    called = [name for name in (*text, *whole) if name and names_rows(name)]
    exact = [name for name in called if name.strip().lower() == "id"]
    for found in (exact, called, text):
        if len(found) == 1:
            return found[0], []
    return None, called or text


def choose_columns(
    kinds: Mapping[str, str], source: str, key: str | None = None
) -> tuple[list[str], str | None, list[str]]:
    """The columns that hold a table's vectors, that of the ids or None, and those that might be it.

    kinds: name -> kind, as `Column.kind`. Vectors are the list column `key`, or the only one, or all numeric columns.
    """
    lists, text, whole = (
        [n for n, kind in kinds.items() if kind == wanted] for wanted in ("list", "string", "integer")
    )
    ids, rivals = choose_ids(text, whole)
    if key is not None and key not in lists:
        raise ValueError(f"{source} has no list column {key!r}; it has {', '.join(lists) or 'none'}")
    if key is None and len(lists) > 1:
        listed = ", ".join(f"{source}:{name}" for name in lists)
        raise ValueError(f"{source} has {len(lists)} list columns; name one of {listed}, or keep one")
    if lists:
        return [key or lists[0]], ids, rivals
    numeric = [name for name in kinds if name != ids]
    for name in numeric:
        if kinds[name] not in ("integer", "float"):
            raise ValueError(
                f"{source}: column {name!r} is of type {kinds[name]}, no number; vectors are one column of lists, or "
                "numeric columns, next to a column of ids: take the others out, and nested values to the top"
            )
    return numeric, ids, rivals


def understood(source: str, n: int, d: int, ids: str | None, aside: list[str], notes: str = "") -> str:
    """One line for people: what a table of vectors was taken for."""
    named = _COUNTED if ids is None else f"ids in column {ids!r}" if ids else "ids in the first column"
    left = f"{_ASIDE}{', '.join(aside)}" if aside else ""
    return f"{source}: {counted(n, 'row')} of {counted(d, 'number')}{notes}; {named}{left}"


_COUNTED, _ASIDE = "rows are counted from 0", "; left aside: "


def with_ids(about: str, path: str) -> str:
    """The line of `understood` for a table whose ids are in a file, or in `path`, one of its columns."""
    head, _, aside = about.partition(_ASIDE)
    left = [name for name in aside.split(", ") if name and name != path.rpartition(":")[2]]
    return head.replace(_COUNTED, f"ids from {path}") + (f"{_ASIDE}{', '.join(left)}" if left else "")
