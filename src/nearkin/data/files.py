"""Files and where they lie: endings, patterns and folders of parts, and failures to read in words."""

import glob
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

from nearkin._fields import StrPath, shortened
from nearkin._storage import is_of_system, regular_file

TEXT = (".csv", ".tsv", ".txt", ".dat", ".data", ".tab", ".vec", ".inter")  # lines of cells
SHEET = ".xlsx"
JSON = (".jsonl", ".ndjson")  # an object a line
FRAMES = (".parquet", ".feather", ".arrow", *JSON)  # typed columns
TABLES = (*TEXT, SHEET, *FRAMES, ".npz")
PACKED = {"ubinary": ("uint8", "big"), "binary": ("int8", "big"), "ubinary-little": ("uint8", "little")}  # of bits
_WITH_KEYS = (".h5", ".hdf5", ".safetensors", *TABLES)
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")  # of text and of JSON lines
_INSTEAD = {  # endings that are not read -> what to type
    ".zip": "unzip {path!r}",
    ".xz": "unxz -k {path!r}",
    **dict.fromkeys((".xls", ".ods"), "save the sheet as .xlsx or .csv"),
    **dict.fromkeys((".pt", ".pth"), "np.save('X.npy', torch.load({path!r}).float().numpy())"),
    ".npy": "np.savez('X.npz', triplets=np.load({path!r})) of comparisons, or pass pandas.DataFrame(np.load({path!r}))",
    ".json": "pandas.read_json({path!r}).to_parquet('table.parquet')",
    ".mtx": "scipy.sparse.save_npz('m.npz', scipy.io.mmread({path!r}).tocsr())",
    **dict.fromkeys(
        (".svmlight", ".libsvm", ".svm"),
        "scipy.sparse.save_npz('m.npz', sklearn.datasets.load_svmlight_file({path!r})[0])",
    ),
    ".arff": "pandas.DataFrame(scipy.io.arff.loadarff({path!r})[0]).to_csv('table.csv', index=False)",
    ".mat": "np.save('X.npy', scipy.io.loadmat({path!r})['X'])",
    ".bin": "gensim.models.KeyedVectors.load_word2vec_format({path!r}, binary=True).save_word2vec_format('v.vec')",
    ".dta": "pandas.read_stata({path!r}).to_csv('table.csv', index=False)",
    ".sav": "pandas.read_spss({path!r}).to_csv('table.csv', index=False)",
}


@dataclass(frozen=True)
class Locator:
    """A file and what is named inside it: an array of an archive, or columns of a table, parted by commas; or None.

    `packed` is the order of bits in the bytes, a name of `PACKED`; None for numbers.
    """

    path: Path
    key: str | None = None
    packed: str | None = None

    def __str__(self) -> str:
        return str(self.path) if self.key is None else f"{self.path}:{self.key}"

    @property
    def suffix(self) -> str:
        """The ending, in lower case; of compressed text the one before it."""
        last = self.path.suffix.lower()
        inner = Path(self.path.stem).suffix.lower() if last in _COMPRESSED else last
        return inner if inner in (*TEXT, *JSON) else last

    @property
    def columns(self) -> list[str] | None:
        """The columns of a table that the key names."""
        return None if self.key is None else self.key.split(",")


def locate(path: StrPath) -> Locator:
    """Split `file.npz:key` and `file.csv:column,column` and look at the file.

    A name without a key, or one whose part before the colon has no such ending, is a plain path. Raises
    FileNotFoundError if nothing is there, and ValueError for a folder, a FIFO, a device or an empty file.
    """
    text = os.fspath(path)
    head, colon, key = text.rpartition(":")
    named = bool(colon) and not os.path.exists(text) and Locator(Path(head)).suffix in _WITH_KEYS
    if named and not key:
        raise ValueError(f"{text} ends in a colon; give the name of an array or a column after it, or no colon")
    where = Locator(Path(head), key) if named else Locator(Path(text))
    if regular_file(where.path).stat().st_size == 0:
        raise ValueError(f"{where.path} is an empty file (0 bytes); write it again")
    return where


