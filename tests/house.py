"""The house in numbers and in one drawing: sizes, types, repeated lines; rooms and what they import.

    python -m tests.house                                  the table that CONTRIBUTING.md quotes
    python -m tests.house --draw docs/images/house.svg     the drawing

`tests/test_house.py` holds the bounds.
"""

import argparse
import ast
import re
import statistics
import textwrap
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from tests.test_architecture import FILES, LEVEL, SRC, imports, nodes, text

ROOT = SRC.parents[1]
Function = ast.FunctionDef | ast.AsyncFunctionDef
RUN = 6  # lines in a row that two places may not share


class Size(NamedTuple):
    """How long something is, and where it stands."""

    lines: int
    where: str


def file_sizes() -> list[Size]:
    return sorted(Size(text(path).count("\n"), _name(path)) for path in FILES)


def functions() -> Iterator[tuple[Path, str, Function]]:
    """Every function of src with the class it stands in, "" for none."""
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                yield from ((path, node.name, part) for part in node.body if isinstance(part, Function))
            elif isinstance(node, ast.Module):
                yield from ((path, "", part) for part in node.body if isinstance(part, Function))


def function_sizes() -> list[Size]:
    """Lines of each body, docstring not counted."""
    found = []
    for path, owner, node in functions():
        body = node.body[1:] if ast.get_docstring(node) else node.body
        lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 1
        found.append(Size(lines, f"{_name(path)}: {owner + '.' if owner else ''}{node.name}"))
    return sorted(found)


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


def public_any() -> list[str]:
    """Public functions that give back `Any`, under its own name or as `Extra`."""
    found = []
    for path, owner, node in functions():
        hidden = any(part.startswith("_") for part in (node.name, owner, path.stem) if part != "__init__")
        if not hidden and node.returns is not None and re.search(r"\b(Any|Extra)\b", ast.unparse(node.returns)):
            found.append(f"{_name(path)}: {owner + '.' if owner else ''}{node.name}")
    return found


def strict() -> list[str]:
    """What pyright checks strictly."""
    settings = tomllib.loads(text(ROOT / "pyproject.toml"))["tool"]["pyright"]
    return [place.removeprefix("src/nearkin/") for place in settings["strict"]]


def repeated() -> list[tuple[str, str]]:
    """Pairs of files of src that share `RUN` lines in a row to the letter; blank lines, comments, imports left out."""
    seen: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for path in FILES:
        lines = [line.strip() for line in text(path).splitlines()]
        lines = [line for line in lines if len(line) > 3 and not re.match(r"#|import |from |\w+,$", line)]
        for first in range(len(lines) - RUN + 1):
            seen[tuple(lines[first : first + RUN])].add(_name(path))
    shared = (sorted(files) for files in seen.values() if len(files) > 1)
    return sorted({(one, other) for files in shared for i, one in enumerate(files) for other in files[i + 1 :]})


def table() -> str:
    files, bodies, made = file_sizes(), function_sizes(), constructors()
    rows = [
        ("", "number", "median", "90th percentile", "longest"),
        ("files of src, lines", *_summary(files)),
        ("functions, lines of the body", *_summary(bodies)),
        ("constructors, parameters", *_summary(made)),
    ]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---" * len(rows[0]) + "|")
    return "\n".join([
        *lines,
        "",
        f"The word `Any`: {words_any()} times in src; public functions that return it: {len(public_any())}.",
        f"pyright strict: {', '.join(strict())}.",
        f"Pairs of files that share {RUN} lines in a row to the letter: {len(repeated())}.",
    ])  # fmt: skip


def _summary(sizes: list[Size]) -> tuple[str, ...]:
    lines = [size.lines for size in sizes]
    ninth = statistics.quantiles(lines, n=10)[-1]
    return str(len(lines)), f"{statistics.median(lines):.0f}", f"{ninth:.0f}", f"{lines[-1]} ({sizes[-1].where})"


def _name(path: Path) -> str:
    return str(path.relative_to(SRC))


# ---- the drawing ----------------------------------------------------------------------------------------------------

SPLIT = {"embedding": ("all_pairs", "two_tower", "ordinal")}  # packages drawn as several rooms
FLOORS = (  # from the ground up; a room, what it does, what a newcomer adds there
    (("linalg", "matrix facts", ""),),
    (
        ("orthogonal", "moves on a manifold", "a retraction, a matching"),
        ("solvers", "one minimizer a file", "a solver"),
    ),
    (("data", "files to records", "a format: data/formats"), ("metrics", "evaluation", "a measure")),
    (
        ("embedding/all_pairs", "the loss over all pairs", "a pair loss"),
        ("embedding/two_tower", "pairs to vectors", "a loss, a solver"),
        ("embedding/ordinal", "comparisons to vectors", "a loss, a solver"),
        ("quantization", "vectors to bytes", "a codec, a rotation"),
        ("hashing", "vectors to bits", "a hasher"),
    ),
    (("index", "codes to results, on FAISS", "a kind of saved quantizer"),),
    (
        ("export", "into engines that scale", "an engine"),
        ("integrations", "stores of other libraries", "a library"),
    ),
    (("plots", "figures", ""), ("report", "pages", "a section")),
    (("jobs", "whole jobs, for each command", "a job"), ("web", "pages for people", "")),
    (("cli", "parse, call, print", "a command"),),
)


