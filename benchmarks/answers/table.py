"""Bridges between encoders."""

from collections.abc import Iterable
from typing import Any

from benchmarks.table import Results, Table, number, plain


def tables(results: Results) -> Iterable[Table]:
    columns = "old, new | map | NDCG@10: old | bridged | again | share | Recall@100: share | neighbours: share"
    note = "Shares of what embedding again keeps, with 95 % intervals over 2,000 queries."
    title, found = "Queries of a new encoder in the coded index of an old one", results.read("answers_bridge")
    return plain(found, "answers-bridge", title, columns, _line, note=note)


def _line(row: dict[str, Any]) -> list[str]:
    means = [number(row["means"][name]["NDCG@10"]) for name in ("old encoder", "bridged", "again")]
    shares = ["{:.3f} ({:.3f} to {:.3f})".format(*values) for values in row["share"].values()]
    return [f"{row['old']}, {row['new']}", row["kind"], *means, *shares]
