"""A file or folder that changes in one step: whoever looks, and whenever a process dies, it is the old or the new.

What is new is made in a *workspace*, a folder `.NAME.xxxxxxxx` beside NAME, as `fresh`. At the end the two names are
exchanged. Where the system cannot do that, the old one waits in the workspace as `old` between two renames. A workspace
whose maker has died (its lock is free) is swept at the next save; an `old` that waits there is put back at the next
save or load.
"""

import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from nearkin._storage import exchange as system

_CONTENT = {"lock", "fresh", "old"}  # of a workspace


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; when the block ends without error, it becomes `path`.

    Works for files and for folders. The parent folder is made if it is missing. At any moment, and whenever the process
    dies, `path` is the old or the new; what is new is on the disk before it gets the name. OSError where that fails.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError(f"{path} is neither a file nor a folder; give the name of an ordinary one")
    path.parent.mkdir(parents=True, exist_ok=True)
    recover(path)
    with _workspace(path) as workspace:
        try:
            fresh = workspace / "fresh"
            yield fresh
            if path.is_dir() and not fresh.is_dir():
                raise IsADirectoryError(f"{path} is a folder; give the name of a file")
            system.sync_tree(fresh)
            system.sync_folder(workspace)
            _put(fresh, path, workspace / "old")
            system.sync_folder(path.parent)
        except OSError as error:
            if error.filename is None and error.errno is not None:  # "No space left on device", but where?
                raise OSError(error.errno, error.strerror, str(path)) from error
            raise
        finally:
            _settle(workspace, path)


def recover(path: str | os.PathLike[str]) -> None:
    """Put back what a killed writer of `path` had set aside, and sweep what it left; a living writer is left alone."""
    path = Path(os.path.realpath(path))
    for workspace in path.parent.glob(f".{glob.escape(path.name)}.????????"):
        _end_of_the_dead(workspace, path)


def sweep(folder: Path) -> None:
    """`recover` for whatever was being written in a folder."""
    for place in folder.glob(".?*.????????"):
        _end_of_the_dead(place, folder / place.name[1:-9])


def is_workspace(place: Path) -> bool:
    """Whether it holds what workspaces hold."""
    try:
        names = {name for name in os.listdir(place) if not name.startswith(".fresh.")}  # of a save into the workspace
    except OSError:  # a file, or gone in between
        return False
    return names <= _CONTENT and (not names or "lock" in names)


def _end_of_the_dead(workspace: Path, path: Path) -> None:
    if is_workspace(workspace):
        with suppress(Timeout, OSError, NotImplementedError), FileLock(workspace / "lock", timeout=0):
            _settle(workspace, path)


@contextmanager
def _workspace(path: Path) -> Iterator[Path]:
    """A new workspace for `path`, locked while the block runs."""
    while True:
        workspace = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        lock = FileLock(workspace / "lock")
        with suppress(FileNotFoundError):
            lock.acquire()
        try:
            if lock.is_locked and (workspace / "lock").exists():  # else swept by another process before it was locked
                yield workspace
                return
        finally:
            lock.release()


def _put(fresh: Path, path: Path, old: Path) -> None:
    """Give `fresh` the name `path`. Afterwards `fresh`, or nothing, holds what stood there before."""
    if not path.is_dir():
        try:
            os.replace(fresh, path)
            return
        except OSError:
            if not (fresh.is_dir() and path.is_dir()):  # else another writer has been faster
                raise
    if not system.exchange(fresh, path):
        os.rename(path, old)
        os.rename(fresh, path)
        os.rename(old, fresh)


def _settle(workspace: Path, path: Path) -> None:
    """End a workspace: what waits in it goes back if nothing stands at `path`, the rest goes."""
    old = workspace / "old"
    if os.path.lexists(old) and not os.path.lexists(path):
        os.rename(old, path)
    for name in ("fresh", "old"):  # the lock last: it tells that this is a workspace
        place = workspace / name
        shutil.rmtree(place, ignore_errors=True) if place.is_dir() else place.unlink(missing_ok=True)
    shutil.rmtree(workspace, ignore_errors=True)
