"""Pages and the parts they are made of."""

from pathlib import Path

import pytest

from nearkin.report import Page, Section
from nearkin.report.page import figures, paragraph, table


def test_a_page_holds_its_sections_in_order(tmp_path: Path) -> None:
    page = Page("Title", lead="Why.", made_by="nearkin report idx")
    page.add(Section("First", paragraph("one"))).add(None).add(Section("Second", paragraph("two"), lead="more"))
    page.write(tmp_path / "new" / "page.html")
    text = (tmp_path / "new" / "page.html").read_text()
    places = [
        text.index(part) for part in ("<h1>Title", "Why.", "First", ">one", "Second", "more", ">two", "report idx")
    ]
    assert places == sorted(places)
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text


def test_text_is_escaped_everywhere() -> None:
    bad = "<b>&"
    page = Page(bad, eyebrow=bad, lead=bad, made_by=bad)
    page.add(Section(bad, paragraph(bad) + table([bad], [[bad]]) + figures(("<svg/>", bad)), lead=bad))
    assert bad not in page.html()
    assert page.html().count("&lt;b&gt;&amp;") == 11


def test_numbers_are_set_right_and_text_left() -> None:
    made = table(["name", "count", "part"], [["x", 12345, 0.123456], ["y", None, True]])
    assert '<th scope="col" class="text">name' in made
    assert '<th scope="col">count' in made
    for shown in ("12,345", "0.1235", "–", "yes"):
        assert f"<td>{shown}</td>" in made


def test_writing_over_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        Page("x").write(tmp_path)


def test_what_scrolls_on_a_phone_is_scrolled_by_keys_too() -> None:
    """A checker of accessibility named wide figures and tables: no key reached what a phone cuts off."""
    made = figures(('<svg class="wide" viewBox="0 0 1 1"/>', "wide"), ("<svg/>", "narrow"))
    assert made.count("<figure") == 2
    assert made.count('<figure tabindex="0"><svg class="wide"') == made.count("tabindex") == 1
    assert '<div class="scroll" tabindex="0">' in table(["a"], [[1]])
