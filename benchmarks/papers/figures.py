"""Pictures of what the experiments measured, beside which the papers' own figures can be laid.

python -m benchmarks papers figures
"""

from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmarks.options import FIGURES
from benchmarks.papers.record import mean_of
from benchmarks.papers.scq import by_factor
from benchmarks.table import RESULTS, Results, grouped

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RULES = {"GCD-G": "C2", "GCD-S": "C4", "GCD-R": "C3", "GCD-R, overlapping": "C5"}
STYLES = {5e-5: ":", 1e-4: "-", 2e-4: "--"}  # lambda


def legend_below(figure: Figure, axes: plt.Axes, columns: int) -> None:
    """One legend for all panels, under them, so that it hides no line."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False)


def band(axes: plt.Axes, x: np.ndarray, rows: list[dict], alpha: float, unit: float = 1.0, **style: Any) -> None:
    """The mean of the rows' curves, and their standard deviation on both sides."""
    runs = np.array([row["curve"] for row in rows]) / unit
    middle, spread = runs.mean(axis=0), runs.std(axis=0)
    (line,) = axes.plot(x, middle, **style)
    axes.fill_between(x, middle - spread, middle + spread, color=line.get_color(), alpha=alpha)


def gcd_figure_2(found: list[dict]) -> None:
    """(a) the rules, means over the seeds; (b, c) OPQ and GCD-G, all rows and a tenth; (d) how far the seeds spread."""
    figure, panels = plt.subplots(2, 2, figsize=(11, 8.5), layout="constrained")
    (a, b), (c, d) = panels
    runs = grouped(found, "rule", "lambda", "rows")
    every, tenth = sorted({rows for _, _, rows in runs}, reverse=True)
    x = np.arange(1, len(found[0]["curve"]) + 1)
    main = {("OPQ, identity start", 0.0): "C0", ("OPQ, random start", 0.0): "C1", ("GCD-G", 1e-4): "C2"}
    for rule, rate, rows in sorted(runs):
        if rows == every and rule in RULES:
            label, style = f"{rule}, {rate:g}", STYLES[rate]
            band(a, x, runs[rule, rate, rows], 0.3, 1000, ls=style, color=RULES[rule], label=label)
    band(a, x, runs["OPQ, identity start", 0.0, every], 0.3, 1000, color="C0", label="OPQ, identity start")
    a.set(title="(a) rules and lambda, all rows; GCD-G overlapping is above 200")
    for axes, rows, title, style in ((b, every, "(b) all rows", "-"), (c, tenth, "(c) 10 % of the rows", "--")):
        for (rule, rate), colour in main.items():
            own = runs[rule, rate, rows]
            band(axes, x, own, 0.3, 1000, color=colour, label=f"{rule}, {rate:g}" if rate else rule)
            curves = np.array([row["curve"] for row in own])
            spread = 100 * curves.std(axis=0) / curves.mean(axis=0)
            d.plot(x, spread, style, color=colour, label=f"{rule}, {title[4:].removesuffix(' of the rows')}")
        axes.set(title=f"{title}, {len(own)} seeds, band: their standard deviation")
    d.set(title="(d) standard deviation over the seeds, % of the mean")
    for axes in panels.flat:
        axes.set(xlabel="round", ylabel="distortion / 1000")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(fontsize=8, loc="upper right", ncols=2 if axes is a else 1)
        axes.title.set_fontsize(10)
    d.set(yscale="log", ylabel="%", ylim=(0.003, 3))
    d.yaxis.set_major_formatter("{x:g}")
    d.legend(fontsize=8, loc="lower center", ncols=2)
    figure.savefig(FIGURES / "papers_gcd_figure_2.png", dpi=100)


def gcd_figure_3(found: list[dict]) -> None:
    """Distortion over the joint steps as a share of the frozen rotation's, mean over the seeds."""
    frozen = {row["seed"]: np.array(row["curve"]) for row in found if row["rule"] == "frozen"}
    figure, axes = plt.subplots(figsize=(5.5, 4), layout="constrained")
    for rule in ("GCD-R", "GCD-G", "GCD-S", "Cayley"):
        curves = [np.array(row["curve"]) / frozen[row["seed"]] for row in found if row["rule"] == rule]
        axes.plot(np.arange(1, len(curves[0]) + 1) * 10, np.mean(curves, axis=0), label=rule)
    axes.axhline(1.0, color="black", lw=0.8, label="frozen")
    axes.set(title=f"ml100k, {len(frozen)} seeds", xlabel="joint step", ylabel="distortion over the frozen rotation's")
    axes.legend(fontsize=8)
    figure.savefig(FIGURES / "papers_gcd_figure_3.png", dpi=100)


