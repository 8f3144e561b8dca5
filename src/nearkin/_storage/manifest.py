"""The manifest of a saved folder: manifest.json, written last, with the length and the SHA-256 of every file.

Checksums find damage and mixed-up files; they are no protection against somebody who forges a folder. What commands put
into a finished folder later, such as its report, is listed by name in added.json.
"""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from nearkin._check import check_instance
from nearkin._fields import StrPath, quoted
from nearkin._json import parsed_json
from nearkin._storage.atomic import is_workspace, replacing

FORMAT_VERSION = 3
MANIFEST, ADDED = "manifest.json", "added.json"
_OF_THE_SYSTEM = (".DS_Store", "Thumbs.db", "desktop.ini")  # file managers make them, and nobody misses them
_DAMAGED = "the folder is damaged, or was mixed with another: copy it again"
_verified = ContextVar("verified", default=True)


class Entry(NamedTuple):
    """A file of the manifest: its length in bytes, and its SHA-256 in hexadecimal digits."""

    bytes: int
    sha256: str


class Manifest(NamedTuple):
    """The files of one folder."""

    folder: Path
    kind: str
    files: dict[str, Entry]

    def verify(self, name: str, *, content: bool = True) -> None:
        """ValueError if a file is missing, or not what was written: its length, and its `content` unless in a block of
        `verification(False)`."""
        path = self.folder / name
        if name not in self.files:
            raise ValueError(f"{path} is not in {MANIFEST}; {_DAMAGED}, or remove the file")
        content = content and _verified.get()
        wanted = self.files[name] if content else self.files[name]._replace(sha256="")
        if _entry(path, content) != wanted:
            raise ValueError(f"{path} has another length or other bytes than {MANIFEST} lists; {_DAMAGED}")


def strangers(folder: Path) -> list[str]:
    """Names of the files in a folder that its manifest does not list: all of them without one that can be read."""
    listed = _listed(folder)
    parts = [name for name in added(folder) if listed and (folder / name).is_dir()]  # saved folders
    others = list[str]()
    for file in _names(folder):
        inside, _, name = file.rpartition("/")
        joined = listed and name in (ADDED, *added(folder / inside))
        if not (file in listed or joined or name in _OF_THE_SYSTEM or file.split("/")[0] in parts):
            others.append(file)
    return others + [f"{part}/{file}" for part in parts for file in strangers(folder / part)]


def whole_of(path: Path) -> Path | None:
    """The outermost saved folder whose manifest lists this file, or files of this folder; None if there is none."""
    for folder in reversed(path.parents):
        part = path.relative_to(folder).as_posix()
        if any(name == part or name.startswith(f"{part}/") for name in _listed(folder)):
            return folder
    return None


def _listed(folder: Path) -> set[str]:
    """The manifest and the files that it lists; none without a manifest that can be read."""
    with suppress(ValueError):
        if manifest := read_manifest(folder):
            return {MANIFEST, *manifest.files}
    return set()


def added(folder: Path) -> list[str]:
    """The names of what commands put into a finished folder: files, and saved folders."""
    try:
        names = parsed_json(regular_file(folder / ADDED).read_bytes())
        return [str(name) for name in names if is_inside(str(name))]
    except (FileNotFoundError, ValueError, TypeError):
        return []


def list_added(folder: Path, *names: str) -> None:
    """List what joins a saved folder later, before it comes."""
    before = added(folder)
    if not set(names) <= set(before):
        with replacing(folder / ADDED) as fresh:
            fresh.write_text(json.dumps(sorted({*names, *before}), indent=1) + "\n", encoding="utf-8")


@contextmanager
def verification(wanted: bool) -> Iterator[None]:
    """Compare checksums in this block only if `wanted`, and in no block inside one without; lengths always."""
    token = _verified.set(bool(check_instance(wanted, "verify", bool, int)) and _verified.get())
    try:
        yield
    finally:
        _verified.reset(token)


def write_manifest(folder: Path, kind: str) -> None:
    """List all files under `folder` with their checksums; the last file of a save."""
    files = {name: _entry(folder / name)._asdict() for name in _names(folder) if name != MANIFEST}
    record = {"kind": kind, "format_version": FORMAT_VERSION, "files": files}
    (folder / MANIFEST).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a saved folder, None without one; ValueError if it is damaged, or another program's."""
    file = folder / MANIFEST
    if not file.is_file():
        return None
    try:
        record = parsed_json(file.read_bytes())
        files = {str(name): Entry(int(entry["bytes"]), str(entry["sha256"])) for name, entry in record["files"].items()}
        if outside := [name for name in files if not is_inside(name)]:
            raise ValueError(f"{outside[0]!r} is no file of the folder")
        return Manifest(folder, str(record["kind"]), files)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{file} cannot be read ({error}); {_DAMAGED}") from error


def is_inside(name: str) -> bool:
    """Whether a name with slashes is that of a file below a folder."""
    path = Path(name)  # Windows has other marks, too
    return {"", ".", ".."}.isdisjoint((*name.split("/"), *path.parts)) and not path.anchor and "\0" not in name


def _names(folder: Path) -> list[str]:
    """All files and links under a folder, by their paths in it, sorted; what is being written there is left out."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_workspace(name)]
        links = [name for name in folders if Path(place, name).is_symlink()]
        found += [Path(place, name).relative_to(folder).as_posix() for name in (*names, *links)]
    return sorted(found)


def _entry(path: Path, content: bool = True) -> Entry:
    """The length and the checksum of a file, "" unless `content`; ValueError if it is missing."""
    with _opened(path) as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest() if content else ""
        return Entry(os.fstat(file.fileno()).st_size, checksum)


def _opened(path: Path) -> BufferedReader:
    try:
        return regular_file(path).open("rb")
    except FileNotFoundError:
        raise ValueError(f"{path} is missing; {_DAMAGED}") from None


def is_of_system(error: BaseException) -> bool:
    """Whether the system refused, for want of a permission, of descriptors, of space or of a working disk, so that a
    file may be whole: not that there is no such file, and not what a library finds in it."""
    return isinstance(error, OSError) and error.errno not in (None, errno.ENOENT, errno.ENOTDIR, errno.EINVAL)


def regular_file(path: StrPath) -> Path:
    """`path` if it is an ordinary file; opening a FIFO, a socket or a device could block, or never end.

    FileNotFoundError if nothing is there, PermissionError if it may not be looked at, and ValueError for a folder, for
    anything else that is no file, and for a name that cannot be one.
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(f"{path} does not exist; check the name (current folder: {Path.cwd()})") from error
    except (OSError, ValueError) as error:  # a name that is too long, holds a NUL, or is a link to itself
        if isinstance(error, OSError) and error.errno not in (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL):
            raise
        raise ValueError(f"{str(path)[:200]!r} cannot be the name of a file ({error})") from error
    if stat.S_ISDIR(mode):
        raise ValueError(f"{path} is a folder; give the name of a file, or a pattern: {quoted(f'{path}/*.parquet')}")
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is a device, a FIFO or a socket; give the name of an ordinary file")
    return path


def open_file(path: Path) -> BufferedReader:
    """Open a file of a saved folder; ValueError if it is missing, no ordinary file, or differs from its manifest."""
    if (manifest := read_manifest(path.parent)) is not None:
        manifest.verify(path.name)
    return _opened(path)
