"""Pages and the parts they are made of."""

from pathlib import Path

import pytest

from nearkin.report import Page, Section
from nearkin.report.page import figures, paragraph, table
from tests.web.browser import opened_browser


def test_a_page_holds_its_sections_in_order(tmp_path: Path) -> None:
    page = Page("Title", made_by="nearkin report idx")
    page.add(Section("First", paragraph("one"))).add(None).add(Section("Second", paragraph("two")))
    page.write(tmp_path / "new" / "page.html")
    text = (tmp_path / "new" / "page.html").read_text()
    places = [text.index(part) for part in ("<h1>Title", "First", ">one", "Second", ">two", "report idx")]
    assert places == sorted(places)
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text


def test_text_is_escaped_everywhere() -> None:
    bad = "<b>&"
    page = Page(bad, made_by=bad)
    page.add(Section(bad, paragraph(bad) + table([bad], [[bad]]) + figures(("<svg/>", bad))))
    assert bad not in page.html()
    assert page.html().count("&lt;b&gt;&amp;") == 8


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


def test_a_table_of_trials_fits_the_page_at_1100_pixels(tmp_path: Path) -> None:
    """Nine columns were 1,179 pixels wide, and the last ones had to be scrolled to."""
    names = ["candidate", "value", "error", "cost", "interval", "bytes", "rows", "won", "lead"]
    cells = [
        "product-residual",
        0.8496,
        0.003162,
        16,
        "0.8437 to 0.8551",
        16,
        4096,
        False,
        "+0.0229 (95 % interval +0.01 to +0.03)",
    ]
    Page("x").add(Section("Trials", table(names, [cells, cells]))).write(tmp_path / "page.html")
    with opened_browser() as browser:
        sizes = {"width": 1100, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)
        browser.get((tmp_path / "page.html").as_uri())
        seen, whole = browser.execute_script(
            "const t = document.querySelector('.scroll'); return [t.clientWidth, t.scrollWidth]"
        )
    assert 500 < whole <= seen < 1100
