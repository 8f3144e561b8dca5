"""The folders that nearkin saves: `config.json` with kind and format version, and data files; and what is replaced.

One rule for every file and folder that is written, `check_target`: what exists is refused without `overwrite`, and with
it exactly that is replaced which a manifest lists. Whoever changes their own folder in place passes it.
"""

import errno
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from nearkin._check import check_output
from nearkin._fields import StrPath, counted
from nearkin._json import parsed_json
from nearkin._storage.atomic import changing, recover, replacing
from nearkin._storage.manifest import (
    MANIFEST,
    added,
    is_verifying,
    list_added,
    read_manifest,
    strangers,
    write_manifest,
)
from nearkin._types import Fields, Record

FORMAT_VERSION = 2


def check_target(
    path: StrPath, overwrite: bool = False, inputs: Iterable[StrPath] = (), *, folder: bool = True
) -> Path:
    """The path of a folder, or file, that may be written; ValueError otherwise. Long work asks before it starts.

    What exists and is not empty is refused. With `overwrite` a file is replaced, and a folder if its manifest lists all
    that is in it, unless that is, or holds, one of `inputs` (FILE, FILE:KEY or patterns).
    """
    path = check_output(path)
    if path.exists() and path.is_dir() != folder:
        kinds = ("a file", "a folder") if folder else ("a folder", "a file")
        raise ValueError(f"{path} is {kinds[0]}; give the name of {kinds[1]}")
    place = _parent(path)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        text = f"{path} cannot be made: {place} takes no files ({error.strerror or error})"
        raise OSError(error.errno, text) from error
    recover(path)
    if not path.exists() or (not any(path.iterdir()) if folder else path.is_file() and not path.stat().st_size):
        return path
    if not overwrite:
        raise ValueError(f"{path} exists; give another name, or overwrite=True to replace it")
    target = Path(os.path.realpath(path))
    for name in inputs:
        for found in map(Path, map(os.path.realpath, _named(os.fspath(name)))):
            if target in (found, *found.parents):
                raise ValueError(f"{name} is an input and would be replaced with {path}; give another name to write to")
    if folder and (others := strangers(path)):
        more = f" and {counted(len(others) - 1, 'other')}" if len(others) > 1 else ""
        raise ValueError(f"{path} holds {others[0]}{more}, which no {MANIFEST} of nearkin lists; move them away first")
    return path


def _named(given: str) -> list[str]:
    """The files that FILE, FILE:KEY or a pattern may name."""
    return [given, given.rpartition(":")[0] or given, *glob.glob(given, recursive=True)]


def check_space(path: StrPath, n_bytes: int) -> None:
    """OSError if the disk of `path` has less than `n_bytes` free; a check before long work.

    An existing folder at `path` counts too: it is removed only when the new one is complete.
    """
    place = _parent(Path(path))
    free = shutil.disk_usage(place).free
    if free < n_bytes:
        raise OSError(
            errno.ENOSPC,
            f"{path} needs at least {n_bytes / 1e6:,.1f} MB and {place} has {free / 1e6:,.1f} MB free; make room, or "
            "give another place",
        )


def _parent(path: Path) -> Path:
    """The nearest folder above that there is."""
    return next(parent for parent in Path(os.path.realpath(path)).parents if parent.exists())


def check_apart(one: StrPath, other: StrPath) -> None:
    """Raise ValueError if two folders are the same, or one lies in the other: what writes one may remove the other."""
    first, second = Path(os.path.realpath(one)), Path(os.path.realpath(other))
    if first in (second, *second.parents) or second in first.parents:
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
        write_manifest(folder, kind, FORMAT_VERSION)  # of the config alone: a folder can be read while it is made
        yield folder


@contextmanager
def replacing_folder(path: StrPath, overwrite: bool = False) -> Iterator[Path]:
    """Yield the name of a folder for the caller to make and fill, with a config.json; else as `saving_folder`."""
    check_target(path, overwrite)
    with replacing(path) as fresh:
        yield fresh
        write_manifest(fresh, _parsed(fresh / "config.json")["kind"], FORMAT_VERSION)
        check_target(path, overwrite)  # again: the work between may have taken hours


@contextmanager
def adding(folder: Path, name: str, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary path for a file that joins a saved folder, such as its report, or replaces the earlier one.

    Its name is listed first. ValueError for a file of that name that is not listed, without `overwrite`.
    """
    with changing(folder):
        if read_manifest(folder) is None:
            raise ValueError(f"{folder} has no {MANIFEST}; give a folder written by save or by `nearkin ... --out`")
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
        recover(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give a folder written by save or by `nearkin ... --out`")
    if not (path / "config.json").is_file():
        raise ValueError(f"{path} has no config.json; give a folder written by save or by `nearkin ... --out`")
    config = _parsed(path / "config.json")
    version, found = config["format_version"], config["kind"]
    if version != FORMAT_VERSION:
        how = "pip install -U nearkin" if version > FORMAT_VERSION else "make it again with this nearkin"
        raise ValueError(f"{path} has format version {version}, this nearkin reads {FORMAT_VERSION}: {how}")
    if kind is not None and found != kind:
        raise ValueError(f"{path} holds the kind {found!r}; {kind!r} is needed")
    _check_whole(path, found)
    return config


def _parsed(file: Path) -> Record:
    """A config.json with its two fixed keys: a kind, and a format version from 1 on."""
    try:
        config = parsed_json(file.read_bytes())
        version, kind = config["format_version"], config["kind"]
        if type(version) is not int or version < 1 or not isinstance(kind, str):
            raise ValueError(f"kind {kind!r}, format_version {version!r}")
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"{file} is not a nearkin config ({error}); the folder is damaged") from error
    return config


def _check_whole(path: Path, kind: str) -> None:
    manifest = read_manifest(path)
    if manifest is None:
        raise ValueError(f"{path} has no {MANIFEST}; the folder is damaged, copy it again")
    if manifest.kind != kind:
        raise ValueError(f"{path} is {kind!r} by config.json, {manifest.kind!r} by {MANIFEST}; the folder is damaged")
    manifest.check_sizes()
    if is_verifying():
        for name in manifest.files:
            if name.endswith(".json"):
                manifest.verify(name)


Loaded = TypeVar("Loaded")
_OF_DAMAGE = (LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, AssertionError)  # of its content


def one_version(path: StrPath, load: Callable[[Path], Loaded]) -> Loaded:
    """`load(path)`, again if the folder was replaced meanwhile: what it read may be of the old one and of the new.

    ValueError where the folder's content makes `load` fail, whatever it fails with; OSError as it comes.
    """
    path = Path(path)
    while True:
        before = _identity(path)
        try:
            with damage_named(path):
                loaded = load(path)
        except (OSError, ValueError):
            if before != _identity(path):
                continue
            raise
        if before == _identity(path):
            return loaded


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Turn whatever a folder's content makes fail into a ValueError that names it; OSError is unchanged."""
    try:
        yield
    except MemoryError as error:
        raise ValueError(f"{path} asks for more memory than there is ({error}); it is damaged, or too large") from error
    except (ValueError, *_OF_DAMAGE) as error:
        if type(error) is ValueError:  # not one of its kinds, such as of text
            raise
        raise ValueError(f"{path} cannot be read ({type(error).__name__}: {error}); it is damaged") from error


def _identity(path: Path) -> tuple[int, int, int] | None:
    """The identity of the folder at a path; a save changes it, because it puts another folder there."""
    if not path.exists():
        recover(path)
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns
