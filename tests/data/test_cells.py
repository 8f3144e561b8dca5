"""What cells and columns mean: ids kept as floats, labels among coordinates, lists in cells, weights with a unit."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import nearkin as nk
from nearkin.data import comparisons_from_array, comparisons_from_names, read_column, read_features, read_neighbors
from tests.covering import covering, each

FLOATS = {"float16": 11, "float32": 24, "float64": 53}  # type -> bits of the whole numbers that it holds


def _float_ids(folder: Path, ids: np.ndarray) -> dict[str, Callable[[], object]]:
    """All ways to give ids (n,) in an array, a table or a file."""
    few, names = np.arange(len(ids)) % 3, np.stack([ids, np.roll(ids, 1), np.roll(ids, 2)], axis=1)
    pairs, answers = {"user": ids, "item": few}, dict(zip(("anchor", "near", "far"), names.T, strict=True))
    pq.write_table(pa.table({"item": ids, "price": few}), folder / "features.parquet")
    pd.DataFrame(pairs).to_feather(folder / "pairs.feather")
    np.savez(folder / "pairs.npz", **pairs)
    np.save(folder / "ids.npy", ids)
    np.save(folder / "lists.npy", names)
    X = np.eye(len(ids), dtype=np.float32)
    index = nk.Index.build(X, ids=np.arange(len(ids)))
    return {
        "pandas": lambda: nk.read_interactions(pd.DataFrame(pairs)),
        "Arrow": lambda: nk.read_interactions(pa.table(pairs)),
        "Feather": lambda: nk.read_interactions(folder / "pairs.feather"),
        "npz": lambda: nk.read_interactions(folder / "pairs.npz"),
        "features": lambda: read_features(folder / "features.parquet"),
        "comparisons": lambda: nk.read_comparisons(pd.DataFrame(answers)),
        "names": lambda: comparisons_from_names(names),
        "rows of comparisons": lambda: comparisons_from_array(names),
        "pairs": lambda: nk.Interactions.from_pairs(few, ids),
        "a list": lambda: nk.Interactions.from_pairs(few, list(ids)),
        "a catalogue": lambda: nk.Interactions.from_pairs(few, ids[::-1], right_ids=ids),
        "a column": lambda: read_column(folder / "ids.npy"),
        "a column of Parquet": lambda: read_column(f"{folder}/features.parquet:item"),
        "neighbours": lambda: read_neighbors(folder / "lists.npy"),
        "an index": lambda: nk.Index.build(X, ids=ids),
        "rows to add": lambda: index.add(X, ids=ids),
    }


@each("kind", FLOATS)
def test_floats_that_merge_ids_are_refused(tmp_path: Path, kind: str) -> None:
    """Of 4,000 users in float32 above 2^24, 2,001 were left; only float64 was guarded, and not in arrays."""
    bits = FLOATS[kind]
    for name, read in _float_ids(tmp_path, (2.0**bits + np.arange(8)).astype(kind)).items():
        with pytest.raises(ValueError, match=rf"{kind} rounds whole numbers from 2\^{bits} on"):
            pytest.fail(f"{name}: {read()}")
    for name, read in _float_ids(tmp_path, (2.0**bits - 1 - np.arange(8)).astype(kind)).items():
        if name in ("an index", "rows to add"):
            with pytest.raises(TypeError, match=r"pass \[int\(v\) for v in ids"):
                read()
        elif name != "rows of comparisons" or kind == "float16":  # few rows of large numbers are ids
            read()


@each("form", ["%.18e", "%.1f", "%d.", "%.3E"])
def test_whole_ids_written_as_floats_are_integers(tmp_path: Path, form: str) -> None:
    """np.savetxt's 1.000000000000000000e+00 was the name of a user; pandas writes 7.0 where another id is missing."""
    ids = np.array([7, 0, 120])
    names, path = [form % name for name in ids], tmp_path / "a.csv"
    said = f"{names[0]} is read as 7"

    def write(head: str, *columns: list[str]) -> Path:
        path.write_text("\n".join([head, *map(",".join, zip(*columns, strict=True))]) + "\n")
        return path

    pairs = nk.read_interactions(write("user,item", names, names[::-1]))
    assert pairs.left_ids.tolist() == pairs.right_ids.tolist() == [0, 7, 120]
    assert f"'user' are whole numbers, {said}; " in str(pairs.source) + "; "
    answers = nk.read_comparisons(write("anchor,near,far", names, names[1:] + names[:1], names[2:] + names[:2]))
    assert answers.objects.tolist() == [0, 7, 120]
    assert said in str(answers.source)
    vectors = nk.data.open_vectors(write("id,x,y", names, ["0.5", "1", "2"], ["3", "4.5", "5"]))
    assert vectors.ids().tolist() == ids.tolist()
    assert said in vectors.about
    assert read_features(path)[0].tolist() == ids.tolist()
    assert read_column(f"{path}:id").tolist() == ids.tolist()
    assert nk.data.read_judgements(write("query,doc,grade", names, names, ["1", "0", "2"])).rows.tolist() == [
        "7", "0", "120",
    ]  # fmt: skip
    for odd in ("1.5", "Rome", "1e5", names[0].replace(".", ".0", 1)):  # 7.00 and 7.0 may be two versions
        found = nk.read_interactions(write("user,item", [*names, odd], ["a"] * 4)).left_ids.tolist()
        assert found == sorted([*names, odd])


@each("cell", ["80%", "4/5", "$3", "3 EUR", "★★★", "good"])
@each("name", ["weight", "rating", "stars", "count", "plays"])
def test_a_column_called_as_weights_is_never_left_aside(tmp_path: Path, name: str, cell: str) -> None:
    """With a note "left aside", 1 % counted as much as 99 %. The cell at fault is named, not an empty one."""
    table = pd.DataFrame({"user": ["a", "b", "c", "c"], "item": list("wxyz"), name: ["5", "", cell, cell]})
    table.to_csv(tmp_path / "a.csv", index=False)
    for source in (table, tmp_path / "a.csv"):
        with pytest.raises(ValueError, match=f"column '{name}' .* row 2 holds '{re.escape(cell)}'; .* or rename"):
            nk.read_interactions(source)
        if name not in ("plays", "stars") and (cell != "good" or name != "count"):
            answers = {"a": list("wxyz"), "b": list("xyzw"), "c": list("yzwx"), name: ["5", "4", cell, cell]}
            with pytest.raises(ValueError, match=f"column '{name}' .* row 2 holds '{re.escape(cell)}'|rating"):
                nk.read_comparisons(pd.DataFrame(answers))


@each("cell", ["3 days ago", "morning", "13.01.2023 17:09"])
def test_a_column_called_as_times_is_never_left_aside(cell: str) -> None:
    table = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"], "time": ["2024-01-02", cell]})
    with pytest.raises(ValueError, match=f"holds '{cell}', neither a number nor an ISO date; .* or rename the column"):
        nk.read_interactions(table)


X = [[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]]
ODD = {  # columns of other types -> what is said of them as vectors
    "structs": ([{"v": 1}] * 3, "'extra' is of type struct"),
    "a null": ([X[0], None, X[1]], "'extra' has nulls"),
    "a null in a list": ([[0.5, None]] * 3, "hold nulls"),
    "text in lists": ([["a", "b"]] * 3, "lists of 'extra' hold string"),
    "lists in lists": ([[[0.5]]] * 3, "lists of 'extra' hold list"),
    "lengths": ([[0.5], [0.5, 1], [1, 1]], "lists of 'extra' have lengths"),
    "bytes": ([b"\x00\xff\x80"] * 3, "'extra' is of type (category|binary)"),
    "a map": (pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int32())), "'extra' is of type map"),
    "durations": (pa.array([1, 2, 3], pa.duration("s")), "'extra' is of type duration"),
    "times of day": (pa.array([1, 2, 3], pa.time32("s")), "'extra' is of type time"),
}


NESTED = ("structs", "bytes", "durations", "times of day")


def _kept(table: pa.Table, folder: Path) -> list:
    """A table as Arrow, Parquet and Feather keep it."""
    pq.write_table(table, folder / "t.parquet")
    feather.write_feather(table, folder / "t.feather")
    return [table, folder / "t.parquet", folder / "t.feather"]


@each("case", ODD)
def test_columns_of_other_types_are_named_and_the_file_is_not_called_damaged(tmp_path: Path, case: str) -> None:
    """A struct column made read_interactions and read_features call a whole file damaged, even if nobody used it."""
    odd, words = ODD[case]
    for source in _kept(pa.table({"id": ["a", "b", "c"], "extra": odd}), tmp_path):
        with pytest.raises(ValueError, match=words) as found:
            nk.read_vectors(source)
        assert "damaged" not in str(found.value)
        if case in NESTED:
            with pytest.raises(ValueError, match=r"column 'extra' of .* has ids of type"):
                nk.read_interactions(source, left="id", right="extra")
    for source in _kept(pa.table({"user": ["a", "b", "c"], "item": [1, 2, 3], "extra": odd}), tmp_path):
        assert len(nk.read_interactions(source)) == 3  # the column has no role
    if case in NESTED:
        for source in _kept(pa.table({"id": ["a", "b", "c"], "extra": odd, "v": X}), tmp_path):
            assert nk.read_vectors(source).tolist() == X


@each(
    ("ids", "numbers"),
    [
        (pa.array(["a", "b", "c"]).dictionary_encode(), pa.array([1.5, 2, 3]).cast(pa.decimal128(5, 2))),
        ([b"a", b"b", b"c"], pa.array(np.array([1.5, 2, 3], np.float16))),
        (pa.array(["a", "b", "c"], pa.large_string()), pa.array([1.5, 2, 3]).dictionary_encode()),
    ],
)
def test_other_ways_to_keep_text_and_numbers(tmp_path: Path, ids: object, numbers: pa.Array) -> None:
    for source in _kept(pa.table({"id": ids, "f0": numbers, "f1": [0.5, 0.5, 0.5]}), tmp_path):
        found = nk.data.open_vectors(source)
        assert (found.ids().tolist(), found.read()[:, 0].tolist()) == (["a", "b", "c"], [1.5, 2, 3])


LINES = {
    "an array of others": ("[[1, 2], 3]", "every line must be one object"),
    "a cut array": ('[{"id": 1, "v": [1, 2]},', "every line must be one object"),
    "two types": ('{"id": 1, "v": [1]}\n{"id": "a", "v": [2]}\n', "changed from number to string"),
    "another key": ('{"id": 1, "v": [1, 2]}\n{"id": 2}\n', "'v' has nulls"),
    "nested": ('{"id": 1, "response": {"v": [1, 2]}}\n', "'response' is of type struct"),
    "no JSON": ("hello\n", "every line must be one object"),
}


@each("case", LINES)
def test_json_of_another_form_is_not_called_damaged(tmp_path: Path, case: str) -> None:
    text, words = LINES[case]
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(ValueError, match=f"a.jsonl.*{words}") as found:
        nk.read_vectors(tmp_path / "a.jsonl")
    assert "damaged" not in str(found.value)


