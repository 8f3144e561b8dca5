"""`nearkin recommend` and `nearkin similar`, and compress, search and report on what `nearkin embed` wrote."""

import csv
import json
import shutil
import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.jobs import recommend, similar
from tests.cli.conftest import refused, run, run_json
from tests.covering import each


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """emb and, of `train`, idx: 60 users who took artists of their own group of six, with times."""
    folder, rng = tmp_path_factory.mktemp("shop"), np.random.default_rng(0)
    user = rng.integers(60, size=1200)
    artist = user % 6 * 8 + rng.integers(8, size=1200)
    when = 1_600_000_000 + np.arange(1200)
    lines = [f"u{a},a{b},{c}" for a, b, c in zip(user, artist, when, strict=True)]
    (folder / "pairs.csv").write_text("\n".join(["user_id,artist,timestamp", *lines]) + "\n")
    how = ("--dim", 8, "--loss", "all-pairs", "--split", "time", "--out")
    record = run_json("embed", folder / "pairs.csv", *how, folder / "emb")
    assert record["words"] == {"left": "user_id", "right": "artist"}
    assert record["split"] == "time"
    assert set(record["quality"]) == {"two_towers", "popularity", "item-kNN", "graph_filter", "sparse_EASE"}
    assert record["quality"]["two_towers"]["ndcg@20"] > record["quality"]["popularity"]["ndcg@20"]
    run_json("train", folder / "pairs.csv", "--bytes", 4, *how, folder / "idx")
    return folder


def test_some_by_name_and_by_file(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "vips.txt").write_text("u7\nu9\n")
    by_file = run_json("recommend", shop / "emb", "--left-ids", tmp_path / "vips.txt", "-k", 2)
    by_name = run_json("recommend", shop / "emb", "u7", "u9", "-k", 2)
    assert by_file["answers"] == by_name["answers"]
    assert [entry["user_id"] for entry in by_name["answers"]] == ["u7", "u9"]
    (tmp_path / "stock.txt").write_text("a0\na8\n")
    limited = run_json("recommend", shop / "idx", "u7", "--candidates", tmp_path / "stock.txt", "--with-seen")
    assert sorted(limited["answers"][0]["ids"]) == ["a0", "a8"]
    shown = run("recommend", shop / "emb", "u7", "u9")
    assert "user_id" in shown.stdout
    assert by_name["answers"][0]["ids"][0] in shown.stdout


