"""The reference: every public name has a page, and every name of a page has numpydoc sections that fit its code.

Parameters are those of the signature. A function that returns something has Returns, a class Attributes, each of which
its module knows, and all have Examples; tests/test_doctests.py runs them. Raises names errors other than ValueError,
TypeError and those of files, whose messages say what to type.
"""

import inspect
import re
import sys
from pathlib import Path

import nearkin as nk
from tests.covering import each
from tests.test_docs import resolved

API = Path(__file__).parents[1] / "docs" / "api"
PAGES = "\n".join(page.read_text(encoding="utf-8") for page in API.glob("*.md"))
NAMES = re.findall(r"^   nearkin\.([\w.]+)$", PAGES, re.MULTILINE)
ENTRY = re.compile(r"^([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*) ?: \S", re.MULTILINE)


def sections(value: object) -> dict[str, list[str]]:
    """The names of the entries of each section of a docstring."""
    parts = re.split(r"^([A-Z]\w+)\n-{3,}\n", inspect.getdoc(value) or "", flags=re.MULTILINE)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    return {title: [n for names in ENTRY.findall(body) for n in names.split(", ")] for title, body in bodies.items()}


def needed(value: object) -> set[str]:
    """The sections that a class or function must have."""
    wanted = {"Parameters"} if parameters(value) else set[str]()
    if getattr(value, "__module__", "").startswith("nearkin.jobs"):  # commands: examples are lines of a shell
        return wanted
    wanted |= {"Examples"}
    if isinstance(value, type):
        torchs = any(base.__module__.startswith("torch") for base in value.__mro__)  # whose own attributes they have
        return wanted | (set() if torchs else {"Attributes"})
    returned = inspect.get_annotations(value).get("return")
    return wanted | ({"Returns"} if returned not in (None, "None") else set())


def parameters(value: object) -> list[str]:
    return sorted(set(inspect.signature(value).parameters))  # pyright: ignore[reportArgumentType]


@each("name", NAMES)
def test_the_sections_of_a_docstring_fit_the_code(name: str) -> None:
    value = resolved(name)
    found = sections(value)
    assert needed(value) <= found.keys(), "type the section's name, a line of dashes, and `name: text` for each entry"
    assert sorted(found.get("Parameters", [])) == parameters(value)
    homes = [kind for kind in getattr(value, "__mro__", ()) if kind.__module__.startswith("nearkin")]
    code = "".join(Path(str(sys.modules[kind.__module__].__file__)).read_text(encoding="utf-8") for kind in homes)
    code = re.sub(r'""".*?"""', "", code, flags=re.DOTALL)
    assert not [name for name in found.get("Attributes", []) if not re.search(rf"\b{name}\b", code)]


def test_every_public_name_has_a_page() -> None:
    names = [f"nearkin.{name}" for name in nk.__all__ if not inspect.ismodule(getattr(nk, name)) and name[0] != "_"]
    for room in ("orthogonal", "metrics", "linalg"):
        names += [f"nearkin.{room}.{name}" for name in getattr(nk, room).__all__]
    assert not [name for name in names if not re.search(rf"^   {re.escape(name)}$", PAGES, re.MULTILINE)]
