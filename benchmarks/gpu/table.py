"""What was measured on a GPU, or that none was at hand."""

from collections.abc import Iterable

from benchmarks.gpu.run import FIGURE_4
from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    found = results.read("gpu")
    if not found:
        return
    where = found["device"]
    note = "No GPU was at hand: small sizes on the CPU, which show that the code runs." if where == "cpu" else ""
    sides = list(found["steps"])
    names = list(dict.fromkeys(name for row in found["steps"].values() for name in row))
    for name, title, chosen in (
        ("gpu-figure-4a", "GCD, Figure 4 (a): ms a step by n", FIGURE_4),
        ("gpu-steps", "One step from a given gradient, ms by d", [n for n in names if n not in FIGURE_4]),
    ):
        table = Table(name, f"{title}, {where}", ["method", *sides], "gpu", note)
        table.rows = [[method, *(number(found["steps"][d].get(method)) for d in sides)] for method in chosen]
        yield table
    table = Table("gpu-all-pairs", f"The loss over all pairs, ms, {where}", ["part", "ms"], "gpu", note)
    table.rows = [[part, number(value)] for part, value in found["all pairs"].items()]
    yield table
