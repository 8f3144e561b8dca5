"""Pictures of what the experiments measured, beside which the papers' own figures can be laid.

python -m benchmarks papers figures
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.drawing import panels, save
from benchmarks.papers.record import mean_of
from benchmarks.papers.scq import SETS, by_factor
from benchmarks.table import RESULTS, Results, grouped

RULES = {"GCD-G": "C2", "GCD-S": "C4", "GCD-R": "C3", "GCD-R, overlapping": "C5"}
STYLES = {5e-5: ":", 1e-4: "-", 2e-4: "--"}  # lambda


def finish(figure: Figure, axes: Axes, name: str) -> None:
    """One legend for all panels, under them, so that it hides no line."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    save(figure, f"papers_{name}")


def band(axes: Axes, x: np.ndarray, rows: list[dict], **style: Any) -> None:
    """The mean of the rows' curves, and their standard deviation on both sides."""
    runs = np.array([row["curve"] for row in rows])
    middle, spread = runs.mean(axis=0), runs.std(axis=0)
    (line,) = axes.plot(x, middle, **style)
    axes.fill_between(x, middle - spread, middle + spread, color=line.get_color(), alpha=0.2)


def gcd_figure_2(found: list[dict]) -> None:
    """(a) the rules, means over the seeds; (b, c) OPQ and GCD-G, all rows and a tenth; (d) how far the seeds spread."""
    figure, ((a, b), (c, d)) = panels(2, 2, 5.5, 4.2)
    runs = grouped(found, "rule", "lambda", "rows")
    every, tenth = sorted({rows for _, _, rows in runs}, reverse=True)
    x = np.arange(1, len(found[0]["curve"]) + 1)
    main = {("OPQ, identity start", 0.0): "C0", ("OPQ, random start", 0.0): "C1", ("GCD-G", 1e-4): "C2"}
    for rule, rate, rows in sorted(runs):
        if rows == every and rule in RULES:
            label, style = f"{rule}, {rate:g}", STYLES[rate]
            band(a, x, runs[rule, rate, rows], ls=style, color=RULES[rule], label=label)
    for axes, rows, title, style in ((b, every, "(b) all rows", "-"), (c, tenth, "(c) 10 % of the rows", "--")):
        for (rule, rate), colour in main.items():
            own = runs[rule, rate, rows]
            band(axes, x, own, color=colour, label=rule)
            curves = np.array([row["curve"] for row in own])
            d.plot(x, 100 * curves.std(axis=0) / curves.mean(axis=0), style, color=colour)
        axes.set(title=title)
        axes.legend(frameon=False)
    for axes in (a, b, c):
        axes.set(xlabel="round", ylabel="distortion")
    a.set(title="(a) rules and lambda, all rows")
    d.set(title="(d) deviation over the seeds, % of the mean", xlabel="round", yscale="log", ylim=(0.003, 3))
    finish(figure, a, "gcd_figure_2")


def gcd_figure_3(found: list[dict]) -> None:
    """Distortion over the joint steps as a share of the frozen rotation's, mean over the seeds."""
    frozen = {row["seed"]: np.array(row["curve"]) for row in found if row["rule"] == "frozen"}
    figure, ((axes,),) = panels(1, 1, 5.5, 4)
    for rule in ("GCD-R", "GCD-G", "GCD-S", "Cayley"):
        curves = [np.array(row["curve"]) / frozen[row["seed"]] for row in found if row["rule"] == rule]
        axes.plot(np.arange(1, len(curves[0]) + 1) * 10, np.mean(curves, axis=0), label=rule)
    axes.axhline(1.0, color="black", lw=0.8, label="frozen")
    axes.set(title=f"ml100k, {len(frozen)} seeds", xlabel="joint step", ylabel="distortion over the frozen rotation's")
    finish(figure, axes, "gcd_figure_3")


