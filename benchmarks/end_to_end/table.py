"""The learned index beside one that is made afterwards."""

import statistics
from collections.abc import Iterable
from typing import Any

from scipy.stats import ttest_rel

from benchmarks.end_to_end.problems import KEYS
from benchmarks.table import Results, Table, grouped


def tables(results: Results) -> Iterable[Table]:
    for (name,), rows in grouped(results.read("end_to_end") or [], "set").items():
        yield gap(name, rows)


def gap(name: str, rows: list[dict[str, Any]]) -> Table:
    """Every measure: exact, afterwards, together, the share of the gap won back and the p of a paired t test."""
    table = Table(
        f"end-to-end-{name}-gap",
        f"{name}: measures through the index",
        ["bytes", "measure", "exact", "OPQ after", "trained together", "share of the gap won back", "p (paired)"],
        "end_to_end",
    )
    runs = grouped(rows, "way", "bytes")
    for size in sorted({size for _, size in runs} - {256}):
        for key in KEYS:
            exact, after, joint = (
                [row[key] for row in runs[way]] for way in (("exact", 256), ("OPQ after", size), ("joint", size))
            )
            top, low, high = map(statistics.mean, (exact, after, joint))
            p = float(ttest_rel(after, joint).pvalue) if len(after) > 1 else None
            share = f"{100 * (high - low) / (top - low):.0f} %" if top > low and p and p < 0.05 else "not shown"
            figures = [f"{value:.4f}" for value in (top, low, high)]
            table.rows.append([str(size), key, *figures, share, chance(p)])
    return table


def chance(p: float | None) -> str:
    if p is None:
        return "-"
    return f"{p:.1e}" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
