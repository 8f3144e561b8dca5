"""No figure of a page is typed by hand: the tables between the marks are those of benchmarks/results."""

import re
from pathlib import Path

import pytest

from benchmarks.pages import ROOT, TABLES, csv_tables, figure_of, markdown, pages, rendered
from benchmarks.stored import read_json, write_json
from benchmarks.table import RESULTS, Table


def test_tables_are_those_of_the_results() -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in pages()}
    marked = {page: text for page, text in texts.items() if "<!-- bench:" in text}
    border = "\n=== the next page ===\n"
    found = rendered(border.join(marked.values()), RESULTS).split(border)
    late = [page.name for page, new in zip(marked, found, strict=True) if new != marked[page]]
    assert not late, f"{late} are out of date: python -m benchmarks --pages"
    assert len(marked) > 10


DATA = re.compile(
    "SIFT|GIST|gowalla|ml100k|MovieLens|MNIST|WordNet|sentence|word vectors|vocabulary|digits|pixels|objects",
    re.IGNORECASE,
)
TYPED = re.compile(r"(?<![\w.])\d*\.\d+(?!\w|\.\d|<!--)")


def typed(text: str) -> list[str]:
    """The sentences that have a data set and a decimal figure, which no mark has written."""
    text = re.sub(
        r"^(?: {4}[^\n]*|```.*?^```)|<!-- bench: .*?<!-- end -->|`[^`]*`|\]\([^)]*\)", "", text, flags=re.DOTALL | re.M
    )
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=[-|*#])", text))
    found = (one for part in parts for one in re.split(r"(?<=[.;:!?])\s+(?=[A-Z*])", part))
    return [one for one in found if DATA.search(one) and TYPED.search(re.sub("<!--.*?-->", "<!--", one))]


def test_figures_in_sentences_are_those_of_the_results() -> None:
    assert typed("On SIFT it has .61. So\ndo GIST (.62<!--a:b:c-->) and 0.7 MNIST; words .3") == [
        *("On SIFT it has .61.", "So do GIST (.62<!--a:b:c-->) and 0.7 MNIST; words .3")
    ]
    guides = [page for page in pages() if "notes" not in page.parts and not page.name.startswith("papers")]
    guides = [page for page in guides if "papers_figures" not in page.parts]
    wrong = {page.name: found for page in guides if (found := typed(page.read_text(encoding="utf-8")))}
    assert not wrong, f"mark the figure as benchmarks/pages.py explains: {wrong}"
    table = Table("t", "t", ["data", "a b", "c"], "none", rows=[["x y", "0.55 (1,234.5)", "9.3%"], ["x y", "2", "1"]])
    assert figure_of(table, "x_y;9.3%", "a_b", digits="1") == "0.6"
    assert figure_of(table, "x_y;9.3%", "a_b", "2") == "1,234.5"
    with pytest.raises(KeyError, match="t has 2 rows with 'x_y'"):
        figure_of(table, "x_y", "c")


def test_a_changed_figure_is_noticed(tmp_path: Path) -> None:
    page = "a\n<!-- bench: headlines -->\n| typed | by | hand |\n<!-- end -->\nb\n"
    assert "by | hand" not in rendered(page, RESULTS)
    once = "recall 7<!--once:rescoring:figure--> by"
    assert rendered(once, RESULTS) == once.replace("7", "0.749", 1)
    assert rendered(page, tmp_path).startswith(
        "a\n<!-- bench: headlines -->\n| data and measure |"
    )  # nothing measured: no rows


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    table = Table("t", "t", ["x", "y"], "none", rows=[["a|b", "1"]])
    assert markdown(table).splitlines()[-1] == "| a\\|b | 1 |"


def test_rows_are_selected_by_a_regular_expression_and_columns_by_place() -> None:
    table = Table("t", "t", ["x", "y"], "none", rows=[["a", "1"], ["b", "2"], ["c", "1"]])
    assert markdown(table, r"\| 1 \|").splitlines()[2:] == ["| a | 1 |", "| c | 1 |"]
    assert markdown(table, r"\| 2 \|", [1]).splitlines() == ["| y |", "| --- |", "| 2 |"]


def test_every_table_is_a_file_that_the_benchmark_page_links() -> None:
    files = csv_tables(RESULTS)
    late = [name for name, text in files.items() if not (TABLES / name).exists() or (TABLES / name).read_text() != text]
    assert not late, f"{late} are out of date: python -m benchmarks --pages"
    assert {path.name for path in TABLES.iterdir()} == files.keys()
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(tables/([\w-]+\.csv)\)", page)) == files.keys()
    assert len(page.split()) <= 3_500


def test_no_table_stands_in_the_notes() -> None:
    notes = [page for page in pages() if "notes" in page.parts]
    assert notes
    assert not [page.name for page in notes if "<!-- bench:" in page.read_text(encoding="utf-8")]


def test_guides_are_short() -> None:
    docs = ROOT / "docs"
    apart = {docs / "benchmarks.md", docs / "papers.md", docs / "papers_figures.md"}
    guides = {*docs.glob("*.md"), *docs.glob("tutorials/*.md")} - apart
    words = {page.relative_to(docs).as_posix(): len(page.read_text(encoding="utf-8").split()) for page in guides}
    assert max(words.values()) <= 1_500, max(words, key=lambda name: words[name])
    assert sum(words.values()) < 16_000, words


def test_results_are_kept_to_six_figures(tmp_path: Path) -> None:
    rows = [{"a": 1 / 3, "b": [1, None, "x"]}, {"a": float("inf"), "b": {"columns": 2}}]
    write_json(tmp_path / "r.json", {"results": rows, "one": [{"a": 2}], "none": []})
    found = read_json(tmp_path / "r.json")
    assert found == {"results": [{**rows[0], "a": 0.333333}, rows[1]], "one": [{"a": 2}], "none": []}
