"""The README's table: the one figure of each area that a user should know, from the JSON."""

import math
import statistics
from collections.abc import Iterator

from benchmarks.codecs.table import measured
from benchmarks.quantization.table import code
from benchmarks.table import Results, Table, ratio
from benchmarks.two_tower.rivals import RIVALS


def headlines(results: Results) -> Table:
    """At most eight rows, one or two an area, in words that a stranger reads; what was not measured has none."""
    table = Table("headlines", "Beside what you would otherwise pick", ["you have", "beside", "measured"], "all")
    for part in (_joint, _codecs, _quantization, _ordinal, _two_towers, _hashing, _orthogonal):
        table.rows += list(part(results))
    return table


def _joint(results: Results) -> Iterator[list[str]]:
    """gowalla in 16 bytes an item: towers learned together with their index, beside the best compressed afterwards."""
    rows = (results.read("two_tower") or {}).get("bytes", {}).get("gowalla", {}).values()

    def best(size: int, ending: str) -> tuple[float, str]:
        recalls: dict[str, list[float]] = {}
        for row in [row for row in rows if row["bytes"] == size and row["way"].endswith(ending)]:
            recalls.setdefault(f"{row['loss']}, {row['way']}", []).append(row["recall@20"])
        return max(((statistics.mean(values), name) for name, values in recalls.items()), default=(0.0, ""))

    (together, ours), (after, peer), (exact, _) = best(16, "together"), best(16, "after"), best(256, "exact")
    if ours and peer and exact:
        yield [
            "pairs, and an index", f"towers compressed afterwards, the best ({peer}), gowalla, 16 bytes an item",
            f"Recall@20 {together:.3f} against {after:.3f} ({ours}); exact rows of 64 numbers, 256 bytes: {exact:.3f}",
        ]  # fmt: skip


def _codecs(results: Results) -> Iterator[list[str]]:
    """Half a bit a column of SIFT: the codec that keeps most neighbours, ours beside FAISS's."""
    rows = [row for row in measured(results) if (row["data"], row["bits"]) == ("sift", 0.5) and "recall" in row]
    sides = [[row for row in rows if row["codec"].startswith(name)] for name in ("ours", "FAISS")]
    if all(sides):
        ours, peer = (max(side, key=lambda row: row["recall"]) for side in sides)
        name = peer["codec"].removeprefix("FAISS ")
        yield [
            "vectors", f"the best of FAISS's codes, {name}, sift, {peer['bytes']} bytes",
            f"{ours['recall']:.1%} of ten neighbours kept against {peer['recall']:.1%} (of rows that neither learned "
            f"from), trained in {ours['train_seconds']:.1f} s against {peer['train_seconds']:.1f} s",
        ]  # fmt: skip


def _quantization(results: Results) -> Iterator[list[str]]:
    """FAISS's OPQ at its best: started from the identity, which on SIFT ends far below its default start."""
    for row in (results.read("quantization_faiss") or [])[:1]:
        peer, ours, default = row["FAISS identity, 20"], row["ours to that"], row["ours, default"]
        yield [
            "vectors", f"FAISS's OPQ from its better start, {row['data']}, {code(row)}",
            f"the same error in {ratio(peer['seconds'], ours['seconds'])} less CPU time; "
            f"{100 * (1 - default['distortion'] / peer['distortion']):.1f} % less error at the end",
        ]  # fmt: skip


def _ordinal(results: Results) -> Iterator[list[str]]:
    found = (results.read("ordinal_speed") or {}).get("rows", [])
    for row in [r for r in found if r["loss"] == "ste" and r.get("cblearn") and r["n"] == 1000]:
        ours, peer = row["nearkin"]["auto"], row["cblearn"]
        yield [
            "comparisons", f"cblearn, {row['n']:,} objects, {row['m']:,} answers",
            f"{ratio(1e3 * peer['seconds_to_target'], ours['ms'])} faster to the same error; in the end "
            f"{ours['error']:.1%} of new answers wrong against {peer['error']:.1%}",
        ]  # fmt: skip


def _two_towers(results: Results) -> Iterator[list[str]]:
    """gowalla by the published protocol, 64 numbers a row: our softmax on cosines beside the strongest sampling."""
    rows = (results.read("two_tower") or {}).get("public", {}).get("gowalla", {})
    own = [name for name in rows if name.startswith("CosineSoftmax") and name.endswith("k = 64")]
    sampled = [name for name in rows if name in RIVALS or name == "LightGCN"]
    if own and sampled:
        ours, peer = (max(names, key=lambda name: rows[name]["recall@20"]) for names in (own, sampled))
        figures = [
            f"{rows[name]['recall@20']:.3f} and {rows[name]['ndcg@20']:.3f} in {rows[name]['seconds']:.0f} s"
            for name in (ours, peer)
        ]
        yield [
            "pairs", f"the strongest of {len(sampled)} ways to sample ({peer}), gowalla, 64 numbers a row",
            f"Recall@20 and NDCG@20 {figures[0]} ({ours.removesuffix(', k = 64')}) against {figures[1]}",
        ]  # fmt: skip


def _orthogonal(results: Results) -> Iterator[list[str]]:
    """Our default's time over that of the strongest rival's rule, task by task."""
    shares = {}
    for task, record in (results.read("orthogonal_tasks") or {}).items():
        ours, peer = (record["methods"].get(name, {}).get("seconds") for name in ("riemannian auto", "POGO's rule"))
        if ours and peer and math.isfinite(ours) and math.isfinite(peer):  # infinite: not within the time
            shares[task] = ours / peer
    if shares:
        faster = sum(share < 1 for share in shares.values())
        yield [
            "orthogonal matrices to learn", f"the optimizer POGO (its rule) on {len(shares)} tasks",
            f"faster on {faster}, slower on {len(shares) - faster}: {min(shares.values()):.2f} to "
            f"{max(shares.values()):.2f} of its time to the same loss",
        ]  # fmt: skip


def _hashing(results: Results) -> Iterator[list[str]]:
    """Labels of MNIST: OgE with its scale chosen on training labels, or by default, beside FAISS's ITQ and ours."""
    found = (results.read("hashing") or {}).get("table", {})

    def mean(features: str, method: str, bits: int) -> float | None:
        values = [row["map"] for key, row in found.items() if key.startswith(f"{features}|{method}|{bits}|")]
        return statistics.mean(values) if values else None

    for features, method, bits in (("network", "OgE, scale by labels", 32), ("raw", "OnE, stiefel", 32)):
        ours, itq, peer = (mean(features, name, bits) for name in (method, "ITQ", "FAISS ITQ"))
        if ours and itq and peer:
            data = "network features" if features == "network" else "MNIST pixels"
            yield [
                "vectors, for bits", f"FAISS's ITQ, {data}, {bits} bits",
                f"mAP of labels {ours:.1f} against {peer:.1f} ({method}; our ITQ {itq:.1f})",
            ]  # fmt: skip
