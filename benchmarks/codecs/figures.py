"""Recall against bytes: the best of ours and the best of FAISS at every size, a panel a set, from the JSON.

python -m benchmarks codecs figures
"""

import math
from pathlib import Path

from benchmarks.codecs.table import leaders, measured
from benchmarks.data import REAL
from benchmarks.drawing import OURS, REST, RIVAL, legend, panels, save, styles
from benchmarks.options import RESULTS
from benchmarks.table import Results

_LINES = {
    "ours, best": OURS, "ours, compress": OURS, "ours, product": OURS, "FAISS, its best": RIVAL, "FAISS OPQ": REST,
    "ScaNN": REST,
}  # fmt: skip


def draw(results: Results) -> Path:
    """A line for each of `leaders`; a size that was not run has no point."""
    found = measured(results)
    names = [name for name in REAL if any(row["data"] == name for row in found)]
    columns = math.ceil(len(names) / 2)
    figure, axes = panels(2, columns, 3.6, 3.4, sharey=True)
    for panel, name in zip(axes.flat, names, strict=False):
        points: dict[str, list[tuple[int, float]]] = {line: [] for line in _LINES}
        for bits in sorted({row["bits"] for row in found if row["data"] == name}):
            at = [row for row in found if (row["data"], row["bits"]) == (name, bits) and "recall" in row]
            for line, row in leaders(at).items():
                points[line].append((row["bytes"], row["recall"]))
        for line, style in styles(_LINES).items():
            if points[line]:
                panel.plot(*zip(*points[line], strict=True), **style)
        panel.set(xscale="log", xlabel="bytes a vector", title=name)
        sizes = sorted({size for line in points.values() for size, _ in line})
        apart = [size for size, after in zip(sizes, [*sizes[1:], math.inf], strict=True) if after > 1.2 * size]
        panel.set_xticks(apart, [str(size) for size in apart])  # of sizes that touch, the last is named
        panel.minorticks_off()
    for panel in axes.flat[len(names) :]:
        panel.set_axis_off()
    for row in axes:
        row[0].set_ylabel("recall@10 without rescoring")
    legend(axes[0, 0])
    return save(figure, "codecs")


def main() -> None:
    print(draw(Results(RESULTS)))
