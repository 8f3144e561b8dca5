"""Neighbours that engines' own codes keep, by rotation."""

from collections.abc import Iterable

from benchmarks.engines.run import CODECS, ROTATIONS, SETS
from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    found = results.read("engines")
    if not found:
        return
    table = Table(
        "engines",
        "Neighbours kept by an engine's codes alone (recall 10@10), measured in the engine",
        ["data", "engine and codec", *ROTATIONS, "learned above random", "which rotation won"],
        "engines",
        "16,384 rows learned from, 10,000 others searched by 1,000 queries.",
    )
    order = {(data, codec): place for place, (data, codec) in enumerate((d, c) for d in SETS for c in CODECS)}
    for row in sorted(found, key=lambda row: order[row["data"], row["codec"]]):
        if ROTATIONS[0] not in row:
            table.rows.append([row["data"], row["codec"], "-", "-", "-", "-", row["version"]])
            continue
        gain = f"{100 * (row['nk.Rotation'] - row['random']):+.1f} points"
        kept = [number(row[way]) for way in ROTATIONS]
        table.rows.append([row["data"], f"{row['codec']} ({row['version']})", *kept, gain, row["chosen"]])
    yield table
