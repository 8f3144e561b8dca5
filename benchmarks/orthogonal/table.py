"""Steps on the manifold, and loss against time."""

import math
import statistics
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.table import Results, Table, number

Row = dict[str, Any]


def tables(results: Results) -> Iterable[Table]:
    found = results.read("orthogonal_1t")
    if found:
        columns, title = (
            list(dict.fromkeys(row["size"] for row in found)),
            "One step from a given gradient, CPU ms, one thread",
        )
        yield crossed("orthogonal-step", title, "orthogonal_1t", found, columns, "size", lambda row: number(row["ms"]))
    found = results.read("orthogonal_layouts")
    if found:
        yield layouts(found)
    found = results.read("orthogonal_tasks")
    if found:
        yield tasks(found)
    for name in (f"orthogonal_language_model{suffix}" for suffix in ("", "_3bits", "_d64")):
        yield from language_model(name, results.read(name) or [])


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


def crossed(
    name: str, title: str, source: str, found: list[Row], columns: list[str], across: str, cell: Callable[[Row], str]
) -> Table:
    """A line a method, a column a value of `across`."""
    table = Table(name, title, ["method", *columns], source)
    cells = {(row["method"], row[across]): cell(row) for row in found}
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


def language_model(name: str, found: list[Row]) -> Iterable[Table]:
    """Loss and perplexity of the rounded network, and CPU seconds to SGDG's final loss."""
    if not found:
        return
    columns = ["rotations", "loss", "sd", "perplexity", "CPU s", "of it steps", "s to SGDG's loss", "R'R - I", "lr"]
    shape = ", d = 64, 3 bits" if name.endswith("d64") else ", d = 256, " + ("3 bits" if "3bits" in name else "4 bits")
    title = f"Rotations of a rounded language model{shape}"
    table = Table(name.replace("_", "-"), title, columns, name, "Means of the seeds; the error is the largest.")
    target = _best_sgdg(found)
    for row in found:
        runs = row["runs"]
        losses = [run["loss"] for run in runs]
        spread = statistics.stdev(losses) if len(losses) > 1 else 0.0
        mean = statistics.mean(losses)
        cells = [row["rotations"], f"{mean:.4f}", f"{spread:.4f}", f"{math.exp(mean):.3f}"]
        if "lr" in row:
            took, stepping = (statistics.mean(run[key] for run in runs) for key in ("seconds", "stepping"))
            reached = time_to(_mean_curve(runs), target)
            error = max(run["orthogonality"] for run in runs)
            cells += [number(took), number(stepping), number(reached), f"{error:.1e}", number(row["lr"])]
        table.rows.append([*cells, *["-"] * (len(columns) - len(cells))])
    yield table


def _best_sgdg(found: list[Row]) -> float:
    """The lower of SGDG's mean final losses, with and without momentum."""
    rows = [row for row in found if row["rotations"].startswith("SGDG") and "half" not in row["rotations"]]
    return min((statistics.mean(run["loss"] for run in row["runs"]) for row in rows), default=math.nan)


def _mean_curve(runs: list[dict[str, Any]]) -> list[list[float]]:
    """The mean over the seeds of time and of loss, point by point."""
    return [
        [statistics.mean(values) for values in zip(*points, strict=True)]
        for points in zip(*(run["curve"] for run in runs), strict=False)
    ]


def time_to(curve: list[list[float]], target: float) -> float:
    """When the curve first is at the target; infinite if never."""
    return next((spent for spent, loss in curve if loss <= target), math.inf)
