"""`nearkin encode`, as typed."""

from pathlib import Path

import numpy as np

import nearkin as nk
from tests.cli.conftest import load, run, run_json


def test_encode_then_again(files: Path, tmp_path: Path) -> None:
    X = load(files)["base"]
    (tmp_path / "parts").mkdir()
    for i, rows in enumerate(np.array_split(X, 3)):
        np.save(tmp_path / "parts" / f"{i}.npy", rows)
    assert run("compress", f"{files / 'data.npz'}:base", "--method", "lsh", "--bytes", "3", "--out", tmp_path / "idx")
    where = "--model", tmp_path / "idx", "--out", tmp_path / "out"
    args = "encode", tmp_path / "parts" / "*.npy", *where, "--workers", 0
    record = run_json(*args)
    assert (record["shards"], record["skipped"], record["rows"], record["bytes_per_vector"]) == (3, 0, 600, 3)
    assert "--overwrite to replace it" in run(*args).stderr
    codes = np.concatenate([np.load(tmp_path / "out" / f"{i}.npy") for i in range(3)])
    np.testing.assert_array_equal(codes, nk.hashing.load(tmp_path / "idx" / "quantizer").encode(X))


def test_bad_input_is_one_line(files: Path, tmp_path: Path) -> None:
    result = run("encode", tmp_path / "none-*.npy", "--model", tmp_path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "matches no file; check the pattern" in result.stderr
    np.save(tmp_path / "part.npy", load(files)["base"])
    result = run("encode", tmp_path / "part.npy", "--model", tmp_path / "idx", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "idx does not exist" in result.stderr
