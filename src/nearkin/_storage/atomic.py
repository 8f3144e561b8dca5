"""Atomic replacement of files and folders: readers see the old or the new one, also after a crash.

What is new is made in a *workspace*, a folder `.NAME.xxxxxxxx` next to NAME, as `fresh`. At the end the two names are
exchanged. Where the system cannot do that, the old one waits in the workspace as `old` between two renames. A workspace
whose maker has died (its lock is free) is swept at the next save; an `old` there is put back by a save or load.
"""

import ctypes
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
from types import ModuleType

from filelock import FileLock, Timeout

from nearkin._check import check_output
from nearkin._fields import StrPath

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_CONTENT = {"lock", "fresh", "old"}  # of a workspace


@contextmanager
def replacing(path: StrPath) -> Iterator[Path]:
    """Yield a temporary path next to `path`; when the block ends without error, it becomes `path`.

    Works for files and for folders; the new has the mode, owner and group of the old. The parent folder is made if it
    is missing. At any moment, and whenever the process dies, `path` is the old or the new; what is new is on the disk
    before it gets the name. OSError where that fails.
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
            sync_tree(fresh)
            sync(workspace)
            _put(fresh, path, workspace / "old")
            sync(path.parent)
        except OSError as error:
            if error.filename is None and error.errno is not None:  # "No space left on device", but where?
                raise OSError(error.errno, error.strerror, str(path)) from error
            raise
        finally:
            _settle(workspace, path)


def recover(path: StrPath) -> None:
    """Put back what a killed writer of `path` had set aside, and sweep what it left; a living writer is left alone."""
    path = Path(os.path.realpath(path))
    sweep(path.parent, glob.escape(path.name))


def discard(path: StrPath) -> None:
    """Remove a folder in one step, as seen from outside; what a killed removal leaves is swept as that of a writer."""
    path = Path(os.path.realpath(path))
    with _workspace(path) as workspace:
        os.rename(path, workspace / "fresh")
        _settle(workspace, path)


def sweep(folder: Path, name: str = "?*") -> None:
    """`recover` for whatever was being written in a folder, or for what the pattern `name` fits."""
    for workspace in folder.glob(f".{name}.????????"):
        if is_workspace(workspace):
            with suppress(Timeout, OSError, NotImplementedError), FileLock(workspace / "lock", timeout=0):
                _settle(workspace, folder / workspace.name[1:-9])


def is_workspace(place: Path) -> bool:
    """Whether it holds what workspaces hold."""
    try:
        names = {name for name in os.listdir(place) if not name.startswith(".fresh.")}  # of a save into the workspace
    except OSError:  # a file, or gone in between
        return False
    return names <= _CONTENT and (not names or "lock" in names)


@contextmanager
def _workspace(path: Path) -> Iterator[Path]:
    while True:
        workspace = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        lock = FileLock(workspace / "lock")
        with suppress(FileNotFoundError, FileExistsError):  # the latter of filelock, which makes the folder again
            lock.acquire()
        try:
            if lock.is_locked and (workspace / "lock").exists():  # else swept by another process before it was locked
                yield workspace
                return
        finally:
            lock.release()


def _put(fresh: Path, path: Path, old: Path) -> None:
    """Give `fresh` the name `path`. Afterwards `fresh` or `old`, or nothing, holds what stood there before."""
    if not path.is_dir():
        try:
            os.replace(fresh, path)
            return
        except OSError:
            if not (fresh.is_dir() and path.is_dir()):  # else another writer has been faster
                raise
    if not exchange(fresh, path):
        os.rename(path, old)
        os.rename(fresh, path)


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
    for place in (workspace / "fresh", old):
        shutil.rmtree(place, ignore_errors=True) if place.is_dir() else place.unlink(missing_ok=True)
    if not any(map(os.path.lexists, (workspace / "fresh", old))):  # the lock last: it marks a workspace
        shutil.rmtree(workspace, ignore_errors=True)
    if workspace.exists():
        warnings.warn(f"{workspace} cannot be removed, look at its permissions; {path} does not need it", stacklevel=2)


_CURRENT_FOLDER, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux's fcntl.h and fs.h
try:
    _renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # Linux's, from glibc 2.28 on
except TypeError:  # Windows has no library without a name
    _renameat2 = None
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EXDEV)  # an old kernel, or a file system without it


def exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; False where the system has no such step."""
    if _renameat2 is None:
        return False
    if _renameat2(_CURRENT_FOLDER, os.fsencode(one), _CURRENT_FOLDER, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


def sync_tree(path: Path) -> None:
    """Wait until a file, or a folder with all that it holds, is on the disk."""
    for folder, _, names in os.walk(path, topdown=False):
        for name in names:
            sync(Path(folder, name))
        sync(Path(folder))
    if not path.is_dir():
        sync(path)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk, where the system can do that."""
    kind = stat.S_IFMT(path.lstat().st_mode)
    if kind not in (stat.S_IFREG, stat.S_IFDIR):  # opening a FIFO would block
        return
    with suppress(PermissionError):  # a file there may be another user's
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        except OSError as error:
            if kind == stat.S_IFREG or error.errno not in _CANNOT:
                raise
        finally:
            os.close(number)


_MOMENT, _LOOKS = 0.05, 20  # seconds between two looks, and how many of them a folder may be missing
_held: set[int] = set()  # numbers of the folders that are open here


@contextmanager
def changing(path: StrPath, *, wait: bool = True) -> Iterator[None]:
    """While the block runs, no other process or thread is in such a block for the same folder; it waits for its turn,
    or if it may not `wait` raises ValueError.

    The lock is on the folder itself and ends with the process, so that nothing is left behind. A save puts another
    folder in its place: who has waited looks again and locks that one. A plain save does not ask. FileNotFoundError if
    there is no such folder, OSError on Windows. File systems without `flock` keep nobody apart.
    """
    _locks()
    path = Path(os.path.realpath(path))
    while True:
        number = _opened(path)
        _held.add(number)
        try:
            if try_lock(number) and _stands_at(path, number):
                yield
                return
            if not wait:
                raise ValueError(f"{path} is being written by another process; wait for it, or give another name")
        finally:
            if number in _held:  # else closed by a fork
                _held.remove(number)
                os.close(number)
        time.sleep(_MOMENT)


def _close_in_child() -> None:
    """A forked process would keep its parent's lock for as long as it runs."""
    while _held:
        os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


def _locks() -> ModuleType:
    """The module with `flock`; OSError where the system has none."""
    if fcntl is None:
        raise OSError(
            "this job locks what it changes, by a call that Linux and macOS have and this system lacks; run it there, "
            "or change the index in Python and save it under another name"
        )
    return fcntl


def _opened(path: Path) -> int:
    """The open folder; if it is missing, tried again a moment later: it may be between the two renames of a save."""
    for _ in range(_LOOKS):
        with suppress(FileNotFoundError):
            return os.open(path, os.O_RDONLY)
        recover(path)
        time.sleep(_MOMENT)
    raise FileNotFoundError(f"{path} does not exist; give a folder written by save or by `nearkin ... --out`")


def try_lock(number: int) -> bool:
    """Lock an open file or folder until it is closed; False where another process or descriptor holds it."""
    locks = _locks()
    try:
        locks.flock(number, locks.LOCK_EX | locks.LOCK_NB)
    except OSError as error:  # others than this one are of a file system without locks
        return not isinstance(error, BlockingIOError)
    return True


def _stands_at(path: Path, number: int) -> bool:
    """Whether the open folder is the one that has the name now."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(number))
    except FileNotFoundError:
        return False
