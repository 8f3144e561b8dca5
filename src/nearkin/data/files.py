"""The location of an array: a file, or a named array inside one, written `file.npz:key`."""

import bz2
import csv
import glob
import gzip
import json
import lzma
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import date, time
from importlib import import_module
from io import BufferedReader, BytesIO, StringIO
from pathlib import Path
from types import ModuleType
from typing import IO, Any, TypedDict, Unpack

from nearkin._fields import StrPath, quoted, shortened
from nearkin._storage import is_of_system, regular_file

TEXT = (".csv", ".tsv", ".txt", ".dat", ".data", ".tab", ".vec", ".inter", ".xlsx")  # fastText's, RecBole's, a sheet
PACKED = {"ubinary": ("uint8", "big"), "binary": ("int8", "big"), "ubinary-little": ("uint8", "little")}  # of bits
JSON = (".jsonl", ".ndjson", ".json")  # one object a line, or a list of them
FRAMES = (".feather", ".arrow", *JSON)  # read whole, as a DataFrame is
_WITH_KEYS = (".npz", ".parquet", ".h5", ".hdf5", ".safetensors", *TEXT, *FRAMES)
_OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}  # of compressed text
_UNPACK = {".gz": "gunzip -k", ".bz2": "bunzip2 -k", ".xz": "unxz -k", ".zst": "unzstd", ".zip": "unzip"}
BEGINNINGS = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ", ".parquet": b"PAR1", ".npy": b"\x93NUMPY", ".zip": b"PK\3\4"}
"""How files of these endings begin."""
_INSTEAD = {  # endings that are not read -> how to write one that is
    **{ending: f"give it the ending {ending}" for ending in BEGINNINGS},
    ".zip": "give it the ending .xlsx or .npz if it is one, else unzip it",
    **dict.fromkeys((".xls", ".ods"), "save the sheet as CSV (UTF-8)"),
    **dict.fromkeys((".pt", ".pth"), "load the tensor X and type np.save('X.npy', X.float().numpy())"),
    ".mtx": "load it and type scipy.sparse.save_npz('m.npz', scipy.io.mmread({path!r}).tocsr())",
    **dict.fromkeys(
        (".svmlight", ".libsvm", ".svm"),
        "load it and type scipy.sparse.save_npz('m.npz', sklearn.datasets.load_svmlight_file({path!r})[0])",
    ),
    ".arff": "read it by frame = pandas.DataFrame(scipy.io.arff.loadarff({path!r})[0]) and pass the DataFrame",
    ".mat": "load the array X by scipy.io.loadmat and type np.save('X.npy', X)",
    ".bin": "if gensim wrote it, load it there as kv and type kv.save_word2vec_format('vectors.txt')",
    **dict.fromkeys((".dta", ".sav"), "read it by pandas and pass the DataFrame, or type frame.to_csv('table.csv')"),
}
EXCEL_MARK = re.compile(r'"?sep=([,;|\t])"?\r?\n', re.IGNORECASE | re.ASCII)  # a first line that names the delimiter
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, json.JSONDecodeError, struct.error)


@dataclass(frozen=True)
class TextOptions:
    """How a text file is to be read; what is None is found out."""

    header: bool | None = None  # whether its first line names the columns
    delimiter: str | None = None
    encoding: str | None = None
    comment: str | None = None  # what lines that are left out begin with

    def __post_init__(self) -> None:
        if self.header not in (True, False, None):
            raise ValueError(f"header is {self.header!r}; it must be True, False or None (look)")
        for name in ("delimiter", "encoding", "comment"):
            if not isinstance(value := getattr(self, name), str | None) or (name == "comment" and value == ""):
                raise ValueError(f"{name} is {value!r}; it must be text, or None")


_NOTHING_SAID = TextOptions()
_TEXT = ContextVar("_TEXT", default=_NOTHING_SAID)


class TextWords(TypedDict, total=False):
    """`TextOptions` as arguments."""

    header: bool | None
    delimiter: str | None
    encoding: str | None
    comment: str | None


