"""Cost of one update of a rotation."""

from collections.abc import Iterable

from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    found = results.read("rotation")
    if found:
        names = ["one product", "GCD-R", "GCD-G", "Cayley", "SVD"]
        updates = found["update_ms"]
        shown = [name for name in names if name in next(iter(updates.values()))]
        table = Table("quantization-update", "One update of the rotation, CPU ms", ["n", *shown], "rotation")
        table.rows = [[n, *(number(row.get(name)) for name in shown)] for n, row in updates.items()]
        yield table
