"""Figures from the JSON: a step against its size, loss against time."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

from benchmarks.options import FIGURES
from benchmarks.table import grouped


def draw_steps(rows: list[dict], name: str) -> None:
    results = {key[0]: {row["method"]: row for row in own} for key, own in grouped(rows, "size").items()}
    squares = sorted((int(size.split("x")[0]), size) for size in results if len(set(size.split("x"))) == 1)
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    for method in results[squares[0][1]]:
        points = [(d, results[size][method]["ms"]) for d, size in squares if method in results[size]]
        axes.loglog(*zip(*points, strict=True), marker="o", ms=3, label=method)
    axes.set(xlabel="d", ylabel="ms per step, from a given gradient", title="One step on O(d)")
    axes.legend(fontsize=6, ncols=2)
    figure.savefig(FIGURES / f"{name}.png", dpi=130)


def draw_tasks(found: list[dict]) -> None:
    results = {key[0]: rows for key, rows in grouped(found, "task").items()}
    lines = -(-len(results) // 4)
    figure, panels = plt.subplots(lines, 4, figsize=(17, 3.8 * lines), layout="constrained", squeeze=False)
    methods = {row["method"]: row["ours"] for row in found}
    styles = {
        method: {"color": plt.cm.tab20(i % 20), "ls": "-" if ours else "--", "lw": 1.2}
        for i, (method, ours) in enumerate(methods.items())
    }
    for axes, (name, rows) in zip(panels.flat, results.items(), strict=False):
        for row in rows:
            if row["curve"]:
                axes.loglog(*zip(*row["curve"], strict=True), **styles[row["method"]])
        axes.axhline(rows[0]["target"], color="k", lw=0.5)
        axes.set(xlabel="CPU seconds", title=name)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
    for axes in panels.flat[len(results) :]:
        axes.set_axis_off()
    panels[0][0].set_ylabel("loss")
    lines = [plt.Line2D([], [], label=method, **style) for method, style in styles.items()]
    figure.legend(handles=lines, loc="outside right center", fontsize=8)
    figure.savefig(FIGURES / "orthogonal_tasks.png", dpi=110)
