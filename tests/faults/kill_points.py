"""Run as a program: break a job off at one moment after another, and see what stands.

`python kill_points.py FOLDER JOB kills|full|together [STEP]`. Every call that changes names, opens a file to
write or waits for the disk is counted; run number n ends itself by SIGKILL right before call n (n * STEP), and of the
job "save" right after it. "full": files may not grow beyond a limit, which doubles from run to run, so that a run ends
where the limit is no more. "together": two of the job are at work at once, see `at_once`. Prints, as JSON, what stood
at the path after each run, and what lay there once the job was run again.

All work is done in forks of this process, which does none itself: a fork beside threads may wait for them for ever. It
only imports what the job was seen to import.
"""

import itertools
import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path

from tests.faults.jobs import COMMANDS, JOBS, MADE, WHICH, Command, Failed, Job, make_data, run_command

CALLS = ("rename", "replace", "fsync", "mkdir", "rmdir", "unlink")
LOADED = ("torch", "faiss", "numba", "pyarrow.parquet", "pyarrow.csv", "scipy.sparse", "sklearn.utils", "matplotlib")
ROUNDS = 20  # of two at once
Break = Callable[[], None]


def killing(n: int, after: bool, folder: Path) -> None:
    """Make call number n of `CALLS`, and of openings to write under `folder`, this process's last."""
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

    def opened(event, args):
        writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        if writes and str(args[0]).startswith(str(folder)) and next(count) == n:
            os.kill(os.getpid(), signal.SIGKILL)

    for name in CALLS:
        setattr(os, name, watched(getattr(os, name)))
    sys.addaudithook(opened)


def filling(size: int) -> None:
    """No file may be longer than `size` bytes: the next byte is an OSError, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def breaks(name: str, way: str, folder: Path, step: int) -> Iterator[Break]:
    """How each run is broken off."""
    if way == "full":
        yield from (partial(filling, size) for size in (0, *(2**i for i in range(4, 40))))
    for n in range(0, 2000, step):
        yield partial(killing, n, False, folder)
        if name == "save":
            yield partial(killing, n, True, folder)


def fork(action: Callable[[], object]) -> int:
    """The number of a process that does it and ends with 0, 2 for a clean error, or 1 for another."""
    child = os.fork()
    if not child:
        try:
            action()
            os._exit(0)
        except (Failed, ValueError):  # a command has no ValueError, only Failed
            os._exit(2)
        except OSError as error:  # of the jobs that are no commands
            os._exit(2 if error.errno else 1)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return child


def ended(child: int) -> int:
    """How it ended; -9 if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def must(action: Callable[[], object]) -> None:
    if code := ended(fork(action)):
        raise RuntimeError(f"a run that nobody breaks off ends with {code}")


def prepared(base: Path, name: str) -> tuple[Job, Path]:
    """The job, and a folder of what stands at first."""
    for module in LOADED if name in COMMANDS else ():
        import_module(module)
    make_data(base)
    job = JOBS[name](base)
    needed = [MADE[word] for word in job.words if word in MADE] if isinstance(job, Command) else []
    for words, which in itertools.product(needed, WHICH):
        must(partial(run_command, words.replace("@", f"{base}/{which}").split()))
    start = base / "start"
    _learn(job, start)
    return job, start


def main(base: Path, name: str, way: str, step: int = 1) -> None:
    job, start = prepared(base, name)
    states, beside = at_once(job, start, base, step) if way == "together" else broken(job, start, base, name, way, step)
    print(json.dumps({"states": states, "beside": beside, "leaves": ["new", *job.leaves]}))


def broken(job: Job, start: Path, base: Path, name: str, way: str, step: int) -> tuple[list[str], list[list[str]]]:
    """What stands after each run that is broken off, and after the next one."""
    states, beside = [], []
    for n, stop in enumerate(breaks(name, way, base, step)):
        home = base / str(n)
        shutil.copytree(start, home)
        code = ended(fork(lambda stop=stop, path=home / "out": (stop(), job.work(path, "new"))[-1]))
        states.append(state_of(job, home / "out") if code in (0, 2, -9) else f"ends with {code}")
        beside.append(after_the_next(job, home))
        if code == 0:
            break
    return states, beside


def after_the_next(job: Job, home: Path) -> list[str]:
    """What stands and lies in the folder after the next run; then it goes."""
    must(partial(job.again, home / "out"))
    found = [state_of(job, home / "out"), *sorted(entry.name for entry in home.iterdir())]
    shutil.rmtree(home)
    return found


def at_once(job: Job, start: Path, base: Path, step: int) -> tuple[list[str], list[list[str]]]:
    """Two of one job at once on one path; the second starts while the first is at work, later from round to round.

    One of them must succeed; the other does too, or ends with a clean error. What stands is what one of them leaves,
    or for a change of an index one after the other.
    """
    first, second = ("new", "new") if isinstance(job, Command) and job.in_place else WHICH
    seconds = _in_turn(job, start, base / "turns", second)
    states, left = [], []
    for n in range(0, ROUNDS, step):
        home = base / str(n)
        shutil.copytree(start, home)
        one = fork(partial(job.work, home / "out", first))
        time.sleep(seconds * n / ROUNDS)
        other = fork(partial(job.work, home / "out", second))
        codes = {ended(one), ended(other)}
        states.append(state_of(job, home / "out") if 0 in codes and codes <= {0, 2} else f"end with {codes}")
        after, *names = after_the_next(job, home)
        left.append(["new" if after == "both" else after, *names])
    return states, left


def _learn(job: Job, start: Path) -> None:
    """Make what stands at first in the folder `start`, and let the job know both."""
    ready = start.with_name("ready")
    start.mkdir()
    must(partial(job.work, start / "out", "old"))
    shutil.copytree(start, ready)
    modules = start.with_name("modules")
    must(lambda: (job.work(ready / "out", "new"), modules.write_text("\n".join(sys.modules)))[0])
    for name in modules.read_text().splitlines():
        if not name.startswith("nearkin.jobs."):  # modules named as the functions that stand for them
            with suppress(Exception):  # names that only their makers can import
                import_module(name)
    if isinstance(job, Command):
        job.learn(start / "out", "old")
        job.learn(ready / "out", "new")


def state_of(job: Job, path: Path) -> str:
    try:
        return job.state(path)
    except (OSError, ValueError) as error:
        return str(error)


def _in_turn(job: Job, start: Path, home: Path, second: str) -> float:
    """Let the job know what both in turn leave; the seconds that one takes."""
    shutil.copytree(start, home)
    started = time.monotonic()
    must(partial(job.work, home / "out", "new"))
    seconds = time.monotonic() - started
    if isinstance(job, Command) and job.in_place:
        ended(fork(partial(job.work, home / "out", second)))  # ids that are gone are a clean error
        if job.state(home / "out").startswith("mixed"):
            job.learn(home / "out", "both")
    shutil.rmtree(home)
    return seconds


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], *map(int, sys.argv[4:]))
