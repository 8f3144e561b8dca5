"""Text tables, bytes to cells: encoding, comments, delimiter and quotes are found, then pyarrow cuts the lines."""

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from io import TextIOWrapper
from itertools import count
from typing import IO

import numpy as np
import pyarrow as pa
from pyarrow import compute
from pyarrow import csv as arrow

from nearkin._fields import counted
from nearkin.data.column import DECIMAL, Column, integers, is_number
from nearkin.data.files import BEGINNINGS, EXCEL_MARK, Locator, instead

MARKS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
BLANKS = " "  # the delimiter of any run of blanks
_RARE = ("::", "||", "^", "~", "\x01")  # delimiters that are tried where none of `MARKS` fits
_WORDS = {word: mark for mark, word in MARKS.items()} | {"space": BLANKS, "\\t": "\t"}
_STAND_IN = "\x1f"  # for a delimiter of several bytes
_LOOK = 50  # lines from which the delimiter is found
_FEW = 10  # lines whose count may be one of their numbers by chance
_MAX_LINE = 2**26  # bytes
MAX_CELLS = 1_000_000  # of a line
MAX_COLUMNS = 100_000  # of a table
WHOLE = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)  # 0 or more, in canonical decimal


@dataclass(frozen=True)
class Cut:
    """How a text file is cut into cells: `first` are those of its first line, the others begin at byte `body`.

    `named` is True where the form of the first line shows that it names the columns, False where it cannot.
    """

    where: Locator
    delimiter: str
    quoted: bool
    width: int
    first: list[str]
    named: bool | None
    line: int  # the number of the first line, as an editor counts
    start: int  # bytes before the first line, of UTF-8 with line ends of one byte
    body: int  # bytes before the second line
    below: list[list[str]]  # cells of the next lines
    notes: tuple[str, ...] = ()
    lists: int = 0  # lines of a user and all its items, which were read as pairs

    @property
    def headed(self) -> bool | None:
        """Whether the first line names the columns, None if that is to be found out."""
        return self.where.text.header if self.named is None else self.named

    @property
    def word(self) -> str:
        return "space" if self.delimiter == BLANKS else MARKS.get(self.delimiter, self.delimiter)


def pieces(where: Locator, size: int = -1) -> Iterator[bytes]:
    """The file's whole lines, about `size` bytes at a time (-1: at once), as UTF-8 with line ends of one byte.

    Comment lines, by `where.text.comment`, are left empty. ValueError names the line that is no text.
    """
    with where.open() as raw:
        file, line = _decoded(raw, where.text.encoding), 1
        while read := file.read(size):
            rest = file.readline(_MAX_LINE)
            if len(rest) == _MAX_LINE:
                raise ValueError(f"{where} has a line of more than {_MAX_LINE} bytes; it is no table")
            part = b"".join(text if isinstance(text, bytes) else text.encode() for text in (read, rest))
            part = part.removeprefix(b"\xef\xbb\xbf") if line == 1 else part
            if b"\r" in part:
                part = part.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            yield _checked(part, where, line)
            line += part.count(b"\n") if size > 0 else 1


