"""Pictures of what the experiments measured, beside which the papers' own figures can be laid.

python -m benchmarks papers figures
"""

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmarks.options import FIGURES
from benchmarks.papers.scq import by_factor, mean_of
from benchmarks.table import RESULTS, Results

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OPQ = {"OPQ, identity start": "C0", "OPQ, random start": "C1"}
RULES = {"GCD-G": "C2", "GCD-S": "C4", "GCD-R": "C3", "GCD-R, overlapping": "C5"}
STYLES = {5e-5: ":", 1e-4: "-", 2e-4: "--"}  # lambda


def legend_below(figure: Figure, axes: plt.Axes, columns: int) -> None:
    """One legend for all panels, under them, so that it hides no line."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False)


def gcd_figure_2(found: list[dict]) -> None:
    """(a) the rules, means over the seeds; (b, c) OPQ and GCD-G, all rows and a tenth; (d) how far the seeds spread."""
    figure, panels = plt.subplots(2, 2, figsize=(11, 8.5), layout="constrained")
    (a, b), (c, d) = panels
    shares = sorted({row["rows"] for row in found}, reverse=True)

    def curves(rule: str, rate: float, rows: int) -> np.ndarray:
        chosen = (row for row in found if (row["rule"], row["lambda"], row["rows"]) == (rule, rate, rows))
        return np.array([row["curve"] for row in chosen]) / 1000

    def line(axes: plt.Axes, rule: str, rate: float, rows: int, colour: str) -> None:
        runs = curves(rule, rate, rows)
        x, middle, spread = np.arange(1, runs.shape[1] + 1), runs.mean(axis=0), runs.std(axis=0)
        label = f"{rule}, {rate:g}" if rate else rule
        axes.plot(x, middle, STYLES.get(rate, "-"), color=colour, label=label)
        axes.fill_between(x, middle - spread, middle + spread, color=colour, alpha=0.3)

    for rule, rate in sorted({(row["rule"], row["lambda"]) for row in found}):
        if rule in RULES:
            line(a, rule, rate, shares[0], RULES[rule])
    line(a, "OPQ, identity start", 0.0, shares[0], "C0")
    a.set(title="(a) rules and lambda, all rows; GCD-G overlapping is above 200", ylabel="distortion / 1000")
    for axes, rows, title in zip((b, c), shares, ("(b) all rows", "(c) 10 % of the rows"), strict=True):
        for rule, colour in {**OPQ, "GCD-G": "C2"}.items():
            line(axes, rule, 1e-4 if rule == "GCD-G" else 0.0, rows, colour)
        axes.set(title=f"{title}, {len(curves('GCD-G', 1e-4, rows))} seeds, band: their standard deviation")
        axes.set(ylabel="distortion / 1000")
    for rule, colour in {**OPQ, "GCD-G": "C2"}.items():
        for rows, style, share in zip(shares, ("-", "--"), ("all rows", "10 %"), strict=True):
            runs = curves(rule, 1e-4 if rule == "GCD-G" else 0.0, rows)
            spread = 100 * runs.std(axis=0) / runs.mean(axis=0)
            d.plot(np.arange(1, len(spread) + 1), spread, style, color=colour, label=f"{rule}, {share}")
    d.set(title="(d) standard deviation over the seeds, % of the mean", yscale="log", ylabel="%")
    d.yaxis.set_major_formatter("{x:g}")
    for axes in panels.flat:
        axes.set(xlabel="round")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(fontsize=8, loc="upper right", ncols=2 if axes is a else 1)
        axes.title.set_fontsize(10)
    d.set(ylim=(0.003, 3))
    d.legend(fontsize=8, loc="lower center", ncols=2)
    figure.savefig(FIGURES / "papers_gcd_figure_2.png", dpi=100)


def gcd_figure_3(found: list[dict]) -> None:
    """Distortion over the joint steps as a share of the frozen rotation's, mean over the seeds, a panel a lambda."""
    rows = [row for row in found if (row["data"], row["d"]) == ("ml100k", 64)]
    frozen = {row["seed"]: np.array(row["curve"]) for row in rows if row["rule"] == "frozen"}
    rates = sorted({row["lambda"] for row in rows} - {0.0})
    figure, panels = plt.subplots(1, len(rates), figsize=(5.5 * len(rates), 4), layout="constrained", sharey=True)
    for axes, rate in zip(panels, rates, strict=True):
        for rule in ("GCD-R", "GCD-G", "GCD-S", "Cayley"):
            curves = [
                np.array(row["curve"]) / frozen[row["seed"]]
                for row in rows
                if (row["rule"], row["lambda"]) == (rule, rate)
            ]
            if curves:
                axes.plot(np.arange(1, len(curves[0]) + 1) * 10, np.mean(curves, axis=0), label=rule)
        axes.axhline(1.0, color="black", lw=0.8, label="frozen")
        axes.set(title=f"ml100k, lambda {rate:g}, {len(curves)} seeds", xlabel="joint step")
        axes.legend(fontsize=8)
    panels[0].set(ylabel="distortion over the frozen rotation's")
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
    tasks = list(dict.fromkeys(row["task"] for row in found))
    figure, panels = plt.subplots(1, len(tasks), figsize=(4.2 * len(tasks), 4.2), layout="constrained")
    for axes, task in zip(panels, tasks, strict=True):
        for method in dict.fromkeys(row["method"] for row in found):
            key = (task, method, 1.0)
            curves = np.array([row["curve"] for row in found if (row["task"], row["method"], row["factor"]) == key])
            middle, spread = curves.mean(axis=0), curves.std(axis=0)
            (line,) = axes.plot(middle, label=method)
            axes.fill_between(range(len(middle)), middle - spread, middle + spread, color=line.get_color(), alpha=0.15)
        axes.set(title=f"{task}, {len(curves)} seeds", xlabel="generation")
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


