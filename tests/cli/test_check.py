"""`nearkin check`, as typed."""

import json
import shutil

import numpy as np

import nearkin as nk
from tests.cli.conftest import run, run_json
from tests.covering import each


def test_a_whole_folder(compressed):
    record = run_json("check", compressed())
    assert (record["kind"], record["format_version"]) == ("index", 3)
    assert record["damaged"] == record["others"] == []
    assert record["files"] == 7  # config, index, arrays, run; and the quantizer's three


FEW = {"max_iter": 1, "random_state": 0}
OFFERED = {
    "numbers": (None, "l2"),
    "codes by tables": (nk.ProductQuantizer(4, 16, **FEW), "cosine"),
    "codes, which it decodes for every query": (nk.quantization.ResidualQuantizer(4, 16, **FEW), "l2"),
    "bits": (nk.ITQ(8, random_state=0), "hamming"),
}


@each("compares", OFFERED)
def test_what_plain_faiss_finds_is_stated(compares, rng, tmp_path):
    X, (quantizer, metric) = rng.normal(size=(300, 8)).astype(np.float32), OFFERED[compares]
    nk.Index.build(X, quantizer, metric=metric).save(tmp_path / "idx")
    found = run_json("check", tmp_path / "idx")["plain_faiss"]
    assert (found["compares"], found["k"]) == (compares, 10)
    assert found["queries"] == (0 if compares == "bits" else 100)
    assert found["same"] is None or 0.5 < found["same"] <= 1
    assert found["same"] == 1 or compares != "numbers"
    assert compares in " ".join(run("check", tmp_path / "idx").stdout.split())


@each("keep", [False, True])
def test_a_search_stands_next_to_its_codes(keep, rng, tmp_path):
    X = rng.normal(size=(3_000, 8)).astype(np.float32)
    for metric, norms in (("cosine", None), ("l2", True)):
        quantizer = nk.ProductQuantizer(4, 16, **FEW)
        index = nk.Index.build(X, quantizer, np.arange(3_000) + 5, metric, keep_vectors=keep, norms=norms)
        index.save(tmp_path / "idx", overwrite=True)
        found = run_json("check", tmp_path / "idx")["codes"]
        assert (found["k"], found["of"]) == ([1, 10, 100], "kept vectors" if keep else "codes")
        assert keep or found["codes"] == [1, 1, 1]
        np.testing.assert_allclose(found["search"], found["codes"], atol=0.01)


def test_a_sorted_stream_is_named(rng, tmp_path):
    X = rng.normal(size=(3_000, 8)).astype(np.float32)
    for order, notes in ((np.arange(3_000), []), (np.argsort(X[:, 0]), ["1,000 vectors"])):
        index = nk.Index.build(X[order[:2_000]], nk.ProductQuantizer(4, 16, **FEW)).add(X[order[2_000:]])
        index.save(tmp_path / "idx", overwrite=True)
        assert [note[:13] for note in run_json("check", tmp_path / "idx")["notes"]] == notes


def test_an_empty_index_offers_no_results(tmp_path):
    nk.Index.build(np.eye(4, dtype=np.float32)).remove(np.arange(4)).save(tmp_path / "idx")
    assert run_json("check", tmp_path / "idx")["plain_faiss"]["same"] is None


def test_damage_is_named_and_the_exit_code_is_1(compressed, tmp_path):
    folder = shutil.copytree(compressed(), tmp_path / "idx")
    (folder / "notes.txt").write_text("mine")
    file = folder / "index.faiss"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    (folder / "arrays.safetensors").unlink()
    result = run("check", folder, "--json")
    assert result.exit_code == 1
    record = json.loads(result.stdout)
    assert (len(record["damaged"]), record["others"]) == (2, ["notes.txt"])
    assert "arrays.safetensors is missing" in result.stderr
    assert "index.faiss has another length or other bytes" in result.stderr
