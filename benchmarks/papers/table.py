"""The five papers by their short names, and their tables for docs and report."""

from collections.abc import Iterable
from types import ModuleType

from benchmarks.papers import extreme_similarity, flows, gcd, scq, svrg_sbb
from benchmarks.papers.record import tables
from benchmarks.table import Results, Table

PAPERS: dict[str, ModuleType] = {
    "gcd": gcd,
    "scq": scq,
    "extreme_similarity": extreme_similarity,
    "svrg_sbb": svrg_sbb,
    "flows": flows,
}


def papers(results: Results) -> Iterable[Table]:
    """Two tables a paper: verdicts and claims."""
    for name, module in PAPERS.items():
        yield from tables(name.replace("_", "-"), module.TITLE, [make(results) for make in module.FIGURES])
