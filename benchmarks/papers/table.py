"""The five papers by their short names, and their tables for docs and report."""

from collections.abc import Iterable
from types import ModuleType

from benchmarks.papers import extreme_similarity, flows, gcd, record, scq, svrg_sbb
from benchmarks.table import Results, Table

PAPERS: dict[str, ModuleType] = {
    "gcd": gcd,
    "scq": scq,
    "extreme_similarity": extreme_similarity,
    "svrg_sbb": svrg_sbb,
    "flows": flows,
}


def tables(results: Results) -> Iterable[Table]:
    """Two tables a paper: verdicts and claims."""
    for name, module in PAPERS.items():
        yield from record.tables(name.replace("_", "-"), module.TITLE, [make(results) for make in module.FIGURES])
