"""Recommendations and likes of a saved folder against the model's own answers."""

from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin import jobs
from nearkin.jobs.inputs import open_sides
from tests.covering import each


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """emb, of `embed`, and idx, of `compress emb`: 60 readers of 40 books, ids as text."""
    folder = tmp_path_factory.mktemp("recommend")
    pairs = nk.data.planted_interactions(60, 40, random_state=0).interactions
    lines = [f"r{a};b{b}" for a, b in zip(pairs.rows, pairs.indices, strict=True)]
    (folder / "pairs.csv").write_text("\n".join(["reader;book", *lines]) + "\n")
    jobs.pairs.embed_pairs(folder / "pairs.csv", left="reader", right="book", dim=8, out=folder / "emb", split="none")
    given = jobs.inputs.open_given(folder / "emb")
    quantizer = nk.ProductQuantizer(4, 16, random_state=0)
    jobs.compress.compress_file(given.file, quantizer, folder / "idx", ids=given.ids, metric="ip", random_state=0)
    return folder


@each("options", [{}, {"with_seen": True}, {"candidates": ["b1", "b2", "b7"]}])
def test_answers_are_those_of_the_model(folders: Path, options: dict) -> None:
    record, answers = jobs.recommend.recommend_folder(folders / "emb", k=5, **options)
    assert answers is not None
    who, scores, ids = answers
    model = nk.TwoTower.load(folders / "emb")
    expected = model.recommend(
        k=5, exclude_seen=not options.get("with_seen", False), candidates=options.get("candidates")
    )
    assert who.tolist() == model.left_ids_.tolist()
    found = np.isfinite(expected[0])
    np.testing.assert_array_equal(ids[found], expected[1][found])
    np.testing.assert_allclose(scores, expected[0])
    assert record["columns"] == ["reader", "rank", "book", "similarity"]


def test_blocks_change_nothing(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.recommend.recommend_folder(folders / "emb", out=tmp_path / "whole.csv")
    monkeypatch.setattr("nearkin.jobs.recommend.BLOCK", 7)
    for ending in ("csv", "tsv", "parquet", "npz"):
        jobs.recommend.recommend_folder(folders / "emb", out=tmp_path / f"parts.{ending}")
    assert (tmp_path / "parts.csv").read_text() == (tmp_path / "whole.csv").read_text()
    table = nk.data.read_table(tmp_path / "parts.parquet")
    first = (tmp_path / "whole.csv").read_text().splitlines()[1].split(",")
    assert [str(table.columns[name].cells[0]) for name in ("reader", "rank", "book")] == first[:3]
    with np.load(tmp_path / "parts.npz") as arrays:
        assert arrays["ids"].shape == (60, 10)
        assert arrays["queries"][0] == first[0]


def test_an_index_of_other_rows_does_not_rank(folders: Path, tmp_path: Path) -> None:
    """Ids of the same type that the right side lacks, and of another type."""
    X = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
    for ids in (["b1", "b2", "else"], [1, 2, 3]):
        nk.Index.build(X, ids=ids, metric="ip").save(tmp_path / "idx", overwrite=True)
        with pytest.raises(ValueError, match="vectors under other ids than the right side"):
            open_sides(folders / "emb", tmp_path / "idx")


def test_seen_pairs_are_left_out_of_a_coded_side(folders: Path) -> None:
    """The index has the rows under ids: the seen pairs follow them, wherever they stand."""
    sides = open_sides(folders / "emb", folders / "idx")
    _, answers = jobs.recommend.recommend_folder(folders / "emb", index=folders / "idx", k=40)
    assert answers is not None
    who, scores, ids = answers
    model = nk.TwoTower.load(folders / "emb")
    seen = {
        (model.left_ids_[u], model.right_ids_[i]) for u, i in zip(model.seen_.rows, model.seen_.indices, strict=True)
    }
    offered = {(name, book) for name, row, s in zip(who, ids, scores, strict=True) for book in row[np.isfinite(s)]}
    assert not seen & offered
    assert len(seen) + len(offered) == 60 * 40
    assert len(sides.right_ids) == 40


def test_newcomers_get_what_fold_in_gives(folders: Path) -> None:
    history = nk.Interactions.from_pairs(["new", "new", "old"], ["b1", "b2", "b3"])
    _, answers = jobs.recommend.recommend_folder(folders / "emb", history=history, k=3)
    assert answers is not None
    who, scores, ids = answers
    model = nk.TwoTower.load(folders / "emb")
    P = model.embed_left([["b1", "b2"], ["b3"]])
    expected = P @ model.right_embeddings_.T
    expected[0, [model.right_ids_.tolist().index(b) for b in ("b1", "b2")]] = -np.inf
    expected[1, model.right_ids_.tolist().index("b3")] = -np.inf
    assert who.tolist() == ["new", "old"]
    assert ids.tolist() == model.right_ids_[np.argsort(-expected, axis=1)[:, :3]].tolist()
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :3], rtol=1e-5)


def test_likes_are_those_of_the_model(folders: Path) -> None:
    record, answers = jobs.recommend.similar_folder(folders / "emb", ids=["b3", "b5"], k=4)
    assert answers is not None
    scores, ids = nk.TwoTower.load(folders / "emb").similar(["b3", "b5"], k=4)
    assert answers[2].tolist() == ids.tolist()
    np.testing.assert_allclose(answers[1], scores, rtol=1e-5)
    assert record["columns"] == ["book", "rank", "similar_book", "cosine_similarity"]
    _, of_readers = jobs.recommend.similar_folder(f"{folders}/emb:left", k=2)
    assert of_readers is not None
    assert of_readers[0].tolist() == nk.TwoTower.load(folders / "emb").left_ids_.tolist()


def test_likes_on_a_map_are_the_nearest(tmp_path: Path, rng: np.random.Generator) -> None:
    answers = nk.data.comparisons_from_vectors(rng.normal(size=(12, 2)), 400, random_state=0)
    model = nk.OrdinalEmbedding(random_state=0).fit(answers)
    model.save(tmp_path / "map")
    _, found = jobs.recommend.similar_folder(tmp_path / "map", k=3)
    assert found is not None
    apart = np.linalg.norm(model.embedding_[:, None] - model.embedding_[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    assert found[2].tolist() == model.objects_[np.argsort(apart, axis=1)[:, :3]].tolist()
    np.testing.assert_allclose(found[1], np.sort(apart, axis=1)[:, :3], rtol=1e-4)


def test_what_cannot_be_answered_is_said(folders: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    nk.Index.build(np.eye(3, dtype=np.float32)).save(plain)
    bits = tmp_path / "l2"
    nk.Index.build(np.eye(3, dtype=np.float32), ids=np.array(["b1", "b2", "b3"])).save(bits)
    cases = [
        ({"folder": plain}, "holds an index and no left side to recommend to"),
        ({"folder": folders / "emb", "left_ids": ["r1", "nobody"]}, "reader 'nobody' is not among the 60 known"),
        ({"folder": folders / "emb", "candidates": ["x"]}, "book 'x' is not among the 40 known"),
        ({"folder": folders / "emb", "index": bits}, "pairs rank by inner product: compress with --metric ip"),
        ({"folder": folders / "emb", "out": "recs.txt"}, "the ending of recs.txt is '.txt'"),
    ]
    for options, text in cases:
        with pytest.raises(ValueError, match=text):
            jobs.recommend.recommend_folder(**options)
