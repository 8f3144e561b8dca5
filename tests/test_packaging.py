"""What a package index shows: the version from one place, a page whose links have addresses; workflows; dependencies:
all that the modules import, and nothing that only some systems have."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import nearkin
from tests.conftest import FORKING, LONG
from tests.processes import Program
from tests.test_architecture import FILES, SRC, nodes, parsed

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


def test_hosted_workflows_call_what_a_clone_calls_on_every_python_that_is_named() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert "- run: .ci/run\n" in workflow
    assert "- run: make release\n" in workflow
    named = re.findall(r"Python :: (3\.\d+)", str(PROJECT["project"]["classifiers"]))
    assert set(named) <= set(re.findall(r'"(3\.\d+)"', workflow))
    assert min(named) == PROJECT["project"]["requires-python"].removeprefix(">=")


def needs(*groups: list[str]) -> set[str]:
    """Names of the packages in lists of requirements, as `pip` compares them."""
    return {re.split(r"[\[<>=]", need)[0].lower().replace("_", "-") for group in groups for need in group}


NEEDED = needs(PROJECT["project"]["dependencies"])
EXTRAS = {name: needs(group) for name, group in PROJECT["project"]["optional-dependencies"].items()}
PACKAGES = {  # module -> the package that has it, where the names differ
    **{"sklearn": "scikit-learn", "faiss": "faiss-cpu", "PIL": "pillow", "lance": "pylance"},
    **{"haystack": "haystack-ai", "llama_index": "llama-index-core"},
}


def loads_extra(node: ast.AST) -> bool:
    """Whether it is a call `extra("package")`."""
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "extra"


def imported(statements: Iterable[ast.AST]) -> set[str]:
    """Packages beyond the standard library that these statements import, those inside functions left out."""
    found = set[str]()
    for node in statements:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
        elif loads_extra(node):
            found |= {str(word.value).partition(".")[0] for word in node.args[:1] if isinstance(word, ast.Constant)}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        elif not isinstance(node, ast.FunctionDef):
            found |= imported(ast.iter_child_nodes(node))
    return found - sys.stdlib_module_names - {"nearkin"}


def test_imports_are_declared_and_extras_are_loaded_where_they_are_used() -> None:
    undeclared, early = [], []
    for file in FILES:
        tree, place = parsed(file), file.relative_to(SRC)
        inside = [node for node in nodes(file) if isinstance(node, ast.Import | ast.ImportFrom) or loads_extra(node)]
        store = place.stem.removesuffix("_store").replace("_", "-")
        extra = {"web": "web", "integrations": store}.get(place.parts[0], "")
        allowed = NEEDED | EXTRAS.get(extra, set()) | {extra}  # its own name: a library that is not installed
        for found, known, wrong in (
            (inside, NEEDED.union(EXTRAS, *EXTRAS.values()), undeclared),
            (tree.body, allowed, early),
        ):
            for name in imported(found):
                if PACKAGES.get(name, name.lower().replace("_", "-")) not in known:
                    wrong.append(f"{place.as_posix()}: {name}")
    assert undeclared == [], "imported, and not in pyproject.toml"
    assert early == [], "an extra, imported with the module and not in a function"


def test_all_modules_load_and_indexes_work_where_the_system_has_no_fork_and_no_fcntl(tmp_path: Path) -> None:
    program = Program("tests.elsewhere", tmp_path / "idx")
    out, err = program.communicate(600)
    assert program.returncode == 0, err
    assert re.findall("exit code .*", out) == ["exit code 0", "exit code 2"], out
    assert "Linux or macOS" in err


def test_the_tests_that_ci_and_the_order_of_tests_name_are_there() -> None:
    """A tuple of letters once sent all tests to one process."""
    texts = [file.read_text("utf-8") for file in (ROOT / ".ci").iterdir()]
    named = {path for text in texts for path in re.findall(r"tests/[\w/]+\.py", text)}
    assert named
    named |= {*FORKING, *(f"tests/{name}.py" for name in LONG)}
    assert not [path for path in named if not (ROOT / path).exists()]
