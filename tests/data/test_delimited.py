"""Text tables: cells and types are those that were written, whatever delimiter and line ends."""

import random
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.data.column import text_column
from nearkin.data.files import locate
from nearkin.data.text import pieces, sniff, table_cells
from tests.covering import each


def cells_of(path: Path, **options: str) -> tuple[list[list[str]], str]:
    """The columns of a text file as they are written, and the delimiter."""
    cut, columns = table_cells(locate(path).reading(**options))
    cells = zip(cut.first, columns, strict=True)
    return [[first, *map(str, text_column("x", column.to_pylist()).values)] for first, column in cells], cut.delimiter


CELLS = ["7", "007", "-1", "", "a", "é", "1e5", "99999999999999999999", "18446744073709551615", "-0", "4.5", "x y", "٣"]


@each("mark", [",", ";", "\t", "|"])
@each("ends", ["\n", "\r\n", "\n\n"])
def test_cells_are_those_that_were_written(tmp_path: Path, mark: str, ends: str) -> None:
    rng = random.Random(f"{mark}{ends}")
    path = tmp_path / "a.txt"
    for trial in range(12):
        pools = [rng.choice((CELLS, CELLS[:3], ["1", "2", "30"], [str(2**63 + i) for i in range(4)])) for _ in range(3)]
        rows = [[rng.choice(pool) for pool in pools] for _ in range(rng.randrange(2, 9))]
        path.write_bytes(ends.join(mark.join(row) for row in rows).encode() + ends.encode() * (trial % 2))
        columns = list(map(list, zip(*rows, strict=True)))
        while len(columns) > 1 and not any(columns[-1]):  # a delimiter at the end of every line
            columns.pop()
        assert cells_of(path, delimiter=mark) == (columns, mark)


@each(
    ("cells", "kind"),
    [(CELLS, "O"), (["-1", "7", "30"], "i"), (["7", "18446744073709551615"], "u"), (["7", "-0"], "O")],
)
def test_a_column_is_of_integers_if_every_cell_is_one(cells: list[str], kind: str) -> None:
    values = text_column("x", cells).values
    assert (values.dtype.kind, [str(value) for value in values]) == (kind, cells)


@each(
    ("text", "columns"),
    [
        ("a ,b\n c,d\n", [["a", "c"], ["b", "d"]]),
        ('a,"b\nc"\nd,e\n', [["a", "d"], ["b\nc", "e"]]),
        ("a,b\n \nc,d\n", [["a", "c"], ["b", "d"]]),
        ("\ufeffa,b\nc,d\n", [["a", "c"], ["b", "d"]]),
        ("a,b\rc,d\n", [["a", "c"], ["b", "d"]]),
    ],
)
def test_blanks_quotes_marks_and_old_line_ends(tmp_path: Path, text: str, columns: list) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    assert cells_of(path)[0] == columns


def test_what_cannot_be_a_delimiter_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n")
    for delimiter in ("", '"', "\n"):
        with pytest.raises(ValueError, match=r"must be one of comma, semicolon, tab.* or the characters between cells"):
            cells_of(path, delimiter=delimiter)
    assert cells_of(path, delimiter="comma") == ([["a"], ["b"]], ",")


@each(
    ("name", "text", "mark"),
    [
        ("a.csv", "a;b\nc;d\n", ";"),
        ("a.csv", "title, long;b\nc;d\n", ";"),
        ("a.tsv", "a,b\nc,d\n", ","),
        ("a.txt", "1 2\n3 4\n", " "),
        ("a.csv", "2020-01-01 10:00\n2020-01-02 10:00\n", ","),
    ],
)
def test_the_delimiter_is_the_one_that_fits_every_line(tmp_path: Path, name: str, text: str, mark: str) -> None:
    (tmp_path / name).write_text(text)
    assert sniff(text.split("\n")[:-1], locate(tmp_path / name)) == mark


PAIRS = [(f"u{n % 7}", f"i{n % 5}", str(n % 4 + 1)) for n in range(40)]
NAMES = ("user", "item", "rating")


def lines(mark: str, end: str = "\n", rows: list = [NAMES, *PAIRS]) -> str:  # noqa: B006  never changed
    return "".join(mark.join(row) + end for row in rows)


