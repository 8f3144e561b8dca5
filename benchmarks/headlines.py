"""The README's table: five sentences that need no knowledge of the field, each with its call, from the JSON."""

import math
import statistics
from collections.abc import Iterator

from benchmarks.codecs.table import leaders, measured
from benchmarks.table import Results, Table
from benchmarks.two_tower.rivals import RIVALS


def headlines(results: Results) -> Table:
    """One row an area; what was not measured has none."""
    table = Table("headlines", "Measured", ["you have", "measured", "call"], "all")
    for part in (_codes, _pairs, _comparisons, _bits, _orthogonal):
        table.rows += list(part(results))
    return table


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def _codes(results: Results) -> Iterator[list[str]]:
    """8 bytes a row of SIFT: plain calls, FAISS's best code and its OPQ."""
    rows = [row for row in measured(results) if (row["data"], row["bits"]) == ("sift", 0.5)]
    lead = leaders([row for row in rows if "recall" in row])
    if {"ours, compress", "ours, product", "FAISS OPQ"} <= lead.keys():
        ours, peer = lead["ours, compress"], lead["FAISS, its best"]
        yield [
            "vectors",
            f"{ours['bytes']} bytes a vector on SIFT: {_percent(ours['recall'])} of the ten nearest are kept, "
            f"with FAISS's best code {_percent(peer['recall'])}; "
            f"learning is {peer['train_seconds'] / ours['train_seconds']:.1f} times faster.",
            f"`nearkin compress X.npy --bytes 8`; `nk.ProductQuantizer(8)` keeps "
            f"{_percent(lead['ours, product']['recall'], 1)}, FAISS's OPQ {_percent(lead['FAISS OPQ']['recall'], 1)}",
        ]


def _pairs(results: Results) -> Iterator[list[str]]:
    """gowalla by the published protocol, 64 numbers a row: our default, all pairs, and the strongest rival."""
    rows = {row["way"]: row for row in results.read("two_tower_public") or [] if row["set"] == "gowalla"}
    ours, shortest = rows.get("the default, k = 64"), rows.get("all pairs, k = 64")
    sampled = [name for name in rows if name in RIVALS or name == "LightGCN"]
    if ours and shortest and sampled:
        peer = max(sampled, key=lambda name: rows[name]["recall@20"])
        yield [
            "pairs: who took what",
            f"Gowalla, a million visits: 20 suggestions contain {_percent(ours['recall@20'], 1)} of a user's held-out "
            f"places, learned in {ours['seconds']:.0f} s; with {peer} {_percent(rows[peer]['recall@20'], 1)} in "
            f"{rows[peer]['seconds']:.0f} s." + _without_vectors(rows),
            '`nk.TwoTower(64)`, the default, which chooses its loss; `loss="all-pairs"` has '
            f"{_percent(shortest['recall@20'], 1)} in {shortest['seconds']:.0f} s",
        ]


def _without_vectors(rows: dict[str, dict[str, float]]) -> str:
    """The best of the filters, which rank from the table of pairs itself."""
    shares = [row["recall@20"] for name, row in rows.items() if name.startswith("graph filter")]
    return f" A graph filter, which learns no vectors, has {_percent(max(shares), 1)}." if shares else ""


def _comparisons(results: Results) -> Iterator[list[str]]:
    found = results.read("ordinal_speed") or []
    for row in [r for r in found if r["loss"] == "ste" and r.get("cblearn") and r["n"] == 1000]:
        ours, peer = row["plain"], row["cblearn"]
        yield [
            "comparisons: a is more like b than c",
            f"{row['m']:,} answers about {row['n']:,} things: {_percent(ours['error'], 1)} of new answers are "
            f"predicted wrongly after {ours['seconds']:.1f} s, with cblearn {_percent(peer['error'], 1)} after "
            f"{peer['seconds']:.1f} s.",
            "`nk.OrdinalEmbedding(10)`",
        ]


def _bits(results: Results) -> Iterator[list[str]]:
    """Labels of network features: OgE fitted with the training rows' labels, and FAISS's ITQ."""
    found = results.read("hashing_labels") or []

    def mean(method: str) -> float | None:
        values = [row["map"] for row in found if (row["set"], row["method"], row["bits"]) == ("network", method, 32)]
        return statistics.mean(values) if values else None

    ours, default, peer = (mean(name) for name in ("OgE, with labels", "OgE", "FAISS ITQ"))
    if ours and default and peer:
        yield [
            "vectors and labels",
            f"32 bits an image, digits that the network never saw: ranked by bits, images of the same digit come first "
            f"with a precision of {ours:.0f} %, with FAISS's ITQ of {peer:.0f} % (mean average precision).",
            f"`nk.OgE(32).fit(X, y)`; `fit(X)`, without labels, has {default:.0f} %",
        ]


def _orthogonal(results: Results) -> Iterator[list[str]]:
    """Our default's time over that of the strongest rival's rule, task by task."""
    shares = {}
    seconds = {(row["task"], row["method"]): row["seconds"] for row in results.read("orthogonal_tasks") or []}
    for task in dict.fromkeys(task for task, _ in seconds):
        ours, peer = (seconds.get((task, name)) for name in ("riemannian auto", "POGO's rule"))
        if ours and peer and math.isfinite(ours) and math.isfinite(peer):  # infinite: not within the time
            shares[task] = ours / peer
    if shares:
        faster = sum(share < 1 for share in shares.values())
        yield [
            "orthogonal matrices to train",
            f"On {faster} of {len(shares)} tasks the same loss is reached sooner than with the optimizer POGO, on "
            f"{len(shares) - faster} later: in {min(shares.values()):.2f} to {max(shares.values()):.2f} of its time.",
            "`nk.orthogonal.orthogonal_optimizer(params, lr, momentum)`, both tuned alike",
        ]
