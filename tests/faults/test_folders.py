"""A short, seeded part of the campaign on saved folders; `python -m tests.faults --folders --signed` runs the long one."""

import pytest

from tests.faults import folders


@pytest.mark.parametrize("run", [folders.run, folders.run_signed])
def test_damaged_folders_answer_as_before_or_are_refused(run) -> None:
    row = run(250, seed=3)
    assert not row.faults
    assert sum(row.outcomes.values()) == row.inputs == 250
    assert row.outcomes["error"] > row.outcomes["same"] > 0


def test_a_changed_answer_is_noticed(tmp_path, monkeypatch) -> None:
    """Without the manifests' check, the campaign finds answers that changed."""
    monkeypatch.setattr("nearkin._storage.manifest.Manifest.verify", lambda *args: None)
    monkeypatch.setattr("nearkin._storage.manifest.Manifest.check_sizes", lambda *args: None)
    with pytest.raises(folders.Fault, match="answers otherwise"):
        for number in range(300):
            try:
                folders.case(number, 0, tmp_path)
            except ValueError:
                continue
