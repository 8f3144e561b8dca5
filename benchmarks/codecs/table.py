"""Codes of every kind at every size, ours beside FAISS's."""

from collections.abc import Iterable

from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    found = results.read("codecs")
    if not found:
        return
    table = Table(
        "codecs",
        "Neighbours kept by codes alone (recall 10@10), 20,000 rows, one thread",
        ["data", "bytes", "codec", "recall", "training: CPU s", "encoding: µs a row", "search: µs a query"],
        "codecs",
        "Encoding by FAISS's own `add` in both columns.",
    )
    for row in found:
        times = (row["train_seconds"], row["encode_microseconds"], row["search_microseconds"])
        table.rows.append([row["data"], str(row["bytes"]), row["codec"], number(row["recall"]), *map(number, times)])
    yield table
