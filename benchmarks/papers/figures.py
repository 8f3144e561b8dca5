"""Pictures of what the experiments measured, beside which the papers' own figures can be laid.

python -m benchmarks papers figures
"""

import matplotlib
import numpy as np

from benchmarks.options import FIGURES
from benchmarks.table import RESULTS, Results

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TOP = 28_500  # of panel (a): what runs away is above it
COLOURS = {"OPQ, identity start": "C0", "OPQ, random start": "C1", "GCD-G": "C2"}


def gcd_figure_2(found: list[dict]) -> None:
    """(a) every rule with one seed; (b, c) OPQ and GCD-G over the seeds, all rows and a tenth of them."""
    figure, panels = plt.subplots(1, 3, figsize=(15, 4.4), layout="constrained")
    whole = [row for row in found if row["seed"] == 0 and row["rows"] == 100_000]
    for i, row in enumerate(whole):
        label = row["rule"] + (f", {row['lambda']:g}" if row["lambda"] else "")
        label += " (above)" if row["curve"][-1] > TOP else ""
        style = "--" if "overlapping" in row["rule"] else "-"
        panels[0].plot(row["curve"], style, color=plt.cm.tab20(i % 20), label=label)
    panels[0].set(title="(a) all rules, one seed", ylim=(23_500, TOP))
    panels[0].legend(fontsize=7, ncols=2, loc="upper right")
    for axes, count, title in zip(panels[1:], (100_000, 10_000), ("(b) all rows", "(c) 10 % of the rows"), strict=True):
        for rule, colour in COLOURS.items():
            rate = 1e-4 if rule == "GCD-G" else 0.0
            curves = [row["curve"] for row in found if (row["rule"], row["lambda"], row["rows"]) == (rule, rate, count)]
            middle, spread = np.mean(curves, axis=0), np.std(curves, axis=0)
            axes.plot(middle, color=colour, label=f"{rule}, {len(curves)} seeds")
            axes.fill_between(range(len(middle)), middle - spread, middle + spread, color=colour, alpha=0.3)
        axes.set(title=title, ylim=(22_000, 60_000), yscale="log")
        axes.legend(fontsize=8)
    for axes in panels:
        axes.set(xlabel="round", ylabel="distortion")
    figure.savefig(FIGURES / "papers_gcd_figure_2.png", dpi=110)


def main() -> None:
    found = Results(RESULTS).read("papers_gcd_figure_2")
    if found:
        gcd_figure_2(found)


if __name__ == "__main__":
    main()
