"""Files: where they lie, failures to read in words, and tables of text, cut by the delimiter of their first line."""

import glob
import io
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow

from nearkin._check import check_instance
from nearkin._fields import Record, StrPath, counted, shortened
from nearkin._storage import regular_file

TEXT = (".csv", ".tsv", ".txt", ".dat", ".data", ".tab", ".vec", ".inter")  # lines of cells
SHEET = ".xlsx"
JSON = (".jsonl", ".ndjson")  # an object a line
FRAMES = (".parquet", ".feather", ".arrow", *JSON)  # typed columns
TABLES = (*TEXT, SHEET, *FRAMES, ".npz")
_WITH_KEYS = (".h5", ".hdf5", ".safetensors", *TABLES)
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")  # of text and of JSON lines
_INSTEAD = {  # endings that are not read -> what to type
    **dict.fromkeys((".zip", ".xz", *_COMPRESSED), "unpack {path!r} first; only text is read compressed, as .csv.gz"),
    **dict.fromkeys((".xls", ".ods"), "save the sheet as .xlsx or .csv"),
    **dict.fromkeys((".pt", ".pth"), "np.save('X.npy', torch.load({path!r}).float().numpy())"),
    **dict.fromkeys((".pkl", ".pickle"), "np.save('X.npy', pandas.read_pickle({path!r})), if you trust who wrote it"),
    ".npy": "np.savez('X.npz', triplets=np.load({path!r})) of comparisons, or pass pandas.DataFrame(np.load({path!r}))",
    ".json": "the ending .jsonl if every line is an object, else pandas.read_json({path!r}).to_parquet('t.parquet')",
    **{f".{at}": f"pandas.read_{name}({{path!r}})" for at, name in (("sav", "spss"), ("dta", "stata"), ("orc", "orc"))},
    "/.lance": "pass lance.dataset({path!r}).to_table()",
    "/_delta_log": "pass deltalake.DeltaTable({path!r}).to_pyarrow_table()",
    ".mtx": "scipy.sparse.save_npz('m.npz', scipy.io.mmread({path!r}).tocsr())",
    ".bin": "gensim.models.KeyedVectors.load_word2vec_format({path!r}, binary=True).save_word2vec_format('v.vec')",
}


@dataclass(frozen=True)
class Locator:
    """A file and what is named inside it: an array of an archive, or columns of a table, parted by commas; or None."""

    path: Path
    key: str | None = None

    def __str__(self) -> str:
        return str(self.path) if self.key is None else f"{self.path}:{self.key}"

    @property
    def suffix(self) -> str:
        """The ending, in lower case; of compressed text the one before it."""
        last = self.path.suffix.lower()
        inner = Path(self.path.stem).suffix.lower() if last in _COMPRESSED else last
        return inner if inner in (*TEXT, *JSON, ".json") else last

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.path.stat().st_size

    @property
    def columns(self) -> list[str] | None:
        """The columns of a table that the key names."""
        return None if self.key is None else self.key.split(",")


def locate(path: StrPath, endings: Collection[str] = (), text: "TextWords | None" = None) -> Locator:
    """Split `file.npz:key` and `file.csv:column,column` and look at the file.

    A name without a key, or one whose part before the colon has no such ending, is a plain path. Raises
    FileNotFoundError if nothing is there, and ValueError for a folder, a FIFO, a device or an empty file, for an ending
    that is none of `endings`, unless there are none, and for an option of `text` where the file holds none.
    """
    return _there(*_split(os.fspath(path)), endings, text or {})


def _split(text: str) -> tuple[str, str | None]:
    """The name of a file, and what is named inside it."""
    heads = [text[: colon.start()] for colon in re.finditer(":", text)]  # a column's name may hold more colons
    heads = [head for head in heads if Locator(Path(head)).suffix in _WITH_KEYS or os.path.isdir(head)]
    if not heads or os.path.exists(text):
        return text, None
    head = next(filter(os.path.exists, heads), heads[0])
    return head, text[len(head) + 1 :]


