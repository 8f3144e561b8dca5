"""The manifest of a saved folder: manifest.json, written last, with the length and the checksums of every file.

Checksums are zlib's CRC-32, one for each block of 64 kB, so that a part of a long file can be verified alone. They find
damage and mixed-up files; they are no protection against somebody who forges a folder. What commands put into a
finished folder later, such as its report, is listed by name in added.json.
"""

import errno
import json
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from nearkin._check import check_instance
from nearkin._fields import StrPath, quoted
from nearkin._guard import cached_property
from nearkin._json import parsed_json
from nearkin._storage.atomic import is_workspace, replacing

MANIFEST, ADDED = "manifest.json", "added.json"
BLOCK = 2**16  # bytes under one checksum
_OF_THE_SYSTEM = (".DS_Store", "Thumbs.db", "desktop.ini")  # file managers make them, and nobody misses them
_DIGITS = 8  # hexadecimal digits of a checksum
_verified = ContextVar("verified", default=True)


@dataclass(frozen=True)
class Entry:
    """A file of the manifest: its length in bytes, and the checksums of its blocks behind each other."""

    bytes: int
    crc32: str

    @cached_property
    def checksums(self) -> list[int]:
        return [int(self.crc32[i : i + _DIGITS], 16) for i in range(0, len(self.crc32), _DIGITS)]


@dataclass(frozen=True)
class Manifest:
    """The files of one folder."""

    folder: Path
    kind: str
    files: dict[str, Entry]

    def verify(self, name: str, file: BinaryIO | None = None) -> None:
        """ValueError if the file, open or not, is not what was written."""
        path = self.folder / name
        if name not in self.files:
            raise ValueError(
                f"{path} is not in {MANIFEST}; it is of another folder, remove it or copy the folder again"
            )
        entry = self.files[name]
        with _opened(path) if file is None else nullcontext(file) as opened:
            size = os.fstat(opened.fileno()).st_size
            if size != entry.bytes:
                raise ValueError(f"{path} has {size:,} bytes, {MANIFEST} lists {entry.bytes:,}; {_DAMAGED}")
            for number, found in enumerate(_checksums(opened)):
                self.check_block(name, number, found)
            opened.seek(0)

    def check_block(self, name: str, number: int, found: int) -> None:
        """ValueError unless `found` is the checksum of block `number` of a file."""
        if found != self.files[name].checksums[number]:
            raise ValueError(
                f"{self.folder / name} has other bytes than {MANIFEST} lists, from {number * BLOCK:,} on; {_DAMAGED}"
            )

    def check_sizes(self) -> None:
        """ValueError if a file is missing or of another length."""
        for name, entry in self.files.items():
            path = self.folder / name
            try:
                size = regular_file(path).stat().st_size
            except (FileNotFoundError, ValueError):  # the latter for a name that is too long, or a folder
                raise ValueError(f"{path} is missing; {_DAMAGED}") from None
            if size != entry.bytes:
                raise ValueError(f"{path} has another length than {MANIFEST} lists; {_DAMAGED}")


def strangers(folder: Path) -> list[str]:
    """Names of the files in a folder that its manifest does not list: all of them without one that can be read."""
    try:
        manifest = read_manifest(folder)
    except ValueError:
        manifest = None
    listed = set[str]() if manifest is None else {MANIFEST, *manifest.files}
    parts = [name for name in added(folder) if listed and (folder / name).is_dir()]  # saved folders
    found = list[str]()
    for file in _names(folder):
        inside, _, name = file.rpartition("/")
        known = file in listed or (listed and (name == ADDED or name in added(folder / inside)))
        if not known and name not in _OF_THE_SYSTEM and file.split("/")[0] not in parts:
            found.append(file)
    return found + [f"{part}/{file}" for part in parts for file in strangers(folder / part)]


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


_DAMAGED = "the folder is damaged, or was mixed with another: copy it again"


