"""SCQ (simultaneous compression and quantization): Tables 2 to 5 and Figures 4, 5 (sections 4.2 to 4.4).

    python -m benchmarks.papers.scq

The paper hashes VGG features of CIFAR-10, LabelMe-12-50k and SUN397; ours are MNIST's pixels ("raw") and features of a
network that never saw the classes it is judged on ("network"). The rows as printed come from `scq_printed`; here are
those of the hashing benchmark, which learns from 10,000 rows: of each set the full run's rows count where a cell has
all six methods, else the quick run's.
"""

from statistics import mean
from typing import Any

from benchmarks.papers import theory_rows
from benchmarks.papers.record import Claim, Figure, Paper, not_measured, show
from benchmarks.papers.scq_cells import METHODS, SETS, Cells, kind_decides, paper_cells, table_2_claims, wins
from benchmarks.papers.scq_printed import FIGURES as PRINTED
from benchmarks.table import Results

TITLE = "SCQ"
KINDS = {
    "raw": "MNIST pixels for VGG features",
    "network": "features of a small network, judged on classes it never saw, for VGG features",
}
ROWS = {"raw": "60,000", "network": "29,404"}  # of the full run
QUICK = "12,000"


def our_cells(results: Results, features: str) -> tuple[Cells, str]:
    """Means over seeds where all six methods have been measured, and a word on the run."""
    for name in ("hashing", "hashing_quick"):
        runs: dict[int, dict[str, list[dict]]] = {}
        for key, row in ((results.read(name) or {}).get("table") or {}).items():
            of, method, bits, _ = key.split("|")
            if of == features and method in METHODS.values():
                runs.setdefault(int(bits), {}).setdefault(method, []).append(row)
        full = {bits: by_method for bits, by_method in sorted(runs.items()) if len(by_method) == len(METHODS)}
        if full:
            counts = [len(rows) for by_method in full.values() for rows in by_method.values()]
            return {bits: [averaged(by_method)] for bits, by_method in full.items()}, said(name, features, counts)
    return {}, ""


def averaged(by_method: dict[str, list[dict]]) -> dict[str, dict[str, float]]:
    return {
        method: {measure: mean(row[measure] for row in by_method[ours]) for measure in by_method[ours][0]}
        for method, ours in METHODS.items()
    }


def said(name: str, features: str, counts: list[int]) -> str:
    seeds = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    size = QUICK if name.endswith("quick") else ROWS[features]
    return f"{size} rows, {seeds} seed{'s' if seeds != '1' else ''}"


def table_2(features: str, results: Results) -> Figure:
    """The six methods by labels: mAP, precision within radius 2, precision at 1000."""
    name = f"Table 2, {SETS[features]}, 10,000 rows"
    ours, run = our_cells(results, features)
    if not ours:
        return not_measured(name, "Run `python -m benchmarks hashing --part table`.", ours=True)
    claims, most = table_2_claims(ours), max(ours)
    run += f", {', '.join(map(str, ours))} bits"
    why = f"{KINDS[features]} ({run}), learned from 10,000 of the rows, all 10,000 queries."
    source = "hashing_quick" if run.startswith(QUICK) else "hashing"
    return Figure(name, tuple(claims), why[0].upper() + why[1:], source, kind_decides(ours[most][0]), ours=True)


def table_2_raw(results: Results) -> Figure:
    return table_2("raw", results)


def table_2_network(results: Results) -> Figure:
    return table_2("network", results)


TABLE_5 = {  # mAP in per cent at 12, 24, 32 and 48 bits
    "CIFAR-10": {"BGAN": "40.1 / 51.2 / 53.1 / 55.8", "OnE": "53.59 / 55.77 / 57.62 / 58.14",
                 "OgE": "53.83 / 55.65 / 57.74 / 58.44"},
    "NUS-WIDE": {"BGAN": "67.5 / 69.0 / 71.4 / 72.8", "OnE": "69.82 / 70.53 / 72.78 / 73.25",
                 "OgE": "70.17 / 71.31 / 72.49 / 72.95"},
}  # fmt: skip


def table_5(results: Results) -> Figure:
    """Features of a trained BGAN."""
    del results
    beside = tuple(
        Claim(f"{name}, {method}: mAP at 12 / 24 / 32 / 48 bits", printed, "no such features here")
        for name, rows in TABLE_5.items() for method, printed in rows.items()
    )  # fmt: skip
    why = "A trained BGAN's features of CIFAR-10 and NUS-WIDE are not at hand; its printed figures are listed."
    return not_measured("Table 5", why, beside=beside, decides="No BGAN's features at hand.")


def figure_4(results: Results) -> Figure:
    """Loss per bit, retained variance and mAP of OnE against the scale."""
    name = "Fig. 4, 10,000 rows, queries"
    source = next((s for s in ("hashing", "hashing_quick") if (results.read(s) or {}).get("scale")), None)
    if source is None:
        return not_measured(name, "Run `python -m benchmarks hashing --part scale`.", ours=True)
    points: dict[str, dict[float, dict[str, Any]]] = {}
    for key, row in results.read(source)["scale"].items():
        features, method, _, factor = key.split("|")
        if method == "OnE":
            points.setdefault(features, {})[float(factor)] = row
    claims, decides = [], []
    for features, by_factor in points.items():
        title = SETS[features]
        best = max(by_factor, key=lambda factor, by=by_factor: by[factor]["map"])
        least = min(by_factor, key=lambda factor, by=by_factor: by[factor]["loss per bit"])
        decides.append(f"{title}: least loss at {least:g}, best mAP at {best:g} times eq. 25's")
        claims += [
            Claim(f"{title}, {factor:g} times eq. 25's scale: mAP, retained variance, loss per bit", "",
                  f"{row['map']:.1f}, {row['retained']:.1f}, {row['loss per bit']:.3f}")
            for factor, row in sorted(by_factor.items())
        ]  # fmt: skip
    why = "MNIST at 32 bits, 10,000 rows to learn from, judged on the queries; one run a scale, so nothing is judged."
    return not_measured(name, why, source, tuple(claims), decides=f"{'; '.join(decides)}.", ours=True)


FIGURES: Paper = (*PRINTED, theory_rows.scq, table_2_raw, table_2_network, table_5, figure_4)

__all__ = ["FIGURES", "TITLE", "our_cells", "paper_cells", "wins"]

if __name__ == "__main__":
    show(TITLE, FIGURES)