def locate_all(paths: StrPath | Iterable[StrPath]) -> list[Locator]:
    """The files that a name, a folder of parts, a pattern ("parts/*.npy", "parts/*.npz:key") or a list of them names.

    Parts come in the order of the numbers in their names: part-2 before part-10. A folder's parts are all its files
    but those that begin with "_" or "."; they have one ending. FileNotFoundError if nothing is there.
    """
    if not isinstance(paths, str | os.PathLike):
        names = list(paths) if isinstance(paths, Iterable) else [paths]
        if wrong := [name for name in names if not isinstance(name, str | os.PathLike)]:
            raise TypeError(
                f"the file is a {type(wrong[0]).__name__}; it must be a path, a pattern, a list, or a DataFrame"
            )
        if not names:
            raise ValueError("the list of files is empty; give at least one")
        return [where for name in names for where in locate_all(name)]
    text = os.fspath(paths)
    before, _, packed = text.rpartition("@")
    if packed in PACKED and not os.path.exists(text):
        return [replace(where, packed=packed) for where in locate_all(before)]
    if os.path.isdir(text):
        return list(map(locate, _parts_of(Path(text))))
    if os.path.exists(text) or not glob.has_magic(text):
        return [locate(text)]
    head, colon, key = text.rpartition(":")
    pattern = head if colon and Locator(Path(head)).suffix in _WITH_KEYS else text
    names = sorted(glob.glob(pattern, recursive=True), key=by_number)
    if not names:
        raise FileNotFoundError(f"{pattern} matches no file; check the pattern (current folder: {Path.cwd()})")
    return [locate(name if pattern == text else f"{name}:{key}") for name in names]


def by_number(name: object) -> list[tuple[str, int]]:
    """A key that sorts names by the numbers in them."""
    parts = re.split(r"(\d{1,18})", str(name))
    return [(text, int(number or 0)) for text, number in zip(parts[::2], [*parts[1::2], ""], strict=True)]


def _parts_of(folder: Path) -> list[Path]:
    names = [path for path in folder.iterdir() if path.name[0] not in "._"]
    endings = sorted({Locator(path).suffix for path in names})
    if any(map(Path.is_dir, names)):
        raise ValueError(f"{folder} holds folders; give parts of one table by a pattern: '{folder}/**/*.parquet'")
    if len(endings) != 1:
        held = f"files that end in {', '.join(map(repr, endings))}" if endings else "no file"
        raise ValueError(f"{folder} is a folder of {held}; give parts of one table by a pattern: '{folder}/*.parquet'")
    return sorted(names, key=by_number)


def extra(module: str, name: str) -> ModuleType:
    """An optional module, loaded where it is needed; ImportError that names the extra of nearkin's to install."""
    try:
        return import_module(module)
    except ImportError as error:
        text = f"this needs {module.partition('.')[0]}, which is not installed or cannot be loaded ({error})"
        raise ImportError(f"{text}: pip install 'nearkin[{name}]'") from error


def unknown_ending(where: Locator, known: Iterable[str]) -> ValueError:
    """The error for a file whose ending is not one of `known`, with what to type."""
    ending = f"ends in {where.suffix!r}" if where.suffix else "has no ending"
    way = _INSTEAD.get(where.suffix, "the ending names the format, so rename the file (.csv for a table of text)")
    return ValueError(f"{where.path} {ending}; read are {', '.join(known)}. Type: {way.format(path=str(where.path))}")


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

    What the system refuses passes unchanged, as do a missing package and messages that name the file.
    """
    with brief():
        try:
            yield
        except ImportError:
            raise
        except Exception as error:  # zipfile, zlib, NumPy and pyarrow raise some twenty types for damaged files
            if is_of_system(error) or (isinstance(error, ValueError) and str(where.path) in str(error)):
                raise
            plain = isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError)
            reason = str(error) if plain else f"{type(error).__name__}: {error}"
            if isinstance(error, MemoryError):
                reason = "it asks for more memory than there is"
            raise ValueError(f"{where} cannot be read: {' '.join(reason.split())[:300]}") from error
