"""Figures from the JSON in benchmarks/results, so that they can be drawn again without measuring."""

import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from nearkin.plots.figures import plot_error
from nearkin.plots.style import dress

SHOWN = ("svrg-sbb b=1", "svrg-sbb b=20", "svrg published step", "adagrad", "gd sbb", "sgd")


def draw(results: Path) -> None:
    """Figure 2 (synthetic) and Figure 4 (music) of the paper: error against gradient passes, quartiles shaded."""
    for name, shown in (("table1", SHOWN), ("music", ("svrg-sbb", "svrg", "sgd", "gd"))):
        path = results / f"ordinal_{name}.json"
        if path.exists():
            curves = json.loads(path.read_text(encoding="utf-8"))["curves"]
            figure = panels(curves, shown)
            for ending in ("svg", "png"):
                figure.savefig(
                    path.with_suffix(f".{ending}"),
                    facecolor="white",
                    metadata={"Date": None} if ending == "svg" else None,
                )


def panels(curves: dict[str, Any], shown: tuple[str, ...]) -> Figure:
    losses = [loss for loss in curves if loss != "soe"][:5]
    figure = Figure(figsize=(4.2 * len(losses), 3.4), layout="constrained")
    for ax, loss in zip(figure.subplots(1, len(losses), squeeze=False)[0], losses, strict=True):
        found = {name: curves[loss][name] for name in shown if name in curves[loss]}
        middle = {name: dict(zip(curve["x"], curve["median"], strict=True)) for name, curve in found.items()}
        spread = {
            name: {x: (low, high) for x, low, high in zip(curve["x"], curve["low"], curve["high"], strict=True)}
            for name, curve in found.items()
        }
        plot_error(middle, "gradient passes", dress(ax), spread=spread)
        ax.set_xlim(0, 60)
        ax.set_title(loss)
        legend = ax.get_legend()
        if legend is not None and loss != losses[0]:  # one legend is enough
            legend.remove()
    return figure
