"""The README's table: one row an area, the plain call beside the strongest rival and that rival's default or the usual
choice, from the JSON."""

import statistics
from collections.abc import Iterator

from benchmarks.codecs.table import leaders, measured
from benchmarks.orthogonal.table import times_faster
from benchmarks.table import Results, Table


def headlines(results: Results) -> Table:
    """One row an area; what was not measured has none."""
    columns = ["data and measure", "nearkin", "strongest rival", "usual choice", "call"]
    table = Table("headlines", "Measured", columns, "all")
    for part in (_codes, _pairs, _comparisons, _bits, _orthogonal):
        table.rows += list(part(results))
    return table


def _codes(results: Results) -> Iterator[list[str]]:
    """8 bytes a vector of SIFT: plain calls, FAISS's best codec and its OPQ."""
    rows = [row for row in measured(results) if (row["data"], row["bits"]) == ("sift", 0.5)]
    lead = leaders([row for row in rows if "recall" in row])
    if {"ours, compress", "FAISS OPQ"} <= lead.keys():
        ours, peer, usual = lead["ours, compress"], lead["FAISS, its best"], lead["FAISS OPQ"]
        yield [
            f"SIFT, {ours['bytes']} bytes a vector: recall@10",
            f"**{ours['recall']:.3f}**, {ours['train_seconds']:.0f} s",
            f"FAISS, the best of a dozen codecs by these queries: {peer['recall']:.3f}, {peer['train_seconds']:.0f} s",
            f"FAISS OPQ: {usual['recall']:.3f}, {usual['train_seconds']:.0f} s",
            "`nearkin compress X.npy --bytes 8`",
        ]


def _pairs(results: Results) -> Iterator[list[str]]:
    """Gowalla by the published protocol, 64 numbers a vector."""
    rows = {row["way"]: row for row in results.read("two_tower_public") or [] if row["set"] == "gowalla"}
    ours, usual, graph = rows.get("the default, k = 64"), rows.get("implicit als"), rows.get("LightGCN")
    filters = [row for name, row in rows.items() if name.startswith("graph filter")]
    if ours and usual and graph and filters:
        best = max(filters, key=lambda row: row["recall@20"])
        yield [
            "Gowalla, 10^6 pairs, 64 numbers a vector: Recall@20",
            f"**{ours['recall@20']:.3f}**, {ours['seconds']:.0f} s ({ours['seeds']} seed{'s' * (ours['seeds'] != 1)})",
            f"LightGCN {graph['recall@20']:.3f}, {graph['seconds']:.0f} s; a graph filter, which has no vectors, "
            f"{best['recall@20']:.3f}, {best['seconds']:.0f} s",
            f"implicit's ALS: {usual['recall@20']:.3f}, {usual['seconds']:.0f} s",
            "`nk.TwoTower(64)`",
        ]


def _comparisons(results: Results) -> Iterator[list[str]]:
    """100,000 answers about 1,000 objects: our STE, cblearn's best loss and its STE."""
    rows = [row for row in results.read("ordinal_speed") or [] if row["n"] == 1000 and row.get("cblearn")]
    ste = next((row for row in rows if row["loss"] == "ste"), None)
    if ste is None:
        return
    best = min(rows, key=lambda row: row["cblearn"]["error"])
    ours, peer, usual = ste["plain"], best["cblearn"], ste["cblearn"]
    yield [
        f"{ste['m']:,} answers on {ste['n']:,} objects: error on new answers",
        f"**{ours['error']:.3f}**, {ours['seconds']:.1f} s",
        f"cblearn, its best loss ({best['loss']}): {peer['error']:.3f}, {peer['seconds']:.1f} s",
        f"cblearn, STE: {usual['error']:.3f}, {usual['seconds']:.1f} s",
        '`nk.OrdinalEmbedding(10, loss="ste")`',
    ]


def _bits(results: Results) -> Iterator[list[str]]:
    """Labels of network features: OgE with and without the training set's labels, and FAISS's ITQ."""
    found = results.read("hashing_labels") or []

    def shown(method: str) -> str:
        values = [row["map"] for row in found if (row["set"], row["method"], row["bits"]) == ("network", method, 32)]
        return f"{statistics.mean(values):.0f} ± {statistics.stdev(values):.0f}" if len(values) > 1 else ""

    ours, plain, peer, usual = (shown(name) for name in ("OgE, with labels", "OgE", "ITQ", "FAISS ITQ"))
    if ours and plain and peer and usual:
        yield [
            "features of digits that the network never saw, 32 bits: mAP in % (deviation over seeds)",
            f"**{ours}** with labels, {plain} without",
            f"ITQ, ours: {peer}",
            f"FAISS ITQ: {usual}",
            "`nk.OgE(32).fit(X, y)`",
        ]


def _orthogonal(results: Results) -> Iterator[list[str]]:
    """Our default's time over that of the strongest rival's rule, task by task; a tie where seeds disagree."""
    rows = {(row["task"], row["method"]): row for row in results.read("orthogonal_tasks") or []}
    faster = list[list[float]]()  # than POGO's rule, by task and seed
    for task in dict.fromkeys(task for task, _ in rows):
        ours, peer = (rows.get((task, name)) for name in ("riemannian auto", "POGO's rule"))
        if ours and peer:
            faster.append(times_faster(ours["all"], peer["all"]))
    if faster:
        sooner, later = sum(min(times) > 1 for times in faster), sum(max(times) < 1 for times in faster)
        medians = [statistics.median(times) for times in faster]
        yield [
            f"{len(faster)} tasks on O(d) and Stiefel: time to the same loss",
            f"**sooner on {sooner}**, tied on {len(faster) - sooner - later}, later on {later}",
            f"POGO's rule, tuned alike: takes {min(medians):.2f} to {max(medians):.1f} times as long",
            "-",
            "`nk.orthogonal.orthogonal_optimizer(params, lr)`",
        ]
