"""Docstrings of public classes name every parameter, and every public name has its page in the reference."""

import inspect
import re
from pathlib import Path

import pytest

import nearkin as nk

API = Path(__file__).parents[1] / "docs" / "api"
ESTIMATORS = [
    *(value for name in nk.__all__ if isinstance(value := getattr(nk, name), type) and hasattr(value, "fit")),
    nk.quantization.AxisQuantizer, nk.quantization.ProductCode, nk.quantization.ProductResidualQuantizer,
    nk.quantization.ResidualQuantizer, nk.quantization.ScalarQuantizer, nk.quantization.IndexingLayer,
]  # fmt: skip
ENTRY = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*) ?: \S", re.MULTILINE)


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_the_section_of_parameters_is_the_signature(kind: type) -> None:
    section = re.search(r"^Parameters\n-{10}\n(.*?)(?=\n\n|\Z)", inspect.getdoc(kind) or "", re.DOTALL | re.MULTILINE)
    assert section, "type Parameters, a line of ten dashes, and `name: text` for each"
    described = [name for names in ENTRY.findall(section[1]) for name in names.split(", ")]
    assert sorted(described) == sorted(set(inspect.signature(kind).parameters))


def test_every_public_name_has_a_page() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in API.glob("*.md"))
    names = [f"nearkin.{name}" for name in nk.__all__ if not inspect.ismodule(getattr(nk, name)) and name[0] != "_"]
    for room in ("orthogonal", "metrics", "linalg"):
        names += [f"nearkin.{room}.{name}" for name in getattr(nk, room).__all__]
    assert not [name for name in names if not re.search(rf"^   {re.escape(name)}$", pages, re.MULTILINE)]
