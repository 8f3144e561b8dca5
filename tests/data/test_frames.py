"""DataFrames wherever a file goes."""

from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pytest

import nearkin as nk
from tests.covering import each


def arrow(columns):
    return pa.table(columns)


def pandas(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def polars(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def duckdb(columns):
    engine = pytest.importorskip("duckdb")
    held = pa.table(columns)  # the query reads it by this name
    assert held.num_rows
    return engine.sql("select * from held")


def lazy(columns):
    return polars(columns).lazy()


PACKAGES = {arrow: "pyarrow", pandas: "pandas", polars: "polars", lazy: "polars", duckdb: "duckdb"}
FRAMES = [make for make, package in PACKAGES.items() if find_spec(package)]  # not all are among the lowest versions


@each("frame", FRAMES)
def test_pairs(frame):
    columns = {"user": ["b", "a", "b"], "item": [2**53 + 1, 2, 2], "rating": [1.5, 2.0, 3.0]}
    pairs = nk.read_interactions(frame(columns))
    assert pairs.left_ids.tolist() == ["a", "b"]
    assert pairs.right_ids.tolist() == [2, 2**53 + 1]
    assert pairs.weights.tolist() == [2.0, 3.0, 1.5]
    renamed = dict(zip(["who", "what", "rating"], columns.values(), strict=True))
    assert len(nk.read_interactions(frame(renamed), left="who", right="what")) == 3


@each("frame", FRAMES)
def test_times_and_large_ids(frame):
    times = np.array(["2020-01-01", "2020-01-02"], "datetime64[ns]")
    pairs = nk.read_interactions(frame({"user": np.array([2**63, 1], np.uint64), "item": [1, 2], "time": times}))
    assert pairs.left_ids.tolist() == [1, 2**63]
    assert pairs.timestamps.tolist() == [1577923200, 1577836800]


@each("frame", FRAMES)
def test_comparisons(frame):
    found = nk.read_comparisons(frame({"anchor": ["x", "y"], "near": ["y", "z"], "far": ["z", "x"]}))
    assert found.objects[found.indices].tolist() == [["x", "y", "z"], ["y", "z", "x"]]
    assert found.source.first == "x is nearer to y than to z"


@each("frame", FRAMES)
def test_vectors(frame):
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(nk.read_vectors(frame({"a": X[:, 0], "b": X[:, 1]})), X)
    np.testing.assert_array_equal(nk.read_vectors(frame({"v": X.tolist()})), X)
    np.testing.assert_array_equal(nk.data.open_vectors(frame({"v": X.tolist()})).sample(3), X)


@each("frame", FRAMES)
def test_nulls_are_refused(frame):
    with pytest.raises(ValueError, match=r"column 'user' of .* has 1 missing id, the first in row 1"):
        nk.read_interactions(frame({"user": ["a", None], "item": [1, 2]}))
    with pytest.raises(ValueError, match="has nulls"):
        nk.read_vectors(frame({"a": [1.0, None]}))
    with pytest.raises(ValueError, match="have lengths"):
        nk.read_vectors(frame({"v": [[1.0], [1.0, 2.0]]}))
    with pytest.raises(TypeError, match="must be a file, a DataFrame or a sparse matrix"):
        nk.read_interactions(7)


def test_two_columns_of_one_name_are_named() -> None:
    """The DuplicateError of narwhals came through."""
    pd, twice = pytest.importorskip("pandas"), ["user", "item", "item"]
    for frame in (pd.DataFrame([[1, 2, 3]], columns=twice), pa.table([[1], [2], [3]], names=twice)):
        for read in (nk.read_interactions, nk.read_comparisons, nk.read_vectors, nk.data.read_judgements):
            with pytest.raises(ValueError, match="has two columns called 'item'; rename one"):
                read(frame)
    for wrong in (pd.Series([1.0]), [[1.0]], 3):
        with pytest.raises(TypeError, match="it must be a path, a pattern, a list of paths, or a DataFrame"):
            nk.read_vectors(wrong)


@each("frame", FRAMES)
def test_a_missing_time_is_named(frame):
    """Before, NaT of pandas ended in a TypeError."""
    times = np.array(["2020-01-01", "NaT"], "datetime64[ns]")
    with pytest.raises(ValueError, match=r"column 'time' of .* has 1 missing time, the first in row 1"):
        nk.read_interactions(frame({"user": ["a", "b"], "item": [1, 2], "time": times}))


@each("frame", FRAMES)
def test_integers_that_a_null_makes_inexact_are_no_ids(frame):
    columns = {"user": [2**53 + 1, None], "item": [1, 2], "weight": [1.0, 0.0]}
    with pytest.raises(ValueError, match=r"column 'user' of .* has (ids that are no exact integers|1 missing id)"):
        nk.read_interactions(frame(columns))
