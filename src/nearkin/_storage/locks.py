"""One change of a saved folder at a time: who loads, changes and saves it waits for the one before."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nearkin._storage.replacing import recover

try:
    import fcntl
except ImportError:  # Windows: changes are not kept apart
    fcntl = None

_MOMENT, _LOOKS = 0.05, 20  # seconds between two looks, and how many of them a folder may be missing
_held: set[int] = set()  # numbers of the folders that are open here


@contextmanager
def changing(path: str | os.PathLike[str]) -> Iterator[None]:
    """While the block runs, no other process or thread is in such a block for the same folder; it waits for its turn.

    The lock is on the folder itself and ends with the process, so that nothing is left behind. A save puts another
    folder in its place: who has waited looks again and locks that one. A plain save does not ask. FileNotFoundError if
    there is no such folder. File systems without `flock` keep nobody apart.
    """
    path = Path(os.path.realpath(path))
    while True:
        number = _opened(path)
        _held.add(number)
        try:
            if try_lock(number) and _stands_at(path, number):
                yield
                return
        finally:
            if number in _held:  # else closed by a fork
                _held.remove(number)
                os.close(number)
        time.sleep(_MOMENT)


def _close_in_child() -> None:
    """A forked process would keep its parent's lock for as long as it runs."""
    while _held:
        os.close(_held.pop())


if fcntl is not None:
    os.register_at_fork(after_in_child=_close_in_child)


def _opened(path: Path) -> int:
    """The folder, open; where there is none, a moment later: it may be between the two renames of a save."""
    for _ in range(_LOOKS):
        with suppress(FileNotFoundError):
            return os.open(path, os.O_RDONLY)
        recover(path)
        time.sleep(_MOMENT)
    raise FileNotFoundError(f"{path} does not exist; give a folder written by save or by `nearkin ... --out`")


def try_lock(number: int) -> bool:
    """Lock an open file or folder until it is closed; False where another process or descriptor holds it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system that knows no locks
        return True
    return True


def _stands_at(path: Path, number: int) -> bool:
    """Whether the open folder is the one that has the name now."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(number))
    except FileNotFoundError:
        return False
