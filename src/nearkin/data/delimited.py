"""Text tables as columns of cells: the delimiter, the lines, and a fast path through pyarrow with the same answer."""

import csv
import io
import re
from dataclasses import dataclass

import numpy as np

from nearkin.data.column import Column, as_integers, as_text
from nearkin.data.locator import Locator

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
EXCEL_MARK = re.compile(r'"?sep=([,;|\t])"?\r?\n', re.IGNORECASE | re.ASCII)  # a first line that says the delimiter
MAX_CELL = 131_072  # characters: Python's csv reads no longer ones, so nobody does
MAX_COLUMNS = 100_000
_SAMPLE = 50  # lines that the delimiter is read off


@dataclass
class Cells:
    """The cells of a text table, column by column, still text: lists of str, or pyarrow arrays of strings."""

    first: list[str]
    columns: list
    delimiter: str
    rows: int

    def column(self, place: int, name: str, start: int) -> Column:
        """Column `place` from row `start` on, as integers if all of it is, else as text."""
        cells = self.columns[place]
        if isinstance(cells, list):
            found = as_integers(cells[start:])
            return Column(name, as_text(cells[start:]) if found is None else found)
        return Column(name, _arrow_values(cells.slice(start)))

    def texts(self, place: int) -> list[str]:
        """The cells of column `place` as they are written."""
        cells = self.columns[place]
        return cells if isinstance(cells, list) else cells.to_pylist()


def read_cells(where: Locator, delimiter: str | None = None, *, fast: bool = True) -> Cells:
    """Read a text table; `delimiter` None finds it. ValueError for rows of unequal length and for what is no text."""
    data = where.path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data:
        raise ValueError(f"{where} is not UTF-8 text (UTF-16, or no text at all); save it as UTF-8")
    head = data[: 2**20].decode("utf-8", errors="ignore" if len(data) > 2**20 else "strict")
    if not head.strip() and not data.strip():
        raise ValueError(f"{where} is empty; it must hold a table")
    said = EXCEL_MARK.match(head)
    if said is not None:
        data, head = data[said.end() :], head[said.end() :]
        delimiter = delimiter or said[1]
    mark = sniff(head, where) if delimiter is None else _checked(delimiter)
    width = data.lstrip().partition(b"\n")[0].count(mark.encode()) + 1
    if width > MAX_COLUMNS:
        raise ValueError(f"{where} has {width} columns; a table has at most {MAX_COLUMNS}")
    found = _fast_cells(data, mark) if fast else None
    return _slow_cells(data.decode("utf-8"), mark, where) if found is None else found


def _checked(delimiter: str) -> str:
    words = {word: mark for mark, word in DELIMITERS.items()} | {"\\t": "\t"}
    mark = words.get(delimiter, delimiter)
    if len(mark) != 1 or mark in '"\r\n':
        raise ValueError(f"delimiter is {delimiter!r}; it must be one character, or one of {', '.join(words)}")
    return mark


def sniff(text: str, where: Locator) -> str:
    """The delimiter: the one that cuts every one of the first lines into as many cells, two at least.

    ValueError where several do.
    """
    lines = [line for line in text.splitlines()[: _SAMPLE + 1] if line.strip()]
    lines = lines[:-1] if len(lines) > _SAMPLE else lines  # the last may be cut
    fits = [mark for mark in DELIMITERS if mark != " " and _width(lines, mark) > 1]
    ending = {".csv": ",", ".tsv": "\t"}.get(where.suffix)
    if len(fits) > 1:
        named = " or ".join(f"delimiter={DELIMITERS[mark]!r}" for mark in fits)
        raise ValueError(
            f"{where} can be read with several delimiters; type {named} (on the command line --delimiter "
            f"{DELIMITERS[fits[0]]})"
        )
    if fits:
        return fits[0]
    if where.suffix != ".csv" and _width([" ".join(line.split(" ")) for line in lines], " ") > 1:
        return " "
    counts = {mark: lines[0].count(mark) for mark in DELIMITERS if mark != " "}
    most = max(counts, key=lambda mark: counts[mark])
    return most if counts[most] else ending or ","


def _width(lines: list[str], mark: str) -> int:
    """Cells of each line, 0 if they differ."""
    try:
        widths = {len(row) for row in csv.reader(lines, delimiter=mark)}
    except csv.Error:
        return 0
    return widths.pop() if len(widths) == 1 else 0


def _slow_cells(text: str, delimiter: str, where: Locator) -> Cells:
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row]
    except csv.Error as error:
        raise ValueError(
            f"{where} cannot be read as a table ({error}): a quoted cell does not end, or one has more than {MAX_CELL} "
            "characters"
        ) from error
    rows = [row for row in rows if len(row) > 1 or row[0].strip()]
    if not rows:
        raise ValueError(f"{where} is empty; it must hold a table")
    width = len(rows[0])
    bad = next((number for number, row in enumerate(rows, 1) if len(row) != width), None)
    if bad is not None:
        above = f"; is {rows[0][0][:40]!r} the title of the table? Delete it" if width == 1 else "; mend that row"
        raise ValueError(f"{where}: row {bad} has {len(rows[bad - 1])} cells, the first row has {width}{above}")
    columns = [[cell.strip(" \t") for cell in column] for column in zip(*rows, strict=True)]
    return Cells([column[0] for column in columns], columns, delimiter, len(rows))


def _fast_cells(data: bytes, delimiter: str) -> Cells | None:
    """The same by pyarrow, or None: it is not installed, there are quotes, or the table is not regular."""
    if (
        len(data) >= 2**31
        or b'"' in data
        or delimiter == " "
        or data.count(b"\r") != data.count(b"\r\n")
        or not delimiter.isascii()
    ):
        return None
    try:
        import pyarrow as pa  # an optional peer
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None
    if _padded(data, delimiter.encode()):
        return None
    width = data.lstrip(b"\r\n").partition(b"\n")[0].count(delimiter.encode()) + 1
    if not 1 < width <= 1000:
        return None
    names = [str(place) for place in range(width)]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            arrow_csv.ReadOptions(column_names=names),
            arrow_csv.ParseOptions(delimiter=delimiter, quote_char=False),
            arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
        )
    except pa.ArrowException:
        return None  # the slow path says what is wrong, or knows better
    import pyarrow.compute as pc  # it comes with pyarrow

    longest = max((pc.max(pc.binary_length(column)).as_py() or 0 for column in table.columns), default=0)
    if not table.num_rows or longest > MAX_CELL:
        return None
    return Cells([column[0].as_py() for column in table.columns], table.columns, delimiter, table.num_rows)


def _padded(data: bytes, mark: bytes) -> bool:
    """Whether some cell may begin or end with a space or a tab, which the slow path takes off."""
    blanks = [blank for blank in (b" ", b"\t") if blank != mark and blank in data]
    edges = (mark, b"\n", b"\r")
    inside = any(blank + edge in data or edge + blank in data for blank in blanks for edge in edges)
    return inside or data[:1] in blanks or data[-1:] in blanks


def _arrow_values(column) -> np.ndarray:
    """Strings as int64 where every one is canonical, else as `as_integers` decides, else as text."""
    import pyarrow as pa  # only where pyarrow has read
    import pyarrow.compute as pc

    if len(column):
        try:
            numbers = pc.cast(column, pa.int64())
            if pc.all(pc.equal(pc.cast(numbers, pa.string()), column)).as_py():
                return numbers.to_numpy()
        except pa.ArrowInvalid:
            pass
    encoded = column.combine_chunks().dictionary_encode()  # equal cells become one object, which later steps hash once
    names = encoded.dictionary.to_pylist()
    values = as_text(names)[encoded.indices.to_numpy()]
    whole = as_integers(names)
    return values if whole is None else whole[encoded.indices.to_numpy()]
