"""Tables in README.md and docs/, written from the JSON between two comments, so that no figure is typed by hand.

<!-- bench: two-tower-gowalla -->
(the table)
<!-- end -->

Every table is whole in `docs/tables/NAME.csv`. A page selects rows by a regular expression that is searched in each
row's Markdown, and columns by their places, from 0:

<!-- bench: two-tower-gowalla rows=als|popularity columns=0,2,3 -->
(the first, third and fourth column of the header and of the rows that match)
<!-- end -->

A figure in a sentence stands there as plain text. `docs/figures.toml` has its page, the words about it and its source.

Figures of single runs, which no benchmark repeats, are in `results/once.json`.
"""

import csv
import io
import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

from benchmarks.headlines import headlines
from benchmarks.subjects import SUBJECTS
from benchmarks.table import Results, Table

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "docs" / "tables"
_BLOCK = re.compile(r"(<!-- bench: ([\w-]+)(?: rows=(.*?))?(?: columns=([\d,]+))? -->\n).*?(<!-- end -->)", re.DOTALL)

KEYS = tomllib.loads((ROOT / "docs" / "figures.toml").read_text(encoding="utf-8"))


def pages() -> dict[str, str]:
    """The pages that may hold tables and figures: path below the root -> text."""
    found = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in found}


@cache
def tables_of(folder: Path) -> dict[str, Table]:
    """Every table by its name."""
    results = Results(folder)
    tables = {table.name: table for subject in SUBJECTS.values() for table in subject.tables(results)}
    columns = ["fact", "figure", "other", "data and setting", "on a page since"]
    once = Table(
        "once", "Single runs", columns, "once", rows=[list(map(str, row)) for row in results.read("once") or []]
    )
    return tables | {"headlines": headlines(results), "once": once}


def rendered(page: str, text: str, folder: Path) -> str:
    """The text of a page with every marked table and every figure of `docs/figures.toml` as the JSON in `folder` has
    it; KeyError for a table that is not there."""
    tables = tables_of(folder)

    def block(match: re.Match[str]) -> str:
        places = [int(place) for place in match[4].split(",")] if match[4] else None
        return f"{match[1]}{markdown(tables[match[2]], match[3] or '', places)}\n{match[5]}"

    return with_figures(_BLOCK.sub(block, text), KEYS.get(page, {}), lambda key: figure_of(tables, key))


def with_figures(text: str, keys: dict[str, list[str]], figure: Callable[[str], str]) -> str:
    """The text with `figure(key)` for each {} of its sentences; ValueError for one that it does not have once."""
    for words, sources in keys.items():
        pattern = r"\s+".join(map(re.escape, words.split())).replace(r"\{\}", r"([\d.,]*\d)")
        places = list(re.finditer(pattern, text))
        if len(places) != 1 or places[0].re.groups != len(sources):
            raise ValueError(
                f"docs/figures.toml: {words!r} with {len(sources)} figures stands {len(places)} times on its page; "
                "write there the words that the page has now, once, with {} for each figure"
            )
        for number in range(len(sources), 0, -1):
            start, end = places[0].span(number)
            text = text[:start] + figure(sources[number - 1]) + text[end:]
    return text


def figure_of(tables: dict[str, Table], key: str) -> str:
    """The number that a key of `docs/figures.toml` names; KeyError where no row or several have its cells."""
    name, cells, column, *digits = key.split(":")
    column, _, number = column.partition("#")
    table = tables[name]
    found = [row for row in table.rows if set(cells.split(";")) <= set(row)]
    if len(found) != 1 or column not in table.columns:
        raise KeyError(f"{name} has {len(found)} rows with {cells!r}; columns are {', '.join(table.columns)}")
    value = re.findall(r"\d[\d,]*(?:\.\d+)?", found[0][table.columns.index(column)])[int(number or 1) - 1]
    return f"{float(value.replace(',', '')):,.{digits[0]}f}" if digits else value


def as_csv(table: Table) -> str:
    """A whole table as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.columns, *table.rows])
    return text.getvalue()


def csv_tables(folder: Path) -> dict[str, str]:
    """The files in docs/tables, name to text; tables of papers stand on their pages."""
    apart = {table.name for table in SUBJECTS["papers"].tables(Results(folder))} | {"headlines"}
    return {f"{name}.csv": as_csv(table) for name, table in tables_of(folder).items() if name not in apart}


def write_pages(folder: Path) -> None:
    """Write the tables of all pages and docs/tables."""
    TABLES.mkdir(exist_ok=True)
    files = csv_tables(folder)
    for gone in {path.name for path in TABLES.iterdir()} - files.keys():
        (TABLES / gone).unlink()
    texts = {TABLES / name: text for name, text in files.items()}
    texts |= {ROOT / name: rendered(name, text, folder) for name, text in pages().items()}
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


def write_report(folder: Path) -> Path:
    """Write FOLDER/report.md: the tables of all that a pass has measured."""
    tables = (table for subject in SUBJECTS.values() for table in subject.tables(Results(folder)))
    path = folder / "report.md"
    path.write_text("\n\n".join(f"## {table.title}\n\n{markdown(table)}" for table in tables), encoding="utf-8")
    return path


def markdown(table: Table, wanted: str = "", places: list[int] | None = None) -> str:
    """A table as Markdown, or its rows as a list: the rows that match the regular expression `wanted`, and the columns
    at `places`, by default all."""
    if table.listed:
        return "\n".join(f"- **{name}**: {' '.join(cells)}" for name, *cells in table.rows)
    found = [row for row in table.rows if re.search(wanted, _line(row))]
    shown = range(len(table.columns)) if places is None else places
    lines = [table.columns, ["---"] * len(table.columns), *found]
    return "\n".join(_line([line[place] for place in shown]) for line in lines)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
