"""Bridges between encoders."""

from collections.abc import Iterable

from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    found = results.read("answers_bridge")
    if found:
        table = Table(
            "answers-bridge",
            "Queries of a new encoder in the coded index of an old one",
            ["old, new", "map", "NDCG@10: old", "bridged", "again", "share", "Recall@100: share", "neighbours: share"],
            "answers_bridge",
            "Shares of what embedding again keeps, with 95 % intervals over 2,000 queries.",
        )
        for row in found:
            means = [number(row["means"][name]["NDCG@10"]) for name in ("old encoder", "bridged", "again")]
            shares = ["{:.3f} ({:.3f} to {:.3f})".format(*values) for values in row["share"].values()]
            table.rows.append([f"{row['old']}, {row['new']}", row["kind"], *means, *shares])
        yield table