def _there(name: StrPath, key: str | None, endings: Collection[str], text: "TextWords") -> Locator:
    if not os.path.isfile(name):
        regular_file(name)  # raises with what it is
    if os.path.getsize(name) == 0:
        raise ValueError(f"{name} is an empty file (0 bytes); write it again, or delete it")
    where = Locator(Path(name), key)
    if endings and where.suffix not in endings:
        ending = f"ends in {where.suffix!r}" if where.suffix else "has no ending"
        way = _INSTEAD.get(where.suffix, "the ending names the format; rename text to .csv, or export another")
        raise ValueError(f"{name} {ending}; read are {', '.join(endings)}. Type: {way.format(path=str(name))}")
    if where.suffix not in TEXT:
        refuse_text(where, text, allowed=("header",) if where.suffix == SHEET else ())
    return where


def refuse_text(what: object, text: "TextWords", allowed: Collection[str] = ()) -> None:
    """ValueError for an option of text that is typed for what is none, unless it is `allowed`."""
    if typed := [option for option, value in text.items() if value is not None and option not in allowed]:
        raise ValueError(f"{typed[0]} is for text files, and {what} is none; leave {typed[0]} out")


def locate_all(paths: StrPath | Iterable[StrPath], endings: Collection[str], text: "TextWords") -> list[Locator]:
    """The files that a name, a folder of parts, a pattern ("parts/*.npy", "parts/*.npz:key") or a list of them names;
    ValueError as of `locate`.

    Parts come in the order of the numbers in their names: part-2 before part-10. A folder's parts are all its files
    but those that begin with "_" or "."; they have one ending. FileNotFoundError if nothing is there.
    """
    if not isinstance(paths, str | os.PathLike):
        if not isinstance(paths, Iterable):
            raise TypeError(f"the file is a {type(paths).__name__}; it must be a path, pattern, list or DataFrame")
        if not (places := [where for name in paths for where in locate_all(name, endings, text)]):
            raise ValueError("the list of files is empty; give at least one")
        return places
    head, key = _split(os.fspath(paths))
    names = _parts_of(Path(head)) if os.path.isdir(head) else [head]
    if glob.has_magic(head) and not os.path.exists(head) and not (names := glob.glob(head, recursive=True)):
        raise FileNotFoundError(f"{head} matches no file; check the pattern (current folder: {Path.cwd()})")
    return [_there(name, key, endings, text) for name in sorted(names, key=by_number)]


def by_number(name: object) -> list[tuple[str, int]]:
    """A key that sorts names by the numbers in them."""
    parts = re.split(r"(\d{1,18})", str(name))
    return [(text, int(number or 0)) for text, number in zip(parts[::2], [*parts[1::2], ""], strict=True)]


def numbered(names: Iterable[str]) -> list[str]:
    """Those of one prefix and a number (f0, f1, ...) by their numbers; none if there are several prefixes, or a gap.

    >>> numbered(["rank10", "rank9", "name"]), numbered(["f0", "f1", "g2"])
    (['rank9', 'rank10'], [])
    """
    found = [match for name in names if (match := re.fullmatch(r"(.*?)(\d{1,9})", name, re.DOTALL))]
    places = {int(match[2]): match[0] for match in found}
    is_one = len({match[1] for match in found}) == 1 and len(places) == len(found) == max(places) - min(places) + 1
    return [places[place] for place in sorted(places)] if is_one else []


def _parts_of(folder: Path) -> list[Path]:
    names = [path for path in folder.iterdir() if path.name[0] not in "._"]
    endings = {"/" if path.is_dir() else Locator(path).suffix for path in names}
    kind = "/_delta_log" if (folder / "_delta_log").exists() else f"/{folder.suffix}"  # its log says which are valid
    if len(endings) != 1 or "/" in endings or kind in _INSTEAD:
        ending = max({Locator(path).suffix for path in folder.rglob("[!._]*")} & {*_WITH_KEYS, ".npy"}, default=".csv")
        way = f"give parts of one table by a pattern: '{folder}/**/*{ending}'"
        if any("=" in path.name for path in names):  # Hive's: a column's value is the folder's name
            way = f"pass pyarrow.dataset.dataset('{folder}', format={ending[1:]!r}, partitioning='hive').to_table()"
        way = _INSTEAD[kind].format(path=str(folder)) if kind in _INSTEAD else way
        what = "holds folders" if "/" in endings else f"is a folder of {sorted(endings)}"
        raise ValueError(f"{folder} {what}; {way}")
    return names


