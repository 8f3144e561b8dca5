"""A short, seeded part of the campaign on saved folders; the long one: `python -m tests.faults --folders --signed`."""

from tests.faults import folders
from tests.faults.child import run_cases
from tests.faults.folders import prepare as prepare


def case(number, seed, folder) -> str:
    return folders.case(number, seed, folder, signed=number % 2 == 1)


def test_damaged_folders_answer_as_before_or_are_refused() -> None:
    row = run_cases("tests.faults.test_folders", 0, 100, 3)
    assert not row.faults
    assert sum(row.outcomes.values()) == row.inputs == 100
    assert row.outcomes["error"] > row.outcomes["same"] > row.outcomes["other"] > 0


def outcome(number, folder) -> str:
    try:
        return folders.case(number, 0, folder)
    except folders.Fault as fault:
        return str(fault)
    except ValueError:
        return "error"


def test_a_changed_answer_is_noticed(tmp_path, monkeypatch) -> None:
    """Without the manifests' check, the campaign finds answers that changed."""
    monkeypatch.setattr("nearkin._storage.manifest.Manifest.verify", lambda *args, **options: None)
    assert any("answers otherwise" in outcome(number, tmp_path) for number in range(300))
