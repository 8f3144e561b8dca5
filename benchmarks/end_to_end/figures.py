"""The paper's Figure 3 from the JSON."""

from benchmarks.options import FIGURES
from nearkin.plots import new_axes, plot_convergence


def draw(curves: dict[str, list[float]], name: str) -> None:
    """The distortion while towers, codebooks and rotation train (the paper's Figure 3)."""
    ax = plot_convergence(curves, new_axes(), ylabel="distortion")
    ax.set_xlabel("step")
    ax.figure.savefig(FIGURES / f"end_to_end_{name}.png", dpi=160, facecolor="white")
