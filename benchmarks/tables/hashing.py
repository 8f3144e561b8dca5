"""Bits: labels and neighbours."""

from collections.abc import Iterable

from benchmarks.tables.base import Results, Table


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
