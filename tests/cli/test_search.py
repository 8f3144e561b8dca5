"""`nearkin search`: hits on screen and in files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import nearkin as nk
from tests.cli.conftest import load, refused, run, run_json
from tests.covering import each


def expected(files: Path, folder: Path, k: int, **options: object) -> tuple[np.ndarray, np.ndarray]:
    return nk.Index.load(folder).search(load(files)["query"], k, **options)


@each("kind", ["csv", "tsv", "parquet", "npz"])
def test_hits_in_every_format(
    files: Path, compressed: Callable[..., Path], tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nearkin.jobs.outputs._QUERIES", 7)
    folder, out = compressed(), tmp_path / f"hits.{kind}"
    record = run_json("search", folder, f"{files}/data.npz:query", "-k", 3, "--out", out)
    assert (record["queries"], record["k"]) == (20, 3)
    scores, ids = expected(files, folder, 3)
    if kind == "npz":
        with np.load(out) as hits:
            np.testing.assert_array_equal(hits["ids"], ids)
            np.testing.assert_array_equal(hits["scores"], scores)
        return
    if kind == "parquet":
        names, rows = pq.read_table(out).column_names, [(*row.values(),) for row in pq.read_table(out).to_pylist()]
    else:
        first, *lines = out.read_text().splitlines()
        separator = "," if kind == "csv" else "\t"
        names = first.split(separator)
        rows = [tuple(float(cell) for cell in line.split(separator)) for line in lines]
    assert names == ["query", "rank", "id", "squared_distance"]
    assert rows == [(q, r + 1, ids[q, r], pytest.approx(scores[q, r])) for q in range(20) for r in range(3)]


def test_without_a_file_people_see_the_first_queries(files: Path, compressed: Callable[..., Path]) -> None:
    folder = compressed()
    result = run("search", folder, f"{files}/data.npz:query", "-k", 12)
    assert result.exit_code == 0
    shown = [
        int(line.split()[1])
        for line in result.stdout.splitlines()
        if len(line.split()) == 3 and line.split()[0].isdecimal()
    ]
    assert shown == expected(files, folder, 12)[1][:5].ravel().tolist()
    assert "hits: the first 60 of 240 lines" in result.stdout


def test_n_probe_looks_into_more_cells(files: Path, compressed: Callable[..., Path], tmp_path: Path) -> None:
    folder, Q = compressed("--bytes", 4, "--centroids", 16, "--lists", 16), f"{files}/data.npz:query"
    assert run_json("search", folder, Q, "-k", 5, "--n-probe", 3)["n_probe"] == 3
    assert run_json("search", folder, Q, "-k", 5)["n_probe"] == 16
    refused("this index has none; make it with n_lists > 0", "search", compressed(), Q, "--n-probe", 3)


def test_an_index_of_fewer_rows_than_are_shown(tmp_path: Path) -> None:
    """One row: the table of five places ended in "unexpected IndexError"."""
    (tmp_path / "one.csv").write_text("f0,f1,f2\n1,2,3\n")
    made = run("compress", tmp_path / "one.csv", "--method", "int8", "--out", tmp_path / "idx")
    assert "1 row of 3 numbers" in made.stdout
    shown = run("search", tmp_path / "idx", tmp_path / "one.csv")
    assert shown.exit_code == 0
    assert "rank" in shown.stdout
    assert "#2" not in shown.stdout
