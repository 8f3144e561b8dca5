"""No figure of a page is typed by hand: the tables between the marks are those of benchmarks/results."""

import re
from pathlib import Path

import pytest

from benchmarks.pages import KEYS, ROOT, TABLES, csv_tables, figure_of, markdown, pages, rendered, with_figures
from benchmarks.stored import read_json, write_json
from benchmarks.table import RESULTS, Table


def test_tables_and_figures_are_those_of_the_results() -> None:
    texts = pages()
    late = [name for name, text in texts.items() if rendered(name, text, RESULTS) != text]
    assert not late, f"{late} are out of date: python -m benchmarks --pages"
    assert sum("<!-- bench:" in text for text in texts.values()) > 10
    assert set(KEYS) <= set(texts)


DATA = re.compile(
    "SIFT|GIST|gowalla|ml100k|MovieLens|MNIST|WordNet|sentence|word vectors|vocabulary|digits|pixels|objects",
    re.IGNORECASE,
)
TYPED = re.compile(r"(?<![\w.])\d*\.\d+(?!\w|\.\d)")


def typed(text: str) -> list[str]:
    """The sentences that have a data set and a decimal figure, which no key has written."""
    text = re.sub(
        r"^(?: {4}[^\n]*|```.*?^```)|<!-- bench: .*?<!-- end -->|`[^`]*`|\]\([^)]*\)", "", text, flags=re.DOTALL | re.M
    )
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=[-|*#])", text))
    found = (one for part in parts for one in re.split(r"(?<=[.;:!?])\s+(?=[A-Z*])", part))
    return [one for one in found if DATA.search(one) and TYPED.search(one)]


def test_figures_in_sentences_have_a_key() -> None:
    assert typed("On SIFT it has .61. So\ndo GIST (#) and 0.7 MNIST; words .3") == [
        *("On SIFT it has .61.", "So do GIST (#) and 0.7 MNIST; words .3")
    ]
    guides = {name: text for name, text in pages().items() if not re.search("/notes/|/papers", name)}
    keyed = {name: with_figures(text, KEYS.get(name, {}), lambda _: "#") for name, text in guides.items()}
    wrong = {name: found for name, text in keyed.items() if (found := typed(text))}
    assert not wrong, f"give each figure a key in docs/figures.toml: {wrong}"


def test_a_key_names_one_number_of_one_row() -> None:
    rows = [["x y", "0.55 (1,234.5)", "9.3%"], ["x y", "2", "1"]]
    tables = {"t": Table("t", "t", ["data", "a b", "c"], "none", rows=rows)}
    assert figure_of(tables, "t:x y;9.3%:a b:1") == "0.6"
    assert figure_of(tables, "t:x y;9.3%:a b#2") == "1,234.5"
    with pytest.raises(KeyError, match="t has 2 rows with 'x y'"):
        figure_of(tables, "t:x y:c")


def test_an_edit_that_loses_a_key_is_noticed() -> None:
    keys = {"it has {} to {} of": ["a", "b"]}
    assert with_figures("so it has .5\nto 1,000.75 of 3", keys, str.upper) == "so it has A\nto B of 3"
    for edited in ("it holds .5 to .6 of", "it has .5 to .6 of what it has .5 to .6 of"):
        with pytest.raises(ValueError, match=re.escape("docs/figures.toml: 'it has {} to {} of'")):
            with_figures(edited, keys, str.upper)


def test_a_changed_figure_is_noticed(tmp_path: Path) -> None:
    page = "a\n<!-- bench: headlines -->\n| typed | by | hand |\n<!-- end -->\nb\n"
    assert "by | hand" not in rendered("", page, RESULTS)
    assert rendered("", page, tmp_path).startswith(
        "a\n<!-- bench: headlines -->\n| data and measure |"
    )  # nothing measured: no rows


def test_rows_are_selected_by_a_regular_expression_and_columns_by_place() -> None:
    table = Table("t", "t", ["x", "y"], "none", rows=[["a|b", "1"], ["b", "2"], ["c", "1"]])
    assert markdown(table, r"\| 1 \|").splitlines()[2:] == ["| a\\|b | 1 |", "| c | 1 |"]
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
    notes = {name: text for name, text in pages().items() if "/notes/" in name}
    assert notes
    assert not [name for name, text in notes.items() if "<!-- bench:" in text]


def test_guides_notes_and_results_are_short() -> None:
    docs = ROOT / "docs"
    apart = {docs / "benchmarks.md", docs / "papers.md", docs / "papers_figures.md"}
    guides = {*docs.glob("*.md"), *docs.glob("tutorials/*.md")} - apart
    words = {page.relative_to(docs).as_posix(): len(page.read_text(encoding="utf-8").split()) for page in guides}
    assert max(words.values()) <= 1_500, max(words, key=lambda name: words[name])
    assert sum(words.values()) < 16_000, words
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in docs.glob("notes/*.md")) <= 8_000
    assert sum(file.stat().st_size for file in RESULTS.glob("*.json")) <= 1_200_000


def test_results_are_kept_to_six_figures(tmp_path: Path) -> None:
    rows = [{"a": 1 / 3, "b": [1, None, "x"]}, {"a": float("inf"), "b": {"columns": 2}}]
    write_json(tmp_path / "r.json", {"results": rows, "one": [{"a": 2}], "none": []})
    found = read_json(tmp_path / "r.json")
    assert found == {"results": [{**rows[0], "a": 0.333333}, rows[1]], "one": [{"a": 2}], "none": []}
