"""A load that sees one version of a folder, also while another process saves there."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from nearkin._storage.replacing import recover

Loaded = TypeVar("Loaded")


def one_version(path: str | os.PathLike, load: Callable[[Path], Loaded]) -> Loaded:
    """`load(path)`, again if the folder was replaced meanwhile: what it read may be of the old one and of the new."""
    path = Path(path)
    while True:
        before = _identity(path)
        try:
            loaded = load(path)
        except (OSError, ValueError, LookupError):
            if before == _identity(path):
                raise
            continue
        if before == _identity(path):
            return loaded


def _identity(path: Path) -> tuple[int, int, int] | None:
    """Which folder stands at a path now; a save changes it, as it puts another one there."""
    if not path.exists():
        recover(path)
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns
