"""Reading tables of pairs: endings, names of columns, text and numbers, and every message."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nearkin as nk
from nearkin.data.column import text_column
from nearkin.data.interactions import read_interactions
from nearkin.data.tables import read_table
from tests.covering import each


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@each(
    ("name", "text"),
    [
        ("a.csv", "userId,movieId,rating,timestamp\n1,10,4.5,100\n2,20,3,50\n1,20,1,70\n"),
        ("b.tsv", "rating\titem_id\tuser\ttime\n4.5\t10\t1\t100\n3\t20\t2\t50\n1\t20\t1\t70\n"),
        ("c.tsv", "1\t10\t4.5\t100\n2\t20\t3\t50\n1\t20\t1\t70\n"),
        ("d.csv", '"query","doc","date"\n1,10,1970-01-01T00:01:40\n2,20,1970-01-01T00:00:50\n1,20,1970-01-01T00:01:10'),
    ],
)  # fmt: skip
def test_usual_names_and_positions_are_understood(tmp_path: Path, name: str, text: str) -> None:
    pairs = read_interactions(write(tmp_path, name, text))
    assert pairs.left_ids.tolist() == [1, 2]
    assert pairs.right_ids.tolist() == [10, 20]
    assert pairs.weights.tolist() == ([1.0, 1.0, 1.0] if name == "d.csv" else [4.5, 1.0, 3.0])
    assert pairs.timestamps is not None
    assert pairs.timestamps.tolist() == [100, 70, 50]


def test_npz_and_parquet_give_the_same_record(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow.parquet import write_table

    columns = {"user": np.array(["u", "v", "u"]), "item": np.array([3, 4, 4]), "split": np.array([0, 2, 1], np.uint8)}
    np.savez(tmp_path / "a.npz", **columns)
    write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), tmp_path / "a.parquet")
    for ending in ("npz", "parquet"):
        pairs = read_interactions(tmp_path / f"a.{ending}")
        assert pairs.left_ids.tolist() == ["u", "v"]
        assert pairs.split is not None
        assert pairs.split.tolist() == [0, 1, 2]


def test_named_columns_masks_and_smallest_weight(tmp_path: Path) -> None:
    table = "who,what,stars,held_test\na,x,5,0\na,y,2,0\nb,x,4,1\n"
    path = write(tmp_path, "p.csv", table)
    pairs = read_interactions(path, left="who", right="what", weight="stars", split="held_test", min_weight=4)
    assert len(pairs) == 2
    assert pairs.split is not None
    assert pairs.split.tolist() == [0, 2]


def test_ids_are_text_or_exact_integers() -> None:
    """Issue 14, B6: 50 users became one, 0007 became 7, 1_000 became 1000, 1e5 equalled 100000."""
    for cells in (
        ["0007", "8"],
        ["1_000", "8"],
        ["1e5", "100000"],
        ["+7", "8"],
        ["7.0", "8"],
        ["0.5", "8"],
        ["a", "8"],
    ):
        assert text_column("ids", cells).ids().tolist() == cells
    assert text_column("ids", ["7", "-8"]).ids().tolist() == [7, -8]
    large = [str(2**63 + i) for i in range(50)]
    assert text_column("ids", large).ids().tolist() == list(map(int, large))
    assert text_column("ids", ["-1", large[0]]).ids().tolist() == ["-1", large[0]]
    longer = [str(10**20 + i) for i in range(50)]
    assert text_column("ids", longer).ids().tolist() == longer


def test_ids_that_a_spreadsheet_rounded_are_refused_by_their_cell(tmp_path: Path) -> None:
    """Users 12345678901 and 12345698765 were one, 1.23457E+10."""
    data, frame = nk.data, pd.DataFrame({"user": ["7", "1.23457E+10"], "item": ["a", "b"]})
    frame.to_parquet(tmp_path / "p.parquet")
    frame.to_json(tmp_path / "j.jsonl", orient="records", lines=True)
    for name, text in {
        "p.csv": "user;item\n7;a\n1,23457E+10;b\n",  # of Excel where commas are decimal
        "v.csv": "id,f0,f1\n7,.1,.2\n1.23457E+10,.3,.4\n",
        "c.csv": "anchor,near,far\n7,8,9\n1.23457E+10,8,9\n",
        "q.tsv": "7\t0\t8\t1\n1.23457E+10\t0\t8\t1\n",
        "ids.txt": "7\n1.23457E+10\n",
        "ids.csv": "id\n7\n1.23457E+10\n",
        "r.csv": "user,item\n99999,a\n1e+05,b\n",  # R's 100000
    }.items():
        write(tmp_path, name, text)
    for read, source in (
        *((read_interactions, tmp_path / name) for name in ("p.csv", "p.parquet", "j.jsonl", "r.csv")),
        (read_interactions, frame),
        (nk.read_comparisons, tmp_path / "c.csv"),
        (data.read_judgements, tmp_path / "q.tsv"),
        (data.read_features, tmp_path / "v.csv"),
        (lambda path: data.open_vectors(path).ids(), tmp_path / "v.csv"),
        *((data.read_column, tmp_path / name) for name in ("ids.txt", "ids.csv", "v.csv:id")),
    ):
        with pytest.raises(ValueError, match=r"holds '(1[.,]23457E\+10|1e\+05)' in row 1: .*Write ids in full: "):
            read(source)
    for cells in (["7", "1e5", "1f3"], ["7", "1e5"], ["a7", "1.23457E+10"], ["7", "1.2345e+04"]):  # names, all digits
        assert text_column("ids", cells).ids().tolist() == cells


@each(
    ("name", "text", "options", "message"),
    [
        ("a.csv", "alpha,beta,gamma\n1,2,3\n", {}, "has no column with a usual left name; its columns are alpha, beta"),
        ("a.csv", "user_id,anime_id,rating\n1,2,3\n", {}, "no column with a usual right name.*right='anime_id'"),
        ("a.csv", "user,item\n1,2\n", {"left": "who"}, "left is 'who', which .* lacks; its columns are user, item"),
        ("a.csv", "user,item\n1,2\n3\n", {}, "line 3: 1 cell where other lines have 2"),
        ("a.csv", "", {}, "is an empty file"),
        ("a.xls", "x", {}, "ends in '.xls'; it must be one of .csv"),
        ("a.csv", "user,item\n,2\n", {}, "column 'user' of .* has 1 missing id, the first in row 0"),
        ("a.csv", "user,item,w\n1,2,x\n", {"weight": "w"}, "column 'w' of .* is not numeric: row 0 holds 'x'"),
        (
            "a.csv",
            "user,item,at\n1,2,2020-01-05\n",
            {"timestamp": "at=%d.%m.%Y"},
            "'2020-01-05', which is not of the form '%d.%m.%Y'; name the form of its dates, timestamp='at' ",
        ),
        ("a.csv", "user,item,split\n1,2,later\n", {}, "split holds 'later'; it must hold 0, 1, 2 or train"),
        ("a.csv", "user,item,split\n1,2,7\n", {}, "split holds 7; it must hold 0"),
        ("a.csv", "user,item,rating\n1,2,1\n", {"min_weight": 3}, "'rating' of .* is below min_weight=3"),
        ("a.csv", "user,item,rating\n1,2,0\n", {}, "'rating' of .* is 0 in every row"),
        ("a.csv", "user,item,rating\n1,2,1\n1,3,inf\n", {}, "'rating' of .* is infinite in row 1"),
        ("a.csv", "1,2,nan\n3,4,nan\n", {}, "column .2. of .* has 2 missing numbers, the first in row 0"),
    ],
)
def test_bad_tables_are_named(tmp_path: Path, name: str, text: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_interactions(write(tmp_path, name, text), **options)


@each(
    ("line", "held"),
    [
        ("2010-10-{day:02}T19:44:40Z,u{user},i{item}", "column '0' .* left ids .* times .*timestamp='0'"),  # a log
        ("{user},2010-10-{day:02}T19:44:40Z,30.23,-97.79,{item}", "column '1' .* right ids .* times"),  # check-ins
        ("{user},10/{day}/2019 9:05", "column '1' .* right ids .* times"),
        ("{time},{user},{item}", "column '0' .* left ids .* times"),
        ("{row},{user},{item},3", "column '0' .* left ids .* row numbers"),  # pandas' index without a header
    ],
)
def test_what_is_no_id_by_its_place_is_asked_about(tmp_path: Path, line: str, held: str) -> None:
    rows = [{"row": n, "day": n % 28 + 1, "time": 10**9 + n, "user": n % 4, "item": 7 * n % 9} for n in range(30)]
    path = write(tmp_path, "a.csv", "".join(line.format(**row) + "\n" for row in rows))
    with pytest.raises(ValueError, match=f"{held}.*left=... and right=..."):
        read_interactions(path)


def test_rows_with_a_missing_cell_are_left_out_if_asked(tmp_path: Path) -> None:
    """Of pairs only the error was there; pandas makes floats of the ids that are left."""
    frame = pd.DataFrame(
        {"user": [7, None, 9, 7, 8], "item": ["a", "b", None, "c", "a"], "rating": [1, 2, 3, None, 4], "time": range(5)}
    )
    frame.to_csv(tmp_path / "p.csv", index=False)
    frame.to_csv(tmp_path / "n.csv", index=False, na_rep="nan")
    frame.to_parquet(tmp_path / "p.parquet")
    frame.to_json(tmp_path / "p.jsonl", orient="records", lines=True)
    frame.assign(item=["a", "b", "", "c", "a"]).to_csv(tmp_path / "e.csv", index=False)
    for source in (frame, *(tmp_path / name for name in ("p.csv", "p.parquet", "p.jsonl", "e.csv"))):
        with pytest.raises(ValueError, match=r"1 missing (id|number), .* of pairs by missing='drop'"):
            read_interactions(source)
        pairs = read_interactions(source, missing="drop")
        assert (pairs.left_ids.tolist(), pairs.right_ids.tolist()) == ([7, 8], ["a"])
        assert (pairs.weights.tolist(), pairs.timestamps.tolist()) == ([1, 4], [0, 4])
        assert "3 rows with a missing cell left out (1 without user, 1 without item, 1 without rat" in str(pairs.source)
    assert read_interactions(tmp_path / "n.csv", missing="drop").left_ids.tolist() == [7, 8, 9]  # nan is a name of text
    assert nk.data.kind_of(frame, given=["missing"]) == "pairs"
    with pytest.raises(ValueError, match=r"no row of .* is complete"):
        read_interactions(frame.assign(user=None), missing="drop")
    with pytest.raises(ValueError, match="missing is '9'"):
        read_interactions(frame, missing="9")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none.csv does not exist; check the name"):
        read_table(tmp_path / "none.csv")


def test_a_line_with_the_names_that_were_given_is_a_header(tmp_path: Path) -> None:
    """Before, a table of newcomers was asked about its header, though the names of its columns were known."""
    file = tmp_path / "guest.csv"
    file.write_text("Kunde,Produkt\nGast,a\nGast,b\n")
    with pytest.raises(ValueError, match="may be names of columns or data"):
        read_interactions(file)
    pairs = read_interactions(file, left="Kunde", right="Produkt")
    assert pairs.left_ids.tolist() == ["Gast"]
    assert pairs.right_ids.tolist() == ["a", "b"]
    (tmp_path / "bare.csv").write_text("Gast,a\nGast,b\n")
    assert len(read_interactions(tmp_path / "bare.csv", left="0", right="1", header=False)) == 2


@each("role", ["left", "timestamp"])
def test_a_column_name_that_is_no_text_is_refused_before_reading(role: str) -> None:
    with pytest.raises(TypeError, match=f"{role} is 1e-18; it must be the name of a column"):
        read_interactions("missing.csv", **{role: 1e-18})


def test_a_weight_has_no_place_where_other_columns_leave_theirs(tmp_path: Path) -> None:
    """As in Gowalla's check-ins and Taobao's clicks: the latitude, or a category, was the weight."""
    path = tmp_path / "a.txt"
    rows = [(f"u{n % 7}", f"2010-10-{n % 9 + 10}T23:55:27Z", 30.5 + n, -97.5, f"p{n % 5}") for n in range(30)]
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    pairs = nk.read_interactions(path, left="0", right="4", timestamp="1")
    assert (pairs.shape, set(pairs.weights.tolist())) == ((7, 5), {1.0})
    assert "left aside: 2, 3" in str(pairs.source)
    path.write_text("".join(f"{n % 7} 0 {n} 1\n" for n in range(30)))  # TREC's judgements
    with pytest.raises(
        ValueError, match=r"column '1' would be the right ids by its place, but seems to hold one value"
    ):
        nk.read_interactions(path)
    assert nk.read_interactions(path, left="0", right="2").shape == (7, 30)


def test_minus_one_is_a_missing_id_from_every_source(tmp_path: Path) -> None:
    """`cat.codes` and `factorize` write -1 for a missing value: all of these became one popular item."""
    frame = pd.DataFrame({"user": [1, 2, 3], "item": pd.Series(["x", None, "y"]).astype("category").cat.codes})
    frame.to_csv(tmp_path / "p.csv", index=False)
    frame.astype(float).to_csv(tmp_path / "floats.csv", index=False)
    frame.to_parquet(tmp_path / "p.parquet")
    for source in (frame, frame.astype(float), *(tmp_path / name for name in ("p.csv", "floats.csv", "p.parquet"))):
        with pytest.raises(
            ValueError, match=r"column 'item' of .* has 1 missing id, the first in row 1 \('-1(\.0)?'\)"
        ):
            read_interactions(source)
        assert read_interactions(source, missing="drop").right_ids.tolist() == [0, 1]
    objects = pd.DataFrame({"anchor": [1, 2, 3], "near": [2, -1, 1], "far": [3, 3, 2]})
    with pytest.raises(ValueError, match=r"1 row of 3 without an answer or an object \(row 1\)"):
        nk.read_comparisons(objects)
    assert len(nk.read_comparisons(objects, missing="drop").indices) == 2
    for name, table in {"features": "item,x\n1,2\n-1,3\n", "vectors": "id,a,b\n1,2,3\n-1,3,4\n"}.items():
        path = write(tmp_path, f"{name}.csv", table)
        with pytest.raises(ValueError, match=f"{name}.csv has 1 missing id, the first in row 1"):
            nk.data.read_features(path) if name == "features" else nk.data.open_vectors(path).ids()
    weighed = pd.DataFrame({"user": [1, 2], "item": [3, 4], "weight": [1, -1]})
    with pytest.raises(ValueError, match="negative weight"):  # not a gap
        read_interactions(weighed, missing="drop")
