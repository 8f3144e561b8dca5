"""The field's words (docs/index.md) in what a user reads, and no private phrases; as a program it lists the others.

That is: help of commands, every printed text and error of src, texts of the pages, docstrings of public names, README
and guides. `docs/notes` is a log of older states.
"""

import ast
import importlib
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from inspect import isfunction
from pathlib import Path
from types import ModuleType

from nearkin.cli.app import app
from tests.test_architecture import FILES, nodes

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "nearkin"
INSTEAD = {  # pattern -> the field's word
    r"(?<![{.])rows?": "vectors, items, users, queries",
    r"(of|unit|one|same|equal|other|unequal) lengths?": "norm",
    r"(un)?learn(s|ed|t|ing)?": "train",
    r"race": "model selection, comparison",
    r"(by|of|from) (the |its )?codes? alone|codes alone|(rank(s|ed)?|ranking) .{0,20}again": "without / with rescoring",
    r"keeps? (of|more)|neighbours kept|that it keeps": "recall@10",
    r"coarse (cells|lists)|--coarse|cells to": "inverted lists",
    r"lefts|rights|(left|right) (rows|ones)": "users, items",
    r"judg(e|es|ed|ing)": "evaluate",
    r"answers? (to|of) (a |the )?(search|quer)\w*|pairs are answers": "results",
}
PHRASES = {  # of a private manner
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
BANNED = {instead: re.compile(rf"\b({pattern})\b", re.IGNORECASE) for pattern, instead in (INSTEAD | PHRASES).items()}
ANY = re.compile("|".join(rf"\b({pattern})\b" for pattern in INSTEAD | PHRASES), re.IGNORECASE)  # most texts have none
ALLOWED = re.compile(
    r"""Learn\ what\ is\ near | scikit-learn | learning\ rates? | (machine|deep)\ learning  # names
    | [Jj]udged(\ (quer\w+|ids|vectors|by\ people|\{)) | [Rr]elevance\ judgements  # by people, in qrels
    | (a|one|each|every|that)\ row | rows?\ (of|in)\ (a|the|that|each)?\ ?(tables?|files?|answers|matri\w+|grid)
    | rows?\ (numbers?|\{\}\ of\ ids|of\ ids|i\b|as\ given|and\ columns|has|holds|must|\(.{3,12}\))
    | rows\ (of\ smaller\ weight|without\ an\ answer)
    | ([Rr]ows\ of\ 0\ and\ 1|\(.{0,12}\)\ rows|orthonormal\ rows|comparisons\ row|row-wise|its\ rows\ are|-\ rows:)""",
    re.VERBOSE,  # the last four lines: of tables and matrices
)
ROWS = {  # rooms and pages whose rows are no vectors -> what they are of
    "data records _check _pairs _fields reading benchmarks": "of tables and files",
    "linalg orthogonal solvers statistics all_pairs two_tower": "of matrices",
}
OF_ROWS = {name for names in ROWS for name in names.split()}


def packages() -> Iterator[ModuleType]:
    yield from (
        importlib.import_module(f"nearkin.{path.parent.name}") for path in sorted(SRC.glob("[a-z]*/__init__.py"))
    )


def public() -> dict[str, object]:
    """Classes and functions that packages offer, and the classes' public methods, by the names of where they stand."""
    found = dict[str, object]()
    for package in packages():
        names = getattr(package, "__all__", None) or [name for name in vars(package) if name[0].isalpha()]
        for name in names:
            with suppress(ImportError):  # of a kit that is not installed
                value = getattr(package, name)
                if (isinstance(value, type) or isfunction(value)) and value.__module__.startswith("nearkin"):
                    found[f"{value.__module__}.{value.__qualname__}"] = value
    for value in [value for value in found.values() if isinstance(value, type)]:
        for home in (home for home in value.__mro__ if home.__module__.startswith("nearkin")):
            for name, method in vars(home).items():
                method = method.fget if isinstance(method, property) else getattr(method, "__func__", method)
                if name[0] != "_" and isfunction(method):
                    found[f"{home.__module__}.{home.__qualname__}.{name}"] = method
    return found


def strings(path: Path) -> Iterator[tuple[str, str]]:
    """Every text with a blank of a module, but for docstrings, with {} in place of values; nouns of `counted`."""
    apart = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    for node in nodes(path):
        text = ""
        if isinstance(node, ast.JoinedStr):
            apart |= {id(part) for part in node.values}
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and id(node) not in apart:
            text = str(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "counted":
            text = ast.unparse(node.args[1]) + " "
        if " " in text:
            yield f"{path.relative_to(SRC)}:{getattr(node, 'lineno', 0)}", text


def texts() -> Iterator[tuple[str, str]]:
    yield "app.py", str(app.registered_callback and app.registered_callback.callback.__doc__)
    for path in FILES:
        yield from strings(path)
    for path in sorted([*SRC.rglob("*.js"), *SRC.rglob("*.html"), *SRC.rglob("en.toml")]):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for text in re.findall(r"`([^`]*)`|\"([^\"]*)\"|>([^<>]+)<", re.sub(r"(^|\s)//.*|/\*.*?\*/", "", line)):
                yield (
                    f"{path.relative_to(SRC)}:{number}",
                    re.sub(r"\$\{[^}]*\}", "{}", max(text) if " " in max(text) and "?" not in max(text) else ""),
                )
    for name, value in public().items():
        yield name, re.sub(r"References\n *-+\n.*?(\n\n|$)", "", str(value.__doc__), flags=re.DOTALL)  # titles
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if not {"_build", "notes", "papers_figures", "papers.md"} & set(page.parts):  # a log, and the papers' own words
            text = re.sub(
                r"^```.*?^```|`[^`]*`|<!--.*?-->", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
            )
            yield page.stem + ".md", text


def found() -> Iterator[str]:
    for where, text in texts():
        text = " ".join(re.sub(r"`[^`]*`|>>> .*", "", text).split())
        text = ALLOWED.sub("", text) if ANY.search(text) else ""
        for instead, pattern in BANNED.items():
            for match in pattern.finditer(text):
                if not (match[0].lower() in ("row", "rows") and OF_ROWS & set(re.split(r"\W", where))):
                    around = text[max(0, match.start() - 40) : match.end() + 30]
                    yield f"{where}: {match[0]!r} in ...{around}...: write {instead}"


def test_users_read_the_fields_words() -> None:
    assert not list(found()), "\n".join(found())


NOUNS = "cells|columns|comparisons|entries|ids|items|lines|objects|pairs|queries|questions|rows|values"
COUNTED = re.compile(rf" (?:(?:different|judged|known|list|missing|negative|new|seen) )?(?:{NOUNS})\b")
FORMS = "of ", "the ", "than ", "all ", "n_samples=", "Index("  # before a number of many, and forms that others fix


def uncounted(tree: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and words of every "{n} rows" in an f-string: "1 rows" where n is 1. `counted(n, "row")` has both."""
    for node in tree:
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for before, number, after in zip([None, *parts], parts, parts[1:], strict=False):
            if not isinstance(number, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            if not (found := COUNTED.match(str(after.value))):
                continue
            named = ast.unparse(number.value)
            said = str(before.value) if isinstance(before, ast.Constant) else ""
            rate = number.format_spec is not None and ast.unparse(number.format_spec).endswith("f'")
            if not (rate or named.startswith("counted(") or named.isupper() or said.endswith(FORMS)):
                yield node.lineno, f"{{{named}}}{found[0]}"


def test_numbers_agree_with_what_they_count() -> None:
    """ "1 ids", "1 rows are": some 120 errors and notes read so."""
    example = ast.parse("f\"{n} rows and {counted(n, 'id')}, {len(x):,} missing ids\"")
    assert list(uncounted(ast.walk(example))) == [(1, "{n} rows"), (1, "{len(x)} missing ids")]
    wrong = [
        f"{path.relative_to(ROOT)}:{line} {words!r}: write counted(n, noun) of nearkin/_fields.py"
        for path in FILES
        for line, words in uncounted(nodes(path))
    ]
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    print("\n".join(found()))
