"""Steps on the manifold, and loss against time."""

import math
import statistics
from collections.abc import Iterable
from typing import Any

from benchmarks.table import Results, Table, number

Row = dict[str, Any]


def tables(results: Results) -> Iterable[Table]:
    for source, make in (("orthogonal_1t", steps), ("orthogonal_layouts", layouts), ("orthogonal_tasks", tasks)):
        found = results.read(source)
        if found:
            yield make(found)


def layouts(found: list[Row]) -> Table:
    """A line a shape, a column a kind of CPU and layout: how many times faster than POGO's rule the plain call is."""
    title = "One step of `orthogonal_optimizer`: POGO's time over ours (quartiles)"
    rows = [row for row in found if row["method"] == "POGO's rule"]
    columns = list(dict.fromkeys((row["kind"], row["layout"]) for row in rows))
    table = Table("orthogonal-layouts", title, ["shape", *(", ".join(pair) for pair in columns)], "orthogonal_layouts")
    cells = {
        (row["size"], row["kind"], row["layout"]): f"{row['ratio']:.2f} ({' to '.join(map(number, row['quartiles']))})"
        for row in rows
    }
    for size in dict.fromkeys(row["size"] for row in rows):
        table.rows.append([size, *(cells.get((size, *pair), "-") for pair in columns)])
    return table


def steps(found: list[Row]) -> Table:
    """A line a method, a column a size."""
    columns, title = list(dict.fromkeys(row["size"] for row in found)), "One step from a given gradient, CPU ms"
    table = Table("orthogonal-step", f"{title}, one thread", ["method", *columns], "orthogonal_1t")
    cells = {(row["method"], row["size"]): number(row["ms"]) for row in found}
    for method in dict.fromkeys(row["method"] for row in found):
        table.rows.append([method, *(cells.get((method, column), "-") for column in columns)])
    return table


def tasks(found: list[Row]) -> Table:
    """CPU ms to the target of all tasks and, in brackets, how many times faster than POGO's rule: median, lowest and
    highest of the seeds, at which methods took turns."""
    names = list(dict.fromkeys(row["task"] for row in found))
    title, note = (
        "Loss against time: CPU ms to the target (times POGO's rule)",
        '"no": not within the time; a dash: not run.',
    )
    table = Table("orthogonal-tasks", title, ["method", *names], "orthogonal_tasks", note)
    pogo = {row["task"]: row["all"] for row in found if row["method"] == "POGO's rule"}
    wins: dict[str, float] = {}
    cells: dict[tuple[str, str], str] = {}
    for row in found:
        times = times_faster(row["all"], pogo.get(row["task"], []))
        reached = math.isfinite(row["seconds"] or math.inf)
        low, high = min(times, default=1.0), max(times, default=1.0)
        faster = f" ({statistics.median(times):.2f}{f', {low:.2f}-{high:.2f}' * (low < high)})" if times else ""
        cells[row["method"], row["task"]] = f"{number(1e3 * row['seconds'])}{faster}" if reached else "no"
        wins[row["method"]] = wins.get(row["method"], 0) + (statistics.median(times) if times and reached else 0)
    for method in sorted(wins, key=lambda method: -wins[method]):
        table.rows.append([method, *(cells.get((method, name), "-") for name in names)])
    return table


def times_faster(own: list[float], theirs: list[float]) -> list[float]:
    """The ratio of their time to the own, seed by seed; seeds at which neither arrived have none."""
    pairs = [pair for pair in zip(own, theirs, strict=False) if math.isfinite(min(pair))]
    return [their / mine if math.isfinite(mine) else 0.0 for mine, their in pairs]
