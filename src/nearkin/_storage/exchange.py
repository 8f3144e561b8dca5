"""Two names swapped in one step, where the system can do that; and what is written made to last."""

import ctypes
import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

_CURRENT_FOLDER, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux's fcntl.h and fs.h
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EXDEV)  # an old kernel, or a file system without it


def exchange(one: Path, other: Path) -> bool:
    """Swap what two names stand for, at once for everybody who looks; False where the system has no such step."""
    rename = _renameat2()
    if rename is None:
        return False
    if rename(_CURRENT_FOLDER, os.fsencode(one), _CURRENT_FOLDER, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


@cache
def _renameat2() -> Callable[..., int] | None:
    """The C library's renameat2, or None: it is Linux's, from glibc 2.28 on."""
    try:
        found = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return found


def sync_tree(path: Path) -> None:
    """Wait until a file, or a folder with all that it holds, is on the disk."""
    if not path.is_dir():
        _sync_file(path)
        return
    for folder, _, names in os.walk(path, topdown=False):
        for name in names:
            _sync_file(Path(folder, name))
        sync_folder(Path(folder))


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can say so."""
    with suppress(PermissionError):  # Windows opens no folders
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
        finally:
            os.close(number)


def _sync_file(path: Path) -> None:
    if not stat.S_ISREG(path.lstat().st_mode):  # a FIFO would block whoever opens it
        return
    with suppress(PermissionError):  # of a file that another user keeps there
        number = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
