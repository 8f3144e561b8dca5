"""The long campaign goes on where it stopped, and says how far it is."""

import os
import signal
import time
from pathlib import Path
from typing import ClassVar

import pytest

from tests.faults import campaign
from tests.faults.__main__ import main
from tests.faults.campaign import Campaign, Suite
from tests.faults.table import Row


class Counting:
    """Stands for a worker: one of ten cases is a fault."""

    parts: ClassVar[list[tuple[int, int]]] = []

    def __init__(self, seed: int) -> None:
        pass

    def __enter__(self) -> "Counting":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def part(self, first: int, stop: int, tell: campaign.Tell) -> Row:
        row = Row("", stop - first)
        for number in range(first, stop):
            outcome = "error" if number % 10 else "fault"
            row.outcomes[outcome] += 1
            row.faults += [f"case {number}"] * (outcome == "fault")
            tell(outcome)
        self.parts.append((first, stop))
        return row


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "parts", [])
    monkeypatch.setattr(campaign, "SUITES", {"counting": Suite("counting", Counting, 95, 20)})


def test_parts_add_up_and_are_done_once(tmp_path: Path) -> None:
    said: list[str] = []
    first = Campaign(tmp_path / "state", workers=2, say=said.append).run("counting")
    assert first.cells() == ("counting", "95", "85", "0", "0", "10")
    assert sorted(Counting.parts) == [(0, 20), (20, 40), (40, 60), (60, 80), (80, 95)]
    assert "counting: case 90" in said
    assert said[-1].startswith("counting: 95 of 95, ")
    assert said[-1].endswith("10 faults")
    again = Campaign(tmp_path / "state").run("counting", 105)
    assert again.inputs == 105
    assert Counting.parts[5:] == [(80, 100), (100, 105)]  # the others were done


def test_a_cut_line_and_another_commit_are_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state"
    Campaign(state).run("counting", 40)
    state.write_text(state.read_text()[:-30])
    Campaign(state).run("counting", 40)
    assert Counting.parts == [(0, 20), (20, 40), (20, 40)]
    monkeypatch.setattr(campaign, "_commit", lambda: "another")
    Campaign(state).run("counting", 20)
    assert Counting.parts[3:] == [(0, 20)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_signals_stop_a_run_in_the_background(number, tmp_path: Path, monkeypatch, capsys) -> None:
    """What a script starts in the background ignores SIGINT, and went on."""

    def part(self, first: int, stop: int, tell: campaign.Tell) -> Row:
        os.kill(os.getpid(), number)
        time.sleep(0.5)  # until the main thread has seen it
        return Row("", 1)

    monkeypatch.setattr(Counting, "part", part)
    monkeypatch.setattr("sys.argv", ["faults", "--workers", "1", "--state", str(tmp_path / "state")])
    monkeypatch.setattr("tests.faults.__main__.SUITES", campaign.SUITES)
    before = [(each, signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM)]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert main() == 130
    finally:
        for each, handler in before:
            signal.signal(each, handler)
    assert "the same command goes on from here" in capsys.readouterr().out


def test_a_stopped_campaign_keeps_no_half_part(tmp_path: Path) -> None:
    stopped = Campaign(tmp_path / "state")
    stopped._stop.set()
    assert stopped.run("counting").inputs == 0
    assert not (tmp_path / "state").exists()