def extra(module: str, name: str) -> ModuleType:
    """An optional module, loaded where it is needed; ImportError that names the extra of nearkin's to install."""
    try:
        return import_module(module)
    except ImportError as error:
        text = f"this needs {module.partition('.')[0]}, which is not installed or cannot be loaded ({error})"
        raise ImportError(f"{text}: pip install 'nearkin[{name}]'") from error


@contextmanager
def brief(roles: str = "") -> Iterator[None]:
    """Cut the middle out of a longer message: it quotes names and cells, which may have any length. Where it proposes
    header=False, add which `roles` the caller then types by the columns' places."""
    try:
        yield
    except (ValueError, TypeError) as error:
        way = rf"\g<0> (columns are then called 0, 1, ...: {roles})"
        text = shortened(re.sub(r"header=False(?! \(| out)", way, str(error)) if roles else str(error))
        if type(error) not in (ValueError, TypeError) or text == str(error):
            raise
        raise type(error)(text) from None


_MARKS = {"\t": "tab", "|": "bar", ";": "semicolon", ",": "comma"}  # that a first line tells; the rarest in cells first
_TITLES = {**_MARKS, " ": "space"}
_WORDS = {word: mark for mark, word in _TITLES.items()} | {"\\t": "\t"}
_STAND_IN = "\x1f"  # for a delimiter of several bytes, and for none
NO_NAME = "(no name "  # begins what a column is called whose header is empty
USUAL = "with frame = pandas.read_csv(path, sep=',', encoding='utf-8', dtype=str): "
_LONGEST = 2**26  # bytes of a line
MAX_WIDTH = 1_000_000  # columns; a wider table is one that was written on its side, or is damaged
_SIZES = re.compile(r"(\d+) \d+\s*")  # in the first line of word2vec's text format
NUMBER = re.compile(r"\s*[-+]?[\d.]+(e[-+]?\d+)?\s*", re.IGNORECASE)


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
        check_instance(self.header, "header", bool)
        if self.delimiter == "" or not isinstance(self.delimiter, str | None):
            raise ValueError(f"delimiter is {self.delimiter!r}; it must be text, for example ',' or 'tab', or None")
        try:
            "".encode(self.encoding)
        except (LookupError, TypeError) as error:
            raise ValueError(f"encoding is {self.encoding!r}; it must be such as 'cp1252' or 'utf-16'") from error


_PLAIN = TextOptions()
_SHARED = ContextVar("_SHARED", default=_PLAIN)


def text_of(options: TextWords) -> TextOptions:
    """Options as a call has them, else those of `text_options`."""
    typed: Record = {name: value for name, value in options.items() if value is not None}
    return replace(_SHARED.get(), **typed) if typed else _SHARED.get()


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


class Text(NamedTuple):
    """A text table: its cells as text, by name; the delimiter in words, None for lines of one cell; the number of the
    first row's line, None where cells hold line breaks; and what makes pandas' frame of it, in words."""

    cells: pa.Table
    header: bool
    delimiter: str | None
    line: int | None
    before: str


