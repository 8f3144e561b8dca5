"""What the papers' tables and figures come from: experiments of their own, and JSON of other benchmarks."""

from collections import Counter
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.options import RESULTS
from benchmarks.stored import read_json
from benchmarks.table import Table

OWN = {  # name: module, what makes its jobs, data
    "gcd_figure_2": ("gcd_figure_2", "jobs", "sift_bsds.npz"),
    "gcd_figure_3": ("gcd_figure_3", "jobs", "ml100k.npz, gowalla.npz"),
    "scq_seconds": ("scq_whole", "seconds", "mnist.npz"),
    "scq_scale": ("scq_whole", "scale", "mnist.npz"),
    "scq_table_2": ("scq_whole", "table_2", "mnist.npz"),
    "value_and_gradient": ("costs", "value_and_gradient", "random"),
    "esl_towers": ("esl_towers", "jobs", "ml100k.npz"),
    "eurodist": ("svrg_maps", "eurodist", "eurodist.csv"),
    "music": ("svrg_maps", "music", "music_triplets.npz"),
    "svrg_draws": ("svrg_synthetic", "table_1", "random"),
    "svrg_figure_2": ("svrg_synthetic", "figure_2", "random"),
    "svrg_retrieval": ("svrg_retrieval", "jobs", "mnist.npz"),
    "flows_counts": ("flows_counts", "jobs", "none"),
    "entries": ("flows_rl", "entries", "gymnasium"),
    "flows_sorting": ("flows_sorting", "jobs", "random"),
    "flows_convnet": ("flows_convnet", "jobs", "scikit-learn's digits"),
    "flows_mlp": ("flows_mlp", "jobs", "mnist.npz"),
    "costs": ("costs", "jobs", "random, mnist.npz"),
    "flows_rl": ("flows_rl", "jobs", "gymnasium"),
}
OTHERS = {  # JSON: the commands that write it
    "rotation": "quantization rotation",
    "gpu": "gpu",
    "two_tower_scaling": "two_tower scaling",
    "two_tower_solvers": "two_tower --sets ml100k; two_tower --sets gowalla --seconds 40",
}


class Experiment(NamedTuple):
    """Its jobs for a folder of data and a size, and two sizes: the pages' and one that ends in seconds."""

    jobs: Callable[[Path, Any], Iterable[Any]]
    full: Any
    small: Any


def experiment(name: str) -> Experiment:
    """Made by one module of this folder; imports torch, FAISS, gymnasium."""
    module = import_module(f"benchmarks.papers.{OWN[name][0]}")
    return Experiment(getattr(module, OWN[name][1]), module.FULL, module.SMALL)


def record(source: str) -> dict[str, Any]:
    """What a JSON holds."""
    file = RESULTS / f"{source}.json"
    return read_json(file) if file.exists() else {}


def commits(source: str) -> dict[str, int]:
    """Commit -> how many rows of a JSON were made by it; those that name none count as the file's."""
    found = record(source)
    whole, rows = found.get("commit", ""), found.get("results")
    return Counter(row.get("commit", whole) for row in (rows if isinstance(rows, list) else [{}]))


def sources() -> dict[str, tuple[str, str]]:
    """Every JSON that the papers' pages quote: the command behind `python -m benchmarks`, and its data."""
    own = {f"papers_{name}": (f"papers {name}", data) for name, (_, _, data) in OWN.items()}
    return own | {name: (command, "see its subject") for name, command in OTHERS.items()}


def table() -> Table:
    """How each JSON is made: command, data, CPU minutes, commit."""
    columns = ["JSON", "`python -m benchmarks ...`", "data", "CPU minutes", "rows made by commit"]
    made = Table("papers-made", "How the papers' results are made", columns, "")
    for source, (command, data) in sources().items():
        minutes = record(source).get("settings", {}).get("CPU minutes")
        counts = commits(source)
        shown = (f"{name or 'unknown'}{f' ({count})' * (len(counts) > 1)}" for name, count in counts.items())
        spent = "not kept" if minutes is None else f"{minutes:g}"
        made.rows.append([source, f"`{command}`", data, spent, ", ".join(shown)])
    return made
