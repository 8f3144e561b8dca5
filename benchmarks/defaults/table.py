"""Every tuned number, and what a default fit loses without it."""

from collections.abc import Iterable
from itertools import groupby

from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    table = Table(
        "defaults",
        "Tuned numbers: points of the figure at another value less those at the default, and the ratio of CPU seconds",
        ["number", "default", "where", "changes"],
        "defaults",
    )
    rows = sorted(results.read("defaults") or [], key=lambda row: (row["field"], row["problem"]))
    for field, group in groupby(rows, key=lambda row: row["field"]):
        for i, row in enumerate(group):
            changes = (
                f"{value}: {found - row['figure']:+.1f} ({taken / row['seconds']:.2g}x)"
                for value, (found, taken) in row["others"].items()
            )
            number_and_value = ("", "") if i else (f"`{field}`", f"`{row['value']}`")
            where = f"{row['problem']} ({number(row['figure'])} {row['unit']})"
            table.rows.append([*number_and_value, where, "; ".join(changes)])
    if table.rows:
        yield table