def test_results_are_explained_by_pairs_of_the_same_group(shop: Path, tmp_path: Path) -> None:
    """Users took artists of their own group of eight, and a newcomer took three of one group and one of another."""
    entry = run_json("recommend", shop / "emb", "u7", "-k", 2, "--with-seen", "--explain", 3)["answers"][0]
    assert list(entry) == ["user_id", "ids", "scores", "because_of"]
    for text in entry["because_of"]:
        assert {int(name[1:]) // 8 for name in text.split(", ")} == {1}
    (tmp_path / "new.csv").write_text("user_id,artist\nnew,a0\nnew,a1\nnew,a2\nnew,\nnew,a40\n")
    asked = ("recommend", shop / "emb", "--history", tmp_path / "new.csv", "-k", 2, "--explain", 2, "--missing", "drop")
    found = run_json(*asked)["answers"][0]
    for name, text in zip(found["ids"], found["because_of"], strict=True):
        assert name in {"a3", "a4", "a5", "a6", "a7"}
        assert text in {", ".join(pair) for pair in permutations(["a0", "a1", "a2"], 2)}
    assert found["because_of"][0] in run(*asked).stdout
    for name in ("recs.csv", "recs.parquet", "recs.npz"):
        run_json(*asked, "--out", tmp_path / name)
    with (tmp_path / "recs.csv").open() as file:
        assert [row["because_of"] for row in csv.DictReader(file)] == found["because_of"]
    assert np.load(tmp_path / "recs.npz")["because_of"].tolist() == [found["because_of"]]
    refused(
        "--explain needs exact vectors: a folder of `nearkin embed`", "recommend", shop / "idx", "u7", "--explain", 3
    )


def test_pairs_without_an_id_stop_every_command_or_are_dropped(shop: Path, tmp_path: Path) -> None:
    whole, torn = tmp_path / "whole.csv", tmp_path / "torn.csv"
    whole.write_text("user_id,artist\nu1,a9\nu2,a17\n")
    torn.write_text("user_id,artist\nu1,a9\nu1,\n,a3\nu2,a17\n")
    for words, key in (("evaluate EMB", "quality"), ("recommend EMB --history", "answers")):
        asked = [shop / "emb" if word == "EMB" else word for word in words.split()]
        refused("--missing drop", *asked, torn)
        assert run_json(*asked, torn, "--missing", "drop")[key] == run_json(*asked, whole)[key]


@pytest.mark.parametrize("made", ["emb", "idx"])
def test_unknown_ids_are_an_error_that_names_the_way_out_or_are_left_out(shop: Path, tmp_path: Path, made: str) -> None:
    """A catalogue of every night must not stop at one item that is gone (issue "Thirty stumbling blocks", 2)."""
    (tmp_path / "known.csv").write_text("user_id,artist\nn1,a0\nn1,a8\nn2,a9\n")
    (tmp_path / "new.csv").write_text("user_id,artist\nn1,a0\nn1,a8\nn1,gone\nn2,a9\nn3,gone\n")
    (tmp_path / "stock.txt").write_text("a1\na2\na10\ngone\n")
    asked = ("recommend", shop / made, "--history", tmp_path / "new.csv")
    refused = run(*asked)
    assert refused.exit_code == 2
    for words in ("2 pairs of", "new.csv", "'gone'", "--unknown drop"):
        assert words in refused.stderr
    skipped, known = run_json(*asked, "--unknown", "drop"), run_json(*asked[:3], tmp_path / "known.csv")
    assert skipped["answers"] == known["answers"]
    assert "2 pairs of" in skipped["notes"][0]
    stock = ("recommend", shop / made, "u7", "--candidates", tmp_path / "stock.txt")
    assert "--unknown drop" in run(*stock).stderr
    limited = run(*stock, "--unknown", "drop", "--with-seen", "--json")
    assert set(json.loads(limited.stdout)["answers"][0]["ids"]) == {"a1", "a2", "a10"}
    assert "'gone'" in limited.stdout
    assert "no artist of 1 is known" in run("similar", shop / "emb", "gone", "--unknown", "drop").stderr
    assert run(*asked, "--unknown", "skip").exit_code == 2


def test_newcomers_of_a_trained_index(shop: Path, tmp_path: Path) -> None:
    """`nearkin train`'s loss, solved against what the codes stand for; also after rows have left the index."""
    (tmp_path / "new.csv").write_text("user_id,artist\nnew,a0\nnew,a1\nnew,a2\n")
    found = run_json("recommend", shop / "idx", "--history", tmp_path / "new.csv", "-k", 5)["answers"][0]
    assert len(set(found["ids"]) & {"a3", "a4", "a5", "a6", "a7"}) >= 4
    shutil.copytree(shop / "idx", tmp_path / "less")
    run_json("remove", tmp_path / "less", "a47")
    again = run_json("recommend", tmp_path / "less", "--history", tmp_path / "new.csv", "-k", 5)["answers"][0]
    assert len(set(again["ids"]) & {"a3", "a4", "a5", "a6", "a7"}) >= 4


def test_one_pipeline_from_pairs_to_hits(shop: Path, tmp_path: Path) -> None:
    """embed, compress, search, report: what one wrote the next one takes, ids and all."""
    made = run_json("compress", shop / "emb", "--bytes", 4, "--centroids", 16, "--out", tmp_path / "idx")
    assert (made["metric"], made["vectors"]) == ("ip", 48)
    run_json("search", tmp_path / "idx", shop / "emb", "-k", 4, "--out", tmp_path / "hits.csv")
    with (tmp_path / "hits.csv").open() as file:
        hits = list(csv.DictReader(file))
    assert hits[0]["query"] == "u0"
    assert {hit["id"] for hit in hits} <= {f"a{i}" for i in range(48)}
    exact = run_json("search", shop / "emb", shop / "emb", "-k", 1)["hits"]
    model = nk.TwoTower.load(shop / "emb")
    best = model.right_ids_[np.argmax(model.left_embeddings_ @ model.right_embeddings_.T, axis=1)]
    assert [hit["ids"][0] for hit in exact] == best.tolist()
    assert [hit["query"] for hit in exact] == model.left_ids_.tolist()
    judged = run_json("evaluate", tmp_path / "idx", shop / "emb", "--base", shop / "emb", "-k", 5)  # was refused
    assert judged["queries"] == len(model.left_ids_)
    assert 0.2 < judged["5-recall@5"] <= 1
    for made_folder in (shop / "emb", shop / "idx"):
        run_json("report", made_folder)
        page = (made_folder / "report.html").read_text()
        assert "artist" in page
        assert "popularity" in page
        assert "rights" not in page


def test_tomorrow_goes_on_from_today(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("user_id,artist\nnewcomer,a0\nnewcomer,a1\nu0,brand_new\n")
    made = run_json("embed", tmp_path / "new.csv", "--start", shop / "emb", "--out", tmp_path / "emb")
    assert (made["left"], made["right"], made["dim"]) == (61, 49, 8)
    assert "join those of" in made["notes"][-1]
    ids = run_json("recommend", tmp_path / "emb", "newcomer", "-k", 3)["answers"][0]["ids"]
    assert set(ids) <= {f"a{i}" for i in range(2, 8)}


@each("options", [{}, {"with_seen": True}, {"candidates": ["a1", "a2", "a7"]}])
def test_answers_are_those_of_the_model(shop: Path, tmp_path: Path, options: dict) -> None:
    emb, allowed = shop / "emb", options.get("candidates")
    model = nk.TwoTower.load(emb)
    expected = model.recommend(k=5, exclude_seen=not options.get("with_seen", False), candidates=allowed)
    if allowed is not None:
        (tmp_path / "stock.txt").write_text("\n".join(allowed))
        options = {"candidates": tmp_path / "stock.txt"}
    record = recommend(emb, all_=True, k=5, **options)
    assert [entry["user_id"] for entry in record["answers"]] == model.left_ids_.tolist()
    for entry, scores, ids in zip(record["answers"], *expected, strict=True):
        found = np.isfinite(scores)
        assert entry["ids"] == ids[found].tolist()
        np.testing.assert_allclose(entry["scores"], scores[found])
    assert record["columns"] == ["user_id", "rank", "artist", "similarity"]


def test_blocks_change_nothing(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recommend(shop / "emb", all_=True, out=tmp_path / "whole.csv")
    monkeypatch.setattr(sys.modules["nearkin.jobs.outputs"], "BLOCK", 7)
    for ending in ("csv", "tsv", "parquet", "npz"):
        recommend(shop / "emb", all_=True, out=tmp_path / f"parts.{ending}")
    assert (tmp_path / "parts.csv").read_text() == (tmp_path / "whole.csv").read_text()
    table = nk.data.read_table(tmp_path / "parts.parquet")
    first = (tmp_path / "whole.csv").read_text().splitlines()[1].split(",")
    assert [str(table.columns[name].cells[0]) for name in ("user_id", "rank", "artist")] == first[:3]
    with np.load(tmp_path / "parts.npz") as arrays:
        assert arrays["ids"].shape == (60, 10)
        assert arrays["queries"][0] == first[0]


def test_newcomers_get_what_fold_in_gives(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("user_id,artist\nnew,a1\nnew,a2\nold,a3\n")
    model, answers = (
        nk.TwoTower.load(shop / "emb"),
        recommend(shop / "emb", history=tmp_path / "new.csv", k=3)["answers"],
    )
    expected = model.embed_left([["a1", "a2"], ["a3"]]) @ model.right_embeddings_.T
    expected[[0, 0, 1], [model.right_ids_.tolist().index(b) for b in ("a1", "a2", "a3")]] = -np.inf
    assert [entry["user_id"] for entry in answers] == ["new", "old"]
    assert [entry["ids"] for entry in answers] == model.right_ids_[np.argsort(-expected, axis=1)[:, :3]].tolist()
    np.testing.assert_allclose([entry["scores"] for entry in answers], -np.sort(-expected, axis=1)[:, :3], rtol=1e-5)


def test_likes_are_those_of_the_model(shop: Path) -> None:
    record, model = similar(shop / "emb", ["a3", "a5"], k=9), nk.TwoTower.load(shop / "emb")
    scores, ids = model.similar(["a3", "a5"], k=9)
    assert [{*entry["ids"][:7]} for entry in record["answers"]] == [{*row[:7]} for row in ids.tolist()]  # of a group
    np.testing.assert_allclose([entry["scores"] for entry in record["answers"]], scores, rtol=1e-5)
    assert record["columns"] == ["artist", "rank", "similar_artist", "cosine_similarity"]
    assert [e["user_id"] for e in similar(f"{shop}/emb:left", all_=True, k=2)["answers"]] == model.left_ids_.tolist()


def test_likes_on_a_map_are_the_nearest(tmp_path: Path, rng: np.random.Generator) -> None:
    answers = nk.data.comparisons_from_vectors(rng.normal(size=(12, 2)), 400, random_state=0)
    model = nk.OrdinalEmbedding(random_state=0).fit(answers)
    model.save(tmp_path / "map")
    found = similar(tmp_path / "map", all_=True, k=3)["answers"]
    apart = np.linalg.norm(model.embedding_[:, None] - model.embedding_[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    assert [entry["ids"] for entry in found] == model.objects_[np.argsort(apart, axis=1)[:, :3]].tolist()
    np.testing.assert_allclose([entry["scores"] for entry in found], np.sort(apart, axis=1)[:, :3], rtol=1e-4)