def scq_figure_4(found: list[dict]) -> None:
    """mAP (left), loss per bit and retained variance against the scale, largest first as in the paper."""
    titles = {"raw": "MNIST, pixels", "network": "MNIST, features of a network"}
    sets = list(dict.fromkeys(row["set"] for row in found))
    figure, panels = plt.subplots(1, len(sets), figsize=(5.5 * len(sets), 4.4), layout="constrained", squeeze=False)
    for axes, name in zip(panels[0], sets, strict=True):
        rows = {factor: of for factor, of in by_factor(found, name).items() if factor is not None}
        x = list(rows)
        axes.plot(x, [mean_of(of, "map") for of in rows.values()], "o-", color="C2", label="mAP (left)")
        axes.plot(
            x, [mean_of(of, "retained") for of in rows.values()], "s-", color="C3", label="retained variance (left)"
        )
        axes.axvline(1.0, color="gray", ls=":")
        axes.set(xscale="log", xlabel="scale over eq. 25's", ylabel="%", title=titles[name], ylim=(0, 105))
        axes.set_xticks(x, [f"{factor:g}" for factor in x])
        axes.minorticks_off()
        axes.invert_xaxis()
        loss = axes.twinx()
        loss.plot(x, [mean_of(of, "loss per bit") for of in rows.values()], "^--", color="C0")
        loss.set(ylabel="loss per bit", ylim=(0, None))
        axes.plot([], [], "^--", color="C0", label="loss per bit (right)")
    legend_below(figure, panels[0, 0], 3)
    figure.savefig(FIGURES / "papers_scq_figure_4.png", dpi=100)


def flows_figure_3(found: list[dict]) -> None:
    """Returns by generation, a panel a task; the band is a standard deviation over the seeds."""
    runs = grouped([row for row in found if row["factor"] == 1.0], "task", "method")
    tasks = list(dict.fromkeys(task for task, _ in runs))
    figure, panels = plt.subplots(1, len(tasks), figsize=(4.2 * len(tasks), 4.2), layout="constrained")
    for axes, task in zip(panels, tasks, strict=True):
        for (of, method), rows in runs.items():
            if of == task:
                band(axes, np.arange(len(rows[0]["curve"])), rows, 0.15, label=method)
                axes.set(title=f"{task}, {len(rows)} seeds", xlabel="generation")
    panels[0].set(ylabel="mean return")
    legend_below(figure, panels[0], 5)
    figure.savefig(FIGURES / "papers_flows_figure_3.png", dpi=100)


def accuracies(found: list[dict], axes: plt.Axes) -> None:
    """Test accuracy by epoch, and training accuracy as a thin line where it was kept."""
    for row in found:
        curve = np.array(row["curve"])
        epochs = np.arange(1, len(curve) + 1)
        (line,) = axes.plot(epochs, curve if curve.ndim == 1 else curve[:, 1], lw=2, label=row["method"])
        if curve.ndim == 2:
            axes.plot(epochs, curve[:, 0], lw=0.8, color=line.get_color())
    axes.set(xlabel="epoch", ylabel="accuracy")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(fontsize=8)


def flows_figures_4_and_5(mlp: list[dict], convnet: list[dict]) -> None:
    """Figure 4, thin lines training, bold ones test; Figure 5 in small, test."""
    figure, panels = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    accuracies(mlp, panels[0])
    panels[0].set(title="Figure 4: MNIST, hidden layer orthogonal", ylim=(0.93, 1.0))
    accuracies(convnet, panels[1])
    panels[1].set(title="Figure 5 in small: sixteen plain convolutions on digits", ylim=(0, 1))
    figure.savefig(FIGURES / "papers_flows_figures_4_5.png", dpi=100)


def svrg_figure_2(found: list[dict]) -> None:
    """The median of fifty starts, quartiles shaded."""
    shown = ("batch", "SGD", "SVRG", "SVRG-SBB_0", "SVRG-SBB", "SVRG-SBB, our epsilon")
    rows = [row | {"line": row["method"]} for row in found if row["method"] in shown]
    by_passes(rows, "papers_svrg_figure_2.png", xlim=(0, 150), ylim=(0, 0.62))


def svrg_figure_4(found: list[dict]) -> None:
    """The same on the music artists, ten splits; published steps."""
    by_passes([row | {"line": row["solver"]} for row in found], "papers_svrg_figure_4.png", xlim=(0, 60))


def by_passes(rows: list[dict], name: str, **limits: Any) -> None:
    """Held-out error against gradient passes, a panel a loss; a thin line is the target."""
    figure, panels = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained", sharex=True, sharey=True)
    for axes, ((loss,), own) in zip(panels.flat, grouped(rows, "loss").items(), strict=True):
        for row in own:
            x = row["passes"] * np.arange(len(row["median"]))
            (line,) = axes.plot(x, row["median"], "--" if row["line"].endswith("sbb0") else "-", label=row["line"])
            if "low" in row:
                axes.fill_between(x, row["low"], row["high"], color=line.get_color(), alpha=0.15)
                axes.axhline(0.15, color="gray", ls=":")
        axes.set(title=loss, **limits)
    for axes in panels[:, 0]:
        axes.set(ylabel="error on unseen answers")
    for axes in panels[-1]:
        axes.set(xlabel="gradient passes")
    legend_below(figure, panels[0, 0], 6)
    figure.savefig(FIGURES / name, dpi=100)


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
        found = [results.read(source) for source in sources]
        if all(found):
            draw(*found)
            plt.close("all")