def _decoded(file: IO[bytes], encoding: str | None) -> "IO[bytes] | TextIOWrapper":
    """The file itself if it is UTF-8, else as text in its `encoding`, or by its byte order mark."""
    start = file.peek(2)[:2]  # pyright: ignore[reportAttributeAccessIssue]
    encoding = encoding or ("utf-16" if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8")
    try:
        return file if codecs.lookup(encoding).name == "utf-8" else TextIOWrapper(file, encoding)  # pyright: ignore[reportArgumentType]
    except LookupError as error:
        raise ValueError(
            f"encoding is {encoding!r}, which is none; type for example cp1252 (Windows), latin-1, utf-16 or utf-8"
        ) from error


def _checked(part: bytes, where: Locator, line: int) -> bytes:
    """`part` without comments; ValueError for what is no UTF-8, and for other formats by their first line."""
    for ending, name, form in _FORMATS if line == 1 else ():
        if form.match(part):
            raise ValueError(f"{where} is in the {name} format: {instead(where.path, ending)}")
    if b"\0" in part:
        raise ValueError(
            f"{where} holds NUL bytes: is it UTF-16 without a byte order mark? Type encoding='utf-16-le' (on "
            "the command line --encoding utf-16-le); otherwise it is no text"
        )
    if not part.isascii():
        try:
            part.decode("utf-8")
        except UnicodeDecodeError as error:
            at = line + part.count(b"\n", 0, error.start)
            raise ValueError(
                f"{where}, line {at} is not UTF-8 text; type its encoding, for example encoding='cp1252' (on the "
                "command line --encoding cp1252), or save it as UTF-8"
            ) from error
    if where.text.comment:
        mark = re.escape(where.text.comment.encode())
        part = re.sub(rb"(?m)^[ \t]*" + mark + rb".*$", b"", part)
    return part


_FORMATS = (  # of files that are no table of text: ending, name, how the file begins
    *((ending, ending[1:], re.compile(re.escape(mark))) for ending, mark in BEGINNINGS.items()),
    (".mtx", "Matrix Market", re.compile(rb"%%MatrixMarket", re.IGNORECASE)),
    (".arff", "ARFF", re.compile(rb"(?:[ \t]*(?:%[^\n]*)?\n)*[ \t]*@relation\b", re.IGNORECASE)),
)


def look(where: Locator, head: bytes, *, lines_only: bool = False) -> Cut:
    """Find out from the first lines of a file how it is cut; ValueError with the options to type where two ways fit.

    lines_only: no cell goes on in the next line.
    """
    lines, hashes = _first_lines(head)
    if not lines and not hashes:
        raise ValueError(f"{where} is empty; it must hold a table")
    given = where.text.delimiter
    mark = EXCEL_MARK.fullmatch((hashes or lines)[0][2] + "\n")
    if mark is not None:
        del (hashes or lines)[0]
        given = given or mark[1]
        if not lines:
            raise ValueError(f"{where} is empty; it must hold a table")
    if not lines:
        lines, hashes = hashes[:_LOOK], []
    texts = [text for *_, text in lines]
    width = 1 + max(text.count(mark) for text in texts for mark in (*MARKS, *_RARE, BLANKS))
    if width > MAX_CELLS:
        raise ValueError(f"{where} has the width {width}; a table has at most {MAX_CELLS}")
    delimiter = _asked(given) if given is not None else sniff(texts, where)
    if all(_SPARSE.fullmatch(text) for text in texts):
        raise ValueError(f"{where} is a matrix in the svmlight format: {instead(where.path, '.svmlight')}")
    if hashes:
        lines, names = _comments(hashes, lines, delimiter)
        texts = [text for *_, text in lines]
    else:
        names = None
    quoted = has_quotes("\n".join(texts).encode(), delimiter, lines_only)
    rows, at = [], 0
    for n, cells in _records(texts, delimiter, quoted):
        rows.append((lines[at][0], lines[at][1] - len(lines[at][2].encode()) - 1, lines[at + n - 1][1], cells))
        at += n
    return _cut(where, delimiter, quoted, rows, names)


def _first_lines(head: bytes) -> tuple[list[tuple[int, int, str]], list[tuple[int, int, str]]]:
    """Number, end and text of lines with something on them, and of those above that begin with #."""
    lines, hashes = list[tuple[int, int, str]](), list[tuple[int, int, str]]()
    stop = 0
    for number in count(1):
        start, stop = stop, head.find(b"\n", stop) + 1
        stop = stop or len(head) + 1
        if start >= len(head) or len(lines) == _LOOK or stop > _MAX_LINE:
            return lines, hashes
        text = head[start : stop - 1].decode("utf-8", "replace")
        if text.strip():
            (hashes if text.startswith("#") and not lines else lines).append((number, stop, text))
    raise AssertionError


def _asked(delimiter: str) -> str:
    mark = _WORDS.get(delimiter, delimiter)
    if not mark or set(mark) & set('"\r\n'):
        raise ValueError(
            f"delimiter is {delimiter!r}; it must be one of {', '.join(_WORDS)}, or the characters between cells, "
            "for example '::', without quotes and line ends"
        )
    return mark if mark.strip(" ") else BLANKS


def sniff(lines: list[str], where: Locator) -> str:
    """The delimiter that cuts all lines below the first into equally many cells, at least two; ValueError for several.

    Blanks part cells only where no other delimiter does, and in a .csv only numbers.
    """
    widths = {mark: _width(lines, mark) for mark in MARKS}
    fits = [mark for mark, width in widths.items() if width > 1]
    if 1 < max(widths.values()) < _width(lines, "::") == _width(lines[:1], "::"):
        fits.append("::")  # the marks may stand in its cells, as in "1::Toy Story::Animation|Comedy"
    if "," in fits and any(_decimal(lines, mark) for mark in fits if mark != ","):
        fits.remove(",")
    if where.suffix == ".tsv" and "\t" in fits:
        return "\t"
    if len(fits) > 1:  # a mark inside cells is seldom in the line of names too; R's has one name fewer
        fits = [mark for mark in fits if _width(lines, mark) - _width(lines[:1], mark) in (0, 1)] or fits
    if len(fits) > 1:
        words = [MARKS.get(mark, mark) for mark in fits]
        named = " or ".join(f"delimiter={word!r}" for word in words)
        raise ValueError(
            f"{where} can be read with several delimiters; type {named} (on the command line --delimiter {words[0]})"
        )
    text = "\n".join(lines)
    if fits == ["|"] and text.count("|") == 2 * text.count("||"):
        return "||"
    fits += [mark for mark in _RARE if not fits and _width(lines, mark) > 1]
    if fits:
        return fits[0]
    blanks = [line.split() for line in lines]
    numbers = all(is_number(cell) for cells in blanks[1:] or blanks for cell in cells[len(cells) > 3 :][:_LOOK])
    if _width(lines, BLANKS) > 1 and (where.suffix != ".csv" or numbers):
        return BLANKS
    shares = {mark: _share(lines, mark) for mark in (*MARKS, *_RARE)}
    most = max(shares, key=lambda mark: shares[mark])
    if shares[most] > 0 and (shares[most] >= 0.5 or not numbers):
        return most
    if max(map(len, blanks)) > 1 and (numbers or (where.suffix == ".txt" and not any(mark in text for mark in MARKS))):
        return BLANKS
    return "\t" if where.suffix == ".tsv" else ","


def _width(lines: list[str], mark: str) -> int:
    """Cells of each line below the first, 0 if they differ."""
    for quoted in (True, False):
        widths = [len(cells) for _, cells in _records(lines, mark, quoted)]
        found = set(widths[1:] or widths)
        if len(found) == 1:
            return found.pop()
    return 0


def _share(lines: list[str], mark: str) -> float:
    """The share of lines with the usual number of cells, 0 if that is one."""
    (width, n), *_ = Counter(len(cells) for _, cells in _records(lines, mark, False)).most_common()
    return n / len(lines) if width > 1 else 0.0


def _decimal(lines: list[str], mark: str) -> bool:
    """Whether commas stand only in cells that are numbers, where `mark` parts cells."""
    cells = [cell for _, cells in _records(lines, mark, True) for cell in cells if "," in cell]
    return bool(cells) and all(map(DECIMAL.fullmatch, cells))


_TOKEN = re.compile(r'"((?:[^"]|"")*)"(?=\s|$)|(\S+)')


def _records(lines: list[str], delimiter: str, quoted: bool) -> Iterator[tuple[int, list[str]]]:
    """Lines taken, and cells, of each record of these lines."""
    if not quoted or not any('"' in line for line in lines):
        for line in lines:
            if delimiter == BLANKS:
                yield 1, line.split()
            else:
                cells = line.split(delimiter)
                yield 1, [cell.strip(" \t") for cell in cells] if " " in line or "\t" in line else cells
    elif delimiter == BLANKS:
        for line in lines:
            yield 1, [word or inner.replace('""', '"') for inner, word in _TOKEN.findall(line)]
    else:
        mark = delimiter if len(delimiter) == 1 else _STAND_IN
        texts = (f"{line.replace(delimiter, mark)}\n" for line in lines)
        reader, taken = csv.reader(texts, delimiter=mark, skipinitialspace=True), 0
        csv.field_size_limit(_MAX_LINE)
        for cells in reader:
            yield reader.line_num - taken, [cell.strip(" \t").replace(mark, delimiter) for cell in cells]
            taken = reader.line_num


def has_quotes(data: bytes, delimiter: str, lines: bool = False) -> bool:
    """Whether quotes enclose cells, rather than being letters, such as the word " of GloVe's files and the id 5".

    They are letters where a line has one that encloses nothing and no cell of a line is enclosed. With `lines`, cells
    end on their lines, and one such line is enough.
    """
    if b'"' not in data:
        return False
    marks = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(marks == 10)
    counts = np.diff(np.searchsorted(np.flatnonzero(marks == 34), ends), prepend=0)
    last = data[int(ends[-1]) if len(ends) else 0 :].count(b'"')
    if not (counts % 2).any() and last % 2 == 0:
        return True
    part = rb"[ \t]" if delimiter == BLANKS else re.escape(delimiter.encode())
    if lines or re.search(rb"(?m)(?:^|" + part + rb')"(?:[^"\n]|"")*"(?=' + part + rb"|$)", data):
        return not lines
    return _encloses(data, delimiter.encode())


def _encloses(data: bytes, mark: bytes) -> bool:
    """Whether every quote begins or ends a cell, as those around cells of several lines do."""
    data = b"\n" + data.rstrip(b"\n") + b"\n"
    opens = sum(data.count(edge + b'"') for edge in (mark, b"\n"))
    closes = sum(data.count(b'"' + edge) for edge in (mark, b"\n"))
    alone = sum(data.count(a + b'"' + b) for a in (mark, b"\n") for b in (mark, b"\n"))
    tail = data.rfind(b'"')
    cut = data[tail - 1 : tail] in (mark[-1:], b"\n") and b"\n" not in data[tail + 2 : -1] and not alone
    return (opens == closes and opens + closes == data.count(b'"') and not alone) or cut


def _comments(
    hashes: list[tuple[int, int, str]], lines: list[tuple[int, int, str]], delimiter: str
) -> tuple[list[tuple[int, int, str]], list[str] | None]:
    """The lines of data, and the names that the last comment line has for their columns, or None.

    A line that begins with # is data where its other cells are numbers, as of words' vectors, or names stand again.
    """
    rows = [cells for _, cells in _records([text for *_, text in lines], delimiter, True)]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    below = {cell for cells in rows for cell in cells}
    for place, (*_, text) in enumerate(hashes):
        ((_, cells),) = list(_records([text], delimiter, False))[:1]
        again = any(cell.startswith("#") for cell in below) or not below.isdisjoint(cells)
        if len(cells) == width > 1 and (again or all(map(is_number, cells[1:]))):
            return [*hashes[place:], *lines], None
    ((_, names),) = list(_records([hashes[-1][2].lstrip("# \t")], delimiter, True))[:1]
    is_head = len(names) == width > 1 and not any(map(is_number, names)) and below.isdisjoint(names)
    return lines, names if is_head else None


_LABEL = r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?"
_SPARSE = re.compile(rf"{_LABEL}(,{_LABEL})*( (\d+|qid):[-+.\deE]+)+(\s*#.*)?\s*")  # a row of svmlight
Row = tuple[int, int, int, list[str]]  # number, start and end of a line, and its cells


def _cut(where: Locator, delimiter: str, quoted: bool, rows: list[Row], names: list[str] | None) -> Cut:
    """The width of the rows, and what the first line is where its width is another."""
    notes: tuple[str, ...] = ()
    named = None
    counts = re.fullmatch(r"(\d+)\D+(\d+)", delimiter.join(rows[0][3])) if len(rows) > 1 else None
    if counts is not None and names is None and where.text.header is None:
        width = len(rows[1][3])
        other = len(rows[0][3]) != width or not is_number(rows[1][3][0])
        if other and int(counts[2]) in (width, width - 1):  # as word2vec and fastText write it
            rows, named, notes = rows[1:], False, ("the first line, which counts rows and columns",)
    number, start, body, first = rows[0]
    below = rows if names is not None else rows[1:]
    rule = "".join(below[0][3]) if names is None and len(below) > 1 else ""
    if "--" in rule and set(rule) <= set("-+:="):  # between names and rows, as Markdown and psql write it
        body, below = below[0][2], below[1:]
    width = Counter(len(cells) for *_, cells in below or rows).most_common(1)[0][0]
    cells_below = [cells for *_, cells in below]
    if names is not None:
        return Cut(where, delimiter, quoted, width, names, True, number, start, start, cells_below, notes)
    if len(first) == width + 1 and not first[-1]:
        first = first[:-1]
    elif len(first) == width - 1 and not any(cells[-1] for *_, cells in below):
        first = [*first, ""]
    elif len(first) == width - 1 and where.text.header is not False and not any(map(is_number, first)):
        firsts = [cells[0] for *_, cells in below if len(cells) == width]  # row names, as R writes them
        if len(set(firsts)) == len(firsts) and (width > 2 or firsts == [str(n + 1) for n in range(len(firsts))]):
            first, named = ["", *first], True
    return Cut(where, delimiter, quoted, width, first, named, number, start, body, cells_below, notes)


def table_cells(where: Locator) -> tuple[Cut, list[pa.Array]]:
    """How a file is cut, and the columns of cells below its first line; ValueError that names the line at fault."""
    data = next(pieces(where), b"")
    cut = look(where, data)
    if cut.width > MAX_COLUMNS:
        raise ValueError(f"{where} has {counted(cut.width, 'column')}; a table has at most {MAX_COLUMNS}")
    cut = replace(cut, quoted=has_quotes(data[cut.start :], cut.delimiter))
    try:
        columns = read_cells(cut, data[cut.body :], list(range(cut.width)))
    except pa.ArrowInvalid:
        columns = []
    if len(columns) < cut.width or len(cut.first) != cut.width:
        return _pairs_of_lines(cut, data)
    if cut.width == 1:
        columns = [column.filter(compute.not_equal(compute.utf8_trim(column, " \t"), "")) for column in columns]
    first = list(cut.first)
    while len(first) > 1 and not first[-1] and not compute.any(compute.not_equal(columns[-1], "")).as_py():
        first, columns = first[:-1], columns[:-1]  # a delimiter at the end of every line
    if len(first) > 1 and len(columns[0]) and not any(column[-1].as_py() for column in columns):
        empty = [compute.equal(column, "") for column in columns]  # rows of delimiters alone, as Excel leaves them
        keep = compute.invert(reduce(compute.and_, empty))
        columns = [column.filter(keep) for column in columns]
    if cut.named is None and where.text.header is None and _counts_entries(first, columns):
        first, columns = [column[0].as_py() for column in columns], [column[1:] for column in columns]
        cut = replace(cut, named=False, notes=(*cut.notes, "the first line, which counts rows, columns and entries"))
    return replace(cut, first=first, width=len(first)), columns


def _counts_entries(first: list[str], columns: list[pa.Array]) -> bool:
    """Whether a first line counts rows, columns and entries of the lines below, as in Matrix Market files."""
    if len(first) != 3 or not all(map(WHOLE.fullmatch, first)) or int(first[2]) != max(len(columns[0]), _FEW):
        return False
    sides = [integers(column) for column in columns[:2]]
    return all(n is not None and n.min() > 0 and n.max() <= int(most) for n, most in zip(sides, first, strict=False))


def read_cells(cut: Cut, lines: bytes, places: list[int], decimal: str | None = None) -> list[pa.Array]:
    """The cells of some columns: text, or float64 with this `decimal` point; ArrowInvalid if a line or cell is none."""
    kind = pa.string() if decimal is None else pa.float64()
    body, mark = parted(lines, cut.delimiter, cut.quoted)
    if not body.strip():
        return [pa.array([], kind) for _ in places]
    bad = list[str]()

    def skip(row: arrow.InvalidRow) -> str:
        bad.extend([row.text] if row.text.strip() else [])
        return "skip"

    parse = arrow.ParseOptions(delimiter=mark, quote_char='"' if cut.quoted else False, invalid_row_handler=skip)
    parse.newlines_in_values = cut.quoted
    names = [str(place) for place in places]
    convert = arrow.ConvertOptions(check_utf8=False, column_types=dict.fromkeys(names, kind), null_values=[])
    convert.include_columns, convert.decimal_point = names, decimal or "."
    for size in (min(max(2**20, 2**14 * cut.width), 2**30), len(body) + 1):  # a block has many cells of each column
        try:
            read = arrow.ReadOptions(column_names=[str(place) for place in range(cut.width)], block_size=size)
            table = arrow.read_csv(pa.py_buffer(body), read, parse, convert)
            break
        except pa.ArrowInvalid:
            if size > len(body):  # else a record may be longer than a block
                raise
    if bad:
        raise pa.ArrowInvalid(bad[0])
    columns = [c.chunk(0) if c.num_chunks == 1 else c.combine_chunks() for c in table.columns]
    if mark == _STAND_IN and cut.quoted and decimal is None:
        columns = [compute.replace_substring(column, mark, cut.delimiter) for column in columns]
    if decimal is None and (b" " in body or b"\t" in body):
        columns = [compute.ascii_trim(column, " \t") for column in columns]
    return columns


def named_columns(first: list[str], cells: list[pa.Array], headed: bool, source: str) -> list[Column]:
    """Columns by a first line of names, or by their places where it is data."""
    if not headed:
        cells = [pa.concat_arrays([pa.array([name]), column]) for name, column in zip(first, cells, strict=True)]
        first = [str(place) for place in range(len(first))]
    return [Column(name, column, source) for name, column in zip(first, cells, strict=True)]


def parted(data: bytes, delimiter: str, quoted: bool) -> tuple[bytes, str]:
    """`data` with one byte between cells, and that byte."""
    if delimiter != BLANKS:
        one = len(delimiter.encode()) == 1
        return (data, delimiter) if one else (data.replace(delimiter.encode(), _STAND_IN.encode()), _STAND_IN)
    if any(two in data for two in (b"  ", b"\t", b"\n ", b" \n")) or data[:1] == b" " or data[-1:] == b" ":
        if quoted and b'"' in data:
            data = re.sub(rb'("(?:[^"\n]|"")*")|[ \t]+', lambda found: found[1] or b" ", data)
        else:
            data = re.sub(rb"[ \t]+", b" ", data)
        data = re.sub(rb"(?m)^ | $", b"", data)
    return data, BLANKS


def numbered_rows(cut: Cut, data: bytes, first: int) -> Iterator[tuple[int, list[str]]]:
    """Number of the line, and cells, of each record that is not blank; `first` is the number of the first line."""
    lines = data.decode("utf-8").split("\n")
    numbers = [n for n, line in enumerate(lines, first) if line.strip()]
    at = 0
    for n, cells in _records([line for line in lines if line.strip()], cut.delimiter, cut.quoted):
        yield numbers[at], cells
        at += n


def _pairs_of_lines(cut: Cut, data: bytes) -> tuple[Cut, list[pa.Array]]:
    """Pairs from lines of a user and all its items, as LightGCN's; ValueError that names the line of another width."""
    rows = list(numbered_rows(cut, data[cut.start :], cut.line))
    lists = [[cell for cell in cells if cell] for _, cells in rows]
    widths = Counter(map(len, lists))
    header = cut.where.text.header
    users = [cells[0] for cells in lists if cells]
    whole = all(WHOLE.fullmatch(cell) for cells in lists for cell in cells)
    words = len(widths) > 2 and not any(" " in cell for cells in lists for cell in cells)
    may_be = (whole or words) and len(set(users)) == len(users)
    flat = [(cells[0].removesuffix(":"), item) for cells in lists for item in cells[1:]]
    known = len(widths) > 1 if header is False else whole and len(widths) > 2 and header is None
    if not may_be or not known or not flat:
        raise ValueError(width_fault(cut, rows, may_be))
    made = replace(cut, width=2, first=list(flat[0]), named=False, lists=len(lists))
    return made, [pa.array([pair[side] for pair in flat[1:]], pa.string()) for side in (0, 1)]


def width_fault(cut: Cut, rows: list[tuple[int, list[str]]], may_be: bool = False) -> str:
    """Name the line of another width than the usual one; `may_be`: lines may be a user and all its items."""
    widths = Counter(len(cells) for _, cells in rows)
    usual = max(widths, key=lambda width: (widths[width], width))
    if may_be and len(widths) > 1 and cut.where.text.header is None:
        return (
            f"{cut.where} has lines of {min(widths)} to {counted(max(widths), 'cell')}; if each is a user and all "
            "its items, type header=False (on the command line --no-header); otherwise give every line as many cells"
        )
    for at, (number, cells) in enumerate(rows):
        if len(cells) != usual:
            found = f"{cut.where}, line {number}: {counted(len(cells), 'cell')} where"
            if '"' in "".join(cells):
                return f"{found} other lines have {usual}; a quoted cell of it does not end, or has text behind it"
            if at == 0 and len(widths) > 3:
                return (
                    f"{cut.where} has lines of {min(widths)} to {counted(max(widths), 'cell')}; give every line as "
                    "many, or name another delimiter=... (--delimiter)"
                )
            if at == 0 and widths[usual] > 1:
                title = f"is {cut.delimiter.join(cells)[:40]!r} the title of the table? Delete it, or begin it with #"
                return f"{found} the lines below have {usual}; {title}"
            return f"{found} other lines have {usual}; correct that line, or name another delimiter=... (--delimiter)"
    return f"{cut.where} cannot be cut into cells at {cut.word!r}; name another delimiter=... (--delimiter)"
