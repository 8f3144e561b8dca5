"""Tables in README.md and docs/, written from the JSON between two comments, so that no figure is typed by hand.

<!-- bench: two-tower-gowalla -->
(the table)
<!-- end -->

`docs/benchmarks.md` has every table whole. A guide selects rows by a regular expression that is searched in each row's
Markdown:

<!-- bench: two-tower-gowalla rows=als|popularity -->
(the header and the rows that match)
<!-- end -->
"""

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.headlines import headlines
from benchmarks.subjects import SUBJECTS
from benchmarks.table import Results, Table

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"(<!-- bench: ([\w-]+)(?: rows=(.*?))? -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> Iterator[Path]:
    """The pages that may hold tables."""
    yield ROOT / "README.md"
    yield from sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)


def rendered(text: str, folder: Path) -> str:
    """The text with every marked table as the JSON in `folder` has it; KeyError for a table that is not there."""
    results = Results(folder)
    tables = {table.name: table for subject in SUBJECTS.values() for table in subject.tables(results)}
    tables["headlines"] = headlines(results)
    return _BLOCK.sub(lambda match: f"{match[1]}{markdown(tables[match[2]], match[3] or '')}\n{match[4]}", text)


def write_pages(folder: Path) -> None:
    """Write the tables of all pages."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = rendered(text, folder)
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(f"wrote {page.relative_to(ROOT)}")


def markdown(table: Table, wanted: str = "") -> str:
    """A table as Markdown, or its rows as a list, with the rows that match the regular expression `wanted`."""
    if table.listed:
        return "\n".join(f"- **{name}**: {' '.join(cells)}" for name, *cells in table.rows)
    head, ruler, *rows = [
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |"
        for line in (table.columns, ["---"] * len(table.columns), *table.rows)
    ]
    return "\n".join([head, ruler, *(row for row in rows if re.search(wanted, row))])
