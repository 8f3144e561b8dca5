"""Mutants: one small error planted in a module at a time; its tests must notice.

    python tests/mutants.py --count 8 --seed 0                        of every numerical room's modules
    python tests/mutants.py solvers/svrg.py orthogonal --count 20     of some modules or rooms

A mutant changes an operator, a comparison, a sign or a number, drops a term of a sum, or drops a call whose result is
not used. Error messages, annotations and defaults are left alone. A mutant is first tried on the tests of its folder
that name the module (at most four files), then on the room's contract tests and on its whole folder. It runs in a copy
of the tree; tests that take more than --limit CPU seconds, a folder four times that, count as failed. "alive" is for a
person to read: some mutants are equivalent. "unusable": the tests fail without a mutant too, or take longer than the
limit.
"""

import argparse
import ast
import copy
import importlib
import multiprocessing
import os
import random
import re
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARIES = ("numpy", "scipy.sparse", "scipy.optimize", "scipy.stats", "numba", "faiss", "torch", "sklearn", "pyarrow")
ROOMS = {  # room of src/nearkin: its contract tests
    "linalg": (),
    "orthogonal": ("tests/contracts/test_optimizers.py",),
    "solvers": ("tests/contracts/test_ordinal_solvers.py",),
    "hashing": ("tests/contracts/test_hashers.py",),
    "embedding": (),  # the files of the folder itself
    "embedding/all_pairs": ("tests/contracts/test_pair_losses.py", "tests/contracts/test_tower_solvers.py"),
    "embedding/ordinal": ("tests/contracts/test_ordinal_solvers.py",),
    "embedding/two_tower": ("tests/contracts/test_tower_solvers.py",),
    "quantization": ("tests/quantization/test_product.py",),
    "metrics": ("tests/contracts/test_hashers.py",),
    "index": ("tests/index/test_index.py", "tests/index/test_selection.py"),
    "pipeline": (),
}
_PAIRS = [
    *((ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.FloorDiv, ast.Mult), (ast.Mod, ast.FloorDiv)),
    *((ast.Pow, ast.Mult), (ast.MatMult, ast.Mult), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)),
    *((ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.And, ast.Or), (ast.BitAnd, ast.BitOr)),
]
NEAR = 4
SWAPS = {b: a for a, b in _PAIRS} | dict(_PAIRS)
LEFT_ALONE = {"annotation", "returns", "defaults", "kw_defaults"}


def places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """(parent, field, number in the field's list) of every node that may change."""
    for field, value in ast.iter_fields(node):
        if field in LEFT_ALONE:
            continue
        for i, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            default = isinstance(node, ast.ClassDef) and isinstance(child, ast.AnnAssign)  # of a dataclass
            if isinstance(child, ast.AST) and not default and not isinstance(child, ast.Raise | ast.JoinedStr):
                yield node, field, i
                yield from places(child)


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in a node's place."""
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
        yield _with(node, op=SWAPS[type(node.op)]())
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from (node.left, node.right)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        yield _with(node, ops=[SWAPS[type(node.ops[0])]()])
    if isinstance(node, ast.UnaryOp):
        yield node.operand
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield ast.Constant(node.value + 1 if isinstance(node.value, int) else 2 * node.value + (node.value == 0))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()


def mutants(code: str) -> Iterator[tuple[str, str]]:
    """(description, code) of every mutant of a module."""
    tree = ast.parse(code)
    for parent, field, i in list(places(tree)):
        node = getattr(parent, field) if i is None else getattr(parent, field)[i]
        for new in variants(node):
            _put(parent, field, i, ast.copy_location(copy.copy(new), node))
            after = ast.unparse(ast.fix_missing_locations(tree))
            _put(parent, field, i, node)
            yield f"{node.lineno}: {_short(node)}  ->  {_short(new)}", after


def _with(node: ast.AST, **fields: object) -> ast.AST:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _put(parent: ast.AST, field: str, i: int | None, node: ast.AST) -> None:
    if i is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[i] = node


def _short(node: ast.AST) -> str:
    return ast.unparse(node).replace("\n", " ")[:60]


