"""Kill points and full disks of what writes: the old or the new stands, and the next run leaves nothing beside it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.faults.child import ROOT, SCRATCH, Tell
from tests.faults.jobs import JOBS
from tests.faults.table import Row

WAYS = {  # the exchange of names is one; how the system without it does, and a full disk, are tried where they differ
    "exchange": tuple(JOBS),
    "renames": ("save", "encode", "compress", "rotate", "add"),
    "full": tuple(job for job in JOBS if job not in ("ask", "similar", "recommend", "remove", "update", "evaluate")),
}
PARTS = [(job, way) for way, jobs in WAYS.items() for job in jobs]
PROGRAM = Path(__file__).with_name("kill_points.py")
OUTCOMES = {"old": "same", "new": "other", "refused": "error"}
SECONDS = 3000  # of a whole part


class KillWorker:
    """Does all points of `PARTS[first:stop]`; the seed changes nothing."""

    def __init__(self, seed: int = 0) -> None:
        pass

    def __enter__(self) -> "KillWorker":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def part(self, first: int, stop: int, tell: Tell = lambda outcome: None) -> Row:
        """A row of points; "same": the old answer stood, "other": the new one."""
        row = Row("kill points")
        for job, way in PARTS[first:stop]:
            row.add(points(job, way))
            tell("other")
        return row


def points(job: str, way: str, step: int = 1) -> Row:
    """What stood after each kill, or every `step`-th, or full disk, and what after the next run."""
    row = Row(f"{job} by {way}")
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}
    with tempfile.TemporaryDirectory(dir=SCRATCH) as base:
        command = [sys.executable, str(PROGRAM), base, job, way, str(step)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=SECONDS)
    if done.returncode:
        row.faults.append(f"{row.suite}: {done.stderr[-500:]}")
        return row
    found = json.loads(done.stdout)
    for number, (state, beside) in enumerate(zip(found["states"], found["beside"], strict=True)):
        row.inputs += 1
        row.outcomes[OUTCOMES.get(state, "fault")] += 1
        if state not in OUTCOMES:
            row.faults.append(f"{row.suite}, point {number}: {state}")
        if beside != found["leaves"]:
            row.faults.append(f"{row.suite}, point {number}: after the next run {beside}")
    return row
