"""Tables of what was measured, from the JSON: one function an area, for the report, README and docs alike."""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Table:
    """Rows of text, ready to be set as HTML or Markdown; `source` names the JSON."""

    name: str
    title: str
    columns: list[str]
    source: str
    note: str = ""
    rows: list[list[str]] = field(default_factory=list)


class Results:
    """The JSON of one folder; what was not run is None."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> Any:
        file = self.folder / f"{name}.json"
        if not file.exists():
            return None
        content = json.loads(file.read_text(encoding="utf-8"))
        return content["results"] if isinstance(content, dict) and "results" in content else content


def number(value: Any, digits: int = 3) -> str:
    """Three figures, and a dash for what was not reached or not measured."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, str):
        return value
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{float(f'{value:.{digits}g}'):g}"


def ratio(peer: float | None, ours: float | None) -> str:
    """How many times faster than the peer we are."""
    return "-" if not peer or not ours or not math.isfinite(peer) or not math.isfinite(ours) else f"{peer / ours:.3g}x"


def quantization(results: Results) -> Iterable[Table]:
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


def orthogonal(results: Results) -> Iterable[Table]:
    found = results.read("orthogonal_1t") or results.read("orthogonal_quick_1t")
    if found:
        sizes = list(found["sizes"])
        names = list(dict.fromkeys(name for size in sizes for name in found["sizes"][size]))
        table = Table(
            "orthogonal-step", "One step from a given gradient, CPU ms, one thread", ["method", *sizes], "orthogonal_1t"
        )
        table.rows = [
            [name, *(number((found["sizes"][size].get(name) or {}).get("ms")) for size in sizes)] for name in names
        ]
        yield table
    for task, record in (results.read("orthogonal_tasks") or {}).items():
        methods = {name: row for name, row in record["methods"].items() if "seconds" in row}
        pogo = methods.get("POGO's rule", {}).get("seconds")
        table = Table(
            f"orthogonal-{task}",
            f"Loss against time: {task}, CPU ms to the target",
            ["method", "CPU ms", "times POGO's rule"],
            "orthogonal_tasks",
        )
        for name, row in sorted(methods.items(), key=lambda item: item[1]["seconds"] or math.inf):
            seconds = row["seconds"]
            ms = number(1e3 * seconds) if seconds and math.isfinite(seconds) else "not within the time"
            table.rows.append([name, ms, ratio(pogo, seconds)])
        yield table


def hashing(results: Results) -> Iterable[Table]:
    found = results.read("hashing") or results.read("hashing_quick")
    if not found or not found.get("table"):
        return
    cells: dict[tuple[str, str], dict[str, list[dict]]] = {}
    for key, row in found["table"].items():
        features, method, bits, _ = key.split("|")
        cells.setdefault((features, bits), {}).setdefault(method, []).append(row)
    columns = sorted(cells, key=lambda cell: (cell[0] != "raw", int(cell[1])))
    methods = list(dict.fromkeys(method for cell in columns for method in cells[cell]))
    seeds = {len(runs) for cell in cells.values() for runs in cell.values()}
    table = Table(
        "hashing-map",
        "mAP by label / mAP of the 100 exact neighbours, per cent",
        ["method", *(f"{'pixels' if features == 'raw' else features}, {bits} bits" for features, bits in columns)],
        "hashing",
        f"Mean over {max(seeds)} seed{'s' if max(seeds) > 1 else ''}"
        + (" (fewer where the run was not finished)." if len(seeds) > 1 else "."),
    )
    for method in methods:
        row = [method]
        for cell in columns:
            runs = cells[cell].get(method)
            mean = [sum(r[key] for r in runs) / len(runs) for key in ("map", "neighbour map")] if runs else None
            row.append(f"{mean[0]:.1f} / {mean[1]:.1f}" if mean else "-")
        table.rows.append(row)
    yield table


def ordinal(results: Results) -> Iterable[Table]:
    found = results.read("ordinal_speed")
    if not found:
        return
    table = Table(
        "ordinal-speed",
        "CPU ms until held-out error 0.15 (final error in brackets), p = 10",
        ["objects, answers", "loss", "default", "SVRG-SBB", "cblearn", "default faster", "SVRG-SBB faster"],
        "ordinal_speed",
    )
    for row in found["rows"]:
        ours, peer = row["nearkin"], row.get("cblearn") or {}
        theirs = peer.get("seconds_to_target")
        theirs = 1e3 * theirs if theirs else None
        cells = [f"{number(ours[s]['ms'])} ({ours[s]['error']:.3f})" for s in ("auto", "svrg-sbb")]
        shown = f"{number(theirs)} ({peer['error']:.3f})" if "error" in peer else "not installed"
        times = [ratio(theirs, ours[s]["ms"]) for s in ("auto", "svrg-sbb")]
        table.rows.append([f"{row['n']:,}, {row['m']:,}", row["loss"], *cells, shown, *times])
    yield table


def two_tower(results: Results) -> Iterable[Table]:
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


AREAS: dict[str, Callable[[Results], Iterable[Table]]] = {
    "Rotations and product quantization": quantization,
    "Orthogonal matrices": orthogonal,
    "Hashing": hashing,
    "Ordinal embedding": ordinal,
    "Two towers": two_tower,
}
