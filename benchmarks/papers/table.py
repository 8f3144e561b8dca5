"""The five papers by their short names, and their tables for docs and report."""

from collections.abc import Iterable
from types import ModuleType

from benchmarks.papers import experiments, extreme_similarity, flows, gcd, record, scq, svrg_sbb
from benchmarks.table import Results, Table

PAPERS: dict[str, ModuleType] = {
    "gcd": gcd,
    "scq": scq,
    "extreme_similarity": extreme_similarity,
    "svrg_sbb": svrg_sbb,
    "flows": flows,
}


HEADLINES = {  # a paper: whom to cite, what it claims, the row that decides
    "gcd": ("GCD, Jiang et al. 2022", "Givens steps learn rotations as well as OPQ, with far cheaper updates",
            "Fig. 2 (a)"),
    "scq": ("SCQ, Hoang et al. 2020", "OnE and OgE retrieve classes better than ITQ and three other hashers",
            "Table 2, network features"),
    "extreme_similarity": ("ESL, Yuan et al. 2021", "all m x n pairs at the cost of m + n, better than sampling",
                           "Section 1: all pairs, networks"),
    "svrg_sbb": ("SVRG-SBB, Ma et al. 2021", "an adaptive step is ahead of SVRG, SGD and batches with fixed steps",
                 "Fig. 2"),
    "flows": ("Flows, Choromanski et al. 2020", "cheap stochastic steps on O(d); orthogonal networks learn better",
              "Fig. 5"),
}  # fmt: skip


def headlines(results: Results) -> Table:
    """A line a paper: its headline, how many of its claims hold here, the figures that decide."""
    columns = ["paper", "its headline", "here", "deciding figure"]
    table = Table("papers-headlines", "The papers in five lines", columns, "")
    for name, (cited, headline, row) in HEADLINES.items():
        figures = [figure for figure in (make(results) for make in PAPERS[name].FIGURES) if not figure.ours]
        judged = [holds for figure in figures for holds in figure.judged]
        verdict = "held" if all(judged) else "held in part" if any(judged) else "not held"
        [decides] = [f"{figure.name}: {figure.decides}" for figure in figures if figure.name == row]
        table.rows.append([cited, headline, f"**{verdict}**: {sum(judged)} of {len(judged)} claims", decides])
    return table


def tables(results: Results) -> Iterable[Table]:
    """How all was made, and four tables a paper: verdicts in its settings and in ours, protocols, claims."""
    yield headlines(results)
    yield experiments.table()
    for name, module in PAPERS.items():
        yield from record.tables(name.replace("_", "-"), module.TITLE, [make(results) for make in module.FIGURES])
