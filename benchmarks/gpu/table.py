"""What was measured on a GPU, and on the CPU beside it."""

from collections.abc import Iterable

from benchmarks.gpu.run import FIGURE_4
from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    found = results.read("gpu")
    if not found:
        return
    where, devices = found["device"], list(found["steps"])
    note = "No GPU was at hand: small sizes on the CPU, which show that the code runs." if where == "cpu" else ""
    sides = list(found["steps"][devices[0]])
    names = list(found["steps"][devices[0]][sides[0]])
    for name, title, chosen in (
        ("gpu-figure-4a", "GCD, Figure 4 (a): ms a step by n", FIGURE_4),
        ("gpu-steps", "One step from a given gradient, ms by d", [n for n in names if n not in FIGURE_4]),
    ):
        table = Table(name, f"{title}, {where}", ["method", "device", *sides], "gpu", note)
        table.rows = [
            [method, on, *(number(found["steps"][on][d].get(method)) for d in sides)]
            for method in chosen
            for on in devices
        ]
        yield table
    for name, title, parts in (
        ("gpu-all-pairs", "The loss over all pairs, ms", found["all pairs"]),
        ("gpu-towers", "TwoTower with networks, ms", found["towers"]),
        ("gpu-layers", "A training step through the indexing layer, ms by rotation", found["layers"]),
    ):
        table = Table(name, f"{title}, {where}", ["part", *devices], "gpu", note)
        table.rows = [[part, *(number(parts[on][part]) for on in devices)] for part in parts[devices[0]]]
        yield table
