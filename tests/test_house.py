"""Bounds of the house in numbers: lines of code a room, `Any`, constructors, strict types."""

import ast
import re
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from tests.test_architecture import FILES, SRC, nodes, text

ROOT = SRC.parents[1]
Function = ast.FunctionDef | ast.AsyncFunctionDef
MOST_ANY = 200  # how often src may contain `Any`; lower it when you can
STRICT = {"contracts.py", "records.py", "index", "linalg", "metrics", "orthogonal", "solvers"}  # by pyright; add to it


class Size(NamedTuple):
    """How long something is, and where it stands."""

    lines: int
    where: str


def functions() -> Iterator[tuple[Path, str, Function]]:
    """Every function of src with the class it stands in, "" for none."""
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                yield from ((path, node.name, part) for part in node.body if isinstance(part, Function))
            elif isinstance(node, ast.Module):
                yield from ((path, "", part) for part in node.body if isinstance(part, Function))


def constructors() -> list[Size]:
    """Parameters of each `__init__`, self not counted, or of a dataclass of settings."""
    written = ((path, owner, node.args) for path, owner, node in functions() if node.name == "__init__")
    found = [Size(len(a.args) + len(a.kwonlyargs) - 1, f"{_name(path)}: {owner}") for path, owner, a in written]
    return sorted([*found, *_dataclasses()])


def _dataclasses() -> Iterator[Size]:
    """Fields that `__init__` takes, of the dataclasses that are estimators, losses or solvers (records are not)."""
    for path in FILES:
        for node in nodes(path)[0].body:
            if isinstance(node, ast.ClassDef) and any("eq=False" in ast.unparse(by) for by in node.decorator_list):
                fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
                taken = (f for f in fields if not re.search(r"ClassVar|KW_ONLY|init=False", ast.unparse(f)))
                yield Size(len(list(taken)), f"{_name(path)}: {node.name}")


def code_lines() -> Counter[str]:
    """Lines of code of each room of src, of tests and of benchmarks: no docstrings, comments and blank lines."""
    found = Counter[str]()
    for path in FILES:
        inside = path.relative_to(SRC).parts
        found[inside[0] if len(inside) > 1 else "*.py"] += _code_lines(path)
    for folder in ("tests", "benchmarks"):
        found[folder] = sum(map(_code_lines, (ROOT / folder).rglob("*.py")))
    return found


def _code_lines(path: Path) -> int:
    source, docstrings = path.read_text(encoding="utf-8"), set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node, clean=False) is not None:
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    rows = enumerate(map(str.strip, source.splitlines()), 1)
    return sum(bool(row) and row[0] != "#" and number not in docstrings for number, row in rows)


def words_any() -> int:
    """How often the code of src says `Any`, imports included; prose does not count."""
    return sum(
        part.string == "Any"
        for path in FILES
        if "Any" in text(path)
        for part in tokenize.generate_tokens(StringIO(text(path)).readline)
        if part.type == tokenize.NAME
    )


def untyped() -> list[str]:
    """Public functions that give back `Any`, under its own name or as `Extra`, or have parameters of no type."""
    found = []
    for path, owner, node in functions():
        hidden = any(part.startswith("_") for part in (node.name, owner, path.stem) if part != "__init__")
        taken = [*node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        bare = [one.arg for one in taken if one and one.annotation is None and one.arg not in ("self", "cls")]
        result = "Any" if node.returns is None else ast.unparse(node.returns)
        loop = any(re.search("compiled|njit|inlined|kernel", ast.unparse(by)) for by in node.decorator_list)
        if not hidden and not loop and (bare or re.search(r"\b(Any|Extra)\b", result)):
            found.append(f"{_name(path)}: {owner + '.' if owner else ''}{node.name} {bare}")
    return found


def _name(path: Path) -> str:
    return str(path.relative_to(SRC))


def test_every_room_is_within_its_ceiling() -> None:
    """A ceiling falls to what is reached, and rises only for what an issue allows by number."""
    ceilings = tomllib.loads((Path(__file__).parent / "sizes.toml").read_text(encoding="utf-8"))
    found = code_lines()
    assert found.keys() == ceilings.keys()
    over = {room: (count, ceilings[room]) for room, count in found.items() if count > ceilings[room]}
    assert not over, "lines of code over the ceiling: take something away in the same room"
    loose = {room: (count, ceilings[room]) for room, count in found.items() if count < 0.99 * ceilings[room] - 10}
    assert not loose, "lower these ceilings in tests/sizes.toml to what is reached"


def test_types_are_named() -> None:
    assert words_any() < MOST_ANY, "name the type: nearkin/_types.py, contracts.py, a Protocol"
    assert not untyped()
    checked = tomllib.loads(text(ROOT / "pyproject.toml"))["tool"]["pyright"]["strict"]
    assert {place.removeprefix("src/nearkin/") for place in checked} >= STRICT


def test_constructors_are_short() -> None:
    longest = constructors()[-1]
    assert longest.lines <= 12, f"{longest.where} takes {longest.lines} parameters; give it a small object for some"
