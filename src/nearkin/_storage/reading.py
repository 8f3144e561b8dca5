"""Reading saved folders: a load sees one version, also while another process saves there, or fails clearly."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from nearkin._storage.replacing import recover

Loaded = TypeVar("Loaded")
_OF_DAMAGE = (LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, AssertionError)  # of its content


def one_version(path: str | os.PathLike[str], load: Callable[[Path], Loaded]) -> Loaded:
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
    """Turn whatever a folder's content makes fail into a ValueError that names it; OSError stays as it is."""
    try:
        yield
    except MemoryError as error:
        raise ValueError(f"{path} asks for more memory than there is ({error}); it is damaged, or too large") from error
    except (ValueError, *_OF_DAMAGE) as error:
        if type(error) is ValueError:  # not one of its kinds, such as of text
            raise
        raise ValueError(f"{path} cannot be read ({type(error).__name__}: {error}); it is damaged") from error


def _identity(path: Path) -> tuple[int, int, int] | None:
    """Which folder stands at a path now; a save changes it, as it puts another one there."""
    if not path.exists():
        recover(path)
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns
