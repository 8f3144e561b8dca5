"""Run as a program: two of one job at once on one path.

`python at_once.py FOLDER JOB [STEP]`. The second starts while the first is at work, later from round to round. One of
them must succeed; the other does too, or ends with a clean error. What stands is what one of them leaves, or for a
change of an index one after the other. Prints what `kill_points` prints.
"""

import json
import shutil
import sys
import time
from functools import partial
from pathlib import Path

from tests.faults.jobs import WHICH, Command, Job
from tests.faults.kill_points import ended, fork, must, prepared, state_of

ROUNDS = 20


def main(base: Path, name: str, step: int = 1) -> None:
    job, start = prepared(base, name)
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
        must(partial(job.again, home / "out"))
        after = state_of(job, home / "out")
        left.append(["new" if after == "both" else after, *sorted(entry.name for entry in home.iterdir())])
        shutil.rmtree(home)
    print(json.dumps({"states": states, "beside": left, "leaves": ["new", *job.leaves]}))


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
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
