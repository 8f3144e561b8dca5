"""Cost of one update of a rotation."""

from collections.abc import Iterable

from benchmarks.table import Results, Table, number, plain

NAMES = ("one product", "GCD-R", "GCD-G", "Cayley", "SVD")


def tables(results: Results) -> Iterable[Table]:
    title, columns, found = "One update of the rotation, CPU ms", " | ".join(("n", *NAMES)), results.read("rotation")
    return plain(
        found, "quantization-update", title, columns, lambda row: [str(row["n"]), *(number(row[n]) for n in NAMES)],
        "rotation",
    )  # fmt: skip
