"""The rule of `make guard`, and what it answers without data."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.guard import run


def test_a_loss_beyond_two_standard_errors_is_one() -> None:
    kept = np.random.default_rng(0).integers(0, 11, 400) / 10
    worse = kept - 0.1 * (np.arange(400) % 20 == 0)
    assert not run.lost(kept, kept)[0]
    assert run.lost(worse, kept)[0]
    assert not run.lost(kept, worse)[0]
    assert not run.lost(np.roll(kept, 1), kept)[0]


def test_without_data_it_names_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["guard", "--data", str(tmp_path)])
    assert run.main() == 255
    assert "NEARKIN_DATA" in capsys.readouterr().err


def test_all_cases_have_kept_values() -> None:
    with np.load(run.HERE / "stored.npz") as kept:
        names = {name.rsplit(" ", 1)[0] for name in kept}
    assert names == {name for name, _ in run.cases(Path())}
