"""Run as a program with a folder: save an index over a smaller one, on a disk of 1 MB that this process alone sees."""

import ctypes
import os
import sys
from pathlib import Path

import numpy as np

import nearkin as nk

NAMESPACES = 0x10020000  # CLONE_NEWUSER | CLONE_NEWNS of Linux's sched.h


def mount(place: Path, size: str) -> None:
    """A disk in memory, for this process; OSError where the system allows none."""
    users = {"uid_map": os.getuid(), "gid_map": os.getgid()}
    _done(_libc.unshare(NAMESPACES))
    Path("/proc/self/setgroups").write_text("deny")
    for name, number in users.items():
        Path(f"/proc/self/{name}").write_text(f"0 {number} 1")
    _done(_libc.mount(b"tiny", os.fsencode(place), b"tmpfs", 0, f"size={size}".encode()))


_libc = ctypes.CDLL(None, use_errno=True)


def _done(code: int) -> None:
    if code:
        raise OSError(ctypes.get_errno(), "there is no disk of its own for a process")


def main(place: Path) -> None:
    try:
        mount(place, "1m")
    except (OSError, AttributeError) as error:  # no Linux, or a container without namespaces
        print("no disk:", error)
        return
    X = np.random.default_rng(0).normal(size=(20_000, 16)).astype(np.float32)
    quantizer = nk.ProductQuantizer(2, 16, rotation=None, max_iter=1, random_state=0).fit(X[:500])
    nk.Index.build(X[:500], quantizer, keep_vectors=True).save(place / "idx")
    try:
        nk.Index.build(X, quantizer, keep_vectors=True).save(place / "idx", overwrite=True)
    except OSError as error:
        print(type(error).__name__, error)
    print(len(nk.Index.load(place / "idx")), os.listdir(place))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