def read_text(where: Locator, options: TextOptions) -> Text:
    """The cells of a text file.

    ValueError that names what to type for another encoding, a first line of numbers under header=True, two columns of
    one name, a first line with several of the four delimiters, a line of another width, and an open quote.
    """
    data = read_utf8(where, options.encoding)
    header, typed, sizes = options.header, _WORDS.get(options.delimiter or "", options.delimiter), None
    if where.suffix == ".vec":  # word2vec's text format: two sizes, then words and vectors
        header, typed = False, typed or " "
        line, _, rest = data.partition(b"\n")
        sizes = _SIZES.fullmatch(line.decode())
        data = rest if sizes else data
    first = re.split("[\r\n]", io.BytesIO(data).readline().decode(), maxsplit=1)[0]
    typed = _mark_of(where, first) if typed is None else typed
    mark = typed or _STAND_IN
    if len(mark.encode()) > 1:
        data, mark = data.replace(mark.encode(), _STAND_IN.encode()), _STAND_IN
    data, marks = data if b"\n" in data else data + b"\n", first.count(typed) if typed else 0
    if marks >= MAX_WIDTH:
        raise ValueError(f"{where} has {counted(marks + 1, 'cell')} in its first line, of at most {MAX_WIDTH:,}")
    try:
        cells = _cells(data, mark, header, marks)
    except pa.ArrowInvalid as error:
        place = re.match(r".*?Row #(\d+): (.*)", str(error), re.DOTALL)
        at, why = (f", line {int(place[1]) + (sizes is not None)}", place[2]) if place else ("", str(error))
        way = "correct the line, close a quote, or type another delimiter=... (word2vec's text has the ending .vec)"
        if place and place[1] == "2" and "\\" not in why:
            way += f"; if line 1 is none of the table: pandas.read_csv(path, sep={typed!r}, skiprows=1)"
            if re.match(rf"\D+{marks + 1}\D+{marks + 2}:", why) and not why.endswith(typed or "\n"):
                way += f", if it is a name short, as of R: pandas.read_csv(path, sep={typed!r})"
        raise ValueError(f"{where}{at}: {why[:200]}; {way}") from None
    if mark == " " and not any(map(str, cells.columns[-1])):  # fastText ends its lines with a blank
        cells = cells.remove_column(marks)
    if set(cells.schema.types) != {pa.string()} or not first:
        raise ValueError(f"{where} begins with an empty line, or one that ends within quotes; delete or correct it")
    names = named(where, [column[0].as_py() for column in cells.columns], header)
    if where.suffix == ".vec":
        names[0] = "word"
    cells = cells.slice(int(header)).rename_columns(names)
    if sizes and int(sizes[1]) != cells.num_rows:
        raise ValueError(f"{where} announces {counted(int(sizes[1]), 'row')} and has {cells.num_rows:,}; copy it again")
    breaks = np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n"))  # several times as fast as `count`
    line = 1 + header + bool(sizes) if breaks <= cells.num_rows + header else None
    last = str(cells.columns[-1][-1]) if cells.num_rows else ""
    rows = [last] if "\n" in last and not data.rstrip(b"\r\n").endswith(b'"') else []
    for column in cells.columns if line is None and mark == "\t" else ():  # rows with their tabs in one cell
        rows += [cell for cell in column.to_pylist() if 0 < marks * cell.count("\n") == cell.count("\t")]
    reading = f"pandas.read_csv(path, sep={typed or ','!r}, encoding={options.encoding!r}, dtype=str"
    if rows:
        raise ValueError(f"{where}: a quote is not closed, before {rows[0][:60]!r}; close it, or {reading}, quoting=3)")
    reading += ")" if header else ", header=None).rename(columns=str)"
    before = f"with frame = {reading}: "
    return Text(cells, header, typed and _TITLES.get(typed, typed), line, before * (before != USUAL))


def _cells(data: bytes, mark: str, header: bool, marks: int) -> pa.Table:
    """The cells as text, with the header's; pyarrow's errors. The first line has at most `marks` + 1 of them."""
    quote = '"' if header or mark not in (" ", _STAND_IN) else False  # GloVe has no header, and a word of one quote
    # the errors of one thread name rows
    read = arrow.ReadOptions(use_threads=False, block_size=min(_LONGEST, len(data)), autogenerate_column_names=True)
    parse = arrow.ParseOptions(delimiter=mark, quote_char=quote, newlines_in_values=bool(quote))
    types = {f"f{place}": pa.string() for place in range(marks + 1)}
    text = arrow.ConvertOptions(column_types=types, strings_can_be_null=False)
    return arrow.read_csv(pa.BufferReader(data), read_options=read, parse_options=parse, convert_options=text)


