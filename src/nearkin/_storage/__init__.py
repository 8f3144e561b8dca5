"""Saved artefacts: a folder of `config.json` and data files, written whole or not at all, and never a pickle.

One rule for every file and folder that is written, `check_target`: what exists is refused without `overwrite`, and with
it exactly that is replaced which a manifest lists. Whoever changes their own folder in place passes it.
"""

import glob
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from safetensors.numpy import load, save

from nearkin._check import check_output
from nearkin._fields import StrPath, counted
from nearkin._json import parsed_json
from nearkin._storage.atomic import changing as changing
from nearkin._storage.atomic import discard as discard
from nearkin._storage.atomic import recover as recover
from nearkin._storage.atomic import replacing as replacing
from nearkin._storage.atomic import sweep as sweep
from nearkin._storage.atomic import sync as sync
from nearkin._storage.atomic import try_lock as try_lock
from nearkin._storage.manifest import FORMAT_VERSION, added, whole_of, write_manifest
from nearkin._storage.manifest import MANIFEST as MANIFEST
from nearkin._storage.manifest import Manifest as Manifest
from nearkin._storage.manifest import is_of_system as is_of_system
from nearkin._storage.manifest import list_added as list_added
from nearkin._storage.manifest import open_file as open_file
from nearkin._storage.manifest import read_manifest as read_manifest
from nearkin._storage.manifest import regular_file as regular_file
from nearkin._storage.manifest import strangers as strangers
from nearkin._storage.manifest import verification as verification
from nearkin._types import Fields, Record


