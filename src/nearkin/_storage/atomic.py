"""Atomic replacement of files and folders: readers see the old or the new one, also after a crash.

What is new is made in a *workspace*, a folder `.NAME.nearkin-xxxxxxxx` next to NAME, as `fresh`. At the end it is
renamed; a folder that it replaces waits in the workspace as `old` for that moment. The workspace is locked while its
maker lives. One whose lock is free is swept at the next save; an `old` there is put back by a save or load.
"""

import errno
import glob
import os
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nearkin._check import check_output
from nearkin._fields import StrPath

try:
    import fcntl
except ImportError:  # Windows: a killed writer's workspace is not swept there
    fcntl = None

_NO_LOCKS = "this job locks what it changes, which needs Linux or macOS: save the changed index under another name"
_MARK = ".nearkin-"  # in the name of a workspace
_MOMENT, _LOOKS = 0.05, 20  # seconds between two looks, and how many of them a folder may be missing


@contextmanager
def replacing(path: StrPath) -> Iterator[Path]:
    """Yield a temporary path next to `path`; when the block ends without error, it becomes `path`.

    Works for files and for folders; the new has the mode, owner and group of the old. The parent folder is made if it
    is missing. Whenever the process dies, nearkin reads the old or the new; what is new is on the disk before it gets
    the name. OSError where that fails.
    """
    path = Path(os.path.realpath(check_output(path)))
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
            if path.exists():
                _keep_rights(path, fresh)
            for place in (*fresh.rglob("*"), fresh, workspace):  # on the disk before it gets the name
                sync(place)
            if path.is_dir():
                os.rename(path, workspace / "old")
            os.replace(fresh, path)
            sync(path.parent)
        except OSError as error:
            if error.filename is None and error.errno is not None:  # "No space left on device", but where?
                raise OSError(error.errno, error.strerror, str(path)) from error
            raise


def recover(path: StrPath) -> None:
    """Put back what a killed writer of `path` had set aside, and sweep what it left. A living writer is left alone; if
    it is between its two renames, wait for it."""
    path = Path(os.path.realpath(path))
    name = glob.escape(path.name)
    for _ in range(_LOOKS):
        sweep(path.parent, name)
        if path.exists() or not any(path.parent.glob(f".{name}{_MARK}????????/old")):
            return
        time.sleep(_MOMENT)


def discard(path: StrPath) -> None:
    """Remove a folder in one step, as seen from outside; what a killed removal leaves is swept as that of a writer."""
    path = Path(os.path.realpath(path))
    with _workspace(path) as workspace:
        os.rename(path, workspace / "fresh")


def sweep(folder: Path, name: str = "?*") -> None:
    """`recover` for whatever was being written in a folder, or for what the pattern `name` fits."""
    for workspace in folder.glob(f".{name}{_MARK}????????"):
        with suppress(OSError), _locked(workspace) as is_mine:
            if is_mine:
                _settle(workspace, folder / workspace.name[1:].rpartition(_MARK)[0])


def is_workspace(name: str) -> bool:
    return name.startswith(".") and _MARK in name


@contextmanager
def _workspace(path: Path) -> Iterator[Path]:
    while True:
        workspace = Path(tempfile.mkdtemp(prefix=f".{path.name}{_MARK}", dir=path.parent))
        with _locked(workspace) as is_mine:
            if is_mine is not False:  # else swept by another process before it was locked
                try:
                    yield workspace
                finally:
                    _settle(workspace, path)
                return


def _keep_rights(path: Path, fresh: Path) -> None:
    """Give all of `fresh` the mode, owner and group of what it replaces, and what is new in a folder those of the
    folder."""
    folder, kept = path.stat(), True
    for place in [fresh, *(place for place in fresh.rglob("*") if not place.is_symlink())]:
        before, now = path / place.relative_to(fresh), place.stat()
        known = before.exists() and before.is_dir() == place.is_dir()
        wanted = before.stat() if known else folder
        mode = stat.S_IMODE(wanted.st_mode) & (0o7777 if known or place.is_dir() else 0o666)
        for owner in (wanted.st_uid, -1) if (wanted.st_uid, wanted.st_gid) != (now.st_uid, now.st_gid) else ():
            try:
                os.chown(place, owner, wanted.st_gid)
                break
            except PermissionError:
                kept = False
        else:
            mode &= mode if wanted.st_gid == now.st_gid else 0o707  # its rights were those of another group
        place.chmod(mode)
    if not kept:
        warnings.warn(f"{path} changes its owner or group: this process may not give it those it had", stacklevel=2)


def _settle(workspace: Path, path: Path) -> None:
    """End a workspace: restore the old content if nothing is at `path`, and delete the rest, with a warning if that
    fails."""
    old = workspace / "old"
    if os.path.lexists(old) and not os.path.lexists(path):
        os.rename(old, path)
    shutil.rmtree(workspace, ignore_errors=True)
    if workspace.exists():
        warnings.warn(f"{workspace} cannot be removed, look at its permissions; {path} does not need it", stacklevel=2)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk, where the system can do that."""
    with suppress(PermissionError):  # a file there may be another user's
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
        finally:
            os.close(number)


_held: set[int] = set()  # numbers of the folders that are locked here


@contextmanager
def changing(path: StrPath, *, wait: bool = True) -> Iterator[None]:
    """While the block runs, no other process or thread is in such a block for the same folder; it waits for its turn,
    or if it may not `wait` raises ValueError.

    The lock is on the folder itself and ends with the process, so that nothing is left behind. A save puts another
    folder in its place: who has waited looks again and locks that one. A plain save does not ask. FileNotFoundError if
    there is no such folder, OSError on Windows. File systems without `flock` keep nobody apart.
    """
    if fcntl is None:
        raise OSError(_NO_LOCKS)
    path = Path(os.path.realpath(path))
    while True:
        recover(path)
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist; give a folder that nearkin has saved")
        with _locked(path) as is_mine:
            if is_mine is not False:
                yield
                return
        if not wait:
            raise ValueError(f"{path} is being written by another process; wait for it, or give another name")
        time.sleep(_MOMENT)


@contextmanager
def _locked(folder: Path) -> Iterator[bool | None]:
    """Lock a folder until the block ends, as `try_lock`; False too if the name has gone, or to another folder."""
    if fcntl is None:
        yield None
        return
    try:
        number = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    _held.add(number)
    try:
        is_mine = try_lock(number)
        yield is_mine if _stands_at(folder, number) else False
    finally:
        if number in _held:  # else closed by a fork
            _held.remove(number)
            os.close(number)


def _stands_at(path: Path, number: int) -> bool:
    """Whether the open folder is the one that has the name now."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(number))
    return False


def try_lock(number: int) -> bool | None:
    """Lock an open file or folder until it is closed. False where another process or descriptor holds it; None on a
    file system without such locks."""
    if fcntl is None:
        raise OSError(_NO_LOCKS)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if isinstance(error, BlockingIOError) else None
    return True


def _close_in_child() -> None:
    """A forked process would keep its parent's lock for as long as it runs."""
    while _held:
        os.close(_held.pop())


if fcntl is not None:
    os.register_at_fork(after_in_child=_close_in_child)
