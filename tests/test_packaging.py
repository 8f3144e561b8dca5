"""What a package index shows: the version from one place, and a page without links into the repository."""

import re
import tomllib
from pathlib import Path

import nearkin

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_stands_in_one_place() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/nearkin/__init__.py"
    assert f"\nversion: {nearkin.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_page_of_a_package_index_has_no_relative_link() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    relative = re.compile(r"\]\((?!https?:)[^)]*\)|(?:src|href)=\"(?!https?:)")
    assert relative.search(page)
    for rule in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(rule["pattern"], rule["replacement"], page)
    assert relative.findall(page) == []
