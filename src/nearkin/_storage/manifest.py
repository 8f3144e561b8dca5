"""The manifest of a saved folder: manifest.json, written last, with the length and the checksums of every file.

Checksums are zlib's CRC-32, one for each block of 64 kB, so that a part of a long file can be verified alone. They find
damage and mixed-up files; they are no protection against somebody who forges a folder.
"""

import json
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from nearkin._check import check_instance
from nearkin._fields import StrPath
from nearkin._storage.atomic import is_workspace

MANIFEST = "manifest.json"
BLOCK = 2**16  # bytes under one checksum
ADDED = ("report.html", "evaluation.json")  # what commands put into a finished folder
_REPORT = b"<footer>nearkin "  # marks a report.html of ours
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
            for number, (found, expected) in enumerate(zip(_checksums(opened), entry.checksums, strict=True)):
                if found != expected:
                    raise ValueError(
                        f"{path} has other bytes than {MANIFEST} lists, from {number * BLOCK:,} on; {_DAMAGED}"
                    )
            opened.seek(0)

    def check_sizes(self) -> None:
        """ValueError if a file is missing or of another length."""
        for name, entry in self.files.items():
            path = self.folder / name
            if not os.path.isfile(path):  # unlike Path.is_file, no OSError for a name that is too long
                raise ValueError(f"{path} is missing; {_DAMAGED}")
            if path.stat().st_size != entry.bytes:
                raise ValueError(f"{path} has another length than {MANIFEST} lists; {_DAMAGED}")

    def strangers(self) -> list[str]:
        """Files in the folder that nearkin did not put there, hidden ones left out."""
        return [name for name in _names(self.folder) if name not in self.files and name not in ADDED]


def users_files(folder: Path) -> list[Path]:
    """Paths in a saved folder of what nearkin did not put there: hidden files, empty folders, a report.html.

    Visible files that a manifest does not list are here too; without one they are ours.
    """
    manifest, found = read_manifest(folder), list[Path]()
    ours = {MANIFEST, *(() if manifest is None else manifest.files)}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not (name.startswith(".") and is_workspace(Path(place, name)))]
        inside = Path(place).relative_to(folder)
        links = [name for name in folders if Path(place, name).is_symlink()]
        for path in (inside / name for name in [*names, *links]):
            name, hidden = path.as_posix(), any(part.startswith(".") for part in path.parts)
            users = not _is_added(folder / name) if name in ADDED else hidden or manifest is not None
            if users and name not in ours:
                found.append(path)
        if not names and not folders:
            found.append(inside)
    return found


def _is_added(file: Path) -> bool:
    """Whether a command of nearkin's added this file of one of the names `ADDED` to a finished folder."""
    return file.is_file() and (file.suffix != ".html" or _REPORT in file.read_bytes())


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
    paths = {name: folder / name for name in _names(folder)}
    files = {name: {"bytes": path.stat().st_size, "crc32": checksums_of(path)} for name, path in paths.items()}
    record = {"kind": kind, "format_version": version, "block": BLOCK, "files": files}
    (folder / MANIFEST).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a saved folder, None without one of ours; ValueError if it is damaged."""
    file = folder / MANIFEST
    if not file.is_file():
        return None
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        if "files" not in record:  # a web site has one too, and the folders of `nearkin encode` have their own
            return None
        files = {str(name): Entry(int(entry["bytes"]), str(entry["crc32"])) for name, entry in record["files"].items()}
        for name, entry in files.items():
            if len(entry.checksums) != -(-entry.bytes // BLOCK) or record["block"] != BLOCK or ".." in name.split("/"):
                raise ValueError(f"the entry of {name} contradicts itself")
        return Manifest(folder, str(record["kind"]), files)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{file} cannot be read ({error}); {_DAMAGED}") from error


def checksums_of(path: Path) -> str:
    """The checksums of a file's blocks, as an `Entry` has them."""
    with path.open("rb") as file:
        return "".join(f"{value:0{_DIGITS}x}" for value in _checksums(file))


def _names(folder: Path) -> list[str]:
    """All files under a folder but its manifest, by their paths in it, sorted; nothing hidden."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(place, name).relative_to(folder).as_posix() for name in names if not name.startswith(".")]
    return sorted(set(found) - {MANIFEST})


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
    except PermissionError:
        raise
    except (OSError, ValueError) as error:  # a name that is too long, holds a NUL, or is a link to itself
        raise ValueError(f"{str(path)[:200]!r} cannot be the name of a file ({error})") from error
    if stat.S_ISDIR(mode):
        raise ValueError(f"{path} is a folder; give the name of a file")
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
