"""When and how each result was made: a table for the page."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.options import RESULTS
from benchmarks.papers.others import OTHERS
from benchmarks.stored import read_json
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


@dataclass(frozen=True)
class Source:
    """A JSON and what makes it."""

    name: str
    command: str
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
    for name, (_, _, data) in OWN.items():
        yield Source(f"papers_{name}", f"papers --run {name}", data)
    for name in dict.fromkeys(other.source for other in OTHERS):
        commands = [other.command for other in OTHERS if other.source == name]
        yield Source(name, "; ".join(commands))


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
