"""Figures from the JSON: a step against its size, loss against time."""

import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

from benchmarks.drawing import panels, save
from benchmarks.table import grouped


def draw_steps(rows: list[dict], name: str) -> None:
    results = {key[0]: {row["method"]: row for row in own} for key, own in grouped(rows, "size").items()}
    squares = sorted((int(size.split("x")[0]), size) for size in results if len(set(size.split("x"))) == 1)
    figure, ((axes,),) = panels(1, 1, 7, 5)
    for method in results[squares[0][1]]:
        points = [(d, results[size][method]["ms"]) for d, size in squares if method in results[size]]
        axes.loglog(*zip(*points, strict=True), marker="o", ms=3, label=method)
    axes.set(xlabel="d", ylabel="ms per step, from a given gradient", title="One step on O(d)")
    axes.legend(fontsize=6, ncols=2)
    save(figure, name)


def draw_tasks(found: list[dict]) -> None:
    results = {key[0]: rows for key, rows in grouped(found, "task").items()}
    figure, grid = panels(-(-len(results) // 4), 4, 4, 3.8)
    methods = {row["method"]: row["ours"] for row in found}
    styles = {
        method: {"color": plt.cm.tab20(i % 20), "ls": "-" if ours else "--", "lw": 1.2, "label": method}
        for i, (method, ours) in enumerate(methods.items())
    }
    for axes, (name, rows) in zip(grid.flat, results.items(), strict=False):
        for row in rows:
            axes.loglog(*zip(*row["curve"], strict=True), **styles[row["method"]])
        axes.axhline(rows[0]["target"], color="k", lw=0.5)
        axes.set(xlabel="CPU seconds", ylabel="loss", title=name)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
    for axes in grid.flat[len(results) :]:
        axes.set_axis_off()
    figure.legend(handles=[plt.Line2D([], [], **style) for style in styles.values()], loc="outside right center")
    save(figure, "orthogonal_tasks")
