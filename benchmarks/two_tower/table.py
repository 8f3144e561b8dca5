"""Vectors from pairs: the tables."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from benchmarks.table import Results, Table, grouped, mean, number, plain

PARTS = ("gradient", "product", "floor", "brute force")
LISTS = ("popularity", "item-kNN", "graph filter", "EASE")


class Paper(NamedTuple):
    method: str
    source: str
    dimensions: str
    recall: float
    ndcg: float


PUBLISHED = {
    "gowalla": (
        Paper("SimpleX", "Mao et al. 2021a", "64", 0.1872, 0.1557),
        Paper("UltraGCN", "Mao et al. 2021b", "64", 0.1862, 0.1580),
        Paper("GF-CF", "Shen et al. 2021", "-", 0.1849, 0.1518),
        Paper("MF with a cosine contrastive loss", "Mao et al. 2021a", "64", 0.1837, 0.1493),
        Paper("LightGCN", "He et al. 2020", "64", 0.1830, 0.1554),
        Paper("EASE", "Mao et al. 2021a", "-", 0.1765, 0.1467),
        Paper("ENMF", "Mao et al. 2021a", "64", 0.1523, 0.1315),
    )
}


def tables(results: Results) -> Iterable[Table]:
    for (name,), rows in grouped(results.read("two_tower_solvers") or [], "set").items():
        columns = ["method", "NDCG@100", "Recall@20", "CPU s", "seeds"]
        table = Table(f"two-tower-{name}", f"{name}, k = 64: ranking of held-out pairs", columns, "two_tower_solvers")
        for row in sorted(rows, key=lambda row: -row["ndcg@100"]):
            spread = f" ± {row['ndcg@100 std']:.4f}" if row["seeds"] > 1 else ""
            figures = [f"{row['ndcg@100']:.4f}{spread}", f"{row['recall@20']:.4f}", f"{row['seconds']:.2f}"]
            table.rows.append([row["way"], *figures, str(row["seeds"])])
        yield table
    yield from _updates(results)
    for (name,), rows in grouped(results.read("two_tower_public") or [], "set").items():
        yield _public(name, rows)
    columns = "log |  | Recall@20 | NDCG@20 | CPU s | seeds"
    title = "One cut in time: the past is fitted, the future ranked"
    yield from plain(results.read("two_tower_by_time"), "two-tower-by-time", title, columns, _later)
    for (name,), rows in grouped(results.read("two_tower_bytes") or [], "set").items():
        yield _bytes(name, rows)
    columns = " | ".join(("m = n", *PARTS, "gradient / floor"))
    title = "One all-pairs gradient or product, CPU ms"
    yield from plain(results.read("two_tower_scaling"), "two-tower-scaling", title, columns, _scaling)


def _scaling(row: dict[str, Any]) -> list[str]:
    return [f"{row['m']:,}", *(number(row.get(name)) for name in PARTS), f"{row['gradient'] / row['floor']:.2f}"]


def _later(row: dict[str, Any]) -> list[str]:
    figures = [f"{row[key]:.4f}" for key in ("recall@20", "ndcg@20")]
    return [row["set"], row["way"], *figures, number(row.get("seconds")), str(row["seeds"])]


def _updates(results: Results) -> Iterable[Table]:
    """Fold-in and warm start beside a refit."""
    found = results.read("two_tower_updates") or []
    columns = ["data", "what", "NDCG@20 of a refit", "share of it, mean", "lowest", "CPU s", "refit's"]
    table = Table("two-tower-updates", "New users and a night's pairs without a new fit", columns, "two_tower_updates")
    for key, rows in grouped(found, "set", "what").items():
        shares = [row["ndcg"] / row["refit"] for row in rows]
        means = [number(sum(row[name] for row in rows) / len(rows)) for name in ("seconds", "refit seconds")]
        share = [f"{sum(shares) / len(shares):.3f}", f"{min(shares):.3f}"]
        table.rows.append([*key, mean(rows, "refit", 4), *share, *means])
    if table.rows:
        yield table


def _public(name: str, rows: list[dict[str, Any]]) -> Table:
    """Recall@20 and NDCG@20 by the published protocol: rows measured here, then rows as papers print them."""
    columns = ["", "numbers a vector", "Recall@20", "NDCG@20", "CPU s", "seeds"]
    table = Table(f"two-tower-public-{name}", f"{name}, published protocol", columns, "two_tower_public")
    for row in sorted(rows, key=lambda row: -row["recall@20"]):
        measured = [f"{row[key]:.4f}" for key in ("recall@20", "ndcg@20")]
        size = row["way"].rpartition("k = ")[2] if "k = " in row["way"] else "64"
        size = "-" if row["way"].startswith(LISTS) else size
        table.rows.append([row["way"], size, *measured, number(row["seconds"]), str(row["seeds"])])
    for paper in PUBLISHED.get(name, ()):
        figures = [f"{value:.4f}" for value in (paper.recall, paper.ndcg)]
        table.rows.append([f"{paper.method}, printed: {paper.source}", paper.dimensions, *figures, "-", "-"])
    return table


def _bytes(name: str, rows: list[dict[str, Any]]) -> Table:
    """Recall@20 and NDCG@20 against bytes a right, means over the seeds; CPU seconds of the towers or of the codes."""
    columns = ["", "bytes an item", "", "Recall@20", "NDCG@20", "CPU s", "seeds"]
    table = Table(f"two-tower-bytes-{name}", f"{name}, published protocol, by bytes", columns, "two_tower_bytes")
    order = {key: int(key[0].rpartition(" ")[2]) for key in grouped(rows, "loss", "bytes", "way")}
    for key, own in sorted(grouped(rows, "loss", "bytes", "way").items(), key=lambda item: (order[item[0]], item[0])):
        figures = [mean(own, measure, 4) for measure in ("recall@20", "ndcg@20")]
        seconds = number(sum(row["seconds"] for row in own) / len(own))
        table.rows.append([key[0], str(key[1]), key[2], *figures, seconds, str(len(own))])
    return table
