"""Bits: labels and neighbours."""

import statistics
from collections.abc import Iterable

from benchmarks.table import Results, Table

SETS = {"raw": "MNIST pixels", "network": "network features of unseen classes"}
MEASURES = {
    "map": "mAP of labels",
    "neighbour map": "mAP of the 100 exact neighbours",
    "prec@r2": "precision within Hamming radius 2",
    "prec@1k": "precision at 1,000",
}
Runs = dict[str, dict[tuple[str, int], list[dict]]]  # method: (set, bits): one record a seed


def tables(results: Results) -> Iterable[Table]:
    name = "hashing" if results.read("hashing") else "hashing_quick"
    found = results.read(name)
    if not found or not found.get("table"):
        return
    runs: Runs = {}
    for key, row in found["table"].items():
        features, method, bits, _ = key.split("|")
        runs.setdefault(method, {}).setdefault((features, int(bits)), []).append(row)
    cells = sorted({cell for by_cell in runs.values() for cell in by_cell}, key=lambda c: (c[0] != "raw", c[1]))
    counts = {len(rows) for by_cell in runs.values() for rows in by_cell.values()}
    note = f"Mean over {max(counts)} seed{'s' if max(counts) > 1 else ''}"
    note += " (fewer where the run was not finished)" if len(counts) > 1 else ""
    both = Table(
        "hashing-map",
        "mAP by label / mAP of the 100 exact neighbours, per cent",
        ["method", *(f"{'pixels' if features == 'raw' else features}, {bits}" for features, bits in cells)],
        name,
        note + ".",
    )
    for method, by_cell in runs.items():
        pairs = [[_values(by_cell.get(cell, []), measure) for measure in ("map", "neighbour map")] for cell in cells]
        both.rows.append([method, *(" / ".join(_mean(values) for values in pair) for pair in pairs)])
    yield both
    for features, title in SETS.items():
        bits = [size for chosen, size in cells if chosen == features]
        for measure, label in MEASURES.items():
            table = Table(
                f"hashing-{features}-{measure.replace(' ', '-').replace('@', '-')}",
                f"{title}: {label}, per cent",
                ["method", *(f"{size} bits" for size in bits)],
                name,
                note + (" ± standard deviation." if max(counts) > 1 else "."),
            )
            for method, by_cell in runs.items():
                values = [_values(by_cell.get((features, size), []), measure) for size in bits]
                table.rows.append([method, *(_mean(v) + _spread(v) for v in values)])
            yield table
    if found.get("labels"):
        yield with_labels(found["labels"], name)
    if found.get("training"):
        yield training(found["training"], name)


def with_labels(found: dict[str, dict], source: str) -> Table:
    """mAP of labels / of neighbours, and the seconds of a fit; mean and deviation over seeds."""
    table = Table(
        "hashing-labels",
        "Fits with the labels of the training rows and without",
        ["data", "bits", "method", "mAP of labels", "mAP of neighbours", "fit, CPU s"],
        source,
    )
    rows: dict[tuple[str, str, str], list[dict]] = {}
    for key, row in found.items():
        features, method, bits, _ = key.split("|")
        rows.setdefault((SETS[features], bits, method), []).append(row)
    for key, own in rows.items():
        both = ([row[measure] for row in own] for measure in ("map", "neighbour map"))
        seconds = [row["fit seconds"] for row in own if "fit seconds" in row]
        told = f"{statistics.mean(seconds):.2f}" if seconds else "-"
        table.rows.append([*key, *(_mean(values) + _spread(values) for values in both), told])
    return table


def training(found: dict[str, dict], source: str) -> Table:
    """What rows and principal components buy: quality against seconds of learning."""
    table = Table(
        "hashing-training",
        "MNIST pixels, 32 bits: learning time and quality",
        ["method, components", "rows", "fit, CPU s", "mAP of labels", "mAP of neighbours"],
        source,
        "One seed; the PCA is part of the fit.",
    )
    for key, row in found.items():
        _, method, _, n_rows = key.split("|")
        figures = [f"{row[measure]:.1f}" for measure in ("map", "neighbour map")]
        table.rows.append([method, f"{int(n_rows):,}", f"{row['fit seconds']:.2f}", *figures])
    return table


def _values(rows: list[dict], measure: str) -> list[float]:
    return [row[measure] for row in rows if measure in row]


def _mean(values: list[float]) -> str:
    return f"{statistics.mean(values):.1f}" if values else "-"


def _spread(values: list[float]) -> str:
    return f" ± {statistics.pstdev(values):.1f}" if len(values) > 1 else ""
