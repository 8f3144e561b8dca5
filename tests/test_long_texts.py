"""An id or a label has at most 1,000 characters: NumPy gives every one the room of the longest."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import nearkin as nk
from nearkin._check import MAX_TEXT, check_labels
from nearkin.data import comparisons_from_names, read_column, read_features
from tests.covering import each

LONG = "x" * 100_000
NAMES = [f"id{i}" for i in range(40)]
X = np.random.default_rng(0).normal(size=(41, 2)).astype(np.float32)
INDEX = nk.Index.build(X[:40], ids=NAMES)

POLARS = [import_module("polars").Series] if find_spec("polars") else []


def table(path: Path, *columns: list[str]) -> Path:
    """A .csv of `columns`, each a name and its cells, which ends in a row of one long text and the first cells."""
    rows = [",".join(cells) for cells in zip(*columns, strict=True)]
    path.write_text("\n".join([*rows, ",".join([LONG, *(column[1] for column in columns[1:])])]) + "\n")
    return path


SIDES = [["user", *NAMES], ["item", *NAMES[::-1]]]
THREE = [["far", *NAMES], ["near", *NAMES[1:], "id0"], ["anchor", *NAMES[2:], "id0", "id1"]]
SHOWN = [["first", *NAMES], ["second", *NAMES[1:], "id0"], ["anchor", *NAMES[2:], "id0", "id1"]]
FILES: dict[str, Callable[[Path], object]] = {
    "column": lambda p: read_column(table(p / "ids.csv", ["id", *NAMES])),
    "pairs": lambda p: nk.read_interactions(table(p / "p.csv", *SIDES)),
    "comparisons": lambda p: nk.read_comparisons(table(p / "c.csv", *THREE)),
    "responses": lambda p: nk.read_comparisons(table(p / "c.csv", ["response", *NAMES], *SHOWN), form="triplet"),
    "ids of vectors": lambda p: nk.data.open_vectors(table(p / "v.csv", ["id", *NAMES], ["f0", *"1" * 40])).ids(),
    "features": lambda p: read_features(table(p / "f.csv", ["id", *NAMES], ["a", *"1" * 40])),
}
LISTS: dict[str, Callable[[Any], object]] = {
    "build": lambda ids: nk.Index.build(X, ids=ids),
    "search among": lambda ids: INDEX.search(X[:1], 1, among=ids),
    "pairs": lambda ids: nk.Interactions.from_pairs(ids, ids),
    "comparisons": lambda ids: comparisons_from_names([[str(a), b, c] for a, b, c in zip(ids, NAMES, NAMES[1:])]),  # noqa: B905
    "objects": lambda ids: nk.Comparisons(np.array([[0, 1, 2]]), ids),
    "labels": lambda ids: check_labels(ids, "labels", 41),
    "lists": lambda ids: nk.metrics.recall([[*map(str, ids)]], [NAMES]),
}


@each("name", FILES)
def test_a_long_text_in_a_file_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"row|line|entry 4") as caught:
        FILES[name](tmp_path)
    assert "100,000 characters" in str(caught.value)
    assert len(str(caught.value)) < 500


@each("name", LISTS)
@each("make", [list, pd.Series, *POLARS, pa.array])
def test_a_long_text_among_ids_is_named(name: str, make: Callable[[list[str]], Any]) -> None:
    with pytest.raises(ValueError, match="100,000 characters") as caught:
        LISTS[name](make([LONG, *NAMES]))
    assert len(str(caught.value)) < 500


def test_a_text_of_the_greatest_length_is_an_id(tmp_path: Path) -> None:
    names = ["é" * MAX_TEXT, *NAMES]
    index = nk.Index.build(X, ids=names)
    index.save(tmp_path / "idx")
    assert nk.Index.load(tmp_path / "idx").row_ids.tolist() == names
    (tmp_path / "ids.txt").write_text("\n".join(names))
    assert read_column(tmp_path / "ids.txt").tolist() == names
    assert len(read_column(tmp_path / "ids.txt", long=True)) == 41
