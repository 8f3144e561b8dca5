"""Phrases of a private manner stay out of pages, and their number in src only falls.

Each entry says what to write instead. `python -m tests.test_english` lists what src has, by package.
"""

import ast
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
APART = {"_build", "notes"}  # notes are a log
MOST = {"orthogonal": 1}  # phrases in each package of src: lower a number when you remove some, never raise it


def found(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, phrase and what to write, of every banned phrase."""
    for instead, pattern in BANNED.items():
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, match[0], instead


def pages() -> Iterator[Path]:
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"))
    yield from sorted(path for path in (ROOT / "docs").rglob("*.md") if not APART & set(path.parts))
    yield from sorted([*(ROOT / "examples").glob("*.py"), *(ROOT / "docs" / "notebooks").glob("*.ipynb")])


NOUNS = (
    *(
        "cells",
        "columns",
        "comparisons",
        "entries",
        "ids",
        "items",
        "lines",
        "objects",
        "pairs",
        "queries",
        "questions",
    ),
    *("rows", "values"),
)
COUNTED = re.compile(rf" (?:(?:different|judged|known|list|missing|negative|new|seen) )?(?:{'|'.join(NOUNS)})\b")
FORMS = (
    "of ",
    "the ",
    "than ",
    "all ",
    "n_samples=",
    "Index(",
)  # before a number of many, and before forms that others fix


def uncounted(text: str) -> Iterator[tuple[int, str]]:
    """Line and words of every "{n} rows" in an f-string: "1 rows" where n is 1. `counted(n, "row")` has both."""
    for node in ast.walk(ast.parse(text)):
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for before, number, after in zip([None, *parts], parts, parts[1:], strict=False):
            if not isinstance(number, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            found, named = COUNTED.match(str(after.value)), ast.unparse(number.value)
            said = str(before.value) if isinstance(before, ast.Constant) else ""
            rate = number.format_spec is not None and ast.unparse(number.format_spec).endswith("f'")
            if (
                found
                and not rate
                and not named.startswith("counted(")
                and not named.isupper()
                and not said.endswith(FORMS)
            ):
                yield node.lineno, f"{{{named}}}{found[0]}"


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


def test_numbers_agree_with_what_they_count() -> None:
    """ "1 ids", "1 rows are": some 120 errors and notes read so."""
    assert list(uncounted("f\"{n} rows and {counted(n, 'id')}, {len(x):,} missing ids\"")) == [
        *((1, "{n} rows"), (1, "{len(x)} missing ids"))
    ]
    wrong = [
        f"{path.relative_to(ROOT)}:{line} {words!r}: write counted(n, noun) of nearkin/_fields.py"
        for path in sorted(SRC.rglob("*.py"))
        for line, words in uncounted(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    for file in sorted(SRC.rglob("*.py")):
        for line, phrase, _ in found(file.read_text(encoding="utf-8")):
            print(f"{file.relative_to(ROOT)}:{line} {phrase}")
    print(dict(sorted(counts().items())))