@each(
    ("name", "data"),
    [
        ("a.csv", lines(",", ",\n")),
        ("a.csv", lines(";", ";;\n")),
        ("a.tsv", lines("\t", "\t\n")),
        ("a.csv", lines(",") + "\n  \n,,\n"),
        ("a.txt", "# Nodes: 7\n# user\titem\trating\n" + lines("\t", rows=PAIRS)),
        ("a.csv", lines(",", "\r")),
        ("a.txt", lines("\t").encode("utf-16")),
        ("a.csv", lines("::")),
        ("a.txt", lines("    ")),
        ("a.csv", lines(",", rows=[NAMES, *((str(n), *row) for n, row in enumerate(PAIRS, 1))])),
        ("a.txt", lines(" ", rows=[NAMES, *((f'"{n}"', f'"{u}"', i, w) for n, (u, i, w) in enumerate(PAIRS, 1))])),
    ],
)
def test_one_table_in_the_spellings_of_other_programs(tmp_path: Path, name: str, data: str | bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    found = nk.read_interactions(path)
    assert list(found.source.roles.values()) == list(NAMES)
    assert (found.shape, found.weights.sum()) == ((7, 5), sum(int(row[2]) for row in PAIRS))


X = [["0.5", "-1.25", "3"], ["2.5", "0.125", "-4"], ["1e-3", "7", "8.5"]]
WORDS = ["the", '"', '"un']
TOKENS = [[word, *row] for word, row in zip(WORDS, X, strict=True)]


@each(
    ("name", "data", "ids"),
    [
        ("a.csv", lines(",", ",\n", X), None),
        ("a.csv", lines(";", "\n", X).replace(".", ","), None),
        ("a.txt", "# a b c\n" + lines(" ", "\n", X), None),
        ("a.csv", lines(",", "\n", X).encode("utf-16"), None),
        ("a.txt", lines("::", "\n", X), None),
        ("a.tsv", "3\t3\n" + lines("\t", "\n", TOKENS), WORDS),
        ("a.csv", "3,3\n" + lines(",", "\n", TOKENS), WORDS),
        ("a.txt", "3 3\n" + lines(" ", " \n", TOKENS), WORDS),
        ("a.csv", lines(",", "\n", [["a", "b", "c"], *([f'"{n}"', *x] for n, x in enumerate(X, 1))]), [1, 2, 3]),
    ],
)  # fmt: skip
def test_vectors_in_the_spellings_of_other_programs(tmp_path: Path, name: str, data: str | bytes, ids: list) -> None:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    found = nk.data.open_vectors(path)
    assert found.read().tolist() == np.array(X, np.float32).tolist()
    assert (None if found.ids() is None else found.ids().tolist()) == ids


@each("mark", [" ", ",", "\t"])
def test_lines_of_a_user_and_its_items(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "train.txt"
    path.write_text(f"0{mark}5{mark}7\n1{mark}5\n2{mark}7{mark}8{mark}9\n3\n")
    found = nk.read_interactions(path)
    assert found.matrix().toarray().tolist() == [[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 1]]
    assert "lines of a user and its items" in str(found.source)
    path.write_text(f"0{mark}5{mark}7\n1{mark}5\n")
    with pytest.raises(ValueError, match="type header=False"):
        nk.read_interactions(path)
    assert len(nk.read_interactions(path, header=False)) == 3


@each("mark", [" ", "\t", ","])
def test_such_lines_of_words_are_asked_for_and_read(tmp_path: Path, mark: str) -> None:
    """The first line was called a title; deleting it made the next one the title."""
    path = tmp_path / "train.txt"
    path.write_text(f"ann:{mark}i5{mark}i7\nbob:{mark}i5\ncat:{mark}i7{mark}i8{mark}i9\n")
    with pytest.raises(ValueError, match="type header=False"):
        nk.read_interactions(path)
    found = nk.read_interactions(path, header=False)
    assert (found.left_ids.tolist(), found.shape, len(found)) == (["ann", "bob", "cat"], (3, 4), 6)
    assert "left aside" not in str(found.source)
    path.write_text("".join(f"{u}{mark}{mark.join(str((u + j) % 9) for j in range(6))}\n" for u in range(20)))
    for options in ({}, {"header": False}):  # the first two items would be the item and its weight
        with pytest.raises(ValueError, match="is each line a user and all its items"):
            nk.read_interactions(path, **options)
    assert nk.read_interactions(path, left="0", right="1", header=False).shape == (20, 9)


@each(
    ("name", "text", "words"),
    [
        ("a.txt", "%%MatrixMarket matrix coordinate\n2 2 2\n1 1 3\n2 2 4\n", "Matrix Market format: load it and type"),
        ("a.csv", "% t\n\n@RELATION x\n@ATTRIBUTE u NUMERIC\n@DATA\n1,2\n2,3\n", "ARFF format: read it by frame = "),
        ("a.arff", "@relation x\n", "ends in '.arff'.*read it by frame = pandas"),
        ("a.txt", "1 1:0.5 7:2\n-1 2:3\n", "svmlight format: load it and type"),
        ("a.ratings", "1\t2\n3\t4\n", "if it is a table of text, call it .txt"),
    ],
)
def test_formats_of_other_libraries_are_named(tmp_path: Path, name: str, text: str, words: str) -> None:
    """The counts of a Matrix Market file were a pair, the labels of svmlight the vectors, by the advice given."""
    (tmp_path / name).write_text(text)
    for read in (nk.read_interactions, nk.read_comparisons, nk.read_vectors):
        for comment in (None, "%"):
            with nk.data.text_options(comment=comment), pytest.raises(ValueError, match=words):
                read(tmp_path / name)


def test_a_line_of_counts_of_a_matrix_is_no_row(tmp_path: Path) -> None:
    """Without its first lines, which begin with %, the counts of a Matrix Market file were a pair and its weight."""
    rows = [f"{i % 9 + 1} {i % 7 + 1} {i + 2}\n" for i in range(12)]
    (path := tmp_path / "a.txt").write_text("".join(["9 7 12\n", *rows]))
    found = nk.read_interactions(path)
    assert (len(found), found.weights.max()) == (12, 13)
    assert "the first line, which counts rows, columns and entries" in str(found.source)
    assert len(nk.read_interactions(path, header=False)) == 13
    for first in ("9 7 11", "8 7 12"):  # other counts are data
        path.write_text("".join([f"{first}\n", *rows]))
        assert nk.read_interactions(path).weights.sum() == sum(range(2, 14)) + int(first.split()[2])


def test_names_are_followed_by_a_rule_or_a_type_or_nothing(tmp_path: Path) -> None:
    """Tables of Markdown and psql, RecBole's types of columns, and an index without a name and values."""
    rows = [(f"u{i % 4}", f"i{i % 3}") for i in range(12)]
    for name, head, line in (
        ("a.txt", "| user | item |\n|---|:-:|\n", "| {} | {} |\n"),
        ("b.txt", " user | item \n------+------\n", " {} | {}\n"),
        ("c.inter", "user_id:token\titem_id:token\n", "{}\t{}\n"),
        ("d.csv", ",user,item\n", ",{},{}\n"),
    ):
        (tmp_path / name).write_text(head + "".join(line.format(*row) for row in rows))
        assert nk.read_interactions(tmp_path / name).left_ids.tolist() == ["u0", "u1", "u2", "u3"]


def test_encodings_comments_and_delimiters_are_typed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("% made by hand\nuser -> item\nZoë -> a\n% end\nann -> b\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"line 3 is not UTF-8 text; type its encoding"):
        nk.read_interactions(path)
    with nk.data.text_options(encoding="cp1252", comment="%"):
        assert nk.read_interactions(path, delimiter=" -> ").left_ids.tolist() == ["Zoë", "ann"]
    with pytest.raises(ValueError, match="encoding is 'kilo', which is none"):
        nk.read_vectors(path, encoding="kilo")


def test_a_quote_that_ends_nothing_is_a_letter_or_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('user,item\nann,tube 1"\nbob,tube 2"\n')
    assert nk.read_interactions(path).right_ids.tolist() == ['tube 1"', 'tube 2"']
    path.write_text('user,item\n"ann",1\n"bob,2\ncara,3\n')
    with pytest.raises(ValueError, match="line 3: 1 cell where other lines have 2"):
        nk.read_interactions(path)


def test_a_mark_inside_the_cells_of_a_column_is_no_second_delimiter(tmp_path: Path) -> None:
    """As in the answers of `nearkin ask`: the line of names has commas alone, each row two bars as well."""
    file = tmp_path / "a.csv"
    rows = [f"a{n % 5},a{(n + 1) % 5},a{(n + 2) % 5},a{n % 5} | b | c" for n in range(30)]
    file.write_text("\n".join(["anchor,near,far,shown", *rows]) + "\n")
    assert nk.data.describe(file).delimiter == "comma"
    file.write_text("\n".join(["a;b,c", *(f"{n % 5};x{n % 3},y{n % 4}" for n in range(30))]) + "\n")
    movies = "".join(f"{n % 7}::Film {n} (1999)::Comedy|Drama\n" for n in range(30))  # was read by bars
    for text in (file.read_text(), movies):
        file.write_text(text)
        with pytest.raises(ValueError, match="several delimiters"):
            nk.data.describe(file)
    assert nk.read_interactions(file, delimiter="::", left="0", right="1").shape == (7, 30)


@each("end", ["\n", "\r\n", "\r"])
@each("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_file_is_the_same_in_pieces_of_any_size(tmp_path: Path, end: str, encoding: str) -> None:
    text = f"user,item{end}Zoë,a{end}% no row{end}{end}ann,b"
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    where = locate(tmp_path / "a.csv").reading(comment="%", encoding=encoding if encoding == "cp1252" else None)
    for size in (-1, 1, 3, 7, 100):
        assert b"".join(pieces(where, size)).decode() == "user,item\nZoë,a\n\n\nann,b"
        assert end == "\r" or size == -1 or all(b"\n" in piece for piece in [*pieces(where, size)][:-1])
