"""Codes of every kind at every size, ours beside FAISS's and ScaNN's."""

from collections.abc import Iterable
from typing import Any

from benchmarks.codecs.problems import SETS
from benchmarks.table import Results, Table, number


def measured(results: Results) -> list[dict[str, Any]]:
    """The rows of all sets, a size after the other."""
    found = [row for name in SETS for row in results.read(f"codecs_{name}") or []]
    return sorted(found, key=lambda row: (SETS.index(row["data"]), row["bits"]))  # stable: as they ran


def tables(results: Results) -> Iterable[Table]:
    found = measured(results)
    if not found:
        return
    table = Table(
        "codecs",
        "Neighbours kept by codes alone (recall 10@10), 16,384 rows learned from, 20,000 others searched, one thread",
        ["data", "bytes", "codec", "recall", "training: CPU s", "encoding: µs a row", "search: µs a query"],
        "codecs_sift",
        "ScaNN learns from the rows that it searches.",
    )
    for row in found:
        times = (row.get(name) for name in ("train_seconds", "encode_microseconds", "search_microseconds"))
        kept = number(row["recall"]) if "recall" in row else row["note"]
        size = str(row.get("bytes", "-"))
        table.rows.append([row["data"], size, row["codec"], kept, *map(number, times)])
    yield table