@contextmanager
def text_options(**text: Unpack[TextWords]) -> Iterator[None]:
    """Read all text files so within a `with`, unless a call has other options; arguments as in `read_table`.

    >>> import nearkin as nk, pathlib, tempfile
    >>> table = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = table.write_text("user::item\\nZoë::7\\n", encoding="cp1252")
    >>> with text_options(encoding="cp1252"):
    ...     nk.read_interactions(table).left_ids.tolist()
    ['Zoë']
    """
    token = _TEXT.set(TextOptions(**text))
    try:
        yield
    finally:
        _TEXT.reset(token)


@dataclass(frozen=True)
class Locator:
    """A file and, where the format holds several arrays, the name of one (None: the file's only one)."""

    path: Path
    key: str | None = None
    packed: str | None = None  # order of bits in the bytes, a name of `PACKED`; None for numbers
    text: TextOptions = field(default_factory=_TEXT.get)

    def __post_init__(self) -> None:
        if self.suffix == ".xlsx":
            object.__setattr__(self, "text", replace(self.text, delimiter=",", encoding=None))  # as `open` writes it

    def reading(self, **text: Unpack[TextWords]) -> "Locator":
        """The same file with options of text: those that are not None replace others."""
        given: dict[str, Any] = {name: value for name, value in text.items() if value is not None}
        return replace(self, text=replace(self.text, **given))

    def __str__(self) -> str:
        return str(self.path) if self.key is None else f"{self.path}:{self.key}"

    @property
    def suffix(self) -> str:
        """The ending, in lower case; of compressed text the one before it."""
        last = self.path.suffix.lower()
        inner = Path(self.path.stem).suffix.lower() if last in _OPENERS else last
        return inner if inner in (*TEXT, *JSON) else last

    def open(self) -> IO[bytes]:
        """The bytes of the file, unpacked if they are compressed, and of a workbook's first sheet as CSV."""
        if self.suffix == ".xlsx":
            return BufferedReader(BytesIO(_sheet(self.path)))  # pyright: ignore[reportArgumentType]
        return _OPENERS.get(self.path.suffix.lower(), open)(self.path, "rb")


_SHEET_MB, _SHEET_RATIO = 10, 100  # what a part of a workbook may be unpacked to in any case, and how many times larger


def _sheet(path: Path) -> bytes:
    """A workbook's first sheet without empty rows and columns, dates as ISO dates."""
    with zipfile.ZipFile(path) as archive:
        for part in archive.infolist():
            if part.file_size > max(_SHEET_MB * 1_000_000, _SHEET_RATIO * part.compress_size):
                raise ValueError(f"{path} announces {part.file_size:,} bytes of {part.filename}; save it again, as CSV")
    with closing(extra("openpyxl", "excel").load_workbook(path, read_only=True, data_only=True)) as book:
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # a size that it announces is filled with empty cells
        cells = [
            {place: text for place, cell in enumerate(row) if (text := _written(cell))}
            for row in sheet.iter_rows(values_only=True)
            if any(cell is not None for cell in row)
        ]
    places = sorted({place for row in cells for place in row})
    columns = [[row.get(place, "") for row in cells if row] for place in places]
    file = StringIO()
    csv.writer(file, lineterminator="\n").writerows(zip(*columns, strict=True))
    return file.getvalue().encode()


def _written(cell: object) -> str:
    return "" if cell is None else cell.isoformat() if isinstance(cell, date | time) else str(cell).strip()


def locate(path: StrPath) -> Locator:
    """Split `file.npz:key` (also `file.csv:column`, `file.parquet:f0-f2,g`) and look at the file.

    A name without a key, or one whose part before the colon is no such archive, is a plain path. Raises
    FileNotFoundError if nothing is there, and ValueError for a folder, a FIFO, a device, an empty or packed file.
    """
    text = os.fspath(path)
    head, colon, key = text.rpartition(":")
    named = bool(colon) and not os.path.exists(text) and Locator(Path(head)).suffix in _WITH_KEYS
    if named and not key:
        raise ValueError(f"{text} ends in a colon; give the name of an array after it, or no colon")
    found = Locator(Path(head), key) if named else Locator(Path(text))
    size = regular_file(found.path).stat().st_size
    if found.suffix in _UNPACK:
        how = f"type {_UNPACK[found.suffix]} {quoted(found.path.absolute())}, and give what it writes"
        raise ValueError(f"{found.path} is compressed; only text is read so ({', '.join(_OPENERS)}): {how}")
    if size == 0:
        raise ValueError(f"{found.path} is an empty file (0 bytes); write it again")
    return found


