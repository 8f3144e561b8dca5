"""What the documentation's script adds to the theme's pages: names, levels, and keys for what scrolls."""

from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "docs" / "_static" / "access.js"


def test_what_the_theme_leaves_out_is_added(browser: Any, tmp_path: Path) -> None:
    """A checker found captions without a level, two nameless sidebars, empty headers, and code no key could scroll."""
    page = tmp_path / "page.html"
    page.write_text(
        f"""<!doctype html><script src="{SCRIPT.as_uri()}"></script>
        <p class="caption" role="heading">Guides</p><aside class="sidebar-drawer"></aside>
        <aside class="toc-drawer"></aside><div class="content-icon-container"></div>
        <table><tr><th class="head"><p></p></th><th>name</th></tr></table>
        <pre style="width: 9em; overflow: auto">a line that is longer than its box is wide</pre><pre>short</pre>""",
        encoding="utf-8",
    )
    browser.get(page.as_uri())
    found = browser.execute_script(
        """const all = (what, work) => [...document.querySelectorAll(what)].map(work);
        return [all(".caption", (one) => one.ariaLevel), all("aside, div", (one) => one.ariaLabel),
          all("th", (one) => one.textContent), all("pre", (one) => one.tabIndex)]"""
    )
    assert found == [["2"], ["All pages", "On this page", "Page tools"], ["name"], [0, -1]]
