"""Reading by plain rules: roles by names, nothing by places or cells; every refusal names the cell and what to type."""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import nearkin as nk
from nearkin._check import MAX_TEXT
from nearkin.data import read_table
from nearkin.data.tables import NAMES, Column, plain

PAGE = Path(__file__).parents[2] / "docs" / "reading.md"
PAIRS = {"user": ["u1", "u2", "u1"], "item": [7, 9, 9], "rating": [4.5, 3.0, 1.0], "time": [100, 50, 70]}
LINES = "user,item,rating,time\nu1,7,4.5,100\nu2,9,3.0,50\nu1,9,1.0,70\n"

POLARS = [import_module("polars").DataFrame] if find_spec("polars") else []


def write(folder: Path, text: str, name: str = "a.csv", encoding: str = "utf-8") -> Path:
    (folder / name).write_text(text, encoding=encoding, newline="")
    return folder / name


def pairs_of(source: Any, **options: Any) -> list[tuple[Any, ...]]:
    """The pairs of a table as (left, right, weight), sorted."""
    pairs = nk.read_interactions(source, **options)
    left, right = pairs.left_ids[pairs.rows].tolist(), pairs.right_ids[pairs.indices].tolist()
    return sorted(zip(left, right, pairs.weights.tolist(), strict=True))


def ids_of(*cells: object) -> list[object]:
    return list(nk.read_interactions(pd.DataFrame({"user": cells, "item": "x"})).left_ids.tolist())


def test_every_format_gives_the_same_pairs(tmp_path: Path, subtests: pytest.Subtests) -> None:
    frame, wanted = pd.DataFrame(PAIRS), [("u1", 7, 4.5), ("u1", 9, 1.0), ("u2", 9, 3.0)]
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_feather(tmp_path / "a.feather")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    frame.to_csv(tmp_path / "z.csv.gz", index=False)
    np.savez(tmp_path / "a.npz", **{name: np.array(cells) for name, cells in PAIRS.items()})
    write(tmp_path, LINES)
    write(tmp_path, LINES.replace(",", ";"), "b.csv")
    write(tmp_path, LINES.replace(",", "\t"), "c.tsv")
    write(tmp_path, LINES.replace(",", "|").replace("\n", "\r\n"), "d.txt")
    write(tmp_path, "\ufeff" + LINES, "e.csv")
    write(tmp_path, LINES, "f.csv", encoding="utf-16")
    write(tmp_path, LINES.replace(",", "::"), "g.dat")
    write(tmp_path, LINES.partition("\n")[2].replace(",", "::"), "h.dat")
    write(tmp_path, LINES.replace("user", "user_id:token").replace("item", "item_id:token"), "i.inter")
    write(tmp_path, LINES.replace("\n", ",\n"), "j.csv")
    write(tmp_path, ",".join(f'"{name}"' for name in PAIRS) + "\n" + LINES.partition("\n")[2], "k.csv")
    typed: dict[str, dict[str, Any]] = {
        "f.csv": {"encoding": "utf-16"},
        "g.dat": {"delimiter": "::"},
        "h.dat": {"delimiter": "::", "header": False, "left": "0", "right": "1", "weight": "2", "timestamp": "3"},
    }
    for source in (frame, *(make(PAIRS) for make in POLARS), pa.table(PAIRS), *sorted(tmp_path.iterdir())):
        name = source.name if isinstance(source, Path) else type(source).__module__
        with subtests.test(name):
            assert pairs_of(source, **typed.get(name, {})) == wanted


def test_parts_are_read_in_the_order_of_their_numbers(tmp_path: Path, subtests: pytest.Subtests) -> None:
    write(tmp_path, "item,user\nx,u9\ni9,shared\n", "part-9.csv")
    for number in (10, 1, 2):
        write(tmp_path, f"user,item\nu{number},x\nshared,i{number}\n", f"part-{number}.csv")
    (tmp_path / "_SUCCESS").write_text("")
    for source in (tmp_path, str(tmp_path / "part-*.csv"), [tmp_path / f"part-{at}.csv" for at in (1, 2, 9, 10)]):
        with subtests.test(str(source)):
            cells = read_table(source).columns["user"].text()
            assert cells == ["u1", "shared", "u2", "shared", "u9", "shared", "u10", "shared"]
            assert len(nk.read_interactions(source)) == 8
    write(tmp_path, "user,product\nu,x\n", "part-3.csv")
    with pytest.raises(ValueError, match=r"part-3\.csv has the columns user, product"):
        read_table(tmp_path)
    with pytest.raises(ValueError, match=r"delimiter=' '; .*header=False .*left='0', right='1'"):
        nk.read_interactions([write(tmp_path, f"{number} 2 3\n4 5 6\n", f".{number}.txt") for number in (1, 2)])
    for name, way in ("year=2024", r"format='csv', partitioning='hive'\)"), ("_delta_log", r"DeltaTable\(.*to_pyarrow"):
        (tmp_path / name).mkdir()
        with pytest.raises(ValueError, match=f"; pass .*{way}"):
            read_table(tmp_path)
        (tmp_path / name).rmdir()
    write(tmp_path, "x", "notes.md")
    with pytest.raises(ValueError, match="give parts of one table by a pattern"):
        read_table(tmp_path)