def read_utf8(where: Locator, encoding: str) -> bytes:
    """The content of a text file as UTF-8; ValueError that names what to type for another encoding."""
    with pa.input_stream(str(where.path), compression="detect") as stream:
        data = stream.read()
    if encoding == "utf-8" and data.isascii() and b"\0" not in data:
        return data  # decoding copies
    other = f"; it begins with {data[:12]!r}: rename it if that is no text"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line, way = 1 + data.count(b"\n", 0, error.start), f"for example encoding='cp1252' or 'utf-16'{other}"
        raise ValueError(f"{where}, line {line} is not {encoding.upper()} text; type its encoding, {way}") from error
    if "\0" in text:
        raise ValueError(f"{where} holds NUL bytes; type encoding='utf-16'{other}")
    return data.removeprefix(b"\xef\xbb\xbf") if encoding == "utf-8" else text.removeprefix("\ufeff").encode()


def _mark_of(where: Locator, first: str) -> str | None:
    """The only usual delimiter of the first line, or None."""
    bare = re.sub(r'"[^"]*"', "", first)
    marks = [mark for mark in _MARKS if mark in bare]
    if len(marks) > 1:
        words, way = " and ".join(_MARKS[mark] for mark in marks), f"delimiter={_MARKS[marks[0]]!r}"
        raise ValueError(f"{where} has a first line with {words}; type which one parts the cells: {way}")
    return marks[0] if marks else None


def named(where: Locator, cells: list[str], header: bool) -> list[str]:
    """The names of columns, whose first cells are these: their places without a `header`.

    ValueError for an empty line, for numbers alone, and for two columns of one name.
    """
    if not header:
        return [str(place) for place in range(len(cells))]
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise ValueError(f"{where} begins with empty cells: names of columns are needed, or header=False")
    if all(map(NUMBER.fullmatch, cells)):
        what = f"{where} begins with numbers ({', '.join(cells)[:60]}), not with names of columns"
        raise ValueError(
            f"{what}; type header=False if they are data; pandas' names: frame.add_prefix('f').to_csv(...)"
        )
    if twice := [name for name, count in Counter(names).items() if name and count > 1]:
        raise ValueError(f"{where} has two columns called {twice[0]!r}; rename one, or header=False")
    return [name or f"{NO_NAME}{place})" for place, name in enumerate(names)]


def unparted(where: object, line: str) -> str:
    """The text of the error for a table without any of the four delimiters in its first line, with what is there."""
    mark = next(filter(None, (re.search(pattern, line) for pattern in ("::", r"\s", r"[^\w.+-]+"))), None)
    way = "" if mark is None else f": delimiter={mark[0]!r}"
    way += ". Word2vec's text format, which begins with two sizes, has the ending .vec" * bool(_SIZES.fullmatch(line))
    what = f"{where} has a first line without comma, semicolon, tab or bar ({line[:60]})"
    return f"{what}; if it is no header: pandas.read_csv(path, skiprows=1), else type what parts its cells{way}"


def as_number(column: str, cells: list[str], odd: list[str], few: bool) -> str:
    """The line of pandas that makes numbers of the different `cells` of a column, of which some are `odd`: by taking
    away the unit and the marks that all have. Otherwise, where these are `few`, it makes them missing."""
    for mark, thousands in ((".", ","), (",", ".")):
        number = rf"(?:\d+|\d{{1,3}}(?:[{thousands}' \xa0]\d{{3}})+)(?:[{mark}]\d+)?"
        pattern = rf"([^\d\n]*?)[-+]?{number}([^\d\n]*|/\d+)(\n\1[-+]?{number}\2)*"
        if unit := re.fullmatch(pattern, text := "\n".join(cells)):
            digits = text.replace(unit[1], "").replace(unit[2], "")
            signs = {unit[1], unit[2], *re.sub(rf"[\d\n+{mark}-]", "", digits)} - {""}
            less = "".join(f".str.replace({sign[:40]!r}, '')" for sign in sorted(signs))
            less += ".str.replace(',', '.')" * (mark == ",")
            return f"type {column} = {column}{less}.astype(float)"
    if few:
        return f"to make them missing, type {column} = pandas.to_numeric({column}, errors='coerce')"
    numbers = ", ".join(f"{cell[:40]!r}: ..." for cell in odd[:5])
    return f"write the number of each: {column} = {column}.map({{{numbers}}})"
