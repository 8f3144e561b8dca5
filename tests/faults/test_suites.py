"""Short, seeded parts of the campaign's suites; the long ones: `python -m tests.faults --commands ...`."""

import pytest

from tests.covering import each
from tests.faults import commands, writers
from tests.faults.child import Fault, run_cases

pytestmark = pytest.mark.usefixtures("few_rounds")


def test_commands_end_with_an_answer_or_one_line() -> None:
    row = run_cases("tests.faults.commands", 0, 15, 3)
    assert not row.faults
    assert sum(row.outcomes.values()) == row.inputs == 15
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


@each("way", ["threads", "fork"])  # the campaign adds "spawn", which imports for seconds
def test_no_acknowledged_change_is_lost(way, tmp_path):
    """Before, the last save won: rows that another process had added meanwhile were gone."""
    assert writers.case(writers.WAYS.index(way), 0, tmp_path) == "same"
