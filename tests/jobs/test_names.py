"""`nearkin ids` and `nearkin bridge`: what they write is what the library gives, and what they print is true."""

import json
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin._types import Record
from nearkin.jobs.inputs import find_ids
from nearkin.jobs.report import folder_page
from tests.cli.conftest import run, run_json


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("names"), np.random.default_rng(0)
    old = rng.normal(size=(300, 6)).astype(np.float32)
    np.save(folder / "old.npy", old)
    np.save(folder / "new.npy", (old @ np.linalg.qr(rng.normal(size=(6, 6)))[0] + 1).astype(np.float32))
    (folder / "names.txt").write_text("".join(f"Tee {i} ☕\n" for i in range(300)))
    return folder


@pytest.fixture(scope="module")
def record(folder: Path) -> Record:
    """That of `nearkin ids`, whose output is ids/."""
    arguments = ("ids", folder / "old.npy", "--levels", 2, "--codes", 32, "--ids", folder / "names.txt", "--parquet")
    return run_json(*arguments, "--out", folder / "ids")


def test_every_item_gets_an_id_of_its_own_and_each_file_leads_back_to_it(folder: Path, record: Record) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = {name: (folder / "ids" / name).read_text(encoding="utf-8") for name in ("ids.jsonl", "index.json")}
    lines, index = [json.loads(line) for line in texts["ids.jsonl"].splitlines()], json.loads(texts["index.json"])
    made = nk.SemanticIds.load(folder / "ids")
    assert [line["ids"] for line in lines] == made.ids_.tolist()
    assert len({line["tokens"] for line in lines}) == record["items"] == 300
    assert lines[7]["item"] == "Tee 7 ☕"
    assert lines[7]["tokens"] == "<a_{}><b_{}>".format(*lines[7]["ids"])
    assert {name: "".join(tokens) for name, tokens in index.items()} == {line["item"]: line["tokens"] for line in lines}
    assert record["shared_before"] == made.shared_
    assert not run_json("check", folder / "ids")["damaged"]
    table = parquet.read_table(folder / "ids" / "ids.parquet").to_pydict()
    assert [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)] == lines
    np.testing.assert_array_equal(made.from_tokens(table["tokens"]), made.ids_)
    words = (folder / "ids" / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    numbers = [[words.index(word) for word in tokens] for tokens in index.values()]
    np.testing.assert_array_equal(made.ids_ + 32 * np.arange(2), numbers)
    np.testing.assert_array_equal(made.item_of(made.from_tokens(["".join(index["Tee 7 ☕"])])), [7])


def test_ids_with_towers_are_those_of_joined_vectors(folder: Path, tmp_path: Path, rng: np.random.Generator) -> None:
    """Items that lack pairs get the mean of the towers; `alpha` is a share of the squared length."""
    users, items = rng.integers(0, 9, 280), np.array([f"i{item}" for item in range(280)])
    towers = nk.TwoTower(2, loss="all-pairs", solver=nk.embedding.ALS(max_iter=1), regularization=0.1, random_state=0)
    towers.fit(nk.Interactions.from_pairs(users, items)).save(tmp_path / "emb")
    (tmp_path / "names.txt").write_text("".join(f"i{item}\n" for item in range(299, -1, -1)))
    options = (
        "--ids",
        tmp_path / "names.txt",
        "--levels",
        2,
        "--codes",
        32,
        "--towers",
        tmp_path / "emb",
        "--alpha",
        0.75,
    )
    record = run_json("ids", folder / "old.npy", *options, "--out", tmp_path / "ids")
    places = {name: place for place, name in enumerate(towers.right_ids_.tolist())}
    T = np.tile(towers.right_embeddings_.mean(0), (300, 1))
    for row in range(20, 300):
        T[row] = towers.right_embeddings_[places[f"i{299 - row}"]]
    parts = [A * np.sqrt(w / (A**2).sum(1).mean()) for A, w in ((np.load(folder / "old.npy"), 0.25), (T, 0.75))]
    again = nk.SemanticIds(2, 32, random_state=0).fit(np.hstack(parts))
    made = nk.SemanticIds.load(tmp_path / "ids")
    np.testing.assert_allclose(made.distortion_, again.distortion_, rtol=1e-3)
    whole = zip(record["scales"], (np.load(folder / "old.npy"), T), strict=True)
    np.testing.assert_allclose(np.hstack([scale * A for scale, A in whole]), np.hstack(parts), rtol=1e-3, atol=1e-6)
    assert run("report", tmp_path / "ids").exit_code == 0
    page = (tmp_path / "ids" / "report.html").read_text(encoding="utf-8")
    assert f"{record['shared_before']:.4g}" in page
    assert f"{record['distortion_added']:.4g}" in page


def test_figures_of_ids_are_those_of_plain_counting(folder: Path, record: Record) -> None:
    X = np.load(folder / "old.npy")
    ids = nk.SemanticIds.load(folder / "ids").ids_
    squared = ((X[:, None] - X[None]) ** 2).sum(2)
    np.fill_diagonal(squared, np.inf)
    near = np.argsort(squared, axis=1)[:, :10]
    for depth in (1, 2):
        same = (ids[near][:, :, :depth] == ids[:, None, :depth]).all(2)
        assert np.isclose(record["prefix_recall"][depth - 1], same.mean())
        behind = (ids[:, None, :depth] == ids[None, :, :depth]).all(2).sum(1)
        assert np.isclose(record["behind_prefix"][depth - 1], behind.mean())
    share = np.bincount(ids[:, 0], minlength=32) / 300
    assert np.isclose(record["perplexity"][0], np.exp(-(share[share > 0] * np.log(share[share > 0])).sum()))
    assert record["used"][0] == (share > 0).sum()


def test_queries_of_a_new_encoder_are_mapped(folder: Path) -> None:
    old, new = np.load(folder / "old.npy"), np.load(folder / "new.npy")
    options = ("--old", folder / "old.npy", "--metric", "l2")  # the new vectors are moved, which changes cosines
    record = run_json("bridge", folder / "new.npy", *options, "--out", folder / "bridge")
    assert record["chosen"] == "orthogonal"
    assert record["kept"]["orthogonal"] > 0.99
    assert record["notes"] == []
    np.save(folder / "unlike.npy", np.random.default_rng(1).normal(size=old.shape))
    other = ("--old", folder / "unlike.npy", "--metric", "l2")
    assert "below half" in run_json("bridge", folder / "new.npy", *other, "--out", folder / "unlike")["notes"][0]
    mapped = folder / "mapped.npy"
    run_json("bridge", folder / "new.npy", "--with", folder / "bridge", "--out", mapped)
    np.testing.assert_array_equal(np.load(mapped), nk.Bridge.load(folder / "bridge").transform(new))
    np.testing.assert_allclose(np.load(mapped), old, atol=1e-3)
    assert run("bridge", folder / "new.npy", "--with", folder / "bridge", "--out", mapped, "--overwrite").exit_code == 0


def test_ids_saved_from_python_have_a_page_without_a_record(tmp_path: Path, rng: np.random.Generator) -> None:
    nk.SemanticIds(2, 4, random_state=0).fit(rng.normal(size=(16, 3)).astype(np.float32)).save(tmp_path / "ids")
    assert "Saved from Python" in folder_page(tmp_path / "ids").html()


def test_an_id_that_the_terminal_could_not_decode_is_found() -> None:
    """Under LC_ALL=C "ü1" reaches a command as surrogates, and was not among the known ids."""
    assert find_ids(["\udcc3\udcbc1", "b"], np.array(["b", "ü1"]), "user").tolist() == [1, 0]
