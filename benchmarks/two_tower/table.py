"""Vectors from pairs: the tables."""

from collections.abc import Iterable

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
    rows = [row for row in found.get("scaling", []) if "m" in row]
    if rows:
        names = ("gradient", "product", "floor", "brute force")
        columns = ["m = n", *names, "gradient / floor"]
        table = Table("two-tower-scaling", "One all-pairs gradient or product, CPU ms", columns, "two_tower")
        for row in rows:
            share = f"{row['gradient'] / row['floor']:.2f}"
            table.rows.append([f"{row['m']:,}", *(number(row.get(name)) for name in names), share])
        yield table
