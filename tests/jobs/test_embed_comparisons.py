import json
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import nearkin as nk
from nearkin.data import comparisons_from_array, comparisons_from_vectors
from nearkin.data.comparisons.votes import flip_answers
from nearkin.jobs.embed_comparisons import _without_opposite, embed_comparisons
from nearkin.jobs.run import watched
from tests.cli.conftest import run

pytestmark = pytest.mark.usefixtures("few_draws")


@pytest.fixture
def answers(tmp_path):
    points = np.random.default_rng(1).normal(size=(15, 2))
    rows = comparisons_from_vectors(points, 1500, random_state=2).indices
    names = np.array([f"object {n}" for n in range(15)])[rows]
    lines = [",".join(row) for row in names] + ["object 1,object 1,object 2"]
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(["anchor,near,far", *lines]), encoding="utf-8")
    return path


def test_writes_an_embedding_with_figures_and_a_record(answers, tmp_path):
    steps = []
    out = tmp_path / "emb"
    with watched(lambda name: nullcontext(lambda step, record: steps.append(name))):
        record = embed_comparisons(answers, out=out, dim=2, missing="drop")
    assert {file.name for file in out.iterdir()} == {
        *("config.json", "embedding.safetensors", "manifest.json", "objects.json", "coordinates.csv", "questions.csv"),
        *("map.png", "map.svg", "map.pdf", "error.png", "error.svg", "error.pdf"),
    }
    assert (out / "map.png").stat().st_size > 10_000
    assert record["dropped"] == 1
    assert record["held_out_error"] < 0.1
    assert json.loads(json.dumps(record)) == record
    assert set(record["curves"]) == {"answers", "dimension"}
    assert record["curves"]["dimension"]["error"][0] > record["held_out_error"]
    low, high = record["held_out_interval"]
    assert low <= record["held_out_error"] <= high
    assert any(note.startswith("held-out error 0.0") for note in record["notes"])
    questions = (out / "questions.csv").read_text(encoding="utf-8").splitlines()
    assert questions[0] == "anchor,left,right"
    assert [line.split(",") for line in questions[1:]] == record["next_queries"]
    assert len(questions) == 21
    points = nk.data.read_table(out / "coordinates.csv")
    assert points.columns["object"].text() == nk.OrdinalEmbedding.load(out).objects_.tolist()
    assert set(steps) == {"train", "train on all"}
    model = nk.OrdinalEmbedding.load(out)
    assert model.score(nk.read_comparisons(answers, missing="drop")) == pytest.approx(1 - record["train_error"])
    before = model.embedding_
    model.partial_fit(model.comparisons_)
    assert model.embedding_.shape == before.shape


@pytest.mark.usefixtures("no_pictures")
def test_after_rankings_rankings_are_asked(tmp_path):
    rows = [np.random.default_rng(seed).permutation(9)[:5] for seed in range(30)]
    file = tmp_path / "ranked.csv"
    file.write_text(
        "anchor,rank1,rank2,rank3,rank4\n" + "".join(",".join(map("o{}".format, row)) + "\n" for row in rows)
    )
    embed_comparisons(file, out=tmp_path / "map", form="ranking")
    assert (tmp_path / "map/questions.csv").read_text().startswith("anchor,object1,object2,object3,object4\n")


@pytest.mark.usefixtures("no_pictures")
def test_raters_are_weighed_when_asked(answers, tmp_path):
    """Of three raters one tosses a coin."""
    rng, lines = np.random.default_rng(0), ["anchor,near,far,rater"]
    for row, text in enumerate(answers.read_text(encoding="utf-8").splitlines()[1:601]):
        i, j, k = text.split(",")
        near, far = (k, j) if row % 3 == 2 and rng.random() < 0.5 else (j, k)
        lines.append(f"{i},{near},{far},{('anna', 'ben', 'coin')[row % 3]}")
    path = tmp_path / "rated.csv"
    path.write_text("\n".join(lines))
    embed_comparisons(path, out=tmp_path / "map", raters="estimated")
    weights = json.loads((tmp_path / "map/config.json").read_text())["record"]["rater_reliability"]
    assert weights["coin"] < 0.5 * min(weights["anna"], weights["ben"])
    with pytest.raises(ValueError, match="raters is 'weighed'"):
        embed_comparisons(path, out=tmp_path / "other", raters="weighed")


@pytest.mark.usefixtures("no_pictures")
def test_answers_by_coin_flips_are_doubted(tmp_path):
    rng = np.random.default_rng(1)
    rows = [rng.choice(list("abcdefgh"), 3, replace=False) for _ in range(120)]
    file = tmp_path / "flips.csv"
    file.write_text("anchor,near,far\n" + "".join(",".join(row) + "\n" for row in rows))
    notes = embed_comparisons(file, out=tmp_path / "map", dim="auto")["notes"]
    assert any("no dimension predicts held-out answers" in note for note in notes)


@pytest.mark.usefixtures("no_pictures")
def test_repeated_questions_are_held_out_together(tmp_path):
    """Raters who contradict themselves: by rows, answers to one question were learnt from and judged by."""
    points = np.random.default_rng(1).normal(size=(12, 2))
    rows = comparisons_from_vectors(points, 150, random_state=2).indices
    rows = flip_answers(comparisons_from_array(np.concatenate([rows, rows, rows])), 0.2, random_state=0).indices
    path = tmp_path / "answers.csv"
    path.write_text("anchor,near,far\n" + "\n".join(",".join(f"o{n}" for n in row) for row in rows), encoding="utf-8")
    record = embed_comparisons(path, out=tmp_path / "emb")
    assert record["noise_floor"] == pytest.approx(0.2, abs=0.04)
    assert record["held_out_error"] >= record["noise_floor"] - 0.04


def test_a_rater_who_answers_the_opposite_is_named_with_both_shares():
    answers = replace(comparisons_from_array([[0, 1, 2], [0, 2, 1]]), annotators=np.array(["a", "b"]))
    kept, notes = _without_opposite(answers, {"b": 0.2}, "drop")
    assert kept.indices.tolist() == [[0, 1, 2]]
    assert notes == ["b answers the opposite of the others (20% agreement, 80% expected if reversed): left out"]


@pytest.mark.usefixtures("no_pictures")
def test_a_table_is_read_as_told_and_the_reading_is_printed(tmp_path):
    """`ref,left,right,response,rt` became a recommender; two readings of a response stop."""
    rng = np.random.default_rng(0)
    rows = [rng.permutation(9)[:3].tolist() for _ in range(80)]
    path = tmp_path / "answers.csv"
    path.write_text("ref,left,right,response,rt\n" + "".join(f"c{i},c{j},c{k},left,300\n" for i, j, k in rows))
    result = run("embed", path, "--out", tmp_path / "map", "--overwrite")
    assert result.exit_code == 0, result.output
    assert f"c{rows[0][0]} is nearer to c{rows[0][1]} than to c{rows[0][2]}" in " ".join(result.stdout.split())
    path.write_text(
        "a::b::c::choice\n" + "".join(f"c{i}::c{j}::c{k}::{1 + n % 3}\n" for n, (i, j, k) in enumerate(rows))
    )
    options = ("--form", "odd-one-out", "--delimiter", "::")
    assert run("embed", path, "--overwrite", "--out", tmp_path / "map", *options).exit_code == 0
