"""Phrases of a private manner stay out of pages, and their number in src only falls.

Each entry says what to write instead. `python -m tests.test_english` lists what src has, by package.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "nearkin"
INSTEAD = {  # pattern -> what to write
    r"so many": "the number, or 'many'",
    r"(as|where|what|which) they are(?! \w+ed)": "'unchanged', or name the state",
    r"as it (stands|is)": "'unchanged'",
    r"where there (is|are)": "'if there is', or the condition",
    r"beside": "'next to', 'and', 'compared with'",
    r"stands? for": "'means', 'is'",
    r"anew": "'again'",
    r"of (its|their) own": "'separate', 'own'",
    r"worth (its|the|their|a) (trouble|run|while)": "the gain in numbers",
    r"mend(s|ed|ing)?": "'fix', 'repair'",
    r"(hears?|heard) (of|nothing|from)": "'is called', 'receives'",
    r"learn(s|ed|t)? by heart": "'overfit'",
    r"l(ead|eads|ed) away": "'diverges'",
    r"(says?|tells?) nothing": "'does not show', 'is unreliable'",
    r"(says|tells|hears)": "'prints', 'returns', 'lists', 'explains': things do not speak",
    r"what (stays|ran)|on purpose": "the term of the field",
}
BANNED = {instead: re.compile(rf"\b{pattern}\b", re.IGNORECASE) for pattern, instead in INSTEAD.items()}
ANY = re.compile("|".join(rf"\b{pattern}\b" for pattern in INSTEAD))  # of small letters: most texts have none
APART = {"_build", "notes"}  # notes are a log
MOST = {"orthogonal": 1}  # phrases in each package of src: lower a number when you remove some, never raise it


def found(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, phrase and what to write, of every banned phrase."""
    for instead, pattern in BANNED.items() if ANY.search(text.lower()) else ():
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, match[0], instead


def pages() -> Iterator[Path]:
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"))
    yield from sorted(path for path in (ROOT / "docs").rglob("*.md") if not APART & set(path.parts))
    yield from sorted([*(ROOT / "examples").glob("*.py"), *(ROOT / "docs" / "notebooks").glob("*.ipynb")])


def package(path: Path) -> str:
    parts = path.relative_to(SRC).parts
    return parts[0] if len(parts) > 1 else "top"


def counts() -> Counter[str]:
    return Counter(package(path) for path in SRC.rglob("*.py") for _ in found(path.read_text(encoding="utf-8")))


def test_pages_and_src_are_in_plain_english() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} {phrase!r}: write {instead}"
        for path in pages()
        for line, phrase, instead in found(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)
    now = counts()
    more = {name: (number, MOST.get(name, 0)) for name, number in now.items() if number > MOST.get(name, 0)}
    assert not more, f"phrases in src, now and allowed; lower tests/test_english.py when you remove some: {more}"


if __name__ == "__main__":
    for file in sorted(SRC.rglob("*.py")):
        for line, phrase, _ in found(file.read_text(encoding="utf-8")):
            print(f"{file.relative_to(ROOT)}:{line} {phrase}")
    print(dict(sorted(counts().items())))
