"""Neighbours that engines' own codes keep, by rotation."""

from collections.abc import Iterable
from typing import Any

from benchmarks.engines.run import CODECS, ROTATIONS, SETS
from benchmarks.table import Results, Table, number, plain


def tables(results: Results) -> Iterable[Table]:
    columns = " | ".join(("data", "engine and codec", *ROTATIONS, "gain over random", "which rotation won"))
    title = "Neighbours kept by an engine's codes alone (recall 10@10), measured in the engine"
    note = "16,384 rows learned from, 10,000 others searched by 1,000 queries."
    found, names = results.read("engines") or [], list(CODECS)
    found = sorted(found, key=lambda row: (SETS.index(row["data"]), names.index(row["codec"])))
    return plain(found, "engines", title, columns, _line, note=note)


def _line(row: dict[str, Any]) -> list[str]:
    if ROTATIONS[0] not in row:
        return [row["data"], row["codec"], *"----", row["version"]]
    gain = f"{100 * (row['nk.Rotation'] - row['random']):+.1f} points"
    kept = [number(row[way]) for way in ROTATIONS]
    return [row["data"], f"{row['codec']} ({row['version']})", *kept, gain, row["chosen"]]