def scq_figure_4(found: list[dict]) -> None:
    """mAP, retained variance and loss per bit, as a share of the largest, against the scale, largest first."""
    figure, (line,) = panels(1, len(SETS), 5.5, 4.4)
    for axes, (name, title) in zip(line, SETS.items(), strict=True):
        rows = {factor: of for factor, of in by_factor(found, name).items() if factor is not None}
        loss = [mean_of(of, "loss per bit") for of in rows.values()]
        for key, label in (("map", "mAP"), ("retained", "retained variance")):
            axes.plot(list(rows), [mean_of(of, key) for of in rows.values()], "o-", label=label)
        axes.plot(list(rows), [100 * value / max(loss) for value in loss], "^--", label="loss per bit, of the largest")
        axes.axvline(1.0, color="gray", ls=":")
        axes.set(xscale="log", xlabel="scale over eq. 25's", ylabel="%", title=title, ylim=(0, 105))
        axes.invert_xaxis()
    finish(figure, line[0], "scq_figure_4")


def flows_figure_3(found: list[dict]) -> None:
    """Returns by generation, a panel a task; the band is a standard deviation over the seeds."""
    runs = grouped([row for row in found if row["factor"] == 1.0], "task", "method")
    tasks = list(dict.fromkeys(task for task, _ in runs))
    figure, (line,) = panels(1, len(tasks), 4.2, 4.2)
    for axes, task in zip(line, tasks, strict=True):
        for (of, method), rows in runs.items():
            if of == task:
                band(axes, np.arange(len(rows[0]["curve"])), rows, label=method)
                axes.set(title=f"{task}, {len(rows)} seeds", xlabel="generation", ylabel="mean return")
    finish(figure, line[0], "flows_figure_3")


def flows_figures_4_and_5(mlp: list[dict], convnet: list[dict]) -> None:
    """Test accuracy by epoch."""
    figure, (line,) = panels(1, 2, 5.5, 4)
    titles = "Figure 4: MNIST, hidden layer orthogonal", "Figure 5 in small: sixteen plain convolutions on digits"
    for axes, found, title in zip(line, (mlp, convnet), titles, strict=True):
        for row in found:
            curve = np.array(row["curve"])
            axes.plot(np.arange(1, len(curve) + 1), curve.reshape(len(curve), -1)[:, -1], label=row["method"])
        axes.set(xlabel="epoch", ylabel="test accuracy", title=title)
        axes.legend(frameon=False, fontsize=8)
    save(figure, "papers_flows_figures_4_5")


def svrg_figure_2(found: list[dict]) -> None:
    """The median of fifty starts, quartiles shaded."""
    shown = ("batch", "SGD", "SVRG", "SVRG-SBB_0", "SVRG-SBB", "SVRG-SBB, our epsilon")
    by_passes(
        [row for row in found if row["method"] in shown], "method", "svrg_figure_2", xlim=(0, 150), ylim=(0, 0.62)
    )


def svrg_figure_4(found: list[dict]) -> None:
    """The same on the music artists, ten splits; published steps."""
    by_passes(found, "solver", "svrg_figure_4", xlim=(0, 60))


def by_passes(rows: list[dict], line: str, name: str, **limits: Any) -> None:
    """Held-out error against gradient passes, a panel a loss."""
    figure, grid = panels(2, 2, 5, 3.8, sharex=True, sharey=True)
    for axes, ((loss,), own) in zip(grid.flat, grouped(rows, "loss").items(), strict=True):
        for row in own:
            x = row["passes"] * np.arange(len(row["median"]))
            (drawn,) = axes.plot(x, row["median"], label=row[line])
            if "low" in row:
                axes.fill_between(x, row["low"], row["high"], color=drawn.get_color(), alpha=0.15)
        axes.set(title=loss, xlabel="gradient passes", ylabel="error on unseen answers", **limits)
    finish(figure, grid[0, 0], name)


PICTURES = {  # what draws -> the JSON that it needs
    gcd_figure_2: ("papers_gcd_figure_2",),
    gcd_figure_3: ("papers_gcd_figure_3",),
    scq_figure_4: ("papers_scq_scale",),
    flows_figure_3: ("papers_flows_rl",),
    flows_figures_4_and_5: ("papers_flows_mlp", "papers_flows_convnet"),
    svrg_figure_2: ("papers_svrg_figure_2",),
    svrg_figure_4: ("papers_music",),
}


def main() -> None:
    results = Results(RESULTS)
    for draw, sources in PICTURES.items():
        draw(*(results.read(source) for source in sources))
