"""What a package index shows: the version from one place, a page without links into the repository, and dependencies:
all that the modules import, and nothing that only some systems have."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions
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


def needs(*groups: list[str]) -> set[str]:
    """Names of the packages in lists of requirements, as `pip` compares them."""
    return {re.split(r"[\[<>=]", need)[0].lower().replace("_", "-") for group in groups for need in group}


NEEDED = needs(PROJECT["project"]["dependencies"])
EXTRAS = {name: needs(group) for name, group in PROJECT["project"]["optional-dependencies"].items()}
PACKAGES = packages_distributions()


def imported(nodes: Iterable[ast.AST]) -> set[str]:
    """Packages beyond the standard library that these statements import, those inside functions left out."""
    found = set[str]()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "extra":
            found |= {str(word.value).partition(".")[0] for word in node.args[:1] if isinstance(word, ast.Constant)}
        elif not isinstance(node, ast.FunctionDef) and "TYPE_CHECKING" not in ast.dump(getattr(node, "test", node)):
            found |= imported(ast.iter_child_nodes(node))
    return found - sys.stdlib_module_names - {"nearkin"}


def test_imports_are_declared_and_extras_are_loaded_where_they_are_used() -> None:
    undeclared, early = [], []
    for file in sorted((ROOT / "src").rglob("*.py")):
        tree, place = ast.parse(file.read_text(encoding="utf-8")), file.relative_to(ROOT / "src" / "nearkin")
        inside = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)]
        allowed = NEEDED | (EXTRAS["web"] if place.parts[0] == "web" else set())
        for nodes, known, wrong in (inside, NEEDED.union(*EXTRAS.values()), undeclared), (tree.body, allowed, early):
            for name in imported(nodes):
                packages = {package.lower().replace("_", "-") for package in PACKAGES.get(name, [name])}
                if not packages & known:
                    wrong.append(f"{place.as_posix()}: {name}")
    assert undeclared == [], "imported, and not in pyproject.toml"
    assert early == [], "an extra, imported with the module and not in a function"


ELSEWHERE = """
import builtins, ctypes, importlib, os, pkgutil, signal, sys
import faiss, matplotlib.pyplot, numba, scipy.stats, sklearn.manifold, torch, typer, uvicorn, starlette.testclient

real, missing = builtins.__import__, {"fcntl", "grp", "posix", "pwd", "resource", "termios"}

def load(name, names=None, *more, **others):
    if name in missing and (names or {}).get("__name__", "").startswith("nearkin"):
        raise ImportError(f"No module named {name!r}")
    return real(name, names, *more, **others)

def library(name, *more, **others):
    if name is None:
        raise TypeError("argument of type 'NoneType' is not iterable")  # as on Windows
    return loaded(name, *more, **others)

builtins.__import__, loaded, ctypes.CDLL = load, ctypes.CDLL, library
for name in "fork register_at_fork sched_getaffinity O_DIRECTORY uname".split():
    delattr(os, name)
del signal.SIGALRM, signal.pthread_kill
import nearkin as nk
for found in pkgutil.walk_packages(nk.__path__, "nearkin."):
    if found.name != "nearkin.__main__":
        importlib.import_module(found.name)
from nearkin.cli.app import app
index = nk.Index.build([[0.0, 1.0], [2.0, 3.0]], ids=["a", "b"])
index.add([[4.0, 5.0]], ids=["c"])
index.save("idx")
assert nk.Index.load("idx").search([[4.0, 5.0]], 1)[1].tolist() == [["c"]]
for command in ["check", "idx"], ["remove", "idx", "a"]:
    try:
        app(command)
    except SystemExit as end:
        print("exit code", end.code)
"""


def test_all_modules_load_and_indexes_work_where_the_system_has_no_fork_and_no_fcntl(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", ELSEWHERE], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    assert re.findall("exit code .*", run.stdout) == ["exit code 0", "exit code 2"], run.stdout
    assert "Linux and macOS" in run.stderr
