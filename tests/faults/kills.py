"""Every kill point of what writes: the old answer or the new one stands, and the next run leaves nothing beside it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.faults.child import ROOT, Tell
from tests.faults.table import Row

JOBS = [(job, way) for job in ("save", "encode", "compress", "embed") for way in ("exchange", "renames")]
PROGRAM = Path(__file__).with_name("kill_points.py")


class KillWorker:
    """Does all points of the jobs `JOBS[first:stop]`; the seed changes nothing."""

    def __init__(self, seed: int = 0) -> None:
        pass

    def __enter__(self) -> "KillWorker":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def part(self, first: int, stop: int, tell: Tell = lambda outcome: None) -> Row:
        """A row of points; "same": the old answer stood, "other": the new one."""
        row = Row("kill points")
        for job, way in JOBS[first:stop]:
            for number, (state, beside) in enumerate(points(job, way)):
                row.inputs += 1
                row.outcomes[{"old": "same", "new": "other"}.get(state, "fault")] += 1
                if state not in ("old", "new"):
                    row.faults.append(f"{job} by {way}, point {number}: {state}")
                if beside != ["new", "out"]:
                    row.faults.append(f"{job} by {way}, point {number}: after the next run {beside}")
            tell("other")
        return row


def points(job: str, way: str) -> list[tuple[str, list[str]]]:
    """What stood after each kill, and what after the next run."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    with tempfile.TemporaryDirectory() as base:
        command = [sys.executable, str(PROGRAM), base, job, way]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = json.loads(done.stdout)
    return list(zip(found["states"], found["beside"], strict=True))
