"""A short, seeded part of the campaign on the command line; the long one: `python -m tests.faults --commands`."""

import pytest

from tests.faults import commands
from tests.faults.child import Fault, run_cases


def test_commands_end_with_an_answer_or_one_line() -> None:
    row = run_cases("command line", "tests.faults.commands", 30, 3)
    assert not row.faults
    assert sum(row.outcomes.values()) == row.inputs == 30
    assert row.outcomes["error"] > row.outcomes["other"] > 0


def test_a_traceback_and_leftovers_are_noticed(tmp_path, monkeypatch) -> None:
    """What the judge is there for: an unexpected error, and a folder that a failed command leaves."""
    places = commands._places(str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()

    def fails(*args, **options):
        (work / "out").mkdir()
        raise KeyError("x")

    monkeypatch.setattr("nearkin.Index.load", fails)
    with pytest.raises(Fault, match="unexpected KeyError"):
        commands._judge(["search", "IDX", "GOOD"], work, places)
