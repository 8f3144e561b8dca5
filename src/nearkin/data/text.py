"""Text tables, bytes to cells, by pyarrow: the delimiter is read from the first line, or typed."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

import pyarrow as pa
from pyarrow import csv as arrow

from nearkin._fields import Record
from nearkin.data.files import Locator

MARKS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_WORDS = {word: mark for mark, word in MARKS.items()} | {"space": " ", "\\t": "\t"}
_STAND_IN = "\x1f"  # for a delimiter of several bytes, and for none
_LONGEST = 2**26  # bytes of a line
_NUMBER = re.compile(r"\s*[-+]?[\d.]+(e[-+]?\d+)?\s*", re.IGNORECASE)


class TextWords(TypedDict, total=False):
    """`TextOptions` as arguments; None leaves one out."""

    header: bool | None
    delimiter: str | None
    encoding: str | None


@dataclass(frozen=True)
class TextOptions:
    """How text files are read.

    header: the first line names the columns; False: columns are called "0", "1", ...
    delimiter: any text, or comma, semicolon, tab, bar, space; None: the only one of the first four that the first line
        holds.
    encoding: such as "cp1252".
    """

    header: bool = True
    delimiter: str | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if not isinstance(self.header, bool):
            raise TypeError(f"header is {self.header!r}; it must be True or False")
        if self.delimiter == "" or not isinstance(self.delimiter, str | None):
            raise ValueError(f"delimiter is {self.delimiter!r}; it must be text, for example ',' or 'tab', or None")
        try:
            "".encode(self.encoding)
        except (LookupError, TypeError) as error:
            raise ValueError(
                f"encoding is {self.encoding!r}, which is none; type for example 'cp1252' (Windows) or 'utf-16'"
            ) from error


_PLAIN = TextOptions()
_SHARED = ContextVar("_SHARED", default=_PLAIN)


def text_of(options: TextWords) -> TextOptions:
    """Options as a call has them, else those of `text_options`."""
    typed: Record = {name: value for name, value in options.items() if value is not None}
    return replace(_SHARED.get(), **typed)


@contextmanager
def text_options(**options: Unpack[TextWords]) -> Iterator[None]:
    """Read all text files so within a `with`, unless a call has other options; arguments as in `read_table`.

    >>> import nearkin as nk, pathlib, tempfile
    >>> table = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = table.write_text("user::item\\nZoë::7\\n", encoding="cp1252")
    >>> with text_options(encoding="cp1252", delimiter="::"):
    ...     nk.read_interactions(table).left_ids.tolist()
    ['Zoë']
    """
    token = _SHARED.set(text_of(options))
    try:
        yield
    finally:
        _SHARED.reset(token)


@dataclass(frozen=True)
class Text:
    """The bytes of a text table in UTF-8, cut by `mark`; `delimiter` in words, None for lines of one cell.

    `names` are those of the columns; `line` is the number of the first row's line, None where cells hold line breaks.
    """

    where: Locator
    data: bytes
    mark: str
    delimiter: str | None
    names: list[str]
    header: bool
    line: int

    def read(self, types: dict[str, pa.DataType]) -> pa.Table:
        """These columns as these types; pyarrow's errors."""
        read = arrow.ReadOptions(
            use_threads=False,  # its errors then name rows
            block_size=min(_LONGEST, max(len(self.data), 1)),
            skip_rows=0,
            column_names=self.names,
            skip_rows_after_names=int(self.header),
        )
        quote = False if self.mark in (" ", _STAND_IN) else '"'  # GloVe has a word that is a quote
        parse = arrow.ParseOptions(delimiter=self.mark, quote_char=quote, newlines_in_values=bool(quote))
        cells = arrow.ConvertOptions(column_types=types, include_columns=[*types], strings_can_be_null=False)
        data = pa.BufferReader(self.data)
        return arrow.read_csv(data, read_options=read, parse_options=parse, convert_options=cells)

    def table(self) -> pa.Table:
        """All columns as text; ValueError that names the line of another width."""
        try:
            found = self.read(dict.fromkeys(self.names, pa.string()))
        except pa.ArrowInvalid as error:
            raise self.fault(error) from None
        self._closed(found)
        return found

    def fault(self, error: pa.ArrowInvalid) -> ValueError:
        """The error for pyarrow's message about a row, by the number of its line."""
        text = str(error)
        row = re.search(r"Row #(\d+): ", text)
        if "got out of sync" in text or "straddling" in text:
            text = f"a line is longer than {_LONGEST:,} bytes, or a quote is not closed"
        at = f", line {int(row[1])}" if row else ""
        said = text.partition(row[0])[2] if row else text
        first = re.search(r"Expected (\d+) columns, got (\d+)", text)
        way = ""
        if first and row and int(row[1]) == 2 and not self.header and self.mark == " ":
            way = "; if the first line holds two sizes, give the file the ending .vec (word2vec's text format)"
        elif first:
            way = "; correct the line, or type another delimiter=..."
        return ValueError(f"{self.where}{at}: {said[:200]}{way}")

    def _closed(self, found: pa.Table) -> None:
        """ValueError where a quote opens in the last row and never closes: it swallowed the lines below it."""
        if found.num_rows and not self.data.rstrip(b"\r\n").endswith(b'"'):
            last = str(found.column(found.num_columns - 1)[-1])
            if "\n" in last:
                raise ValueError(f"{self.where}: a quote is not closed, before {last[:60]!r}; close it, or delete it")


