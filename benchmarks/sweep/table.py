"""How often the answers of `nearkin sweep` hold on unseen queries, and their bytes beside the best in hindsight."""

from collections.abc import Iterable

from benchmarks.sweep.problems import SETS
from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    table = Table(
        "sweep",
        "The answers of nearkin sweep on queries that it did not see, recall .8 of 10 neighbours wanted",
        [
            "data",
            "answer",
            "bytes",
            "best in hindsight",
            "target met",
            "bytes for the best's: mean",
            "largest",
            "above 1.15",
        ],
        f"sweep_{SETS[0]}",
    )
    for name in SETS:
        rows = results.read(f"sweep_{name}") or []
        for rescored, what in ((False, "by codes alone"), (True, "with exact vectors kept")):
            mine = [row for row in rows if row["rescored"] == rescored]
            found = [row["ratio"] for row in mine if "ratio" in row]
            if not found:
                continue
            sizes, best = sorted({row["bytes"] for row in mine}), sorted({row["best_bytes"] for row in mine})
            table.rows.append([
                name, what, _range(sizes), _range(best), f"{sum(row['met'] for row in mine)} of {len(mine)}",
                number(sum(found) / len(found)), number(max(found)), str(sum(ratio > 1.15 for ratio in found)),
            ])  # fmt: skip
    if table.rows:
        yield table


def _range(values: list[int]) -> str:
    return f"{values[0]}" if len(values) == 1 else f"{values[0]} to {values[-1]}"
