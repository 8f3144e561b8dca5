"""Where an array lies: a file, or a named array inside one, written `file.npz:key`."""

import os
from dataclasses import dataclass
from pathlib import Path

_WITH_KEYS = (".npz", ".parquet")


@dataclass(frozen=True)
class Locator:
    """A file and, where the format holds several arrays, the name of one (None: the file's only one)."""

    path: Path
    key: str | None = None

    def __str__(self) -> str:
        return str(self.path) if self.key is None else f"{self.path}:{self.key}"

    @property
    def suffix(self) -> str:
        return self.path.suffix.lower()


def locate(path: str | os.PathLike) -> Locator:
    """Split `file.npz:key` (also `file.parquet:column`) and look at the file.

    A name without a key, or one whose part before the colon is no such archive, is a plain path. Raises
    FileNotFoundError if nothing is there, and ValueError if it is a folder or an empty file.
    """
    text = os.fspath(path)
    head, colon, key = text.rpartition(":")
    if colon and not Path(text).exists() and Path(head).suffix.lower() in _WITH_KEYS:
        if not key:
            raise ValueError(f"{text} ends in a colon; give the name of an array after it, or no colon")
        found = Locator(Path(head), key)
    else:
        found = Locator(Path(text))
    if not found.path.exists():
        raise FileNotFoundError(f"{found.path} does not exist; check the name (current folder: {Path.cwd()})")
    if found.path.is_dir():
        raise ValueError(f"{found.path} is a folder; give the name of a file")
    if found.path.stat().st_size == 0:
        raise ValueError(f"{found.path} is an empty file (0 bytes); write it again")
    return found
