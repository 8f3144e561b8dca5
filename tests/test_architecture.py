"""The house rules, enforced: imports point down, no cycles, files and functions stay small, no prints, no asserts."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.covering import each

SRC = Path(__file__).parents[1] / "src" / "nearkin"
FILES = sorted(SRC.rglob("*.py"))

LEVEL = {  # a module may import from its own package and from strictly lower levels
    "_fields": -4, "_types": -3, "_check": -2, "_compile": -2, "_threads": -2,
    "_guard": -2, "_json": -2, "_lazy": -2, "_versions": -2,
    "_pairs": -1,
    "records": 0, "_faiss": 0, "_storage": 0,
    "_exact": 0.5, "contracts": 0.5, "_distributed": 0.5,
    "statistics": 0.75,
    "linalg": 1, "_estimators": 1,
    "orthogonal": 2, "solvers": 2,
    "data": 3, "metrics": 3,
    "embedding": 4, "quantization": 4, "hashing": 4,
    "index": 5,
    "export": 6, "integrations": 6,
    "plots": 7, "report": 8, "jobs": 9, "web": 9.5,
    "cli": 10, "__main__": 11,
}  # fmt: skip
WHOLE_HOUSE = {  # what stands below the jobs and yet imports all of nearkin, where it is used, and why
    "quantization/layer/ids.py",  # the type of IdsIndex.ids, nk.SemanticIds, which makes the index
    "report/page.py",  # the version at a page's foot
}
MAX_FILE, MAX_FUNCTION = 600, 60


def package(path: Path) -> str:
    """The room a file stands in: `quantization` for src/nearkin/quantization/product.py, `index` for index.py."""
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def module(path: Path) -> str:
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(text(path))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Every node of a file's syntax tree."""
    return list(ast.walk(parsed(path)))


KNOWN = {module(file) for file in FILES}


@cache
def imports(path: Path) -> frozenset[str]:
    """Modules of nearkin that a file imports, at any depth of its code and also under TYPE_CHECKING."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(names & KNOWN or {node.module})
    return frozenset(name for name in found if name.split(".")[0] == "nearkin")


def test_every_room_has_a_level() -> None:
    assert {package(path) for path in FILES} - {"__init__"} <= LEVEL.keys(), "give the new room a level in this file"


def test_imports_point_down() -> None:
    wrong = []
    for path in FILES:
        room = package(path)
        whole = room == "__init__" or LEVEL[room] >= LEVEL["jobs"] or str(path.relative_to(SRC)) in WHOLE_HOUSE
        for name in imports(path) if room != "__init__" else ():
            other = name.split(".")[1] if name != "nearkin" else ""
            if not (whole if not other else other == room or LEVEL[other] < LEVEL[room]):
                wrong.append(f"{path}: imports {name}, which is not on a lower level")
    assert not wrong, "\n".join(wrong)


def test_only_commands_import_pages() -> None:
    below = [path for path in FILES if package(path) not in ("web", "cli", "__init__")]
    wrong = [path for path in below if any(f"{name}.".startswith("nearkin.web.") for name in imports(path))]
    assert not wrong
    assert not [path for path in below if "nearkin.web" in text(path)], "nor by name"


SHARED = {"_check", "_fields", "_guard", "_json", "_lazy", "_storage"}  # words of all rooms, pages included
JOBS = {"arguments", "inputs", "outputs"}  # the public modules of jobs whose functions pages call


def exported(init: Path) -> set[str]:
    """The names that a package's `__init__` imports for its users, without its modules."""
    found = {f"{n.module}.{a.name}" for n in nodes(init) if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}
    return {name.rpartition(".")[2] for name in found - KNOWN}


def internals(tree: ast.AST) -> Iterator[str]:
    """What a page imports that is neither public nor a page's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "nearkin")
        elif isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("nearkin."):
            room = str(node.module).removeprefix("nearkin").removeprefix(".")
            if room.split(".")[0] == "web" or (room in SHARED and (SRC / f"{room}.py").is_file()):
                continue
            init = SRC / room / "__init__.py"  # of no module inside a package
            public = (exported(init) if init.is_file() else set()) | {"": {"web"}, "jobs": JOBS}.get(room, set())
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name not in public)


def test_pages_import_public_names_only() -> None:
    wrong = [f"{path}: {name}" for path in FILES if package(path) == "web" for name in internals(parsed(path))]
    assert not wrong, "\n".join(["give the package a public function that does the whole:", *wrong])


@each(
    ("line", "allowed"),
    [
        ("from nearkin.export import Source", True),
        ("from nearkin._check import check_integer", True),
        ("from nearkin.jobs import inputs", True),
        ("from nearkin.jobs.inputs import find_ids", False),
        ("from nearkin._storage.atomic import sync", False),
        ("from nearkin._faiss import add_codes", False),
        ("from nearkin import metrics", False),
        ("import nearkin.index.searching", False),
    ],
)
def test_internals_are_told_from_public_names(line: str, allowed: bool) -> None:
    assert (list(internals(ast.parse(line))) == []) is allowed


def test_no_import_cycle() -> None:
    graph = {module(path): imports(path) - {module(path)} for path in FILES if package(path) != "__init__"}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, f"import cycle: {' -> '.join([*trail, name])}"
        if name not in done:
            for other in graph.get(name, set()) - {"nearkin"}:
                visit(other, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def too_large(path: Path) -> Iterator[str]:
    """What one file does against the rules of sizes and of assertions."""
    if text(path).count("\n") > MAX_FILE:
        yield f"{path}: cut it where its parts have names"
    for node in nodes(path):
        if isinstance(node, ast.Assert):
            yield f"{path}:{node.lineno}: raise ValueError or TypeError"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (node.end_lineno or 0) - body[0].lineno + 1 if body else 1
            if length > MAX_FUNCTION:
                yield f"{path}:{node.lineno}: {node.name} has {length} lines"


def test_files_and_functions_stay_small() -> None:
    wrong = [line for path in FILES for line in too_large(path)]
    assert not wrong, "\n".join(wrong)