def room(name: str) -> str:
    """The drawn room that a module stands in."""
    parts = name.split(".")[1:]
    return "/".join(parts[:2]) if len(parts) > 1 and parts[1] in SPLIT.get(parts[0], ()) else parts[0] if parts else ""


@cache
def arrows() -> set[tuple[str, str]]:
    """(room, room it imports); what follows from two others is left out."""
    drawn = {name for floor in FLOORS for name, *_ in floor}
    uses: dict[str, set[str]] = defaultdict(set)
    for path in FILES:
        here = room(".".join(path.relative_to(SRC.parent).with_suffix("").parts))
        uses[here] |= {room(name) for name in imports(path)} & drawn - {here}

    def reach(name: str) -> set[str]:
        return uses[name].union(*map(reach, uses[name]))

    told = {one: set().union(*(reach(via) for via in uses[one])) for one in drawn}
    return {(one, other) for one in drawn for other in uses[one] - told[one]}


def draw(out: Path) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyBboxPatch

    plt.rcParams["svg.fonttype"], plt.rcParams["svg.hashsalt"] = "none", "house"
    figure, ax = plt.subplots(figsize=(15, 12))
    ax.set(xlim=(0, 15), ylim=(-1.5, 1.6 * len(FLOORS)))
    ax.axis("off")
    places = {}
    for height, floor in enumerate(FLOORS):
        width = min(3.2, 14.4 / len(floor) - 0.35)
        for number, (name, does, adds) in enumerate(floor):
            x, y = 15 * (number + 1) / (len(floor) + 1), 1.6 * height + 0.3
            if len(floor) == 5:
                x = 1.5 + 3.0 * number
                width = 2.7
            places[name] = x, y, width
            ax.add_patch(
                FancyBboxPatch((x - width / 2, y), width, 0.8, "round,pad=0.03", fc="#f4efe6", ec="#7a6f5d", zorder=2)
            )
            ax.text(x, y + 0.62, name, ha="center", va="center", weight="bold", size=11)
            ax.text(x, y + 0.38, does, ha="center", va="center", size=9)
            ax.text(x, y + 0.14, f"add: {adds}" if adds else "", ha="center", va="center", size=8.5, color="#1f5f8b")
    taken: Taken = defaultdict(list)
    for one, other in sorted(arrows()):
        _arrow(ax, places, taken, one, other)
    ax.add_patch(FancyBboxPatch((0.3, -1.35), 14.4, 1.0, "round,pad=0.03", fc="#e6ece6", ec="#6d7f6d"))
    ground = textwrap.fill(", ".join(name for name in LEVEL if LEVEL[name] <= 1 and name != "linalg"), 150)
    ax.text(7.5, -0.6, "what every room may use", ha="center", weight="bold", size=11)
    ax.text(7.5, -0.95, ground, ha="center", va="center", size=8.5)
    figure.savefig(out, bbox_inches="tight", metadata={"Date": None} if out.suffix == ".svg" else None)
    plt.close(figure)


Places = dict[str, tuple[float, float, float]]  # room -> its middle, its floor's height, its width
Taken = dict[float, list[float]]  # floor -> where lines go down through it


def _arrow(ax, places: Places, taken: Taken, one: str, other: str) -> None:
    """From a room's floor to the ceiling below, past the rooms between; along the floor between neighbours."""
    (x, y, wide), (u, v, broad) = places[one], places[other]
    if y == v:
        side = 1 if u > x else -1
        line = [(x + side * wide / 2, y + 0.4), (u - side * broad / 2, v + 0.4)]
    else:
        start, end = (x + 0.2 * (u - x) * wide / 15, y), (u + 0.2 * (x - u) * broad / 15, v + 0.84)
        line = [start, *_way(places, taken, start, end), end]
    style = {"color": "#8a8a8a", "lw": 1.0, "zorder": 1}
    if len(line) > 2:
        ax.plot(*zip(*line[:-1], strict=True), solid_joinstyle="round", **style)
    ax.annotate("", line[-1], line[-2], arrowprops={"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 1} | style)


def _way(
    places: Places, taken: Taken, start: tuple[float, float], end: tuple[float, float]
) -> Iterator[tuple[float, float]]:
    """Where a line goes straight down through each floor that it passes: beside rooms and other lines."""
    (x, y), (u, v) = start, end
    for height in sorted({h for _, h, _ in places.values() if v < h < y}, reverse=True):
        direct = x + (u - x) * (y - height - 0.4) / (y - v)
        rooms = [(at - wide / 2 - 0.09, at + wide / 2 + 0.09) for at, h, wide in places.values() if h == height]
        free = [
            at
            for at in (0.05 * step for step in range(301))
            if not any(left < at < right for left, right in rooms) and all(abs(at - t) > 0.09 for t in taken[height])
        ]
        through = min(free, key=lambda at: abs(at - direct))
        taken[height].append(through)
        yield through, height + 0.95
        yield through, height - 0.15


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", type=Path, help="write the drawing, .svg or .png, in place of the table")
    asked = parser.parse_args()
    draw(asked.draw) if asked.draw else print(table())
