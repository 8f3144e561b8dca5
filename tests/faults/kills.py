"""Kill points, full disks and two at once of what writes: the old or the new stands, and the next run cleans up."""

import json
import tempfile

from tests.faults.child import SCRATCH
from tests.faults.jobs import JOBS
from tests.faults.table import Row
from tests.processes import Program

WAYS = {
    "kills": tuple(JOBS),
    "together": tuple(JOBS),
    "full": tuple(job for job in JOBS if job not in ("ask", "similar", "recommend", "remove", "update", "evaluate")),
}
PARTS = [(job, way) for way, jobs in WAYS.items() for job in jobs]
OUTCOMES = {"old": "same", "new": "other", "both": "other", "refused": "error"}
SECONDS = 3000  # of a whole part


def part(first: int, stop: int, seed: int) -> Row:
    """All points of `PARTS[first:stop]`; the seed changes nothing. "same": the old answer stood, "other": the new."""
    row = Row("kill points")
    for job, way in PARTS[first:stop]:
        row.add(points(job, way))
    return row


def points(job: str, way: str, step: int = 1) -> Row:
    """What stood after each kill, full disk or two at once, or every `step`-th, and what after the next run."""
    row = Row(f"{job} by {way}")
    with tempfile.TemporaryDirectory(dir=SCRATCH) as base:
        done = Program("tests.faults.kill_points", base, job, way, step)
        printed, errors = done.communicate(SECONDS)
    if done.returncode:
        row.faults.append(f"{row.suite}: {errors[-500:]}")
        return row
    found = json.loads(printed)
    for number, (state, beside) in enumerate(zip(found["states"], found["beside"], strict=True)):
        row.inputs += 1
        row.outcomes[OUTCOMES.get(state, "fault")] += 1
        if state not in OUTCOMES:
            row.faults.append(f"{row.suite}, point {number}: {state}")
        if beside != found["leaves"]:
            row.faults.append(f"{row.suite}, point {number}: after the next run {beside}")
    return row
