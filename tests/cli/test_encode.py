"""`nearkin encode`, as typed."""

from pathlib import Path

import numpy as np

import nearkin as nk
from tests.cli.conftest import load, refused, run, run_json


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
    refused(
        "matches no file; check the pattern",
        "encode",
        tmp_path / "none-*.npy",
        "--model",
        tmp_path,
        "--out",
        tmp_path / "out",
    )
    np.save(tmp_path / "part.npy", load(files)["base"])
    refused(
        "idx does not exist", "encode", tmp_path / "part.npy", "--model", tmp_path / "idx", "--out", tmp_path / "out"
    )
