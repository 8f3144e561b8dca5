"""What readers understand of small files, or what they ask: each row of the table in docs/notes/reading_cases.md.

`python -m tests.data.test_reading_decisions` prints the table anew; look at each row before it goes into the page.
"""

import random
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import nearkin as nk
from tests.covering import each

PAGE = Path(__file__).parents[2] / "docs" / "notes" / "reading_cases.md"
_RNG = random.Random(4)
CITIES = ["Rome", "Oslo", "Bonn", "Bern", "Cork", "Lyon"]
TRIPLETS = [_RNG.sample(CITIES, 3) for _ in range(30)]
NUMBERS = [[CITIES.index(name) + 10 for name in row] for row in TRIPLETS]
USERS = [[f"u{_RNG.randrange(5)}", f"a{_RNG.randrange(9)}"] for _ in range(30)]
TIMES = [1_500_000_000 + 60 * n for n in range(30)]


class File(NamedTuple):
    """A file: what is in it, its name, its text, and the options it is read with."""

    about: str
    text: str
    options: dict[str, Any] = {}  # noqa: RUF012  never changed
    name: str = "a.csv"


def text(rows: list, *, head: str = "", mark: str = ",") -> str:
    lines = [mark.join(map(str, row)) for row in rows]
    return "\n".join([head.replace(",", mark)] * bool(head) + lines) + "\n"


def plus(rows: list, *columns: list) -> list:
    return [[*row, *extra] for row, extra in zip(rows, zip(*columns, strict=True), strict=True)]


def pick(*values: Any) -> list:
    return [_RNG.choice(values) for _ in range(30)]


SIDES, ONES, TWOS, BITS = pick("left", "right"), pick(1, -1), pick(1, 2), pick(0, 1)
CHOSEN = [row[1 + n % 2] for n, row in enumerate(TRIPLETS)]
ODD = [row[n % 3] for n, row in enumerate(TRIPLETS)]
HALVES = [row[:2] for row in TRIPLETS]
DATES = ["2024-02-03"] * 30
STARS = pick(1, 2, 3, 4, 5)
WIDE = [f"film {n}" for n in range(13)]
IDS = [[f"00{n}", f"{n}_0", "1e5"] for n in range(1, 5)]

