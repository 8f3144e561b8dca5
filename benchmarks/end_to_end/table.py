"""The learned index beside one that is made afterwards."""

import statistics
from collections.abc import Iterable

from benchmarks.table import Results, Table, number

REGIMES = {"rotations": "index started early", "late": "index started on finished towers"}


def tables(results: Results) -> Iterable[Table]:
    for name in ("ml100k", "gowalla"):
        found = results.read(f"end_to_end_{name}") or {}
        if "quality" in found:
            yield quality(name, found["quality"]["rows"])
            yield gap(name, found["quality"]["summary"])
        for regime, words in REGIMES.items():
            if regime in found:
                yield rotations(name, regime, words, found[regime])
    speed = results.read("end_to_end_speed")
    if speed:
        columns = [key for key in speed[0] if key not in ("d", "M")]
        table = Table(
            "end-to-end-speed", "The layer, batch 1,024: CPU ms of a step", ["d", "bytes", *columns], "end_to_end_speed"
        )
        table.rows = [[str(row["d"]), str(row["M"]), *(number(row[key]) for key in columns)] for row in speed]
        yield table


def gap(name: str, summary: list[dict]) -> Table:
    """Every measure: exact, afterwards, together, the share of the gap won back and the p of a paired t test."""
    table = Table(
        f"end-to-end-{name}-gap",
        f"{name}: measures through the index",
        ["bytes", "measure", "exact", "OPQ after", "learned together", "share of the gap won back", "p (paired)"],
        f"end_to_end_{name}",
    )
    for row in summary:
        figures = [f"{row[key]:.4f}" for key in ("exact", "after", "joint")]
        clear = row["share"] is not None and row["p"] is not None and row["p"] < 0.05
        share = f"{100 * row['share']:.0f} %" if clear else "not shown"
        table.rows.append([str(row["bytes"]), row["measure"], *figures, share, chance(row["p"])])
    return table


def rotations(name: str, regime: str, words: str, found: dict) -> Table:
    """GCD's Table 1: one row a rule for the rotation, with p against the frozen one."""
    table = Table(
        f"end-to-end-{name}-{regime}",
        f"{name}: the rule for the rotation, {words}",
        ["rotation", "p@100", "r@100", "NDCG@100", "p of r@100 against frozen", "p of NDCG@100", "last distortion"],
        f"end_to_end_{name}",
        f"{1 + max(row['seed'] for row in found['rows'])} seeds; distortion of the first.",
    )
    for row in found["summary"]:
        frozen = row["rotation"] == "frozen"
        figures = [f"{row[key]:.4f}" for key in ("precision@100", "recall@100", "ndcg@100")]
        chances = ["-" if frozen else chance(row.get(f"p {key}")) for key in ("recall@100", "ndcg@100")]
        table.rows.append([row["rotation"], *figures, *chances, f"{found['curves'][row['rotation']][-1]:.5f}"])
    return table


def chance(p: float | None) -> str:
    if p is None:
        return "-"
    return f"{p:.1e}" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def quality(name: str, rows: list[dict]) -> Table:
    """Means over seeds, and the share of the gap between OPQ afterwards and exact search that joint learning closes."""
    runs: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        runs.setdefault((row["way"], row["bytes"]), []).append(row["recall@100"])
    mean = {key: statistics.mean(values) for key, values in runs.items()}
    exact = next(value for (way, _), value in mean.items() if way == "exact")
    table = Table(
        f"end-to-end-{name}",
        f"{name}: recall@100 through the index, k = 64 (exact search {exact:.4f})",
        ["bytes", "OPQ after training", "joint", "share of the gap closed", "seeds"],
        f"end_to_end_{name}",
    )
    for size in sorted({size for way, size in mean if way == "joint"}):
        after, joint = mean["OPQ after", size], mean["joint", size]
        share = f"{100 * (joint - after) / (exact - after):.0f} %" if exact > after else "-"
        table.rows.append([str(size), f"{after:.4f}", f"{joint:.4f}", share, str(len(runs["joint", size]))])
    return table
