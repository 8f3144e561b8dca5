"""`nearkin check`, as typed."""

import json
import shutil

import numpy as np

from tests.cli.conftest import load, run, run_json


def test_a_whole_folder(compressed):
    record = run_json("check", compressed())
    assert (record["kind"], record["format_version"]) == ("index", 2)
    assert record["damaged"] == record["others"] == []
    assert record["files"] == 7  # config, index, arrays, run; and the quantizer's three


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
    assert "index.faiss has other bytes" in result.stderr


def test_codes(files, compressed, tmp_path):
    np.save(tmp_path / "part.npy", load(files)["base"])
    codes = tmp_path / "codes"
    run_json("encode", tmp_path / "part.npy", "--model", compressed(), "--out", codes, "--workers", 0)
    assert run_json("check", codes)["kind"] == "codes"
    (codes / "part.npy").write_bytes(b"short")
    result = run("check", codes)
    assert result.exit_code == 1
    assert "part.npy has 5 bytes, manifest.json lists" in result.stderr


def test_what_is_no_folder_of_ours(tmp_path):
    for name in ("nothing", ""):
        result = run("check", tmp_path / name)
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
