"""The notebooks of docs/notebooks hold what they print: each is run, and its text compared with a tolerance."""

import json
import runpy
from pathlib import Path

import pytest

from tests.figures import assert_printed

HERE = Path(__file__).parents[1] / "docs" / "notebooks"
NAMES = ("searcher", "recommender", "psychologist")


def text_of(notebook: dict) -> list[str]:
    """What each cell of code printed, and which pictures it drew."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join("".join(out.get("text") or out["data"]["text/plain"]) for out in c["outputs"]) for c in cells]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_prints_what_it_holds(name: str) -> None:
    kept = json.loads((HERE / f"{name}.ipynb").read_text(encoding="utf-8"))
    expected = text_of(kept)
    assert sum(map(bool, expected)) >= 5
    for found, text in zip(text_of(runpy.run_path(str(HERE / "execute.py"))["run"](kept)), expected, strict=True):
        assert_printed(found, text)


def test_what_counts_as_the_same_text() -> None:
    expected = "OPQ {2: 0.6, 4: 0.73} of [3 1 2 7 5]"
    assert_printed("OPQ {2: 0.61, 4: 0.72} of [1 3 2 7 9]", expected)
    for figures, ids in (("2: 0.6, 4: 0.79", "3 1 2 7 5"), ("2: 0.6, 4: 0.73", "4 6 8 9 0"), ("2: 0.6", "3 1 2 7 5")):
        with pytest.raises(AssertionError):
            assert_printed(f"OPQ {{{figures}}} of [{ids}]", expected)
