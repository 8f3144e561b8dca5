"""What the documentation's script adds to the theme's pages: names, levels, and keys for what scrolls."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from tests.web.browser import served, wait_until

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = DOCS / "_static" / "access.js"


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


def test_every_notebook_is_a_page_of_the_site() -> None:
    listed = re.findall(r"^notebooks/(\w+)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(path.stem for path in (DOCS / "notebooks").glob("*.ipynb"))


def test_every_picture_is_on_a_page() -> None:
    texts = [path.read_text(encoding="utf-8") for path in [*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md")]]
    pictures = [path for folder in ("figures", "images") for path in (DOCS / folder).iterdir()]
    assert [path.name for path in pictures if not any(path.name in text for text in texts)] == []


def test_search_lists_the_sentence_around_each_hit(browser: Any, tmp_path: Path) -> None:
    """Built from three small pages: guides come before the reference, notes and signs after headings are left out."""
    for package in ("sphinx", "furo", "myst_nb", "pagefind_bin"):
        pytest.importorskip(package)
    source = tmp_path / "docs"
    for folder in ("notes", "api"):
        (source / folder).mkdir(parents=True)
    for name in ("_static", "_templates"):
        shutil.copytree(DOCS / name, source / name)
    shutil.copy(DOCS / "conf.py", source)
    (source / "index.md").write_text(
        "# First page\n\n```{toctree}\nnotes/a_log\napi/a_name\nguide\n```\n", encoding="utf-8"
    )
    for name, title in (("notes/a_log", "Log"), ("api/a_name", "Name"), ("guide", "Guide")):
        (source / f"{name}.md").write_text(f"# {title}\n\nA share of neighbours, the recall, is kept.\n", "utf-8")
    built = tmp_path / "built"
    make = (DOCS.parent / "Makefile").read_text(encoding="utf-8")
    for words in re.findall(r"^\t\$\(BIN\)/python (-m (?:sphinx|pagefind) .*)$", make, re.MULTILINE):
        command = words.replace("docs docs/_build", f"{source} {built}").replace("docs/_build", str(built))
        subprocess.run([sys.executable, *command.split()], check=True)
    files = Starlette(routes=[Mount("/", StaticFiles(directory=built))])
    with served(files) as address:
        browser.get(f"{address}/search.html?q=recall")
        look = "return [...document.querySelectorAll('.pf-result')].map((one) => one.innerText)"
        found = wait_until(lambda: len(texts := browser.execute_script(look)) == 2 and all(texts) and texts)
    assert [text.split("\n")[0] for text in found] == ["Guide", "Name"]
    assert "A share of neighbours, the recall, is kept" in found[0]
