"""Vectors from pairs: the tables."""

from collections.abc import Iterable
from statistics import mean
from typing import Any

from benchmarks.table import Results, Table, number
from benchmarks.two_tower.published import PUBLISHED

LISTS = ("popularity", "item-kNN", "graph filter", "EASE")


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
    for name, public in found.get("public", {}).items():
        yield public_table(name, public)
    for name, sized in found.get("bytes", {}).items():
        yield bytes_table(name, sized)
    if "features" in found:
        yield features_table(found["features"])
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


def public_table(name: str, public: dict[str, dict[str, Any]]) -> Table:
    """Recall@20 and NDCG@20 by the published protocol: rows measured here, then rows as papers print them."""
    columns = ["", "numbers a row", "Recall@20", "NDCG@20", "CPU s", "seeds"]
    table = Table(f"two-tower-public-{name}", f"{name}, published protocol", columns, "two_tower")
    for label, row in sorted(public.items(), key=lambda item: -item[1]["recall@20"]):
        measured = [f"{row[key]:.4f}" for key in ("recall@20", "ndcg@20")]
        table.rows.append([label, _dimensions(label), *measured, number(row["seconds"]), str(row["seeds"])])
    for paper in PUBLISHED.get(name, ()):
        figures = [f"{value:.4f}" for value in (paper.recall, paper.ndcg)]
        table.rows.append([f"{paper.method}, printed: {paper.source}", paper.dimensions, *figures, "-", "-"])
    return table


def bytes_table(name: str, sized: dict[str, dict[str, Any]]) -> Table:
    """Recall@20 and NDCG@20 against bytes a right, means over the seeds; CPU seconds of the towers or of the codes."""
    columns = ["", "bytes a right", "", "Recall@20", "NDCG@20", "CPU s", "seeds"]
    table = Table(f"two-tower-bytes-{name}", f"{name}, published protocol, by bytes", columns, "two_tower")
    alike: dict[tuple[int, str, int, str], list[dict[str, Any]]] = {}
    for row in sized.values():
        k = int(row["loss"].rpartition(" ")[2])
        alike.setdefault((k, row["loss"], row["bytes"], row["way"]), []).append(row)
    for (_, loss, n_bytes, way), rows in sorted(alike.items()):
        means = {key: sum(row[key] for row in rows) / len(rows) for key in ("recall@20", "ndcg@20", "seconds")}
        figures = [f"{means[key]:.4f}" for key in ("recall@20", "ndcg@20")]
        table.rows.append([loss, str(n_bytes), way, *figures, number(means["seconds"]), str(len(rows))])
    return table


def features_table(found: dict[str, dict[str, float]]) -> Table:
    """NDCG@20 and Recall@20 of lefts with training pairs and of lefts without, and CPU seconds."""
    keys = ("known ndcg@20", "known recall@20", "unknown ndcg@20", "unknown recall@20")
    columns = ["towers", *(key.replace("ndcg", "NDCG").replace("recall", "Recall") for key in keys), "CPU s", "seeds"]
    table = Table("two-tower-features", "wordnet_minilm: towers over features", columns, "two_tower")
    for label, row in found.items():
        table.rows.append([label, *(f"{row[key]:.3f}" for key in keys), number(row["seconds"]), f"{row['seeds']:g}"])
    return table


def _dimensions(label: str) -> str:
    """What the label says, none for rules on lists, else 64."""
    if "k = " in label:
        return label.rpartition("k = ")[2]
    return "-" if label.startswith(LISTS) else "64"