def read_text(where: Locator, options: TextOptions) -> Text:
    """The text of a file, and how it is cut.

    ValueError that names what to type for another encoding, a first line of numbers under header=True, two columns of
    one name, and for a first line with several of the four delimiters.
    """
    with pa.input_stream(str(where.path), compression="detect") as stream:
        data = _as_utf8(where, stream.read(), options.encoding)
    sizes = 0
    if where.suffix == ".vec":
        options = TextOptions(False, options.delimiter or " ", options.encoding)
        if found := re.match(rb"\d+ \d+ ?\r?\n", data):  # word2vec's text format: rows and columns
            data, sizes = data[found.end() :], 1
    first = re.split(rb"[\r\n]", data, maxsplit=1)[0].decode()
    mark = _mark_of(where, first, options.delimiter)
    stand_in = mark
    if mark is not None and len(mark.encode()) > 1:
        data, stand_in = data.replace(mark.encode(), _STAND_IN.encode()), _STAND_IN
    names = _names(where, first, mark, options.header)
    word = None if mark is None else MARKS.get(mark, "space" if mark == " " else mark)
    return Text(where, data, stand_in or _STAND_IN, word, names, options.header, 1 + options.header + sizes)


def _as_utf8(where: Locator, data: bytes, encoding: str) -> bytes:
    if encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
        try:
            return data.decode(encoding).removeprefix("\ufeff").encode()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{where} is not {encoding} text (byte {error.start}); type another encoding=..."
            ) from error
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data:
        raise ValueError(f"{where} holds NUL bytes, as UTF-16 does; type encoding='utf-16', or write it as UTF-8")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        at = 1 + data.count(b"\n", 0, error.start)
        raise ValueError(
            f"{where}, line {at} is not UTF-8 text; type its encoding, for example encoding='cp1252'"
        ) from error
    return data.removeprefix(b"\xef\xbb\xbf")


def _mark_of(where: Locator, first: str, typed: str | None) -> str | None:
    """The delimiter that is typed, or the only usual one of the first line; or None."""
    if typed is not None:
        return _WORDS.get(typed, typed)
    bare = re.sub(r'"[^"]*"', "", first)
    marks = [mark for mark in MARKS if mark in bare]
    if len(marks) > 1:
        raise ValueError(
            f"{where} has a first line with {' and '.join(MARKS[mark] for mark in marks)}; type which one parts the "
            f"cells: delimiter={MARKS[marks[0]]!r}"
        )
    return marks[0] if marks else None


def _names(where: Locator, first: str, mark: str | None, header: bool) -> list[str]:
    cells = [first] if mark is None else _cut(first, mark)
    if not header:
        return [str(place) for place in range(len(cells))]
    if all(map(_NUMBER.fullmatch, cells)):
        way = "type header=False"
        if cells == [str(place) for place in range(len(cells))]:
            way = "if pandas wrote these, type frame.add_prefix('f').to_csv(...); if they are data, header=False"
        raise ValueError(f"{where} begins with numbers ({first[:60]}), not with names of columns; {way}")
    names = [cell.strip() for cell in cells]
    if twice := [name for name in names if name and names.count(name) > 1]:
        raise ValueError(f"{where} has two columns called {twice[0]!r}; rename one")
    return [name or f"(no name {place})" for place, name in enumerate(names)]


def unparted(where: object, line: str) -> ValueError:
    """The error for a table whose first line holds none of the four delimiters, with what it holds instead."""
    mark = re.search(r"[^\w.+-]+", line)
    way = "" if mark is None else f": delimiter={mark[0]!r}" + ", header=False" * any_number(line.split(mark[0]))
    return ValueError(
        f"{where} has a first line without comma, semicolon, tab or bar ({line[:60]}); type what parts its cells{way}"
    )


def any_number(names: Iterable[str]) -> bool:
    """Whether some name of a column is a number: the first line is then data."""
    return any(map(_NUMBER.fullmatch, names))


def _cut(line: str, mark: str) -> list[str]:
    """The cells of a line; a mark between quotes parts none."""
    cells, quoted = list[str](), False
    for part in line.split(mark):
        if quoted:
            cells[-1] += mark + part
        else:
            cells.append(part)
        quoted ^= mark != " " and part.count('"') % 2 == 1
    return [cell[1:-1].replace('""', '"') if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell for cell in cells]
