"""The learned index beside one that is made afterwards."""

import statistics
from collections.abc import Iterable

from benchmarks.tables.base import Results, Table, number


def end_to_end(results: Results) -> Iterable[Table]:
    for name in ("ml100k", "gowalla"):
        found = results.read(f"end_to_end_{name}") or {}
        if "quality" in found:
            yield quality(name, found["quality"]["rows"])
    speed = results.read("end_to_end_speed")
    if speed:
        columns = [key for key in speed[0] if key not in ("d", "M")]
        table = Table(
            "end-to-end-speed", "The layer, batch 1,024: CPU ms of a step", ["d", "bytes", *columns], "end_to_end_speed"
        )
        table.rows = [[str(row["d"]), str(row["M"]), *(number(row[key]) for key in columns)] for row in speed]
        yield table


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
