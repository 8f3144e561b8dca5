"""The folders that nearkin saves: `config.json` with kind and format version, and data files."""

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from nearkin._fields import StrPath
from nearkin._storage.atomic import recover, replacing
from nearkin._storage.manifest import MANIFEST, is_verifying, read_manifest, users_files, write_manifest
from nearkin._types import Fields, Record

FORMAT_VERSION = 2
WORK = "compress checkpoint"  # the kind of folder that grows and has no manifest


def check_target(path: StrPath) -> None:
    """Raise ValueError if `path` cannot become a saved folder: long work can ask before it starts.

    An existing folder must be empty or one of ours: its config.json names the format version of this nearkin, and it
    has a manifest or is a work folder.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is a file; give the name of a folder")
    place = _parent(path)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        text = f"{path} cannot be made: {place} takes no files ({error.strerror or error})"
        raise OSError(error.errno, text) from error
    if not path.is_dir() or not any(path.iterdir()):
        return
    try:
        read_config(path)
    except ValueError as error:
        raise ValueError(
            f"{path} is a folder with other content, which is not replaced; give a new name or an empty folder"
        ) from error
    manifest = read_manifest(path)
    if manifest is not None and (strangers := manifest.strangers()):
        raise ValueError(f"{path} holds {strangers[0]}, which nearkin did not put there and would remove; move it away")


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


def check_inputs(out: StrPath, inputs: Iterable[StrPath]) -> None:
    """Raise ValueError if an input lies in the folder `out`, which will be replaced."""
    folder = Path(os.path.realpath(out))
    for name in inputs:
        if folder in Path(os.path.realpath(name)).parents:
            raise ValueError(f"{name} lies in {out}, which would be replaced; give another folder to write to")


@contextmanager
def saving_folder(path: StrPath, kind: str, config: Fields) -> Iterator[Path]:
    """Yield a new folder holding `config.json` for the caller to fill; it replaces `path` when the block ends.

    An existing folder is replaced only if it is one of ours or empty: ValueError otherwise (see `check_target`). A
    manifest of all files is written last.
    """
    with replacing_folder(path) as folder:
        folder.mkdir()
        record = {"kind": kind, "format_version": FORMAT_VERSION, **config}
        (folder / "config.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        write_manifest(folder, kind, FORMAT_VERSION)  # of the config alone: a folder can be read while it is made
        yield folder


@contextmanager
def replacing_folder(path: StrPath) -> Iterator[Path]:
    """Yield the name of a folder for the caller to make and fill, with a config.json; else as `saving_folder`."""
    check_target(path)
    with replacing(path) as fresh:
        yield fresh
        write_manifest(fresh, _parsed(fresh / "config.json")["kind"], FORMAT_VERSION)
        check_target(path)  # again: the work between may have taken hours
        _keep_users_files(Path(path), fresh)


def _keep_users_files(old: Path, fresh: Path) -> None:
    """Put what the user keeps in the old folder into the new one too; the old one goes after the exchange."""
    for path in users_files(old) if old.is_dir() else []:
        target = fresh / path
        if os.path.lexists(target):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if (old / path).is_dir() and not (old / path).is_symlink():
            target.mkdir()
            continue
        try:
            os.link(old / path, target, follow_symlinks=False)  # also what the user writes during the save is kept
        except (OSError, NotImplementedError):  # a file system without links
            shutil.copy2(old / path, target, follow_symlinks=False)


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
        config = json.loads(file.read_text(encoding="utf-8"))
        version, kind = config["format_version"], config["kind"]
        if type(version) is not int or version < 1 or not isinstance(kind, str):
            raise ValueError(f"kind {kind!r}, format_version {version!r}")
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{file} is not a nearkin config ({error}); the folder is damaged") from error
    return config


def _check_whole(path: Path, kind: str) -> None:
    manifest = read_manifest(path)
    if manifest is None:
        if kind != WORK:
            raise ValueError(f"{path} has no {MANIFEST}; the folder is damaged, copy it again")
        return
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
