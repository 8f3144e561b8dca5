"""Text tables: cells and types are those that were written, whatever delimiter and line ends."""

import random
from pathlib import Path

import pytest

from nearkin.data.column import text_column
from nearkin.data.files import locate
from nearkin.data.text import sniff, table_cells


def cells_of(path: Path, **options: str) -> tuple[list[list[str]], str]:
    """The columns of a text file as they are written, and the delimiter."""
    cut, columns = table_cells(locate(path).reading(**options))
    cells = zip(cut.first, columns, strict=True)
    return [[first, *map(str, text_column("x", column.to_pylist()).values)] for first, column in cells], cut.delimiter


CELLS = ["7", "007", "-1", "", "a", "é", "1e5", "99999999999999999999", "18446744073709551615", "-0", "4.5", "x y", "٣"]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\n\n"])
def test_cells_are_those_that_were_written(tmp_path: Path, mark: str, ends: str) -> None:
    rng = random.Random(f"{mark}{ends}")
    path = tmp_path / "a.txt"
    for trial in range(40):
        pools = [rng.choice((CELLS, CELLS[:3], ["1", "2", "30"], [str(2**63 + i) for i in range(4)])) for _ in range(3)]
        rows = [[rng.choice(pool) for pool in pools] for _ in range(rng.randrange(2, 9))]
        path.write_bytes(ends.join(mark.join(row) for row in rows).encode() + ends.encode() * (trial % 2))
        columns = list(map(list, zip(*rows, strict=True)))
        while len(columns) > 1 and not any(columns[-1]):  # a delimiter at the end of every line
            columns.pop()
        assert cells_of(path, delimiter=mark) == (columns, mark)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [(CELLS, "O"), (["-1", "7", "30"], "i"), (["7", "18446744073709551615"], "u"), (["7", "-0"], "O")],
)
def test_a_column_is_of_integers_if_every_cell_is_one(cells: list[str], kind: str) -> None:
    values = text_column("x", cells).values
    assert (values.dtype.kind, [str(value) for value in values]) == (kind, cells)


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
