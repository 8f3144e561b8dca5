"""`nearkin compress` and what it writes."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from tests.cli.conftest import load, run, run_json
from tests.covering import each


def test_the_record_says_what_was_made_and_is_kept_with_the_history(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "idx"
    record = run_json("compress", f"{files}/data.npz:base", "--bytes", 4, "--centroids", 16, "--seed", 3, "--out", out)
    expected = {"vectors": 600, "dimensions": 8, "bytes_per_vector": 4, "compression": 8, "seed": 3}
    assert expected.items() <= record.items()
    X = load(files)["base"]
    assert record["distortion"] == pytest.approx(nk.Index.load(out).quantizer.distortion(X), rel=1e-6)
    assert {"train", "encode", "save"} <= set(record["seconds"])
    kept = json.loads((out / "run.json").read_text())
    assert len(kept.pop("history")) > 1
    assert {**kept, "seconds": 0}.items() <= {**record, "seconds": 0}.items()
    assert not (out / "evaluation.json").exists()


def test_without_a_method_codes_are_compared(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It once learned product codes, whatever the time allowed."""
    best = import_module("nearkin.quantization.best")
    monkeypatch.setattr(best, "candidates", lambda *_, **__: ["product", "residual"])
    np.save(tmp_path / "X.npy", rng.normal(size=(1000, 8)) @ rng.normal(size=(8, 8)))
    args = "compress", tmp_path / "X.npy", "--bytes", 3, "--overwrite", "--out", tmp_path / "idx"
    record = run_json(*args)
    made = record["comparison"]
    assert record["method"] == "best"
    assert made["seconds"] is None
    assert {"product", "residual"} <= {row["candidate"] for row in made["trials"]}
    assert all(row["bytes"] <= 3 and (row["lead"] is None) == row["won"] for row in made["trials"])
    assert any("takes more than so few vectors" in note for note in record["notes"])
    assert json.loads((tmp_path / "idx/run.json").read_text())["comparison"] == made
    shown = run(*args, "--minutes", 0).stdout
    assert "comparison: trials" in shown
    assert "residual" not in shown  # no time but for the first code


@each("metric", ["l2", "ip", "cosine"])
def test_python_and_the_command_line_give_the_same_code(tmp_path: Path, rng: np.random.Generator, metric: str) -> None:
    X = (rng.normal(size=(520, 8)) * rng.gamma(2, size=(520, 1))).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    run_json("compress", tmp_path / "X.npy", "--bytes", 4, "--metric", metric, "--out", tmp_path / "idx")
    nk.Index.build(X, 4, metric=metric, random_state=0).save(tmp_path / "built")
    for file in ("index.faiss", "arrays.safetensors"):
        assert (tmp_path / "idx" / file).read_bytes() == (tmp_path / "built" / file).read_bytes()


def test_queries_judge_the_race(files: Path, tmp_path: Path) -> None:
    base, queries = f"{files}/data.npz:base", f"{files}/data.npz:query"
    options = ["--bytes", 2, "--method", "best", "--queries", queries, "--out", tmp_path / "idx"]
    assert run_json("compress", base, *options)["queries"] == queries
    X, Q = load(files)["base"], load(files)["query"]
    expected = nk.quantization.best(X, 2, Q, n_vectors=len(X), random_state=0).quantizer
    np.testing.assert_array_equal(nk.Index.load(tmp_path / "idx").quantizer.encode(X), expected.encode(X))


def test_pairs_are_judged_by_those_who_ask(tmp_path: Path) -> None:
    """The right rows of a folder of `embed`, searched by inner product: its left rows are the queries."""
    rng = np.random.default_rng(0)
    reader, book = rng.integers(60, size=3000), rng.integers(600, size=3000)
    table = tmp_path / "pairs.csv"
    table.write_text("user,book\n" + "\n".join(f"r{a},b{b}" for a, b in zip(reader, book, strict=True)))
    emb, idx = tmp_path / "emb", tmp_path / "idx"
    assert run("embed", table, "--dim", 8, "--out", emb).exit_code == 0
    record = run_json("compress", emb, "--method", "best", "--bytes", 2, "--out", idx)
    assert record["metric"] == "ip"
    assert record["queries"] == f"the users of {emb}"
    model = nk.TwoTower.load(emb)
    left, right = model.left_embeddings_, model.right_embeddings_
    expected = nk.quantization.best(right, 2, left, n_vectors=len(right), metric="ip", random_state=0).quantizer
    np.testing.assert_array_equal(nk.Index.load(idx).quantizer.encode(right), expected.encode(right))
    again = "--overwrite", "--out", idx
    assert "the users of" in run("compress", emb, "--method", "best", "--bytes", 2, *again).stdout
    assert run_json("compress", emb, "--bytes", 2, "--centroids", 16, *again)["queries"] is None
    left_ones = run_json("compress", f"{emb}:left", "--bytes", 2, "--centroids", 16, *again)
    assert left_ones["queries"] is None


def test_the_file_is_encoded_in_chunks(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes do not depend on the chunks, and ids and kept vectors come from all of them."""
    options = ["--bytes", 4, "--centroids", 16, "--ids", files / "ids.txt", "--keep-vectors", "--out", tmp_path / "a"]
    with monkeypatch.context() as patch:
        patch.setattr("nearkin.data.vectors.CHUNK_BYTES", 100 * 4 * 8)
        run_json("compress", f"{files}/data.npz:base", *options)
    run_json("compress", f"{files}/data.npz:base", *options[:-1], tmp_path / "b")
    for name in ("index.faiss", "vectors.npy", "arrays.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    np.testing.assert_array_equal(np.load(tmp_path / "a/vectors.npy"), load(files)["base"])


@pytest.mark.parametrize(("given", "bytes_"), [("", 32), ("=float32", 32), ("=float16", 16), ("=int8", 12)])
def test_vectors_are_kept_in_the_type_asked_for(files: Path, tmp_path: Path, given: str, bytes_: int) -> None:
    """The printed bytes are those on disk and in evaluate's record."""
    options = ("--bytes", 4, "--centroids", 16, f"--keep-vectors{given}", "--out", tmp_path / "a")
    made = run_json("compress", f"{files}/data.npz:base", *options)
    assert made["kept_vectors"] == {"type": given[1:] or "float32", "bytes": bytes_}
    n = made["vectors"]
    offsets = {"=float16": 2, "=int8": 4}.get(given, 0)  # rows of the columns' medians
    assert (tmp_path / "a/vectors.npy").stat().st_size == 128 + (n + offsets) * bytes_
    data = (f"{files}/data.npz:query", "--base", f"{files}/data.npz:base", "-k", 10, "--oversample", 30)
    judged = run_json("evaluate", tmp_path / "a", *data)
    assert judged["searches"][1]["bytes_kept"] == n * bytes_
    assert judged["searches"][1]["10-recall@10"] > 0.97