def check_target(
    path: StrPath, overwrite: bool = False, inputs: Iterable[StrPath] = (), *, folder: bool = True
) -> Path:
    """The path of a folder, or file, that may be written; ValueError otherwise. Long work asks before it starts.

    What exists and is not empty is refused. With `overwrite` a file is replaced, and a folder if its manifest lists all
    that is in it, unless that is, or holds, one of `inputs` (FILE, FILE:KEY or patterns), or a saved folder lists it.
    """
    path = check_output(path)
    if path.exists() and path.is_dir() != folder:
        kinds = ("a file", "a folder") if folder else ("a folder", "a file")
        raise ValueError(f"{path} is {kinds[0]}; give the name of {kinds[1]}")
    place = next(parent for parent in Path(os.path.realpath(path)).parents if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise OSError(error.errno, f"{path} cannot be made: {place} takes no files ({error.strerror})") from error
    recover(path)
    if not path.exists() or (not any(path.iterdir()) if folder else path.is_file() and not path.stat().st_size):
        return path
    if not overwrite:
        raise ValueError(f"{path} exists; give another name, or overwrite=True to replace it")
    target = Path(os.path.realpath(path))
    if whole := whole_of(target):
        raise ValueError(f"{path} is a part of {whole}, which lists its files: load {whole}, change it and save it")
    for name in [os.fspath(one) for one in inputs]:
        places = (*(cut(":")[0] or name for cut in (name.partition, name.rpartition)), *glob.glob(name, recursive=True))
        if any(Path(os.path.realpath(place)).is_relative_to(target) for place in places):
            raise ValueError(f"{name} is an input and would be replaced with {path}; give another name to write to")
    if folder and (others := strangers(path)):
        more = f" and {counted(len(others) - 1, 'other')}" if len(others) > 1 else ""
        raise ValueError(f"{path} holds {others[0]}{more}, which no {MANIFEST} of nearkin lists; move them away first")
    return path


def check_apart(one: StrPath, other: StrPath) -> None:
    """Raise ValueError if two folders are the same, or one lies in the other: what writes one may remove the other."""
    first, second = Path(os.path.realpath(one)), Path(os.path.realpath(other))
    if first.is_relative_to(second) or second.is_relative_to(first):
        raise ValueError(f"{one} and {other} are the same place, or one holds the other; give two folders apart")


@contextmanager
def saving_folder(path: StrPath, kind: str, config: Fields, overwrite: bool = False) -> Iterator[Path]:
    """Yield a new folder holding `config.json` for the caller to fill; it becomes `path` when the block ends.

    ValueError as of `check_target`. A manifest of all files is written last.
    """
    with replacing_folder(path, overwrite) as folder:
        folder.mkdir()
        record = {"kind": kind, "format_version": FORMAT_VERSION, **config}
        (folder / "config.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        write_manifest(folder, kind)  # of the config alone: a folder can be read while it is made
        yield folder


@contextmanager
def replacing_folder(path: StrPath, overwrite: bool = False) -> Iterator[Path]:
    """Yield the name of a folder for the caller to make and fill, with a config.json; else as `saving_folder`."""
    check_target(path, overwrite)
    with replacing(path) as fresh:
        yield fresh
        write_manifest(fresh, parsed_json((fresh / "config.json").read_bytes())["kind"])
        check_target(path, overwrite)  # again: the work between may have taken hours


@contextmanager
def adding(folder: Path, name: str, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary path for a file that joins a saved folder, such as its report, or replaces the earlier one.

    Its name is listed first. ValueError for a file of that name that is not listed, without `overwrite`.
    """
    with changing(folder):
        check_target(folder / name, overwrite or name in added(folder), folder=False)
        list_added(folder, name)
        with replacing(folder / name) as fresh:
            yield fresh


def read_config(path: StrPath, kind: str | None = None) -> Record:
    """Read the `config.json` of a saved folder; ValueError if it is missing, broken, or of another version or kind.

    The folder must have the files that its manifest names, in their lengths, and its JSON files their checksums; the
    others are verified when they are read. While another process saves there, it is the old one or the new.
    """
    return one_version(path, lambda folder: _read_config(folder, kind))


def _read_config(path: Path, kind: str | None) -> Record:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give a folder that nearkin has saved")
    if not (path / "config.json").is_file():
        raise ValueError(f"{path} has no config.json; give a folder that nearkin has saved")
    config = dict(parsed_json((path / "config.json").read_bytes()))
    version, found = config["format_version"], config["kind"]
    if version != FORMAT_VERSION:
        how = "pip install -U nearkin" if version > FORMAT_VERSION else "make it again with this nearkin"
        raise ValueError(f"{path} has format version {version}, this nearkin reads {FORMAT_VERSION}: {how}")
    if kind is not None and found != kind:
        raise ValueError(f"{path} holds the kind {found!r}; {kind!r} is needed")
    if (manifest := read_manifest(path)) is None or manifest.kind != found:
        raise ValueError(f"{path} has no {MANIFEST} of the kind {found!r}; the folder is damaged, copy it again")
    for name in manifest.files:
        manifest.verify(name, content=name.endswith(".json"))
    return config


Loaded = TypeVar("Loaded")


def one_version(path: StrPath, load: Callable[[Path], Loaded]) -> Loaded:
    """`load(path)`, again if the folder was replaced meanwhile: what it read may be of the old one and of the new.

    ValueError where the folder's content makes `load` fail, as of `reading`.
    """
    path = Path(path)
    while True:
        before = _identity(path)
        try:
            with reading(path):
                loaded = load(path)
        except (OSError, ValueError):
            if before != _identity(path):
                continue
            raise
        if before == _identity(path):
            return loaded


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever the content of a file or folder makes fail into a ValueError with its name and the reason.

    What the system refuses passes unchanged, as do a missing package and messages that name the path.
    """
    try:
        yield
    except Exception as error:  # zipfile, NumPy, safetensors and pyarrow raise some twenty types for damaged files
        is_named = isinstance(error, ValueError | FileNotFoundError) and str(path) in str(error)
        if is_named or is_of_system(error) or isinstance(error, ImportError):
            raise
        name = f"{type(error).__name__}: " * (type(error) is not ValueError)  # of a library's error
        reason, end = " ".join(f"{name}{error}".split())[:300], "; it is damaged"
        with suppress(OSError), path.open("rb") as file:
            end = f"; it begins with {file.read(24)!r}: write it again, or rename it if its ending names another format"
        raise ValueError(f"{path} cannot be read ({reason}){end}") from error


def _identity(path: Path) -> tuple[int, int, int] | None:
    """The identity of the folder at a path; a save changes it, because it puts another folder there."""
    if not path.exists():
        recover(path)
    with suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino, found.st_mtime_ns
    return None


# ---- arrays ----------------------------------------------------------------------------------------------------------


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays to a .safetensors file."""
    # not `save_file`, which makes files that only their owner can read
    path.write_bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def write_rows(path: Path, chunks: Iterable[np.ndarray], shape: tuple[int, int], dtype: np.dtype) -> None:
    """Write an .npy file of rows as a stream: a full disk is an OSError there, and the process's end in a memory map,
    whose pages would count as our memory until they are on disk."""
    little = dtype.newbyteorder("<")
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": little.str, "fortran_order": False, "shape": shape})
        for chunk in chunks:
            file.write(np.ascontiguousarray(chunk, little).data)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the named arrays of a .safetensors file; ValueError if it is missing or damaged."""
    with reading(path), open_file(path) as file:
        return load(file.read())


def pack_ids(name: str, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Ids (n,) as named arrays for a .safetensors file, which has no strings: text as rows of UTF-8 bytes."""
    if ids.dtype.kind in "iufbM":
        return {f"{name}_ids": ids.astype(np.int64) if ids.dtype.kind in "bM" else ids}
    text = np.char.encode(ids.astype(str), "utf-8")
    return {f"{name}_ids": text.view(np.uint8).reshape(len(ids), text.itemsize)}


def unpack_ids(name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The ids that `pack_ids` packed under `name`."""
    ids = arrays[f"{name}_ids"]
    return ids if ids.ndim == 1 else np.char.decode(ids.view(f"S{ids.shape[1]}")[:, 0], "utf-8")


def digest(*parts: object) -> str:
    """16 hex digits for arrays, text, bytes, and iterators of these: equal for equal contents."""
    made = blake2b(digest_size=8)
    for part in parts:
        if isinstance(part, Iterator):
            made.update("".join(map(digest, part)).encode())
        elif isinstance(part, bytes | str | None):
            made.update(part if isinstance(part, bytes) else f"{part};".encode())
        else:
            array = np.ascontiguousarray(part)  # pyright: ignore[reportArgumentType, reportCallIssue]
            is_text = array.dtype.kind in "OU"  # of any length
            made.update(f"{'' if is_text else array.dtype}{array.shape}".encode())
            made.update(repr(array.tolist()).encode() if is_text else array.tobytes())
    return made.hexdigest()


def map_rows(path: Path) -> np.ndarray:
    """Rows (n, d) of an .npy file, which stays on the disk; ValueError if it is damaged."""
    with reading(path), open_file(path) as file:
        # a header has at most 10,000 bytes, in NumPy too, which would warn of a number as in Python 2
        if b"L" in file.readline(10_000):
            raise ValueError("its header is of Python 2")
        return np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)  # a pickle holds the rows, and no file


class SavedArrays(NamedTuple):
    """The path of a folder, its config.json, and its arrays."""

    path: Path
    config: Record
    arrays: dict[str, np.ndarray]


def read_saved(source: StrPath | SavedArrays, kind: str | None = None) -> SavedArrays:
    """Read a folder whole, of one version; what was read already is given back. ValueError for another kind."""
    found = source if isinstance(source, SavedArrays) else one_version(source, _read)
    if kind is not None and found.config["kind"] != kind:
        raise ValueError(f"{found.path} holds the kind {found.config['kind']!r}; {kind!r} is needed")
    return found


def _read(path: Path) -> SavedArrays:
    return SavedArrays(path, read_config(path), read_arrays(path / "arrays.safetensors"))
