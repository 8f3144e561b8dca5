"""`nearkin train`: from a table of pairs to answers."""

import json
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from tests.cli.conftest import run, run_json


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pairs = nk.data.planted_interactions(80, 60, random_state=0).interactions
    path = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    lines = [f"u{i},{j}" for i, j in zip(pairs.rows, pairs.indices, strict=True)]
    path.write_text("\n".join(["user,item", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(table: Path) -> tuple[Path, dict, str]:
    """The folder, its record and what was printed."""
    out = table.parent / "idx"
    result = run("train", table, "--bytes", 2, "--dim", 8, "--loss", "cosine-softmax", "--out", out)
    assert result.exit_code == 0, result.output
    return out, json.loads((out / "run.json").read_text()), result.stdout


def test_the_record_says_how_well_it_answers(trained: tuple[Path, dict, str]) -> None:
    _, record, _ = trained
    exact, after, learned = (record["quality"][name]["ndcg@100"] for name in list(record["quality"])[:3])
    assert after > 0
    assert 0 < learned <= 1.2 * exact
    assert (record["left"], record["vectors"], record["bytes_per_vector"]) == (80, 60, 2)


def test_it_prints_its_reading_and_recall_and_ndcg_at_20(trained: tuple[Path, dict, str]) -> None:
    _out, _, text = trained
    assert "left = user, right = item" in " ".join(text.split())
    assert "recall@20" in text
    assert "ndcg@20" in text


def test_the_report_shows_quality_curves_and_neighbours(trained: tuple[Path, dict, str]) -> None:
    assert run("report", trained[0]).exit_code == 0
    page = (trained[0] / "report.html").read_text()
    for part in ("Making", "compressed after training", "<svg", "nearest ones"):
        assert part in page
    for pair, found in trained[1]["differences"].items():  # a difference is stated with its interval, or as a tie
        one, other = (trained[1]["quality"][name]["ndcg@100"] for name in pair.split(" less "))
        assert found["mean"] == pytest.approx(one - other)
        tie = "a tie, " if found["low"] <= 0 <= found["high"] else ""
        assert pair in page
        assert f"{tie}{found['mean']:+.4f} (95 % interval" in page


def test_ids_are_learned_in_place_of_an_index(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "ids"
    record = run_json(
        "train", table, "--levels", 2, "--codes", 16, "--dim", 8, "--loss", "cosine-softmax", "--out", out
    )
    exact, after, learned = (record["quality"][name]["ndcg@100"] for name in list(record["quality"])[:3])
    assert 0 < after <= 1.2 * exact
    assert 0 < learned <= 1.2 * exact
    lines = [json.loads(line) for line in (out / "ids.jsonl").read_text().splitlines()]
    assert sorted(line["item"] for line in lines) == list(range(60))
    assert len({line["tokens"] for line in lines}) == 60
    made = nk.SemanticIds.load(out)
    np.testing.assert_array_equal(made.ids_, [line["ids"] for line in lines])
    assert "levels or codes make semantic ids" in run("train", table, "--codes", 16, "--bytes", 8, "--out", out).output
