"""No figure of a page is typed by hand: the tables between the marks are those of benchmarks/results."""

from pathlib import Path

from benchmarks.pages import ROOT, markdown, pages, rendered
from benchmarks.subjects import SUBJECTS
from benchmarks.table import RESULTS, Results, Table

REPORT_ONLY = {"end-to-end-ml100k", "end-to-end-gowalla"}  # short forms of tables that the page has


def test_tables_are_those_of_the_results() -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in pages()}
    marked = {page: text for page, text in texts.items() if "<!-- bench:" in text}
    border = "\n=== the next page ===\n"
    found = rendered(border.join(marked.values()), RESULTS).split(border)
    late = [page.name for page, new in zip(marked, found, strict=True) if new != marked[page]]
    assert not late, f"{late} are out of date: python -m benchmarks --pages"
    assert len(marked) > 10


def test_a_changed_figure_is_noticed(tmp_path: Path) -> None:
    page = "a\n<!-- bench: headlines -->\n| typed | by | hand |\n<!-- end -->\nb\n"
    assert "by | hand" not in rendered(page, RESULTS)
    assert rendered(page, tmp_path).startswith(
        "a\n<!-- bench: headlines -->\n| you have |"
    )  # nothing measured: no rows


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    table = Table("t", "t", ["x", "y"], "none", rows=[["a|b", "1"]])
    assert markdown(table).splitlines()[-1] == "| a\\|b | 1 |"


def test_rows_are_selected_by_a_regular_expression() -> None:
    table = Table("t", "t", ["x", "y"], "none", rows=[["a", "1"], ["b", "2"], ["c", "1"]])
    assert markdown(table, r"\| 1 \|").splitlines()[2:] == ["| a | 1 |", "| c | 1 |"]


def test_the_benchmark_page_has_every_table() -> None:
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    subjects = [subject for name, subject in SUBJECTS.items() if name not in ("gpu", "papers")]
    names = {table.name for subject in subjects for table in subject.tables(Results(RESULTS))} - REPORT_ONLY
    assert not [name for name in names if f"<!-- bench: {name} -->" not in text]


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
