"""When and how each result was made: a table for the page, and what is older than the code that it judges."""

import ast
import importlib
import inspect
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nearkin as nk
from benchmarks.options import RESULTS, ROOT
from benchmarks.papers.others import OTHERS
from benchmarks.stored import read_json
from benchmarks.subjects import SUBJECTS
from benchmarks.table import Table

OWN = {  # the papers' own experiments: module, what makes its jobs, data
    "gcd_figure_2": ("gcd_figure_2", "jobs", "sift_bsds.npz"),
    "gcd_figure_3": ("gcd_figure_3", "jobs", "ml100k.npz, gowalla.npz"),
    "scq_seconds": ("scq_whole", "seconds", "mnist.npz"),
    "scq_gist": ("scq_whole", "gist", "cifar10_gist512.npz"),
    "scq_scale": ("scq_whole", "scale", "mnist.npz"),
    "scq_table_2": ("scq_whole", "table_2", "mnist.npz"),
    "value_and_gradient": ("esl_cost", "jobs", "random"),
    "esl_towers": ("esl_towers", "jobs", "ml100k.npz"),
    "eurodist": ("svrg_maps", "eurodist", "eurodist.csv"),
    "music": ("svrg_maps", "music", "music_triplets.npz"),
    "svrg_draws": ("svrg_draws", "jobs", "random"),
    "svrg_figure_2": ("svrg_figure_2", "jobs", "random"),
    "svrg_retrieval": ("svrg_retrieval", "jobs", "mnist.npz"),
    "flows_counts": ("flows_counts", "jobs", "none"),
    "flows_theorem": ("flows_theorem", "jobs", "random"),
    "entries": ("flows_entries", "jobs", "gymnasium"),
    "flows_sorting": ("flows_sorting", "jobs", "random"),
    "flows_convnet": ("flows_convnet", "jobs", "scikit-learn's digits"),
    "flows_mlp": ("flows_mlp", "jobs", "mnist.npz"),
    "theory": ("theory", "jobs", "random, mnist.npz"),
    "flows_rl": ("flows_rl", "jobs", "gymnasium"),
}
SHARED = ("benchmarks.harness", "benchmarks.options", "benchmarks.table", "benchmarks.jobs")  # say no figure


@dataclass(frozen=True)
class Source:
    """A JSON, what makes it, and the module that measures."""

    name: str
    command: str
    module: str
    data: str = "see its subject"

    def record(self) -> dict[str, Any]:
        file = RESULTS / f"{self.name}.json"
        found = read_json(file) if file.exists() else {}
        return found if isinstance(found, dict) else {}

    def commits(self) -> dict[str, int]:
        """Commit -> how many rows were made by it; those that name none count as the file's."""
        record = self.record()
        whole, rows = record.get("commit", ""), record.get("results")
        return Counter(row.get("commit", whole) for row in (rows if isinstance(rows, list) else [{}]))


def sources() -> Iterator[Source]:
    """Every JSON that the papers' pages quote."""
    for name, (module, _, data) in OWN.items():
        yield Source(f"papers_{name}", f"papers --run {name}", f"benchmarks.papers.{module}", data)
    for name in dict.fromkeys(other.source for other in OTHERS):
        commands = [other.command for other in OTHERS if other.source == name]
        subject, *words = commands[0].split()
        yield Source(name, "; ".join(commands), f"benchmarks.{SUBJECTS[subject].command(words)[0]}")


def table() -> Table:
    """How each JSON is made: command, data, CPU minutes, commit."""
    made = Table("papers-made", "How the papers' results are made", [], "")
    made.columns = ["JSON", "`python -m benchmarks ...`", "data", "CPU minutes", "rows made by commit"]
    for source in sources():
        minutes = source.record().get("settings", {}).get("CPU minutes")
        commits = ", ".join(
            f"{commit or 'unknown'}{f' ({count})' if len(source.commits()) > 1 else ''}"
            for commit, count in source.commits().items()
        )
        minutes = "not kept" if minutes is None else f"{minutes:g}"
        made.rows.append([source.name, f"`{source.command}`", source.data, minutes, commits])
    return made


def modules_of(name: str, seen: set[str] | None = None) -> set[Path]:
    """The file of a benchmark's module, those of the benchmarks that it imports, and of all it names in nearkin."""
    seen = set() if seen is None else seen
    if name in seen or name in SHARED:
        return set()
    seen.add(name)
    file = ROOT / f"{name.replace('.', '/')}.py"
    if not file.exists():
        return set()
    found, tree = {file}, ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if node.module.split(".")[0] in ("benchmarks", "examples"):
                    for module in (node.module, f"{node.module}.{alias.name}"):
                        found |= modules_of(module, seen)
                elif node.module.split(".")[0] == "nearkin":
                    found |= defined(getattr(importlib.import_module(node.module), alias.name, None))
        elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("nk."):
            place: Any = nk
            for word in ast.unparse(node).split(".")[1:]:
                place = getattr(place, word, None)
            found |= defined(place)
    return found


def defined(thing: Any) -> set[Path]:
    """The file in which a class, a function or a module of nearkin stands."""
    try:
        file = Path(inspect.getsourcefile(thing) or "")
    except TypeError:
        return set()
    return {file} if file.name != "__init__.py" and (ROOT / "src") in file.parents else set()


def stale() -> Iterator[str]:
    """A line for every JSON with rows older than a module that measured them."""
    for source in sources():
        files = sorted(file.relative_to(ROOT).as_posix() for file in modules_of(source.module))
        for commit, count in source.commits().items():
            later = changed_since(commit.removesuffix("+"), files)
            rows = f"{count} row{'s' * (count != 1)}" if len(source.commits()) > 1 else "all rows"
            if later is None:
                yield f"{source.name}: {rows} by {commit or 'no commit'}, which this repository does not have"
            elif later:
                shown = ", ".join(sorted(later)[:3]) + (", ..." if len(later) > 3 else "")
                yield f"{source.name}: {rows} by {commit}, older than {len(later)} of {len(files)} modules: {shown}"


def changed_since(commit: str, files: list[str]) -> set[str] | None:
    """Which of the files have commits after that one; None for a commit that git does not know."""
    if not commit:
        return None
    command = ["git", "log", "--format=", "--name-only", f"{commit}..HEAD", "--", *files]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return None if found.returncode else set(found.stdout.split())