FILES = [
    File("triplets without a header", text(TRIPLETS)),
    File("triplets of numbers", text(NUMBERS)),
    File("tabs", text(TRIPLETS, mark="\t"), name="a.tsv"),
    File("semicolons", text(TRIPLETS, mark=";")),
    File("bars", text(TRIPLETS, mark="|"), name="a.txt"),
    File("spaces", text(NUMBERS, mark=" "), name="a.txt"),
    File("a byte order mark", "\ufeff" + text(TRIPLETS, head="i,j,k")),
    File("quoted cells with the delimiter", text([[f'"{name}, city"' for name in row] for row in TRIPLETS])),
    File("lines end as on Windows", text(TRIPLETS, head="anchor,near,far").replace("\n", "\r\n")),
    File("a header whose names never recur", text(TRIPLETS, head="Stadt,nah,fern")),
    File("a header by meaning", text(TRIPLETS, head="city,nearer,farther")),
    File("a header above numbers", text(NUMBERS, head="x1,x2,x3")),
    File("two rows that recur nowhere", text([list("abc"), list("def")])),
    File("the same, with the answer typed", text([list("abc"), list("def")]), {"header": False, "kind": "comparisons"}),
    File("one row", text([list("abc")]), {"kind": "comparisons"}),
    File("a header and no row", text([], head="anchor,near,far")),
    File("empty", ""),
    File("an empty line", "\n"),
    File("an index of pandas", text([[n, *row] for n, row in enumerate(TRIPLETS)], head=",anchor,near,far")),
    File("columns in another order", text([row[::-1] for row in TRIPLETS], head="loser,winner,reference")),
    File("quadruplets", text([[*row, row[0]] for row in TRIPLETS]), {"kind": "comparisons"}),
    File("responses left and right", text(plus(TRIPLETS, SIDES, TIMES), head="ref,left,right,response,rt")),
    File("responses 1 and -1", text(plus(TRIPLETS, ONES), head="anchor,a,b,answer")),
    File("responses 1 and 2", text(plus(TRIPLETS, TWOS), head="anchor,option1,option2,choice")),
    File("responses 0 and 1", text(plus(TRIPLETS, BITS), head="anchor,a,b,response")),
    File(
        "the same, with the answer typed",
        text(plus(TRIPLETS, BITS), head="anchor,a,b,response"),
        {"response": "response=0"},
    ),
    File("the response names the object", text(plus(TRIPLETS, CHOSEN), head="anchor,a,b,chosen")),
    File("options and no response", text(TRIPLETS, head="anchor,a,b")),
    File("an odd one out", text(plus(TRIPLETS, ODD), head="one,two,three,odd")),
    File(
        "the same, with its form typed",
        text(plus(TRIPLETS, ODD), head="one,two,three,odd"),
        {"form": "odd-one-out"},
    ),
    File("ratings of pairs", text(plus(HALVES, STARS), head="stimulus A,stimulus B,rating")),
    File("similarities of pairs", text(plus(HALVES, STARS), head="stimulus A,stimulus B,similarity")),
    File("ids that look like numbers", text(IDS, head="anchor,near,far")),
    File("a header of pairs and semicolons", text(plus(USERS, TIMES), head="user;artist;timestamp", mark=";")),
    File("pairs with ratings and dates", text(plus(USERS, STARS, DATES), head="userId,movieId,rating,date")),
    File("two columns without a header", text(USERS)),
    File("three columns without a header", text(plus(USERS, STARS))),
    File("the same, called pairs", text(plus(USERS, STARS)), {"kind": "pairs"}),
    File("pairs and times without a header", text(plus(USERS, TIMES)), {"kind": "pairs"}),
    File("pairs with unusual names", text(plus(USERS, STARS), head="who,what,how")),
    File("the same, with names typed", text(plus(USERS, STARS), head="who,what,how"), {"left": "who", "right": "what"}),
    File("ratings with decimal commas", text(plus(USERS, ["3,5"] * 30), head="user;item;rating", mark=";")),
    File("the same, thousands or decimals", text(plus(USERS, ["3,500"] * 30), head="user;item;rating", mark=";")),
    File("the delimiter said as Excel does", "sep=;\n" + text(USERS, head="user;artist", mark=";")),
    File("a title above the table", "Export of May\n" + text(USERS, head="user,artist")),
    File("a column for every item", text([["u1", *"0010020010010"]] * 9, head="user," + ",".join(WIDE))),
    File("a missing id", text([*USERS, ["", "a1"]], head="user,item")),
    File("commas and semicolons both fit", text([["a;b", "c"], ["d;e", "f"]])),
    File("a row too short", text([*TRIPLETS, ["Rome", "Oslo"]])),
]  # fmt: skip


def outcome(file: File, folder: Path) -> tuple[str, str]:
    """("understood" or "asks", the words)."""
    path = folder / file.name
    path.write_bytes(file.text.encode())
    try:
        return "understood", str(nk.data.describe(path, **file.options)).replace(f"{folder}/", "")
    except ValueError as error:
        return "asks", str(error).replace(f"{folder}/", "")


def shown(file: File) -> str:
    """The first lines as the page has them."""
    lines = [f"`{line or ' '}`" for line in file.text.replace("\ufeff", "").replace("\t", "→").split("\n")[:2]]
    return " ".join(line for line in lines if line != "` `").replace("|", "\\|").replace("\r", "")


def row(file: File, folder: Path) -> str:
    kind, words = outcome(file, folder)
    options = ", ".join(f"`{name}={value!r}`" for name, value in file.options.items())
    cells = (
        file.about,
        shown(file),
        options,
        "**asks:** " * (kind == "asks") + words.replace("|", "\\|").replace("<", "&lt;"),
    )
    return f"| {' | '.join(cells)} |"


def table() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return "\n".join(row(file, Path(folder)) for file in FILES)


@each("file", FILES)
def test_the_page_says_what_happens(file: File, tmp_path: Path) -> None:
    assert row(file, tmp_path) in PAGE.read_text(encoding="utf-8").split("\n")


if __name__ == "__main__":
    print(table())
