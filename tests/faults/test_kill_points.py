"""A job that is killed, or finds the disk full, at any moment leaves the old or the new, and nothing beside it."""

from nearkin.cli.app import COMMANDS
from tests.covering import each
from tests.faults import kills
from tests.faults.jobs import JOBS


@each(("job", "step", "least"), [("save", 6, 5), ("ask", 5, 5)])
def test_killed_at_any_moment_old_or_new_stands(job, step, least):
    """Before, 8 of 172 kills of a save left neither."""
    row = kills.points(job, "kills", step)
    assert not row.faults
    assert row.inputs >= least
    assert row.outcomes["same"] > 0
    assert row.outcomes["other"] > 0


def test_a_full_disk_leaves_the_old_one():
    row = kills.points("save", "full")
    assert not row.faults
    assert row.outcomes["same"] > 3
    assert row.outcomes["other"] == 1


@each("job", ["save", "add"])
def test_two_at_once_leave_what_one_or_both_in_turn_would(job):
    row = kills.points(job, "together", 10)
    assert not row.faults
    assert row.inputs == 2


def test_every_command_that_writes_is_tried():
    """A new command must be given a job, or a line here that says why not."""
    others = {
        "check": "reads",
        "demo": "compress, evaluate and report one after another",
        "explore": "a page; reads",
        "watch": "reads",
    }
    assert set(COMMANDS) == set(others) | (set(JOBS) - {"save", "checkpoint", "retrain"})
