"""Every tuned number, and what a default fit loses without it."""

from collections.abc import Iterable

from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    rows = results.read("defaults") or []
    table = Table(
        "defaults",
        "Tuned numbers: points of the figure at another value less those at the default, and the ratio of CPU seconds",
        ["number", "default", "problem", "figure", "at other values"],
        "defaults",
    )
    for row in sorted(rows, key=lambda row: row["field"]):
        changes = [
            f"{value}: {found - row['figure']:+.1f} ({taken / row['seconds']:.2g}x)"
            for value, (found, taken) in row["others"].items()
        ]
        figure = f"{number(row['figure'])} {row['unit']}"
        table.rows.append([f"`{row['field']}`", row["value"], row["problem"], figure, "; ".join(changes)])
    if table.rows:
        yield table
