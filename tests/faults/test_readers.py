"""A short, seeded part of the campaign on readers; `python -m tests.faults --readers --count N` runs the long one."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from tests.faults import child, readers
from tests.faults.child import run_cases


def test_damaged_files_are_refused_or_read_rightly() -> None:
    row = run_cases("tests.faults.readers", 0, 300, 3)
    assert not row.faults
    assert sum(row.outcomes.values()) == row.inputs == 300
    assert row.outcomes["error"] > row.outcomes["other"] > 0


def test_whole_files_are_read(tmp_path: Path) -> None:
    """No original is refused: a campaign on broken originals would find nothing."""
    for number, (ending, data, reader) in enumerate(readers.originals()):
        path = tmp_path / f"{number}{ending}"
        path.write_bytes(data)
        assert len(readers.digest(reader(path))) == 64


def case(number: int, seed: int, folder: Path) -> str:
    """What the harness must notice: a death, a hang, memory beyond the limit, and an exception of another type."""
    if number == 1:
        os.abort()
    if number == 2:
        time.sleep(3600)
    if number == 3:
        return str(np.ones(2**29).sum())
    if number == 4:
        raise KeyError("x")
    if number == 5:
        raise ValueError("clean")
    return "same"


def test_the_harness_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "SECONDS", 2)
    monkeypatch.setattr(child, "PATIENCE", 1)
    row = run_cases("tests.faults.test_readers", 0, 7, 0)
    texts = "\n".join(row.faults)
    for text in ("case 1 of seed 0: ends the process (-6)", "case 2 of seed 0: hangs", "MemoryError", "KeyError"):
        assert text in texts
    assert len(row.faults) == 4
    assert (row.outcomes["error"], row.outcomes["same"]) == (1, 2)
