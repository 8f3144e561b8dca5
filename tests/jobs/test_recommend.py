"""Recommendations and likes of a saved folder against the model's own answers."""

import sys
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.jobs import recommend, similar
from nearkin.jobs.pairs import embed_pairs
from tests.covering import each


@pytest.fixture(scope="module")
def emb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of `embed`: 60 readers of 40 books, ids as text."""
    folder = tmp_path_factory.mktemp("recommend")
    pairs = nk.data.planted_interactions(60, 40, random_state=0).interactions
    lines = [f"r{a};b{b}" for a, b in zip(pairs.rows, pairs.indices, strict=True)]
    (folder / "pairs.csv").write_text("\n".join(["reader;book", *lines]) + "\n")
    embed_pairs(folder / "pairs.csv", left="reader", right="book", dim=8, out=folder / "emb", split="none")
    return folder / "emb"


@each("options", [{}, {"with_seen": True}, {"candidates": ["b1", "b2", "b7"]}])
def test_answers_are_those_of_the_model(emb: Path, tmp_path: Path, options: dict) -> None:
    model, allowed = nk.TwoTower.load(emb), options.get("candidates")
    expected = model.recommend(k=5, exclude_seen=not options.get("with_seen", False), candidates=allowed)
    if allowed is not None:
        (tmp_path / "stock.txt").write_text("\n".join(allowed))
        options = {"candidates": tmp_path / "stock.txt"}
    record = recommend(emb, all_=True, k=5, **options)
    assert [entry["reader"] for entry in record["answers"]] == model.left_ids_.tolist()
    for entry, scores, ids in zip(record["answers"], *expected, strict=True):
        found = np.isfinite(scores)
        assert entry["ids"] == ids[found].tolist()
        np.testing.assert_allclose(entry["scores"], scores[found])
    assert record["columns"] == ["reader", "rank", "book", "similarity"]


def test_blocks_change_nothing(emb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recommend(emb, all_=True, out=tmp_path / "whole.csv")
    monkeypatch.setattr(sys.modules["nearkin.jobs.outputs"], "BLOCK", 7)
    for ending in ("csv", "tsv", "parquet", "npz"):
        recommend(emb, all_=True, out=tmp_path / f"parts.{ending}")
    assert (tmp_path / "parts.csv").read_text() == (tmp_path / "whole.csv").read_text()
    table = nk.data.read_table(tmp_path / "parts.parquet")
    first = (tmp_path / "whole.csv").read_text().splitlines()[1].split(",")
    assert [str(table.columns[name].cells[0]) for name in ("reader", "rank", "book")] == first[:3]
    with np.load(tmp_path / "parts.npz") as arrays:
        assert arrays["ids"].shape == (60, 10)
        assert arrays["queries"][0] == first[0]


def test_newcomers_get_what_fold_in_gives(emb: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("reader,book\nnew,b1\nnew,b2\nold,b3\n")
    model, answers = nk.TwoTower.load(emb), recommend(emb, history=tmp_path / "new.csv", k=3)["answers"]
    expected = model.embed_left([["b1", "b2"], ["b3"]]) @ model.right_embeddings_.T
    expected[[0, 0, 1], [model.right_ids_.tolist().index(b) for b in ("b1", "b2", "b3")]] = -np.inf
    assert [entry["reader"] for entry in answers] == ["new", "old"]
    assert [entry["ids"] for entry in answers] == model.right_ids_[np.argsort(-expected, axis=1)[:, :3]].tolist()
    np.testing.assert_allclose([entry["scores"] for entry in answers], -np.sort(-expected, axis=1)[:, :3], rtol=1e-5)


def test_likes_are_those_of_the_model(emb: Path) -> None:
    record, model = similar(emb, ["b3", "b5"], k=4), nk.TwoTower.load(emb)
    scores, ids = model.similar(["b3", "b5"], k=4)
    assert [entry["ids"] for entry in record["answers"]] == ids.tolist()
    np.testing.assert_allclose([entry["scores"] for entry in record["answers"]], scores, rtol=1e-5)
    assert record["columns"] == ["book", "rank", "similar_book", "cosine_similarity"]
    assert [e["reader"] for e in similar(f"{emb}:left", all_=True, k=2)["answers"]] == model.left_ids_.tolist()


def test_likes_on_a_map_are_the_nearest(tmp_path: Path, rng: np.random.Generator) -> None:
    answers = nk.data.comparisons_from_vectors(rng.normal(size=(12, 2)), 400, random_state=0)
    model = nk.OrdinalEmbedding(random_state=0).fit(answers)
    model.save(tmp_path / "map")
    found = similar(tmp_path / "map", all_=True, k=3)["answers"]
    apart = np.linalg.norm(model.embedding_[:, None] - model.embedding_[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    assert [entry["ids"] for entry in found] == model.objects_[np.argsort(apart, axis=1)[:, :3]].tolist()
    np.testing.assert_allclose([entry["scores"] for entry in found], np.sort(apart, axis=1)[:, :3], rtol=1e-4)
