"""Bits: labels and neighbours."""

from collections.abc import Iterable

from benchmarks.table import Results, Table, grouped, mean

SETS = {
    "raw": "MNIST pixels", "network": "network features of unseen classes", "gist": "GIST of CIFAR-10",
    "cancer": "tumours", "kinds": "kinds of entries", "sift": "SIFT",
}  # fmt: skip
BITS = "hashing_bits", "Fits without labels, 16 to 128 bits; printed: SCQ's Table 4, 59,000 rows where ours are 15,000"
RIGHT = "The label of a sentence is the entry that it uses, of SIFT the nearest vector."
PRINTED = [
    [bits, f"{method}, printed", figure]
    for method, two in {
        "DH": ("16.17", "16.62"), "UH-BDNN": ("17.83", "18.52"), "OnE": ("17.97", "18.63"), "OgE": ("18.00", "18.78")
    }.items()
    for bits, figure in zip(("16", "32"), two, strict=True)
]  # fmt: skip
TIME = "fit seconds"
MEASURES = {
    "map": "mAP of labels", "neighbour map": "mAP of neighbours", TIME: "fit, CPU s",
    "prec@r2": "precision within Hamming radius 2", "prec@1k": "precision at 1,000",
}  # fmt: skip


def tables(results: Results) -> Iterable[Table]:
    found = results.read("hashing_table") or []
    runs = grouped(found, "method", "set", "bits")
    cells = sorted({key[1:] for key in runs}, key=lambda c: (c[0] != "raw", c[1]))
    methods = list(dict.fromkeys(row["method"] for row in found))
    seeds = max((len(rows) for rows in runs.values()), default=0)
    if found:
        columns = [f"{'pixels' if features == 'raw' else features}, {bits}" for features, bits in cells]
        title = "mAP by label / mAP of the 100 exact neighbours, per cent"
        both = Table("hashing-map", title, ["method", *columns], "hashing_table", f"Mean over {seeds} seeds.")
        for method in methods:
            pairs = [[mean(runs.get((method, *cell), []), key) for key in ("map", "neighbour map")] for cell in cells]
            both.rows.append([method, *(" / ".join(pair) for pair in pairs)])
        yield both
    columns = ["data", "bits", "method", *MEASURES.values()]
    for source, title in (("hashing_table", "All methods"), ("hashing_labels", "Fits with labels and without"), BITS):
        table = Table(source.replace("_", "-"), title, columns, source, RIGHT if source == BITS[0] else "")
        found = results.read(source) or []
        for (features, bits, method), rows in grouped(found, "set", "bits", "method").items():
            figures = (mean(rows, key, 1 + (key == TIME), spread=key != TIME) for key in MEASURES)
            name = SETS.get(features, str(features))
            table.rows.append([name, str(bits), method, *figures])
        if found and source == BITS[0]:
            table.rows += [["GIST of CIFAR-10", *line, *"----"] for line in PRINTED]
        if found:
            yield table
