"""The papers' tables and figures: every record has a verdict that its claims support, and a sentence."""

import json
from pathlib import Path

import pytest

from benchmarks.papers import __main__ as command
from benchmarks.papers import scq
from benchmarks.papers.record import Claim, Figure, not_measured
from benchmarks.papers.table import PAPERS
from benchmarks.table import RESULTS, Results

VERDICTS = {"reproduced", "in part", "not reproduced", "not measured"}
FIGURES = [
    pytest.param(make, id=f"{name}-{make.__name__}") for name, module in PAPERS.items() for make in module.FIGURES
]


@pytest.mark.parametrize("make", FIGURES)
def test_a_record_of_the_committed_results(make) -> None:
    figure = make(Results(RESULTS))
    assert figure.verdict in VERDICTS
    assert figure.name
    assert figure.source
    assert figure.why.endswith(".")
    assert "Run `" not in figure.why, f"{figure.name}: its results are not there; {figure.why}"
    assert all(claim.ours for claim in figure.claims)
    if figure.verdict in ("in part", "not reproduced"):
        assert figure.decides.endswith("."), f"{figure.name}: what decides it?"
        assert any(letter.isdigit() for letter in figure.decides), f"{figure.name}: which figure shows it?"


@pytest.mark.parametrize("make", FIGURES)
def test_what_was_not_run_is_not_measured(make, tmp_path: Path) -> None:
    figure = make(Results(tmp_path))
    assert figure.verdict == "not measured"
    assert figure.why.endswith(".")


@pytest.mark.parametrize("module", PAPERS.values(), ids=PAPERS)
def test_a_page_begins_with_at_most_twelve_rows(module) -> None:
    assert len(module.FIGURES) <= 12


def test_names_within_a_paper_differ() -> None:
    for module in PAPERS.values():
        names = [make(Results(RESULTS)).name for make in module.FIGURES]
        assert len(set(names)) == len(names)


def test_the_verdict_is_that_of_the_claims() -> None:
    yes, no, beside = (Claim("x", "1", "1", holds) for holds in (True, False, None))
    assert Figure("f", (yes, beside), "s.", "j").verdict == "reproduced"
    assert Figure("f", (yes, no), "s.", "j").verdict == "in part"
    assert Figure("f", (no, beside), "s.", "j").verdict == "not reproduced"
    assert not_measured("f", "s.", beside=(beside,)).verdict == "not measured"
    assert Figure("f", (yes, no, no), "s.", "j").score == "1 of 3"


def test_scq_reads_table_2_as_printed() -> None:
    cells = scq.paper_cells()
    assert cells[32][0]["SCQ-OgE"]["map"] == 31.15  # CIFAR-10
    assert cells[8][2]["SpH"]["prec@r2"] == 6.88  # SUN397
    assert scq.wins(cells, "map") == (24, 24)


def test_scq_takes_only_cells_with_all_methods(tmp_path: Path) -> None:
    row = {"map": 1.0, "prec@r2": 1.0, "prec@1k": 1.0}
    table = {f"raw|{method}|8|{seed}": row for method in scq.METHODS.values() for seed in (0, 1)}
    table |= {"raw|ITQ|8|2": {**row, "map": 4.0}, "raw|ITQ|16|0": row}
    (tmp_path / "hashing.json").write_text(json.dumps({"table": table}))
    cells, run = scq.our_cells(Results(tmp_path), "raw")
    assert list(cells) == [8]
    assert cells[8][0]["ITQ"]["map"] == 2.0  # the mean over seeds
    assert "2 to 3 seeds" in run


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["papers", "gcd"])
    command.main()
    printed = capsys.readouterr().out
    assert "Table 1: " in printed
    assert "paper:" in printed
    monkeypatch.setattr("sys.argv", ["papers", "no such"])
    with pytest.raises(SystemExit):
        command.main()
