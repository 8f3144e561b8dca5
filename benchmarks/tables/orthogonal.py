"""Steps on the manifold, and loss against time."""

import math
from collections.abc import Iterable

from benchmarks.tables.base import Results, Table, number, ratio


def orthogonal(results: Results) -> Iterable[Table]:
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
    for task, record in (results.read("orthogonal_tasks") or {}).items():
        methods = {name: row for name, row in record["methods"].items() if "seconds" in row}
        pogo = methods.get("POGO's rule", {}).get("seconds")
        table = Table(
            f"orthogonal-{task}",
            f"Loss against time: {task}, CPU ms to the target",
            ["method", "CPU ms", "times POGO's rule"],
            "orthogonal_tasks",
        )
        for name, row in sorted(methods.items(), key=lambda item: item[1]["seconds"] or math.inf):
            seconds = row["seconds"]
            ms = number(1e3 * seconds) if seconds and math.isfinite(seconds) else "not within the time"
            table.rows.append([name, ms, ratio(pogo, seconds)])
        yield table