def modules(asked: list[str]) -> Iterator[tuple[str, Path]]:
    """(room, file) of the modules asked for; all rooms without a name."""
    for room in ROOMS:
        folder = ROOT / "src" / "nearkin" / room
        for file in sorted(folder.glob("*.py") if room == "embedding" else folder.rglob("*.py")):
            name = file.relative_to(ROOT / "src" / "nearkin").as_posix()
            if file.stem != "__init__" and (not asked or any(name == a or name.startswith(f"{a}/") for a in asked)):
                yield room, file


def near_tests(room: str, file: Path) -> list[str]:
    """At most four tests of the room's folder: the module's own, then those that name it or its public names most.

    Where none does, the first of the folder.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    public = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    words = re.compile(rf"\b({'|'.join([file.stem, *(name for name in public if name[0] != '_')])})\b")
    every = sorted((ROOT / "tests" / room).rglob("test_*.py"))
    named = {t: len(words.findall(t.read_text(encoding="utf-8"))) for t in every}
    tests = [t for t in every if named[t]] or every
    tests.sort(key=lambda t: (t.stem != f"test_{file.stem}", -named[t], t))
    return [t.relative_to(ROOT).as_posix() for t in tests[:NEAR]]


def passes(tree: Path, tests: list[str], limit: float) -> bool:
    """Whether the tests pass in the copied tree, in a child that inherits the imported libraries and has no nearkin."""
    child = multiprocessing.get_context("fork").Process(target=run_tests, args=(tree, tests, limit))
    child.start()
    child.join(20 * limit)  # it may wait for something that never comes
    if child.is_alive():
        child.kill()
        child.join()
    return child.exitcode == 0


def run_tests(tree: Path, tests: list[str], limit: float) -> None:
    """Run pytest on the tree's own package, silently, and leave with its exit status."""
    resource.setrlimit(resource.RLIMIT_CPU, (round(limit), round(limit)))
    os.chdir(tree)
    sys.path[:0] = [str(tree / "src"), str(tree)]
    os.environ["PYTHONPATH"] = f"{tree / 'src'}:{tree}"
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    os._exit(int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *tests])))


def warm() -> None:
    """Import what every test imports and no mutant changes: a second of processor time instead of five a mutant."""
    os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    for name in LIBRARIES:
        importlib.import_module(name)
    strange = [name for name in sys.modules if name.split(".")[0] == "nearkin"]
    if strange:
        raise SystemExit(f"{strange[0]} is imported already; a mutant of it would not be seen")


def killed_by(tree: Path, room: str, file: Path, code: str, healthy: set[str], limit: float) -> str | None:
    """Which tests notice the mutant: the near ones, the contract's, the room's, or none. Those must pass without it."""
    stages = {"near": near_tests(room, file), "contract": list(ROOMS[room]), "room": [f"tests/{room}"]}
    for name, tests in stages.items():
        limit *= 4 if name == "room" else 1
        if tests and not tried(tree, file, code, tests, limit):
            key = " ".join(tests)
            if key not in healthy and not passes(tree, tests, limit):
                return "unusable"
            healthy.add(key)
            return name
    return None


def tried(tree: Path, file: Path, code: str, tests: list[str], limit: float) -> bool:
    """Whether the tests pass with the mutant in the module's place."""
    target = tree / file.relative_to(ROOT)
    original = target.read_text(encoding="utf-8")
    target.write_text(code, encoding="utf-8")
    try:
        return passes(tree, tests, limit)
    finally:
        target.write_text(original, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MODULE", help="solvers/svrg.py, or a folder: solvers")
    parser.add_argument("--count", type=int, default=8, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=120, help="CPU seconds of one run of tests")
    options = parser.parse_args()
    warm()
    count, alive, healthy = 0, 0, set()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "results", "_build"))
        for room, file in modules([name.removesuffix("/") for name in options.names]):
            found = list(mutants(file.read_text(encoding="utf-8")))
            draw = random.Random(f"{options.seed} {file.name}")
            for text, mutant in draw.sample(found, min(options.count, len(found))):
                by = killed_by(tree, room, file, mutant, healthy, options.limit)
                count, alive = count + (by != "unusable"), alive + (by is None)
                print(f"{by or 'ALIVE':9}{file.relative_to(ROOT / 'src/nearkin')}:{text}", flush=True)
    print(f"tried {count}, killed {count - alive}, alive {alive}")


if __name__ == "__main__":
    main()