def test_a_wrong_option_is_not_called_damage(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item\na,x\nb,y\n")
    with pytest.raises(ValueError, match="delimiter") as found:
        nk.read_interactions(tmp_path / "a.csv", delimiter="")
    assert "damaged" not in str(found.value)


LISTS = {  # three histories in cells, as programs write them
    "Python": ["[1, 2, 3]", "[2]", "[3, 1]"],
    "JSON text": ['["1", "2", "3"]', '["2"]', '["3", "1"]'],
    "tuples": ["(1, 2, 3)", "(2,)", "(3, 1)"],
    "NumPy": ["[1 2 3]", "[2]", "[3 1]"],
    "NumPy's repr": ["array([1, 2, 3])", "array([2])", "array([3, 1], dtype=int32)"],
    "bars": ["1|2|3", "2", "3|1"],
    "semicolons": ["1; 2; 3", "2", "3; 1"],
    "numbers": ["1 2 3", "2", "3 1"],
    "commas": ["1,2,3", "2", "3,1"],
    "NumPy 2": ["[np.int64(1), np.int64(2), np.int64(3)]", "[np.int64(2)]", "[np.int64(3), np.int64(1)]"],
    "typed": [[1, 2, 3], [2], [3, 1]],
}


@each("case", LISTS)
@each("side", ["left", "right"])
def test_a_list_in_a_cell_is_one_pair_an_entry(tmp_path: Path, case: str, side: str) -> None:
    """The text "[1, 2, 3]" was one id, a list of Parquet a TypeError (unhashable)."""
    columns = {"user": ["u", "v", "w"], "items": LISTS[case]}
    table = pd.DataFrame(columns if side == "right" else {"item": columns["user"], "users": columns["items"]})
    table.to_parquet(tmp_path / "a.parquet")
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    sources = [table, tmp_path / "a.parquet", tmp_path / "a.jsonl", pa.table(table)]
    if case != "typed":
        table.to_csv(tmp_path / "a.csv", index=False)
        sources.append(tmp_path / "a.csv")
    for source in sources:
        pairs = nk.read_interactions(source)
        (rows, columns) = (pairs.rows, pairs.indices) if side == "right" else (pairs.indices, pairs.rows)
        assert sorted(zip(rows.tolist(), columns.tolist(), strict=True)) == [
            (0, 0),
            (0, 1),
            (0, 2),
            (1, 1),
            (2, 0),
            (2, 2),
        ]
        assert [str(name) for name in (pairs.right_ids if side == "right" else pairs.left_ids)] == ["1", "2", "3"]
        assert "read as one pair an entry (3 lists)" in str(pairs.source)


@each("cell", ["i1 i2 i7", "i1|i2|i7", "x;y;z", "x,y,z", "[x, y, z]", "1-a,1-b,1-c", "7 8 9"])
def test_lists_of_equal_lengths_without_quotes_are_no_id(cell: str) -> None:
    """A history of three items each was one id: what recurs in other cells, or has digits, is an item."""
    pairs = nk.read_interactions(pd.DataFrame({"user": ["u", "v", "w"], "item": [cell] * 3}))
    assert pairs.shape == (3, 3)


@each(
    "cells",
    [
        ["2021-01-05 10:00", "2021-02-06 11:00", "2022-03-07 12:00"],
        ["Matrix, The", "Up", "Alien"],
        ["a, b, c", "d", "e"],
        ["[deleted]", "[x]", "[y]"],
        ["a|b", "c|d", "e|f"],
        ["12 Monkeys", "7", "Up"],
        ["+49 170 0001", "+49 170 0002", "+49 171 0002"],  # parts of one place stand at no other
        ["Bonn, NRW, Germany", "Cork, Munster, Ireland", "Köln, NRW, Germany"] * 3,
    ],
)
def test_what_is_plainly_no_list_stays_one_id(cells: list[str]) -> None:
    users = [f"u{n}" for n in range(len(cells))]
    pairs = nk.read_interactions(pd.DataFrame({"user": users, "item": cells}))
    assert pairs.right_ids.tolist() == sorted({*cells})


def test_lists_of_weights_and_times_go_with_the_list_of_items() -> None:
    table = pd.DataFrame({"user": ["u", "v"], "items": [["a", "b"], ["c"]], "ratings": [[1, 2], [3]], "time": [9, 5]})
    pairs = nk.read_interactions(table)
    assert (pairs.weights.tolist(), pairs.timestamps.tolist()) == ([1, 2, 3], [9, 9, 5])
    with pytest.raises(ValueError, match=r"'items' and 'ratings' of .* hold lists of unequal sizes in row 1"):
        nk.read_interactions(table.assign(ratings=[[1, 2], [3, 3]]))
    with pytest.raises(ValueError, match=r"'users' and 'items' of .* both hold lists"):
        nk.read_interactions(table.assign(users=[["u"], ["v"]]).drop(columns=["user", "ratings"]))


def test_lists_among_features_are_categories_or_numbers(tmp_path: Path) -> None:
    """They ended in a TypeError, or the whole list was one category."""
    tags = [["x", "y"], ["x"], []]
    table = pd.DataFrame({"item": list("abc"), "tags": tags, "kinds": list(map(str, tags)), "v": [[0.5, 1.5]] * 3})
    table.to_parquet(tmp_path / "f.parquet")
    _, features, names = read_features(tmp_path / "f.parquet")
    assert names == ["tags=x", "tags=y", "kinds=x", "kinds=y", "v[0]", "v[1]"]
    assert features[:, :2].toarray().tolist() == features[:, 2:4].toarray().tolist() == [[1, 1], [1, 0], [0, 0]]
    mixed = pd.DataFrame({"item": list("abc"), "v": ["[1, 0.5]"] * 3, "w": ["0.1 0.2 3"] * 3, "tags": ["x1;y2;z3"] * 3})
    mixed.to_csv(tmp_path / "f.csv", index=False)
    names = read_features(tmp_path / "f.csv")[2]
    assert names == ["v[0]", "v[1]", "w[0]", "w[1]", "w[2]", "tags=x1", "tags=y2", "tags=z3"]
    for cell, words in (("[{'id': 1}]", "holds lists of type dict"), ("$3", "row 0 holds '\\$3'"), ("80%", "'80%'")):
        mixed.assign(tags=cell).to_csv(tmp_path / "f.csv", index=False)
        with pytest.raises(ValueError, match=f"column 'tags' .* {words}"):
            read_features(tmp_path / "f.csv")
    table.assign(tags=[{"a": 1}] * 3).to_parquet(tmp_path / "f.parquet")
    with pytest.raises(ValueError, match=r"column 'tags' .* holds values of type struct; features are"):
        read_features(tmp_path / "f.parquet")


@each("near", [[["x", "y"], ["x"]], ["['x', 'y']", "['x']"], ["[x, y]", "[x, z]"]])
def test_lists_are_no_objects_and_no_labels(tmp_path: Path, near: list) -> None:
    table = pd.DataFrame({"anchor": ["a", "b"], "near": near, "far": ["c", "d"]})
    with pytest.raises(ValueError, match=r"column 'near' .* holds lists; a comparison has one object a cell"):
        nk.read_comparisons(table)
    table.to_parquet(tmp_path / "a.parquet")
    if isinstance(near[0], list):
        with pytest.raises(ValueError, match="holds values of type list; give one number or text a row"):
            read_column(f"{tmp_path}/a.parquet:near")


def _saved(table: pd.DataFrame, folder: Path, name: str = "x") -> list:
    """A DataFrame, and the files that it is written to."""
    table.to_csv(folder / f"{name}.csv", index=False)
    table.to_csv(folder / f"{name}.tsv", index=False, sep="\t")
    table.to_parquet(folder / f"{name}.parquet")
    table.to_feather(folder / f"{name}.feather")
    table.to_json(folder / f"{name}.jsonl", orient="records", lines=True, double_precision=15)
    return [table, *(folder / f"{name}.{kind}" for kind in ("csv", "tsv", "parquet", "feather", "jsonl"))]


ROWS = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)


