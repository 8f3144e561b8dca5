"""How codes get better: distortion while a rotation is learned, and any measure against the size of the code."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from nearkin.plots.style import FAINT, axes_or_new, check_curves, legend, series_style

_APART = 0.06  # of an axis' length: numbers nearer to one another touch


def plot_convergence(
    curves: Mapping[str, Sequence[float]], ax: Axes | None = None, ylabel: str = "distortion on the training rows"
) -> Axes:
    """Draw one curve per method: a value (distortion) after every outer iteration."""
    ax = axes_or_new(ax)
    check_curves(curves, "curves", Sequence, np.ndarray)
    for name, style in series_style(curves).items():
        values = curves[name]
        ax.plot(range(1, len(values) + 1), values, color=style["color"], linewidth=1.8, label=name)
    ax.set_xlabel("iteration")
    ax.set_ylabel(ylabel)
    ax.set_xlim(left=1)
    if len(curves) > 1:
        legend(ax)
    return ax


def plot_against_bytes(
    series: Mapping[str, Mapping[float, float]],
    ylabel: str,
    ax: Axes | None = None,
    reference: tuple[str, float] | None = None,
    xlabel: str = "bytes per vector",
) -> Axes:
    """Draw one line per method: {bytes per vector: value}, the bytes (or whatever `xlabel` says) on a logarithmic axis.

    `reference` is a name and a value that holds at every size, such as the exact search's.
    """
    ax = axes_or_new(ax)
    check_curves(series, "series", Mapping)
    for name, style in series_style(series).items():
        sizes = sorted(series[name])
        ax.plot(sizes, [series[name][size] for size in sizes], label=name, linewidth=1.8, markersize=5, **style)
    if reference is not None:
        label, value = reference
        ax.axhline(value, color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)), label=label)
    set_ticks(ax, [size for values in series.values() for size in values])
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    if len(series) > 6:  # no room among so many lines
        legend(ax, ncols=4, loc="upper center", bbox_to_anchor=(0.45, -0.18))
    else:
        legend(ax)
    return ax


def set_ticks(ax: Axes, sizes: Iterable[float]) -> None:
    """A logarithmic axis that names the sizes, of those that would touch the largest."""
    every = sorted(set(sizes), reverse=True)
    named: list[float] = []
    for size in every:
        if not named or math.log(named[-1] / size) > _APART * math.log(every[0] / every[-1]):
            named.append(size)
    ax.set_xscale("log", base=2)
    ax.set_xticks(named[::-1])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
