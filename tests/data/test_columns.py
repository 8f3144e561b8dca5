"""Neighbour lists and one-column files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearkin.data import read_column, read_neighbors
from tests.covering import each


@each("kind", ["npy", "npz", "ivecs", "csv", "parquet"])
def test_neighbors_keep_large_whole_numbers(tmp_path: Path, kind: str) -> None:
    truth = np.array([[2**24 + 1, 3], [4, -1]])  # float32 would round the first
    path = tmp_path / f"gt.{kind}"
    if kind == "npy":
        np.save(path, truth)
    elif kind == "npz":
        np.savez(path, gt=truth)
    elif kind == "ivecs":
        np.hstack([np.full((2, 1), 2), truth]).astype("<i4").tofile(path)
    elif kind == "csv":
        np.savetxt(path, truth, "%d", delimiter=",")
    else:
        pq.write_table(pa.table({"ids": truth.tolist()}), path)
    read = read_neighbors(path)
    assert read.dtype == np.int64
    np.testing.assert_array_equal(read, truth)


@each("values", [np.arange(4), np.array(["a", "b", "c", "d"])])
@each("kind", ["npy", "npz", "csv", "txt", "parquet"])
def test_columns_of_numbers_and_of_strings(tmp_path: Path, kind: str, values: np.ndarray) -> None:
    path = tmp_path / f"ids.{kind}"
    if kind == "npy":
        np.save(path, values)
    elif kind == "npz":
        np.savez(path, ids=values[:, None])
    elif kind == "parquet":
        pq.write_table(pa.table({"id": values}), path)
    else:
        path.write_text("\n".join(map(str, values)))
    assert read_column(path).tolist() == values.tolist()


def test_labels_are_one_column_or_several_of_0_and_1(tmp_path: Path) -> None:
    """A table of one-hot rows was refused, so that labels of several classes had to be written as .npy."""
    rows = pd.DataFrame({"name": ["x", "y", "z"], "a": [0, 1, 1], "b": [1, 1, 0]})
    rows.to_csv(tmp_path / "t.csv", index=False)
    rows.to_parquet(tmp_path / "t.parquet")
    rows[["a", "b"]].to_csv(tmp_path / "named.csv", index=False)
    rows[["a", "b"]].to_csv(tmp_path / "plain.csv", index=False, header=False)
    for name in ("t.csv:a-b", "t.csv:a,b", "t.parquet:a-b", "named.csv", "plain.csv"):
        found = read_column(tmp_path / name, 3, several=True)
        assert found.dtype == bool
        assert found.tolist() == rows[["a", "b"]].to_numpy().tolist()
    with pytest.raises(ValueError, match="or columns of 0 and 1 alone"):
        read_column(tmp_path / "t.csv", 3, several=True)


def test_bad_files(tmp_path: Path) -> None:
    np.save(tmp_path / "flat.npy", np.arange(3))
    np.save(tmp_path / "half.npy", np.array([[0.5]]))
    np.save(tmp_path / "object.npy", np.array([[None]]), allow_pickle=True)
    np.save(tmp_path / "wide.npy", np.ones((3, 2)))
    (tmp_path / "two.csv").write_text("1,2\n")
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "two.parquet")
    pq.write_table(pa.table({"a": [1, None]}), tmp_path / "null.parquet")
    for read, name, text in [
        (read_neighbors, "flat.npy", r"has shape \(3,\); neighbours must be 2-D"),
        (read_neighbors, "half.npy", "must hold whole numbers"),
        (read_neighbors, "object.npy", "holds Python objects"),
        (read_column, "wide.npy", r"has shape \(3, 2\); it must be \(n,\)"),
        (read_column, "two.csv", "has several columns"),
        (read_column, "two.parquet", "name the one to read, .*two.parquet:a,"),
        (read_column, "null.parquet", "has 1 null; every row"),
    ]:
        with pytest.raises(ValueError, match=text):
            read(tmp_path / name)
    (tmp_path / "ids.xyz").write_text("1")
    with pytest.raises(ValueError, match="must be one of"):
        read_column(tmp_path / "ids.xyz")