SHOWN = ("batch", "SGD", "SVRG", "SVRG-SBB_0", "SVRG-SBB", "SVRG-SBB, our epsilon")


def svrg_figure_2(found: list[dict]) -> None:
    """Held-out error against gradient passes: the median of fifty starts, quartiles shaded."""
    losses = list(dict.fromkeys(row["loss"] for row in found))
    figure, panels = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained", sharex=True, sharey=True)
    for axes, loss in zip(panels.flat, losses, strict=True):
        for row in (row for row in found if row["loss"] == loss and row["method"] in SHOWN):
            x = row["passes"] * np.arange(len(row["median"]))
            (line,) = axes.plot(x, row["median"], label=row["method"])
            axes.fill_between(x, row["low"], row["high"], color=line.get_color(), alpha=0.15)
        axes.axhline(0.15, color="gray", ls=":")
        axes.set(title=loss, xlim=(0, 150), ylim=(0, 0.62))
    finished(figure, panels, "papers_svrg_figure_2.png", 6)


def svrg_figure_4(found: list[dict]) -> None:
    """The same on the music artists, ten splits; published steps."""
    losses = list(dict.fromkeys(row["loss"] for row in found))
    figure, panels = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained", sharex=True, sharey=True)
    styles = {"svrg-sbb": "-", "svrg-sbb0": "--", "svrg": "-", "sgd": "-"}
    for axes, loss in zip(panels.flat, losses, strict=True):
        for row in (row for row in found if row["loss"] == loss and row["solver"] in styles):
            x, style = row["passes"] * np.arange(len(row["median"])), styles[row["solver"]]
            axes.plot(x, row["median"], style, label=row["solver"])
        axes.set(title=loss, xlim=(0, 60))
    finished(figure, panels, "papers_svrg_figure_4.png", 4)


def finished(figure: Figure, panels: np.ndarray, name: str, columns: int) -> None:
    """Labels at the left and at the bottom, the legend below, and the file."""
    for axes in panels[:, 0]:
        axes.set(ylabel="error on unseen answers")
    for axes in panels[-1]:
        axes.set(xlabel="gradient passes")
    legend_below(figure, panels[0, 0], columns)
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
