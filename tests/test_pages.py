"""No figure of a page is typed by hand: the tables between the marks are those of benchmarks/results."""

from pathlib import Path

import pytest

from benchmarks.pages import markdown, pages, rendered
from benchmarks.table import RESULTS, Table


@pytest.mark.parametrize("page", [p for p in pages() if "<!-- bench:" in p.read_text(encoding="utf-8")], ids=str)
def test_tables_are_those_of_the_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert rendered(text, RESULTS) == text, f"{page.name} is out of date: python -m benchmarks --pages"


def test_a_changed_figure_is_noticed(tmp_path: Path) -> None:
    page = "a\n<!-- bench: headlines -->\n| typed | by | hand |\n<!-- end -->\nb\n"
    assert "by | hand" not in rendered(page, RESULTS)
    assert rendered(page, tmp_path).startswith(
        "a\n<!-- bench: headlines -->\n| you have |"
    )  # nothing measured: no rows


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    table = Table("t", "t", ["x", "y"], "none", rows=[["a|b", "1"]])
    assert markdown(table).splitlines()[-1] == "| a\\|b | 1 |"