def _table(names: list[str], **more: object) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"d{i}" for i in range(30)], **dict(zip(names, ROWS.T, strict=True)), **more})


_LABELS = ["label", "target", "class", "y", "cluster", "split", "timestamp", "user_id"]
_AXES = [["f0", "f1", "f2"], ["length", "width", "height"]]


@each(("name", "names", "values"), covering(_LABELS, _AXES, [np.arange(30) % 3, ["cat", "dog", "cow"] * 10]))
def test_a_label_is_no_coordinate(tmp_path: Path, name: str, names: list[str], values: np.ndarray | list) -> None:
    """A column "label" was the last coordinate without a word, or "no number"."""
    for source in _saved(_table(names, **{name: values}), tmp_path):
        found = nk.data.open_vectors(source)
        np.testing.assert_allclose(found.read(), ROWS, rtol=1e-6)
        assert found.about.endswith(f"3 numbers in {names[0]}-{names[2]}; ids in column 'id'; left aside: {name}")
        np.testing.assert_allclose(found.take(np.array([3, 7])), ROWS[[3, 7]], rtol=1e-6)


def test_a_word_next_to_numbered_columns_is_asked_for(tmp_path: Path) -> None:
    """A price next to f0, f1, f2 was the last coordinate; `about` did not name the columns."""
    for source in _saved(_table(["f0", "f1", "f2"], price=np.arange(30)), tmp_path)[1:]:
        with pytest.raises(ValueError, match="is price a coordinate") as found:
            nk.read_vectors(source)
        leave, take = re.findall(r"type (\S+)", str(found.value))
        assert (nk.read_vectors(leave).shape, nk.read_vectors(take).shape) == ((30, 3), (30, 4))
    assert "in length-height;" in nk.data.open_vectors(_table(["length", "width", "height"])).about


@each("place", ["first", "last"])
@each("ids", [True, False])
def test_labels_without_a_name_are_asked_for(tmp_path: Path, place: str, ids: bool) -> None:
    """Without a header a column of 0, 1, 2 next to fractions was a coordinate."""
    columns = {"label": np.arange(30) % 3, **dict(zip("abc", ROWS.T, strict=True))}
    table = pd.DataFrame({name: columns[name] for name in (columns if place == "first" else [*"abc", "label"])})
    table = pd.concat([pd.Series([f"d{i}" for i in range(30)]), table], axis=1) if ids else table
    table.to_csv(tmp_path / "x.csv", index=False, header=False)
    with pytest.raises(ValueError, match=f"the {place} column of numbers is whole") as found:
        nk.read_vectors(tmp_path / "x.csv")
    leave, take = re.findall(r"type (\S+)", str(found.value))
    assert (nk.read_vectors(leave).shape, nk.read_vectors(take).shape) == ((30, 3), (30, 4))