def test_roles_are_names_and_never_places_or_cells(tmp_path: Path, subtests: pytest.Subtests) -> None:
    refused = {
        "who,what\nu1,7\n": "no column with a usual name of left",
        "user,customer,item\na,b,c\n": "user, customer of .* may each be left; type left='user'",
        "user,item,rating,plays\na,b,1,2\n": "rating, plays of .* may each be weight",
        "1,2,3\n1,3,4\n": "begins with numbers .* header=False .*left='0', right='1'",
        "who,what\nu1,7\nu2,8\n": r"usual name of left \(.* and of right \(.*type left=... and right=..., of who, what",
        "ann,7,5\nbob,8,5\n": "of ann, 7, 5; if the first line is data, header=False .*left='0', right='1'",
        "user item\na b\n": r"without comma, semicolon, tab or bar \(user item\); .*: delimiter=' '; if the first line",
        "1::7::5::978300760\n1::8::5::978300761\n": "delimiter='::'; .*header=False .*left='0', right='1'",
        "user;item,name\na;b,c\n": "semicolon and comma; type which one",
        "user\titem\n1\ta\tb\n": r"as of R: pandas\.read_csv\(path, sep='\\t'\)",
        "\nuser,item\na,b\n": "begins with an empty line",
        "user,item\na,b\nuser,item\nc,d\n": "repeats the names of the columns in 1 cell: 'user' in line 3",
        "sep=;\nuser;item;time\na;b;1\n": r"line 2: Expected 2 columns.*if line 1 is none .*skiprows=1",
    }
    for text, why in refused.items():
        with subtests.test(text), pytest.raises(ValueError, match=why):
            nk.read_interactions(write(tmp_path, text))
    path = write(tmp_path, "a=b,c:d,e\nu1,7,1%\n")
    assert pairs_of(path, left="a=b", right="c:d") == pairs_of(f"{path}:user=a=b,item=c:d") == [("u1", 7, 1.0)]
    renamed = {"user=a=b,item=c:d,weight=e": r"rename\(columns=.*'e': 'weight'}\): type frame\['weight'\]"}
    renamed |= {"user=c:d,item=c:d": "twice", "user=a=b,user=c:d": "twice", "usr=c:d": "'usr' is no usual"}
    for behind, why in renamed.items():
        with subtests.test(behind), pytest.raises(ValueError, match=why):
            nk.read_interactions(f"{path}:{behind}")
    pairs = nk.read_interactions(write(tmp_path, "user,item,latitude,longitude\na,b,40.7,-73.9\na,c,40.8,-73.8\n"))
    assert pairs.weights.tolist() == [1, 1]
    assert "left aside: latitude, longitude" in str(pairs.source)


def test_ids_are_canonical_integers_or_text_as_written(subtests: pytest.Subtests) -> None:
    texts = ["0007", "8"], ["1_000", "8"], ["1e5", "1"], ["+7", "8"], ["7.0", "8"], ["a", "b"]
    for cells in (*texts, [str(10**20), "8"], ["[unknown]", "[31m", "{x"]):
        with subtests.test(str(cells)):
            assert ids_of(*cells) == sorted(cells)
    assert ids_of("7", "-8", "10") == ids_of(7, -8, 10) == [-8, 7, 10]
    assert ids_of(2**63 + 1, 2**63) == [str(2**63), str(2**63 + 1)]
    for cell, way in (7.0, r"\.astype\('Int64'\)"), ({"id": 3}, r"\.str\['id'\]"):
        with pytest.raises(ValueError, match=rf"cells of type .* type frame\['user'\] = frame\['user'\]{way}"):
            ids_of(cell)


def test_what_is_no_id_is_refused_with_its_cell(subtests: pytest.Subtests) -> None:
    many = [str(number) for number in range(100, 140)]
    refused: dict[tuple[object, ...], str] = {
        (*many, "user"): "holds integers but in 1 cell: 'user' in row 40",
        (*many, "n/a"): "missing ids in 1 cell: 'n/a' in row 40",
        (*many, "\\N"): "missing ids in 1 cell",
        (*many, "-1"): "no id, in 1 cell: '-1' in row 40",
        ("a", "b "): "blanks at an end",
        ("a", "[1, 2]"): r"lists in text .*type frame = .*findall.*explode\('user'\)",
        ("1 2 3", "1|2|3"): "lists in text in 2 cells",
        ("a", '{"ImportId": "QID1"}'): "ImportId",
        ("Item", '{"ImportId": "QID1"}', "a"): r"lines of the header: .*skiprows=\[1, 2\]",
        ("Item", *many): r"'Item' in row 0 .*; if they are further lines of the header: .*skiprows=\[1\]",
        ("a", "b\nc"): "line breaks",
        ("a", "x" * (MAX_TEXT + 1)): "has at most 1,000",
        ("a", None): "missing ids in 1 cell",
        (1, -1): "-1, which is no id",
        (b"\xff", b"\xfe"): r"frame\['user'\]\.map\(bytes\.hex\)",
    }
    for cells, why in refused.items():
        with subtests.test(str(cells)[-40:]), pytest.raises(ValueError, match=why):
            ids_of(*cells)


def test_a_text_file_and_a_frame_have_the_same_ids(tmp_path: Path, rng: np.random.Generator) -> None:
    cells = rng.choice(["u1", "NA", "007", "12", "x y", ""], 60)
    frame = pd.DataFrame({"user": cells, "item": "x"})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    kept = [pairs_of(source, missing="drop") for source in (tmp_path / "a.csv", tmp_path / "a.parquet", frame)]
    assert kept[0] == kept[1] == kept[2]
    assert {left for left, *_ in kept[0]} == {"u1", "007", "12", "x y"}


def test_cells_at_fault_are_named_by_their_line(tmp_path: Path, subtests: pytest.Subtests) -> None:
    refused = {
        "user,item,rating\na,b,1%\na,c,80%\n": r"column 'rating' .*'80%' in line 3; type .*replace\('%', ''\)",
        'user,item,rating\na,b,1\na,c,"4,5"\n': r"'4,5' in line 3; type .*replace\(',', '.'\)",
        'user,item,rating\na,b,1\na,c,"4,500"\n': r"'4,500' in line 3; type .*replace\(',', ''\)",
        "user,item,rating\na,b,1/5\na,c,4/5\n": r"'4/5' in line 3; type .*replace\('/5', ''\)",
        "user,item\na,b\n-1,c\n": "holds -1, which is no id, in 1 cell: '-1' in line 3",
        "user,item\na,b\na\u00a0,c\n": "blanks at an end.* in line 3",
        "user;item\na;7.0\nb;8.0\n": r"; with frame = pandas\.read_csv\(path, sep=';', .*, dtype=str\): .*Int64",
        "user,item\na,1.2E+12\nb,1.3E+12\n": "'1.2E.12' in line 2, .*Int64",
        "user,item,rating\na,b,1\na,c,-2\n": "negative weights in 1 cell: '-2' in line 3; .*min_weight=0",
        "user,item,rating\na,b,1\na,c,inf\n": "infinite in 1 cell: 'inf' in line 3",
        "user,item,time\na,b,11/28/2026\na,c,2026-11-27\n": "'11/28/2026' in line 2; .*dayfirst=False",
        "user,item,time\na,b,20240131\na,c,20240201\n": r"days .*: '20240131' in line 2.*; type .*%Y%m%d",
        "user,item,time\na,b,1600000000\na,c,1600000000000\n": "two units.*: '1600000000' in line 2",
        "user,item,rating\nUser,Item,Stars\n{1},b,{2}\na,b,5\n": r"'Stars' in line 2, '.2.' in line 3; .*\[1, 2\]",
        "user,item,split\na,b,train\na,c,dev\n": "'dev' in line 3; it must hold 0, 1, 2 or train",
    }
    for text, why in refused.items():
        with subtests.test(text), pytest.raises(ValueError, match=why):
            nk.read_interactions(write(tmp_path, text))


def test_columns_of_other_programs_are_read() -> None:
    """Bytes that are no text in one column, and polars' categories, made the whole table unreadable."""
    words = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(["a"], pa.string_view()))
    assert pairs_of(pa.table({"user": words, "item": [7], "image": [b"\xff\xd8"]})) == [("a", 7, 1.0)]


def test_times_are_seconds_whatever_their_type(tmp_path: Path) -> None:
    text = "user,item,date\na,b,2026-11-28 17:05:00\na,c,2026-11-28\n"
    typed = pd.DataFrame({"user": ["a", "a"], "item": ["b", "c"]})
    typed["date"] = pd.to_datetime(["2026-11-28 17:05:00", "2026-11-28"], format="mixed")
    zoned = typed.assign(date=typed["date"].dt.tz_localize("Europe/Berlin").dt.tz_convert("UTC"))
    seconds = [1795885500, 1795824000]
    for source, wanted in ((write(tmp_path, text), seconds), (typed, seconds), (zoned, [s - 3600 for s in seconds])):
        assert np.asarray(nk.read_interactions(source).timestamps).tolist() == wanted


def test_rows_are_dropped_and_counted_where_it_is_typed(tmp_path: Path) -> None:
    path = write(tmp_path, "user,item,rating\n1,2,3\n,2,3\n1,\\N,3\n4,5,NA\n6,7,0\n")
    with pytest.raises(ValueError, match="missing numbers in 1 cell: 'NA' in line 5"):
        nk.read_interactions(path)
    pairs = nk.read_interactions(path, missing="drop")
    assert (pairs.left_ids.tolist(), pairs.right_ids.tolist()) == ([1], [2])
    for note in ("3 rows with a missing cell left out (1 without user, 1 without item, 1 without rating)", "1 row of"):
        assert note in str(pairs.source)


def test_rows_left_out_leave_no_ids_behind(subtests: pytest.Subtests) -> None:
    """Text ids of rows of weight 0 stayed, as users without a pair; integers went."""
    frame = pd.DataFrame({"user": [1, 2, 3], "item": [7, 8, 9], "rating": [5, 1, 0]})
    others = frame.astype({"user": str}), frame.assign(user="u" + frame.user.astype(str), item=list("abc"))
    for table in (frame, *others):
        for options, shape in (({}, (2, 2)), ({"min_weight": 3}, (1, 1))):
            with subtests.test(f"{table.user.dtype} {options}"):
                assert nk.read_interactions(table, **options).shape == shape


def test_other_encodings_and_quotes_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, "user,item\nZoë,1\n", encoding="cp1252")
    with pytest.raises(ValueError, match="line 2 is not UTF-8 text; type its encoding, for example encoding='cp1252'"):
        nk.read_interactions(path)
    assert nk.read_interactions(path, encoding="cp1252").left_ids.tolist() == ["Zoë"]
    with pytest.raises(ValueError, match="encoding is 'latin-42'"):
        nk.read_interactions(path, encoding="latin-42")
    with pytest.raises(ValueError, match="holds NUL bytes"):
        nk.read_interactions(write(tmp_path, "user,item\na,b\n", encoding="utf-16-le"))
    for text in ('user,item\na,"b\nc,d\ne,f\n', 'user\titem\na\t"b\nc\td\ne\t"f\n'):
        with pytest.raises(ValueError, match=r"a quote is not closed, before 'b.*quoting=3"):
            read_table(write(tmp_path, text))
    assert read_table(write(tmp_path, 'user,item\na,"b ""c"", d"\n')).columns["item"].text() == ['b "c", d']


def test_other_endings_name_what_to_type(tmp_path: Path, subtests: pytest.Subtests) -> None:
    ways = {"a.xls": ".xlsx", "a.json.gz": "read_json", "a.mtx": "save_npz", "a.npy.gz": "unpack", "a": "rename"}
    for name, way in (ways | {"a.sav": "read_spss"}).items():
        with subtests.test(name), pytest.raises(ValueError, match=way):
            nk.read_interactions(write(tmp_path, "x", name))
    with pytest.raises(TypeError, match="must be a file, a DataFrame or a sparse matrix"):
        nk.read_interactions(np.eye(3))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        nk.read_interactions(tmp_path / "none.csv")


def test_the_page_has_the_table_of_names() -> None:
    rows = dict(re.findall(r"^\| (\w+)(?: \(.*?\))? \| (.*?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert {role: rows[role].split(", ") for role in NAMES} == {role: list(names) for role, names in NAMES.items()}
    assert all(plain(name) == name for names in NAMES.values() for name in names)


def test_columns_of_other_types_are_named() -> None:
    for cells, name in ((pa.array([[1]]), "list"), (pa.array([{"a": 1}]), "struct"), (pa.array([True]), "bool")):
        assert Column("c", cells).kind == name
        with pytest.raises(ValueError, match=f"cells of type {name}"):
            Column("c", cells).ids()


def test_options_of_text_are_refused_for_what_is_no_text(tmp_path: Path) -> None:
    frame = pd.DataFrame({"user": [1, 2], "item": [3, 4]})
    frame.to_parquet(tmp_path / "pairs.parquet")
    np.save(tmp_path / "X.npy", np.ones((2, 2)))
    for option in ({"header": False}, {"delimiter": ";"}, {"encoding": "cp1252"}):
        readers = dict.fromkeys((nk.read_vectors, nk.data.read_column, nk.data.read_neighbors), tmp_path / "X.npy")
        readers |= {nk.read_interactions: tmp_path / "pairs.parquet", nk.data.read_table: frame}
        for read, source in readers.items():
            with pytest.raises(ValueError, match=f"{next(iter(option))} is for text files"):
                read(source, **option)
    with pytest.raises(TypeError, match="unexpected keyword argument 'left'"):
        nk.data.read_table(frame, left="user")
