"""Recall against bytes: the best of ours and the best of FAISS at every size, a panel a set, from the JSON.

python -m benchmarks codecs figures
"""

import math
from pathlib import Path

import matplotlib

from benchmarks.codecs.problems import SETS
from benchmarks.codecs.table import leaders, measured
from benchmarks.options import FIGURES, RESULTS
from benchmarks.table import Results

matplotlib.use("Agg")
import matplotlib.pyplot as plt

_LINES = {
    "ours, best": "o-", "ours, compress": "o--", "ours, product": "o:", "FAISS, its best": "s-", "FAISS OPQ": "s:",
    "ScaNN": "^:",
}  # fmt: skip


def draw(results: Results) -> Path:
    """A line for each of `leaders`; a size that was not run has no point."""
    found = measured(results)
    names = [name for name in SETS if any(row["data"] == name for row in found)]
    figure, panels = plt.subplots(1, len(names), figsize=(4 * len(names), 4), layout="constrained", sharey=True)
    for panel, name in zip(panels, names, strict=True):
        points: dict[str, list[tuple[int, float]]] = {line: [] for line in _LINES}
        for bits in sorted({row["bits"] for row in found if row["data"] == name}):
            at = [row for row in found if (row["data"], row["bits"]) == (name, bits) and "recall" in row]
            for line, row in leaders(at).items():
                points[line].append((row["bytes"], row["recall"]))
        for line, style in _LINES.items():
            if points[line]:
                colour = f"C{[*_LINES].index(line)}"
                panel.plot(*zip(*points[line], strict=True), style, color=colour, label=line)
        panel.set(xscale="log", xlabel="bytes a row", title=name)
        sizes = sorted({size for line in points.values() for size, _ in line})
        apart = [size for size, after in zip(sizes, [*sizes[1:], math.inf], strict=True) if after > 1.2 * size]
        panel.set_xticks(apart, [str(size) for size in apart])  # of sizes that touch, the last is named
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("recall 10@10, codes alone")
    panels[0].legend()
    FIGURES.mkdir(parents=True, exist_ok=True)
    path = FIGURES / "codecs.png"
    figure.savefig(path, dpi=120)
    return path


def main() -> None:
    print(draw(Results(RESULTS)))


if __name__ == "__main__":
    main()
