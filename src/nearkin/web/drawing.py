"""Figures of matplotlib as pictures that pages show, light or dark."""

import io

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from nearkin.plots.style import FAINT, GRID, INK

_DARK = {INK: "#e6e9ef", FAINT: "#9aa4b5", GRID: "#333b48"}


def png(ax: Axes, dark: bool = False) -> bytes:
    """The figure of `ax` as a PNG; ValueError for axes of no figure."""
    figure = ax.get_figure()
    if figure is None:
        raise ValueError("ax belongs to no figure; make it with new_axes()")
    if dark:
        for text in figure.findobj(matplotlib.text.Text):
            text.set_color(_DARK.get(to_hex(text.get_color()), text.get_color()))
        for axes in figure.axes:
            if any(line.get_visible() for line in axes.get_ygridlines()):  # a map has none
                axes.grid(axis="y", color=_DARK[GRID])
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()
