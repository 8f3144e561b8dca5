"""Files and where they lie: endings, patterns and folders of parts, and failures to read in words."""

import glob
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
    return _there(*_split(os.fspath(path)))


def _split(text: str) -> tuple[str, str | None]:
    """The name of a file, and what is named inside it."""
    head, colon, key = text.rpartition(":")
    if not colon or os.path.exists(text) or Locator(Path(head)).suffix not in _WITH_KEYS:
        return text, None
    if not key:
        raise ValueError(f"{text} ends in a colon; give the name of an array or a column after it, or no colon")
    return head, key


def _there(name: StrPath, key: str | None) -> Locator:
    if regular_file(name).stat().st_size == 0:
        raise ValueError(f"{name} is an empty file (0 bytes); write it again")
    return Locator(Path(name), key)


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
    head, key = _split(os.fspath(paths))
    names = [head]
    if os.path.isdir(head):
        names = _parts_of(Path(head))
    elif glob.has_magic(head) and not os.path.exists(head):
        names = glob.glob(head, recursive=True)
        if not names:
            raise FileNotFoundError(f"{head} matches no file; check the pattern (current folder: {Path.cwd()})")
    return [_there(name, key) for name in sorted(names, key=by_number)]


def by_number(name: object) -> list[tuple[str, int]]:
    """A key that sorts names by the numbers in them."""
    parts = re.split(r"(\d{1,18})", str(name))
    return [(text, int(number or 0)) for text, number in zip(parts[::2], [*parts[1::2], ""], strict=True)]


def _parts_of(folder: Path) -> list[Path]:
    names = [path for path in folder.iterdir() if path.name[0] not in "._"]
    endings = {Locator(path).suffix for path in names}
    if len(endings) != 1 or any(map(Path.is_dir, names)):
        held = "holds folders" if any(map(Path.is_dir, names)) else f"is a folder of {len(endings)} kinds of files"
        raise ValueError(f"{folder} {held}; give parts of one table by a pattern: '{folder}/**/*.parquet'")
    return names


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
        except Exception as error:  # zipfile, zlib, NumPy and pyarrow raise some twenty types for damaged files
            is_named = isinstance(error, ValueError) and str(where.path) in str(error)
            if is_named or is_of_system(error) or isinstance(error, ImportError):
                raise
            reason = " ".join((str(error) or type(error).__name__).split())
            raise ValueError(f"{where} cannot be read: {reason[:300]}") from error
