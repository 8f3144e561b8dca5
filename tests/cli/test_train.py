"""`nearkin train`: from a table of pairs to answers."""

import json
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.jobs.train import train_index
from tests.cli.conftest import run, run_json
from tests.covering import each


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
    _, record, text = trained
    exact, after, learned = (record["quality"][name]["ndcg@100"] for name in list(record["quality"])[:3])
    assert after > 0
    assert 0 < learned <= 1.2 * exact
    assert (record["left"], record["vectors"], record["bytes_per_vector"]) == (80, 60, 2)
    assert "left = user, right = item" in " ".join(text.split())
    assert "recall@20" in text


def test_the_report_shows_quality_curves_and_neighbours(trained: tuple[Path, dict, str]) -> None:
    assert run("report", trained[0]).exit_code == 0
    page = (trained[0] / "report.html").read_text()
    for part in ("Making", "compressed after training", "<svg", "nearest ones"):
        assert part in page
    for pair, found in trained[1]["differences"].items():  # a difference is stated with its interval, or as a tie
        one, other = (trained[1]["quality"][name]["ndcg@100"] for name in pair.split(": ")[1].split(" less "))
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


def shop(n_rights: int) -> nk.Interactions:
    rng = np.random.default_rng(n_rights)
    left = rng.integers(12, size=3 * n_rights)
    return nk.Interactions.from_pairs(left, np.arange(3 * n_rights) % n_rights)


@each(("n_rights", "loss"), [(16, "all-pairs"), (17, "in-batch-softmax")])
def test_every_small_table_gets_an_index(tmp_path: Path, n_rights: int, loss: str) -> None:
    """A layer waited for 8,192 rows, which so small a table never shows in 30 rounds."""
    train_index(shop(n_rights), tmp_path / "idx", n_bytes=2, dim=4, loss=loss, split="none")
    assert len(nk.Index.load(tmp_path / "idx")) == n_rights


def test_too_few_rights_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has 15 items; an index needs at least 16"):
        train_index(shop(15), tmp_path / "idx")
