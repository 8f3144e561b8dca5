"""Several processes, and growth with size."""

import math
from collections.abc import Iterable

from benchmarks.table import Results, Table, grouped, number

LEAST = {"seconds": 0.05, "mb": 5}  # smaller figures have no exponent


def tables(results: Results) -> Iterable[Table]:
    found = results.read("scale") or {}
    if "rates" in found:
        columns = ["job", "1 process", "2 processes", "faster by CPU", "faster by the clock"]
        table = Table("scale-rates", "Rows (or pairs) a second, one thread a process", columns, "scale")
        for name, task in found["rates"]["tasks"].items():
            rates = [number(task["count"] / task["seconds"][p]["cpu"]) for p in ("1", "2")]
            table.rows.append([name, *rates, *(f"{task['speedup'][kind]:.2f}x" for kind in ("cpu", "wall"))])
        yield table
    columns = ["call", "n", "CPU s at n / 100", "at n / 10", "CPU s", "exponent", "MB at n / 10", "MB", "its exponent"]
    table = Table(
        "scale-growth", "CPU seconds and memory against size; exponents of the last decade", columns, "growth"
    )
    for (call,), rows in grouped(results.read("growth") or [], "call").items():
        found = {row["n"]: row for row in rows}
        n = max(found)
        cells = [call, f"{n:,}"]
        for measure, sizes in (("seconds", (n // 100, n // 10, n)), ("mb", (n // 10, n))):
            values = [found[size][measure] if size in found else math.nan for size in sizes]
            exponent = f"{math.log10(values[-1] / values[-2]):.2f}" if min(values[-2:]) >= LEAST[measure] else "-"
            cells += [*map(number, values), exponent]
        table.rows.append(cells)
    if table.rows:
        yield table