@each("values", [np.arange(30) % 3, np.arange(30) * 3])
def test_whole_numbers_next_to_fractions_are_asked_for_under_any_name(tmp_path: Path, values: np.ndarray) -> None:
    """scikit-learn's iris.csv calls its labels "virginica"."""
    table = pd.DataFrame({"which": values, **dict(zip("abc", ROWS.T, strict=True))})
    table = table if values.max() > 2 else table[[*"abc", "which"]]
    for source in _saved(table, tmp_path):
        with pytest.raises(ValueError, match=r"column 'which' .*, or a coordinate") as found:
            nk.data.open_vectors(source)
        if isinstance(source, Path):
            shapes = [nk.read_vectors(key).shape for key in re.findall(r"type (\S+)", str(found.value))]
            assert shapes == ([(30, 3)] if values.max() == 2 else []) + [(30, 4)]
    with pytest.raises(ValueError, match="it needs at least one row"):
        nk.data.open_vectors(table[:0])
    called = nk.data.open_vectors(table.rename(columns={"which": "id" if values.max() > 2 else "label"}))
    assert called.shape == (30, 3)


@each("name", ["rating", "weight", "class"])
def test_a_column_that_may_be_a_coordinate_is_asked_for(tmp_path: Path, name: str) -> None:
    """The advice is followed: both answers lead to vectors."""
    for source in _saved(_table(["length", "width", "height"], **{name: np.arange(30) / 4}), tmp_path):
        with pytest.raises(ValueError, match=f"is {name} a coordinate") as found:
            nk.read_vectors(source)
        if isinstance(source, Path):
            leave, take = re.findall(r"type (\S+)", str(found.value))
            assert (nk.read_vectors(leave).shape, nk.read_vectors(take).shape) == ((30, 3), (30, 4))
            assert nk.read_vectors(f"{source}:length,height").shape == (30, 2)
            with pytest.raises(ValueError, match="has no column 'depth'"):
                nk.read_vectors(f"{source}:depth")
        else:
            assert f"frame.drop(columns=['{name}'])" in str(found.value)
            assert nk.read_vectors(source.drop(columns=[name])).shape == (30, 3)


def test_axes_and_numbers_under_any_name_are_coordinates(tmp_path: Path) -> None:
    for names in (["x", "y", "z"], ["weight", "count", "rating"]):
        for source in _saved(_table(names), tmp_path):
            assert nk.read_vectors(source).shape == (30, 3)


def test_a_coordinate_with_a_word_in_it_is_not_left_aside(tmp_path: Path) -> None:
    for source in _saved(_table(["f0", "f1", "f2"], f3=["bad"] * 30), tmp_path):
        with pytest.raises(ValueError, match=r"'f3' is of type category, no number"):
            nk.read_vectors(source)


@each("header", [True, False])
@each("ids", [True, False])
def test_words_of_another_name_are_asked_for(tmp_path: Path, header: bool, ids: bool) -> None:
    """The first row of a table without a header went as names, and words that recur are no ids."""
    table = _table(["length", "width", "height"], breed=["cat", "dog"] * 15)
    table = table if ids else table.drop(columns="id")
    for source in _saved(table, tmp_path) if header else [tmp_path / "x.csv"]:
        table.to_csv(tmp_path / "x.csv", index=False, header=header)
        with pytest.raises(ValueError, match="is of type category, no number") as found:
            nk.read_vectors(source)
        kept = str(found.value).rpartition("type ")[2]
        assert nk.read_vectors(kept if isinstance(source, Path) else eval(kept, {"frame": source})).shape == (30, 3)


