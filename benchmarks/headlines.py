"""The README's table: the one figure of each area that a user should know, from the JSON."""

import math
import statistics
from collections.abc import Iterator

from benchmarks.end_to_end.table import quality
from benchmarks.quantization.table import code
from benchmarks.table import Results, Table, ratio


def headlines(results: Results) -> Table:
    """One row an area and a claim; areas that were not measured have none."""
    table = Table("headlines", "Beside what you would otherwise pick", ["area", "beside", "measured"], "all")
    for row in (results.read("quantization_faiss") or [])[:3]:
        peer, ours, default = row["FAISS default"], row["ours to default's"], row["ours, default"]
        table.rows.append(
            ["rotation + PQ", f"FAISS's OPQ, {row['data']}, {code(row)}",
             f"its distortion in {ratio(peer['seconds'], ours['seconds'])} less CPU time; "
             f"our default ends {100 * (1 - default['distortion'] / peer['distortion']):.0f} % lower"]
        )  # fmt: skip
    found = results.read("ordinal_speed")
    for row in [r for r in (found or {}).get("rows", []) if r["loss"] == "ste" and r.get("cblearn")]:
        ours, peer = row["nearkin"]["auto"], row["cblearn"]
        table.rows.append(
            ["ordinal (STE)", f"cblearn, {row['n']:,} objects, {row['m']:,} answers",
             f"{ratio(1e3 * peer['seconds_to_target'], ours['ms'])} faster to error 0.15; "
             f"final error {ours['error']:.3f} against {peer['error']:.3f}"]
        )  # fmt: skip
    found = results.read("two_tower") or {}
    for name in ("ml100k", "gowalla"):
        rows = found.get(name, {})
        if "implicit als" in rows and "als, tuned" in rows:
            ours, peer = rows["als, tuned"], rows["implicit als"]
            table.rows.append(
                ["two towers", f"implicit's ALS, {name}, k = 64, both tuned",
                 f"NDCG@100 {ours['ndcg@100']:.3f} in {ours['seconds']:.2g} s against "
                 f"{peer['ndcg@100']:.3f} in {peer['seconds']:.2g} s"]
            )  # fmt: skip
    table.rows += list(_hashing(results))
    for task, record in (results.read("orthogonal_tasks") or {}).items():
        ours, peer = (
            record["methods"].get(name, {}).get("seconds") for name in ("riemannian newton-schulz", "POGO's rule")
        )
        if ours and peer and math.isfinite(ours) and math.isfinite(peer):  # infinite: not within the time
            table.rows.append(
                ["orthogonal", f"POGO's rule, {task}", f"our default takes {ours / peer:.2f} of its time"]
            )
    for name in ("ml100k", "gowalla"):
        found = results.read(f"end_to_end_{name}") or {}
        for size, after, joint, share, _ in quality(name, found["quality"]["rows"]).rows if "quality" in found else []:
            table.rows.append(
                ["index learned jointly", f"the same towers, then OPQ, {name}, {size} bytes",
                 f"recall@100 {joint} against {after}: {share} of the gap to exact search"]
            )  # fmt: skip
    return table


def _hashing(results: Results) -> Iterator[list[str]]:
    """Labels of MNIST: OgE with its scale chosen on training labels, or by default, beside FAISS's ITQ and ours."""
    found = (results.read("hashing") or {}).get("table", {})

    def mean(features: str, method: str, bits: int) -> float | None:
        values = [row["map"] for key, row in found.items() if key.startswith(f"{features}|{method}|{bits}|")]
        return statistics.mean(values) if values else None

    chosen = {"network": ("OgE, scale by labels", (16, 24, 32)), "raw": ("OnE, stiefel", (32,))}
    for features, (method, sizes) in chosen.items():
        for bits in sizes:
            ours, itq, peer = (mean(features, name, bits) for name in (method, "ITQ", "FAISS ITQ"))
            if ours and itq and peer:
                data = "network features" if features == "network" else "MNIST pixels"
                yield [
                    "hashing", f"FAISS's ITQ, {data}, {bits} bits",
                    f"{method}: mAP of labels {ours:.1f} against {peer:.1f}; our ITQ {itq:.1f}",
                ]  # fmt: skip
