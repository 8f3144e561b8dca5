"""Run as a program: save a folder over an old one, once for each moment at which the process is killed.

Every call that changes names or waits for the disk is counted; run number n ends itself by SIGKILL right before call
n, or right after it. Prints, as JSON, what stood at the path after each kill, and what lay beside it after the next
save. `python kill_points.py FOLDER exchange|renames`.
"""

import itertools
import json
import os
import signal
import sys
from pathlib import Path

from nearkin._storage import exchange, read_config, saving_folder

CALLS = ("rename", "replace", "fsync", "mkdir", "rmdir", "unlink")


def killing(n: int, after: bool) -> None:
    """Make call number n of `CALLS`, and of the exchange, this process's last."""
    count = itertools.count()

    def watched(call):
        def run(*args, **options):
            now = next(count) == n
            if now and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return call(*args, **options)
            finally:
                if now:
                    os.kill(os.getpid(), signal.SIGKILL)

        return run

    for name in CALLS:
        setattr(os, name, watched(getattr(os, name)))
    exchange.exchange = watched(exchange.exchange)


def save(path: Path, text: str) -> None:
    with saving_folder(path, "index", {"text": text}) as folder:
        (folder / "data").write_text(text)


def state(path: Path) -> str:
    """ "old" or "new" where config and data agree; what is wrong otherwise."""
    try:
        text = read_config(path, "index")["text"]
        return text if (path / "data").read_text() == text else "mixed"
    except (OSError, ValueError) as error:
        return str(error)


def main(base: Path, way: str) -> None:
    if way == "renames":
        exchange.exchange = lambda one, other: False
    states, beside = [], []
    for n, after in ((n, after) for n in range(1000) for after in (False, True)):
        home = base / f"{n}{after}"
        path = home / "idx"
        save(path, "old")
        child = os.fork()
        if not child:
            killing(n, after)
            save(path, "new")
            os._exit(0)
        killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        states.append(state(path))
        save(path, "again")
        beside.append(sorted(entry.name for entry in home.iterdir()))
        if not killed:
            break
    print(json.dumps({"states": states, "beside": beside}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
