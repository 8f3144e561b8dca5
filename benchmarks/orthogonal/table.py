"""Steps on the manifold, and loss against time."""

import math
from collections.abc import Iterable

from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    found = results.read("orthogonal_1t") or results.read("orthogonal_quick_1t")
    if found:
        sizes = list(found["sizes"])
        names = list(dict.fromkeys(name for size in sizes for name in found["sizes"][size]))
        table = Table(
            "orthogonal-step", "One step from a given gradient, CPU ms, one thread", ["method", *sizes], "orthogonal_1t"
        )
        table.rows = [
            [name, *(number((found["sizes"][size].get(name) or {}).get("ms")) for size in sizes)] for name in names
        ]
        yield table
    yield from tasks(results.read("orthogonal_tasks") or results.read("orthogonal_tasks_quick") or {})


def tasks(found: dict[str, dict]) -> Iterable[Table]:
    """One table of all tasks: CPU ms to the target and, in brackets, how many times faster than POGO's rule."""
    if not found:
        return
    table = Table(
        "orthogonal-tasks",
        "Loss against time: CPU ms to the target (times POGO's rule)",
        ["method", *found],
        "orthogonal_tasks",
        '"no": not within the time; a dash: not run.',
    )
    cells: dict[str, dict[str, str]] = {}
    wins: dict[str, float] = {}
    for task, record in found.items():
        pogo = record["methods"].get("POGO's rule", {}).get("seconds") or math.inf
        for name, row in record["methods"].items():
            seconds = row.get("seconds") or math.inf
            reached = math.isfinite(seconds)
            faster = f" ({pogo / seconds:.2f})" if reached and math.isfinite(pogo) else ""
            cells.setdefault(name, {})[task] = f"{number(1e3 * seconds)}{faster}" if reached else "no"
            wins[name] = wins.get(name, 0) + (pogo / seconds if faster else 0)
    for name in sorted(cells, key=lambda name: -wins[name]):
        table.rows.append([name, *(cells[name].get(task, "-") for task in found)])
    yield table
