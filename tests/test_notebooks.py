"""The notebooks of docs/notebooks hold what they print: each is run again, and its text compared."""

import json
import runpy
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1] / "docs" / "notebooks"
NAMES = ("searcher", "recommender", "psychologist")


def text_of(notebook: dict) -> list[list[str]]:
    """What each cell of code printed, and which pictures it drew."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [[str(out.get("text") or out["data"]["text/plain"]) for out in cell["outputs"]] for cell in cells]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_prints_what_it_holds(name: str) -> None:
    kept = json.loads((HERE / f"{name}.ipynb").read_text(encoding="utf-8"))
    expected = text_of(kept)
    assert sum(map(len, expected)) >= 5
    assert text_of(runpy.run_path(str(HERE / "execute.py"))["run"](kept)) == expected
