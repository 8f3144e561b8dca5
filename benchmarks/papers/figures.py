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
    sets = list(dict.fromkeys(row["set"] for row in found))
    figure, panels = plt.subplots(1, len(sets), figsize=(6 * len(sets), 4), layout="constrained", squeeze=False)
    for axes, name in zip(panels[0], sets, strict=True):
        rows = sorted((row for row in found if row["set"] == name and "factor" in row), key=lambda row: row["factor"])
        x = [row["factor"] for row in rows]
        axes.plot(x, [row["map"] for row in rows], "o-", color="C2", label="mAP, %")
        axes.plot(x, [row["retained"] for row in rows], "s-", color="C3", label="retained variance, %")
        axes.axvline(1.0, color="gray", ls=":")
        axes.set(xscale="log", xlabel="scale over eq. 25's", title=name, ylim=(0, 105))
        axes.set_xticks(x, [f"{factor:g}" for factor in x])
        axes.minorticks_off()
        axes.invert_xaxis()
        loss = axes.twinx()
        loss.plot(x, [row["loss per bit"] for row in rows], "^--", color="C0", label="loss per bit (right)")
        lines = axes.get_legend_handles_labels(), loss.get_legend_handles_labels()
        axes.legend(lines[0][0] + lines[1][0], lines[0][1] + lines[1][1], fontsize=8, loc="center right")
    figure.savefig(FIGURES / "papers_scq_figure_4.png", dpi=100)


def flows_figure_3(found: list[dict]) -> None:
    """Returns by generation, a panel a task; the band is a standard deviation over the seeds."""
    tasks = list(dict.fromkeys(row["task"] for row in found))
    figure, panels = plt.subplots(1, len(tasks), figsize=(4.6 * len(tasks), 3.8), layout="constrained")
    for axes, task in zip(panels, tasks, strict=True):
        for method in dict.fromkeys(row["method"] for row in found):
            curves = np.array([row["curve"] for row in found if (row["task"], row["method"]) == (task, method)])
            middle, spread = curves.mean(axis=0), curves.std(axis=0)
            (line,) = axes.plot(middle, label=method)
            axes.fill_between(range(len(middle)), middle - spread, middle + spread, color=line.get_color(), alpha=0.15)
        axes.set(title=task, xlabel="generation")
    panels[0].set(ylabel="mean return")
    panels[0].legend(fontsize=8)
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
    figure, panels = plt.subplots(1, len(losses), figsize=(4.4 * len(losses), 3.8), layout="constrained", sharey=True)
    for axes, loss in zip(panels, losses, strict=True):
        for row in (row for row in found if row["loss"] == loss and row["method"] in SHOWN):
            x = row["passes"] * np.arange(len(row["median"]))
            (line,) = axes.plot(x, row["median"], label=row["method"])
            axes.fill_between(x, row["low"], row["high"], color=line.get_color(), alpha=0.2)
        axes.axhline(0.15, color="gray", ls=":")
        axes.set(title=loss, xlabel="gradient passes", xlim=(0, 150), ylim=(0, 0.62))
    panels[0].set(ylabel="error on unseen answers")
    panels[0].legend(fontsize=8)
    figure.savefig(FIGURES / "papers_svrg_figure_2.png", dpi=100)


def svrg_figure_4(found: list[dict]) -> None:
    """The same on the music artists, ten splits; published steps."""
    losses = list(dict.fromkeys(row["loss"] for row in found))
    figure, panels = plt.subplots(1, len(losses), figsize=(4.4 * len(losses), 3.8), layout="constrained", sharey=True)
    for axes, loss in zip(panels, losses, strict=True):
        for row in (row for row in found if row["loss"] == loss):
            axes.plot(row["passes"] * np.arange(len(row["median"])), row["median"], label=row["solver"])
        axes.set(title=loss, xlabel="gradient passes", xlim=(0, 60))
    panels[0].set(ylabel="error on unseen answers")
    panels[0].legend(fontsize=8)
    figure.savefig(FIGURES / "papers_svrg_figure_4.png", dpi=100)


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


if __name__ == "__main__":
    main()
