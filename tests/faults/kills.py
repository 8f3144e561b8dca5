"""Every kill point of what writes: the old answer or the new one stands, and the next run leaves nothing beside it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.faults.child import ROOT
from tests.faults.table import Row

JOBS = [(job, way) for job in ("save", "encode", "compress", "embed") for way in ("exchange", "renames")]
PROGRAM = Path(__file__).with_name("kill_points.py")


def run(count: int, seed: int) -> Row:
    """All points of all jobs, whatever `count` and `seed` are; "same": the old answer, "other": the new one."""
    row = Row("kill points")
    for job, way in JOBS:
        for state, beside in points(job, way):
            row.inputs += 1
            row.outcomes[{"old": "same", "new": "other"}.get(state, "fault")] += 1
            if state not in ("old", "new"):
                row.faults.append(f"{job} by {way}, point {row.inputs}: {state}")
            if beside != ["new", "out"]:
                row.faults.append(f"{job} by {way}, point {row.inputs}: after the next run {beside}")
    return row


def points(job: str, way: str) -> list[tuple[str, list[str]]]:
    """What stood after each kill, and what after the next run."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    with tempfile.TemporaryDirectory() as base:
        command = [sys.executable, str(PROGRAM), base, job, way]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = json.loads(done.stdout)
    return list(zip(found["states"], found["beside"], strict=True))
