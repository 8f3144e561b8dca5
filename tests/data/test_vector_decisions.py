"""What is understood of small tables of vectors, or asked: each row of the second table in docs/notes/reading_cases.md.

`python -m tests.data.test_vector_decisions` prints the table anew; look at each row before it goes into the page.
"""

import tempfile
from pathlib import Path

import numpy as np
import pytest

from nearkin.data import open_vectors
from tests.covering import each
from tests.data.test_reading_decisions import PAGE, File, shown

HALVES = [[f"{n % 7}.5", f"-{n % 5}.25"] for n in range(12)]
COMMAS = [[cell.replace(".", ",") for cell in row] for row in HALVES]


def table(rows: list, head: str = "", mark: str = ",") -> str:
    return "\n".join([head] * bool(head) + [mark.join(map(str, row)) for row in rows]) + "\n"


def named(names: list, rows: list = HALVES) -> list:
    return [[name, *row] for name, row in zip(names, rows, strict=False)]


WORDS, COUNT, CODES = [f"doc {n}" for n in range(12)], list(range(12)), [100 + 7 * n for n in range(12)]
FILES = [
    File("numbers alone", table(HALVES)),
    File("a header", table(HALVES, "f0,f1")),
    File("ids in words, without a header", table(named(WORDS))),
    File("ids in words under any name", table(named(WORDS), "product,f0,f1")),
    File("whole ids under a name of ids", table(named(CODES), "item_id,f0,f1")),
    File("whole numbers under another name", table(named(CODES), "product,f0,f1")),
    File("whole numbers without a header", table(named(CODES))),
    File("counts in every column", table([[n, n % 3, n % 4] for n in CODES])),
    File("row numbers before counts", table([[n, n % 3, n % 4] for n in COUNT])),
    File("an index of pandas", table(named(COUNT), ",0,1")),
    File("quoted ids with the delimiter", table(named([f'"Screw, M{n}"' for n in range(12)]), "sku,f0,f1")),
    File("decimal commas", "\ufeff" + table(named(WORDS, COMMAS), "Artikel;x;y", ";").replace("\n", "\r\n")),
    File("decimals or thousands", table([["1,250", "3,500"]] * 12, "x;y", ";")),
    File("the delimiter said as Excel does", "sep=;\n" + table(HALVES, "x;y", ";")),
    File("words and their vectors", table(named([f"w{n}" for n in range(12)]), "", " "), name="a.txt"),
    File("spaces", table(HALVES, "", " "), name="a.csv"),
    File("an id twice", table(named(["a", "b", "a"]), "id,f0,f1")),
    File("an id missing", table(named(["a", "", "c"]), "id,f0,f1")),
    File("two columns of text", table([[f"d{n}", "a title", "0.5"] for n in range(12)], "id,title,f0")),
    File("a label of numbers", table([[f"d{n}", "0.5", "1.5", n % 3] for n in range(12)], "id,f0,f1,label")),
    File("a number that may be a coordinate", table([[f"{n % 7}.5", "1.5"] for n in range(12)], "height,rating")),
    File("words without a header", table([["0.5", "1.5", "cat"]] * 12)),
    File("vectors in a cell", table([[f"d{n}", '"[0.5, 1.5]"'] for n in range(12)], "id,embedding")),
    File("a shortened print", table([[f"d{n}", '"[0.5 ... 1.5]"'] for n in range(12)], "id,embedding")),
    File("a hole", table([["a", "0.5", ""], ["b", "0.5", "1.5"]], "id,f0,f1")),
]  # fmt: skip


def outcome(file: File, folder: Path) -> str:
    path = folder / file.name
    path.write_bytes(file.text.encode())
    try:
        found = open_vectors(path)
        names = found.ids()
        first = found.read()[0].tolist()
        begins = f"; first row: {'' if names is None else f'{names[0]!s} = '}{first}"
        return found.about.replace(f"{folder}/", "") + begins
    except ValueError as error:
        return "**asks:** " + str(error).replace(f"{folder}/", "")


def row(file: File, folder: Path) -> str:
    return f"| {file.about} | {shown(file)} | {outcome(file, folder)} |"


@each("file", FILES)
def test_the_page_says_what_happens(file: File, tmp_path: Path) -> None:
    assert row(file, tmp_path) in PAGE.read_text(encoding="utf-8").split("\n")


def test_ids_and_numbers_are_those_of_the_file(tmp_path: Path) -> None:
    """Decimal commas, quotes and ids change nothing but the form."""
    (tmp_path / "a.csv").write_text('sku;x;y\n"a;""b"" 日本";0,5;-1,25\n007;1e-3;2\n', encoding="utf-8")
    found = open_vectors(tmp_path / "a.csv")
    assert np.asarray(found.ids()).tolist() == ['a;"b" 日本', "007"]
    np.testing.assert_array_equal(found.read(), np.array([[0.5, -1.25], [1e-3, 2]], np.float32))


def test_parts_of_a_file_and_several_files_keep_their_ids(tmp_path: Path) -> None:
    (tmp_path / "p0.csv").write_text("id,x,y\n7,1,2\n8,3,4\n")
    (tmp_path / "p1.csv").write_text("id,x,y\nnine,5,6\n")
    found = open_vectors(str(tmp_path / "p*.csv"))
    assert np.asarray(found.ids()).tolist() == ["7", "8", "nine"]
    assert np.asarray(found.part(1, 3).ids()).tolist() == ["8", "nine"]
    assert open_vectors(tmp_path / "p0.csv").part(1, 2).read().tolist() == [[3, 4]]


def test_the_ids_of_a_parquet_file(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    lists = pa.array([[1.0, 2.0], [3.0, 4.0]])
    parquet.write_table(pa.table({"title": ["a", "b"], "doc_id": ["x", "y"], "v": lists}), tmp_path / "a.parquet")
    found = open_vectors(tmp_path / "a.parquet")
    assert np.asarray(found.ids()).tolist() == ["x", "y"]
    assert found.about.endswith("2 rows of 2 numbers; ids in column 'doc_id'; left aside: title")
    parquet.write_table(pa.table({"id": [5, 9], "x": [0.5, 1.5], "y": [2.5, 3.5]}), tmp_path / "b.parquet")
    found = open_vectors(tmp_path / "b.parquet")
    assert (np.asarray(found.ids()).tolist(), found.read().tolist()) == ([5, 9], [[0.5, 2.5], [1.5, 3.5]])
    frame = open_vectors(pa.table({"id": ["m", "n"], "x": [0.5, 1.5]}))
    assert (np.asarray(frame.ids()).tolist(), frame.read().tolist()) == (["m", "n"], [[0.5], [1.5]])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print("\n".join(row(file, Path(made)) for file in FILES))


def test_a_quote_that_the_header_leaves_open_is_refused(tmp_path: Path) -> None:
    """Before, its line was taken as names, though the first row stands in it (campaign, seed 4141, case 624752)."""
    path = tmp_path / "X.tsv"
    path.write_text('a\tb\tc\t"0.1\t-0.2\t0.5\n1\t2\t3\t4\n5\t6\t7\t8\n')
    with pytest.raises(ValueError, match="line 1: 6 cells where other lines have 4"):
        open_vectors(path)