@each("write", [list, lambda ids: [float(name) for name in ids], lambda ids: [f"d{n}" for n in ids]])
@each("place", [0, 1, 3])
def test_ids_stand_in_any_column(tmp_path: Path, write: Callable[[range], list], place: int) -> None:
    """Only the first column of text files was looked at; pandas makes floats of ids if one is missing."""
    table = _table(["length", "width", "height"]).drop(columns="id")
    table.insert(place, "id", write(range(7, 37)))
    for source in _saved(table, tmp_path):
        found = nk.data.open_vectors(source)
        np.testing.assert_allclose(found.read(), ROWS, rtol=1e-6)
        assert found.ids().tolist() == [int(name) if isinstance(name, float) else name for name in table.id]


def test_the_index_of_pandas_gives_way_to_a_column_of_ids(tmp_path: Path) -> None:
    table = _table(["f0", "f1", "f2"])
    table.to_csv(tmp_path / "a.csv")
    pd.read_csv(tmp_path / "a.csv").to_csv(tmp_path / "b.csv", index=False)
    table.drop(columns="id").to_csv(tmp_path / "c.csv")
    for name, ids in (("a", table.id.tolist()), ("b", table.id.tolist()), ("c", [*range(30)])):
        found = nk.data.open_vectors(tmp_path / f"{name}.csv")
        assert (found.shape, found.ids().tolist()) == ((30, 3), ids)


def test_columns_are_named_behind_any_table(tmp_path: Path) -> None:
    """`read_table` took no notice of the names."""
    for source in _saved(pd.DataFrame({"user": [1, 1], "item": [3, 4], "rating": [2.0, 3.0]}), tmp_path)[1:]:
        assert list(nk.data.read_table(f"{source}:user,item").columns) == ["user", "item"]
        assert nk.read_interactions(f"{source}:user-item").weights.tolist() == [1, 1]
        for read in (nk.data.read_table, nk.read_vectors, read_column):
            with pytest.raises(ValueError, match="no column 'itm'; its columns are user, item, rating"):
                read(f"{source}:itm")


@each(
    ("text", "match"),
    [
        ("user,item\nann,x\nbob,y\n", "'user' is of type string, .* it has no column of numbers"),
        ("a b\nx 1\ny 2\n", "lines hold several cells, type delimiter="),
        (
            "id,v\na,[0.5, 1]\nb,[0.5, 2]\n",
            r"the list '\[0.5' \.\.\. is cut at its delimiters; write it between quotes",
        ),
        ('id,v\na,\nb,"[0.5, 2]"\n', "lists of 'v' are empty in some rows"),
        ('id,v\na,"[0.5]"\nb,"[0.5, 2]"\n', "lists of 'v' have lengths"),
    ],
)
def test_tables_without_vectors_are_refused(tmp_path: Path, text: str, match: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=match):
        nk.read_vectors(tmp_path / "a.csv")


_WAYS = {
    "lists": lambda x: str(x.tolist()),
    "NumPy": str,
    "NumPy's repr": repr,
    "torch": lambda x: f"tensor({x.tolist()},\n       device='cuda:0')",
    "Postgres": lambda x: f"{{{','.join(map(str, x))}}}",
    "NumPy 2": lambda x: f"[{', '.join(f'np.float64({value})' for value in x)}]",
    "blanks": lambda x: " ".join(map(str, x)),
    "commas": lambda x: ", ".join(map(str, x)),
}


@each("way", _WAYS)
def test_a_vector_as_text_in_a_cell_is_read(tmp_path: Path, way: str) -> None:
    """As pandas' to_csv writes a column of arrays; the error called the id no number."""
    write = _WAYS[way]
    X = np.random.default_rng(0).normal(size=(9, 12)).round(4)  # NumPy breaks such a line
    table = pd.DataFrame({"id": [f"d{i}" for i in range(9)], "embedding": list(map(write, X))})
    for source in _saved(table, tmp_path):
        found = nk.data.open_vectors(source)
        np.testing.assert_allclose(found.read(), X, rtol=1e-5)
        assert found.ids().tolist() == table.id.tolist()
    if write(X[0])[0] not in "[{at":  # next to columns of numbers they may be something else
        with pytest.raises(ValueError, match=r"columns that may name its rows|is of type"):
            nk.data.open_vectors(table.drop(columns="id").assign(a=X[:, 0], b=X[:, 1], c="x")).ids()
    for source in _saved(table.assign(embedding="[0.1 0.2 ... 0.5]"), tmp_path, "cut"):
        with pytest.raises(ValueError, match=r"column 'embedding' .* row 0 holds .* lacks the numbers"):
            nk.read_vectors(source)
