"""Rotations and product quantizers beside FAISS and nanopq."""

from collections.abc import Iterable
from typing import Any

from benchmarks.table import Results, Table, number, ratio


def tables(results: Results) -> Iterable[Table]:
    found = results.read("quantization_faiss")
    if found:
        peers = [name for name in ("FAISS identity, 20", "FAISS default", "nanopq") if name in found[0]]
        names = {
            "FAISS identity, 20": "ours to that",
            "FAISS default": "ours to default's",
            "nanopq": "ours to nanopq's",
        }
        table = Table(
            "quantization-peers",
            "Learned rotation: CPU seconds of a whole fit until the peer's final held-out distortion",
            [
                "data, code",
                "peer",
                "peer: s",
                "peer: distortion",
                "ours to that: s",
                "faster",
                "our default: s",
                "distortion",
            ],
            "quantization_faiss",
            "FAISS's OPQ from the identity with 20 iterations, its default call, and nanopq's OPQ with its defaults.",
        )
        for row in found:
            for peer in peers:
                theirs, ours, default = row[peer], row.get(names[peer], {}), row["ours, default"]
                if "seconds" not in theirs:
                    table.rows.append(
                        [f"{row['data']}, {code(row)}", peer, theirs.get("note", "not installed"), *"-----"]
                    )
                    continue
                table.rows.append(
                    [f"{row['data']}, {code(row)}", peer, number(theirs["seconds"]), number(theirs["distortion"], 5),
                     number(ours.get("seconds")), ratio(theirs["seconds"], ours.get("seconds")),
                     number(default["seconds"]), number(default["distortion"], 5)]
                )  # fmt: skip
        yield table
    found = results.read("quantization_recall")
    if found:
        kinds = [key for key in found[0] if key != "data"]
        table = Table(
            "quantization-recall", "10-recall@10 of 50,000 rows at equal bytes", ["data", *kinds], "quantization_recall"
        )
        table.rows = [[row["data"], *(f"{row[kind]:.3f}" for kind in kinds)] for row in found]
        yield table
    found = results.read("rotation")
    if found:
        names = ["one product", "GCD-R", "GCD-G", "Cayley", "SVD"]
        updates = found["update_ms"]
        shown = [name for name in names if name in next(iter(updates.values()))]
        table = Table("quantization-update", "One update of the rotation, CPU ms", ["n", *shown], "rotation")
        table.rows = [[n, *(number(row.get(name)) for name in shown)] for n, row in updates.items()]
        yield table


def code(row: dict[str, Any]) -> str:
    return f"{row['M']} bytes" if row["bits"] == 8 else f"{row['M']} x {row['bits']} bits"
