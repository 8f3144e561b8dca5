"""What may be opened as a file."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from nearkin._storage.manifest import verify_file


def regular_file(path: str | os.PathLike[str]) -> Path:
    """`path` if it is an ordinary file; a FIFO, a socket or a device would block whoever opens it, or never end.

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
        kinds = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
        raise ValueError(f"{path} is {kinds.get(stat.S_IFMT(mode), 'no file')}; give the name of an ordinary file")
    return path


def open_file(path: Path) -> BinaryIO:
    """Open a file of a saved folder; ValueError if it is missing, no ordinary file, or not what its manifest says."""
    try:
        file = regular_file(path).open("rb")
    except FileNotFoundError:
        raise ValueError(f"{path} is missing; the folder is damaged") from None
    try:
        verify_file(path, file)
    except BaseException:
        file.close()
        raise
    return file