@contextmanager
def verification(wanted: bool) -> Iterator[None]:
    """Compare checksums in this block only if `wanted`, and in no block inside one without; lengths always."""
    token = _verified.set(bool(check_instance(wanted, "verify", bool, int)) and _verified.get())
    try:
        yield
    finally:
        _verified.reset(token)


def is_verifying() -> bool:
    return _verified.get()


def write_manifest(folder: Path, kind: str, version: int) -> None:
    """List all files under `folder` with their checksums; the last file of a save."""
    paths = {name: folder / name for name in _names(folder) if name != MANIFEST}
    files = {name: {"bytes": path.stat().st_size, "crc32": checksums_of(path)} for name, path in paths.items()}
    record = {"kind": kind, "format_version": version, "block": BLOCK, "files": files}
    (folder / MANIFEST).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a saved folder, None without one; ValueError if it is damaged, or another program's."""
    file = folder / MANIFEST
    if not file.is_file():
        return None
    try:
        record = parsed_json(file.read_bytes())
        files = {str(name): Entry(int(entry["bytes"]), str(entry["crc32"])) for name, entry in record["files"].items()}
        for name, entry in files.items():
            if len(entry.checksums) != -(-entry.bytes // BLOCK) or record["block"] != BLOCK or not is_inside(name):
                raise ValueError(f"the entry of {name} contradicts itself")
        return Manifest(folder, str(record["kind"]), files)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{file} cannot be read ({error}); {_DAMAGED}") from error


def is_inside(name: str) -> bool:
    """Whether a name with slashes is that of a file below a folder."""
    path = Path(name)  # Windows has other marks, too
    return {"", ".", ".."}.isdisjoint((*name.split("/"), *path.parts)) and not path.anchor and "\0" not in name


def checksums_of(path: Path) -> str:
    """The checksums of a file's blocks, as an `Entry` has them."""
    with path.open("rb") as file:
        return "".join(f"{value:0{_DIGITS}x}" for value in _checksums(file))


def _names(folder: Path) -> list[str]:
    """All files and links under a folder, by their paths in it, sorted; what is being written there is left out."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not (name.startswith(".") and is_workspace(Path(place, name)))]
        links = [name for name in folders if Path(place, name).is_symlink()]
        found += [Path(place, name).relative_to(folder).as_posix() for name in (*names, *links)]
    return sorted(found)


def _checksums(file: BinaryIO) -> Iterator[int]:
    buffer = memoryview(bytearray(16 * BLOCK))  # read a megabyte at a time
    while length := file.readinto(buffer):  # type: ignore[attr-defined]
        for start in range(0, length, BLOCK):
            yield zlib.crc32(buffer[start : min(start + BLOCK, length)])


def _opened(path: Path) -> BinaryIO:
    try:
        return regular_file(path).open("rb")
    except FileNotFoundError:
        raise ValueError(f"{path} is missing; {_DAMAGED}") from None


def is_of_system(error: BaseException) -> bool:
    """Whether the system refused, for want of a permission, of descriptors, of space or of a working disk, so that a
    file may be whole: not that there is no such file, and not what a library finds in it."""
    absent = (None, errno.ENOENT, errno.ENOTDIR, errno.EINVAL)
    return isinstance(error, OSError) and error.errno not in absent


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
        pattern = quoted(f"{path}/*.parquet")
        raise ValueError(f"{path} is a folder; give the name of a file, or a pattern such as {pattern}")
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is a device, a FIFO or a socket; give the name of an ordinary file")
    return path


def open_file(path: Path) -> BinaryIO:
    """Open a file of a saved folder; ValueError if it is missing, no ordinary file, or differs from its manifest."""
    file = _opened(path)
    try:
        if is_verifying() and (manifest := read_manifest(path.parent)) is not None:
            manifest.verify(path.name, file)
    except BaseException:
        file.close()
        raise
    return file