def extra(module: str, name: str) -> ModuleType:
    """An optional module, loaded where it is needed; ImportError that names the extra of nearkin's to install."""
    try:
        return import_module(module)
    except ImportError as error:
        text = f"this needs {module.partition('.')[0]}, which is not installed or cannot be loaded ({error})"
        raise ImportError(f"{text}: pip install 'nearkin[{name}]'") from error


def unknown_ending(where: Locator, known: Iterable[str]) -> ValueError:
    """The error for a file whose ending is not one of `known`, with what to type instead."""
    ending = f"ends in {where.suffix!r}" if where.suffix else "has no ending"
    way = _NO_TABLE if where.suffix == ".npy" else instead(where.path)
    return ValueError(f"{where.path} {ending}; it must be one of {', '.join(known)}: {way}")


_NO_TABLE = "load the array X and pass pandas.DataFrame(X), or of comparisons type np.savez('X.npz', triplets=X)"


def instead(path: Path, ending: str | None = None) -> str:
    """What to type for a file that is not read."""
    way = _INSTEAD.get(path.suffix.lower() if ending is None else ending, "if it is a table of text, call it .txt")
    return way.format(path=str(path))


def locate_all(paths: StrPath | Iterable[StrPath]) -> list[Locator]:
    """The files that a name, a pattern ("parts/*.npy", also "parts/*.npz:key") or a list of them names; `@ubinary`
    or another name of `PACKED` may follow.

    A pattern's files come in the order of their names. FileNotFoundError if a file is missing or nothing matches.
    """
    if not isinstance(paths, str | os.PathLike):
        found = list[Locator]()
        for path in paths if isinstance(paths, Iterable) else [paths]:
            if not isinstance(path, str | os.PathLike):
                raise TypeError(
                    f"the file is a {type(paths).__name__} of {type(path).__name__}; it must be a path, a pattern, a "
                    "list of paths, or a DataFrame; an array needs no reading"
                )
            found += locate_all(path)
        if not found:
            raise ValueError("the list of files is empty; give at least one")
        return found
    text = os.fspath(paths)
    before, _, packed = text.rpartition("@")
    if packed in PACKED and not os.path.exists(text):
        return [replace(where, packed=packed) for where in locate_all(before)]
    if os.path.exists(text) or not glob.has_magic(text):
        return [locate(text)]
    head, colon, key = text.rpartition(":")
    pattern = head if colon and Locator(Path(head)).suffix in _WITH_KEYS else text
    names = sorted(glob.glob(pattern, recursive=True))
    if not names:
        raise FileNotFoundError(f"{pattern} matches no file; check the pattern (current folder: {Path.cwd()})")
    return [locate(name if pattern == text else f"{name}:{key}") for name in names]


@contextmanager
def brief() -> Iterator[None]:
    """Cut the middle out of a longer message: it quotes names and cells, which may have any length."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if type(error) not in (ValueError, TypeError) or (text := shortened(str(error))) == str(error):
            raise
        raise type(error)(text) from None


@contextmanager
def reading(where: Locator) -> Iterator[None]:
    """Turn any failure to decode `where` into a ValueError with its name and the reason.

    Other errors pass unchanged: a missing file, what the system refuses, a missing package, and messages that name
    the file already. Only what a format's library refuses is called damage: a checksum, a size, an end of the file.
    """
    with brief():
        try:
            yield
        except (FileNotFoundError, ImportError):
            raise
        except UnicodeDecodeError as error:
            raise ValueError(f"{where} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
        except Exception as error:  # zipfile, zlib, NumPy and pyarrow raise some twenty types for damaged files
            if is_of_system(error) or (isinstance(error, ValueError) and str(where.path) in str(error)):
                raise
            reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            if isinstance(error, MemoryError):
                reason = "it asks for more memory than there is"
            reason = " ".join(reason.split())[:300]
            if isinstance(error, _DAMAGE) or type(error).__name__ == "ArrowInvalid":
                raise ValueError(f"{where} cannot be read ({reason}); the file is damaged, write it again") from error
            raise ValueError(f"{where} cannot be read: {reason}") from error
