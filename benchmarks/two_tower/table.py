"""Vectors from pairs: the tables."""

from collections.abc import Iterable
from statistics import mean

from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    found = results.read("two_tower") or {}
    for name in ("ml100k", "gowalla"):
        if name not in found:
            continue
        table = Table(
            f"two-tower-{name}",
            f"{name}, k = 64: ranking of held-out pairs",
            ["method", "NDCG@100", "Recall@20", "CPU s", "seeds"],
            "two_tower",
        )
        for label, row in sorted(found[name].items(), key=lambda item: -item[1]["ndcg@100"]):
            spread = f" ± {row['ndcg@100 std']:.4f}" if row["seeds"] > 1 else ""
            table.rows.append([label, f"{row['ndcg@100']:.4f}{spread}", f"{row['recall@20']:.4f}",
                               f"{row['seconds']:.2f}", str(row["seeds"])])  # fmt: skip
        yield table
    yield from _updates(results)
    rows = [row for row in found.get("scaling", []) if "m" in row]
    if rows:
        names = ("gradient", "product", "floor", "brute force")
        columns = ["m = n", *names, "gradient / floor"]
        table = Table("two-tower-scaling", "One all-pairs gradient or product, CPU ms", columns, "two_tower")
        for row in rows:
            share = f"{row['gradient'] / row['floor']:.2f}"
            table.rows.append([f"{row['m']:,}", *(number(row.get(name)) for name in names), share])
        yield table


def _updates(results: Results) -> Iterable[Table]:
    """Fold-in and warm start beside a refit."""
    found = results.read("two_tower_updates") or []
    columns = ["data", "what", "NDCG@20 of a refit", "share of it: mean", "lowest", "CPU s", "refit's", "lambda given"]
    table = Table("two-tower-updates", "New users and a night's pairs without a new fit", columns, "two_tower_updates")
    for name, what in dict.fromkeys((row["set"], row["what"]) for row in found):
        mine = [row for row in found if (row["set"], row["what"]) == (name, what)]
        shares = [row["ndcg"] / row["refit"] for row in mine]
        given = [row["lambda given seconds"] for row in mine if "lambda given seconds" in row]
        means = [mean(row[key] for row in mine) for key in ("seconds", "refit seconds")]
        table.rows.append([
            name, what, f"{mean(row['refit'] for row in mine):.4f}", f"{mean(shares):.3f}", f"{min(shares):.3f}",
            *map(number, means), number(mean(given)) if given else "",
        ])  # fmt: skip
    if table.rows:
        yield table
