"""Ordinal embeddings: a map of the objects by name, with the answers it cannot satisfy, and curves of the error."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from nearkin.plots.style import FAINT, INK, SERIES, legend, new_axes, series_style
from nearkin.records import Comparisons

MAX_NAMES = 80  # more names than this cover each other


def plot_map(
    X: np.ndarray,
    names: Sequence[Any] | None = None,
    comparisons: Comparisons | None = None,
    ax: Axes | None = None,
    *,
    reference: np.ndarray | None = None,
    n_crossing: int = 20,
) -> Axes:
    """Draw the objects at the first two coordinates of X (n, p), with names if there are at most `MAX_NAMES`.

    comparisons: those that X violates most, `n_crossing` of them, are drawn: a full line between the two that should
    be near, a dotted one between the two that should be far. reference (n, 2): where the objects truly are, in the same
    coordinates, as hollow circles joined to their place on the map.
    """
    X = np.asarray(X, dtype=np.float64)
    at = np.zeros((len(X), 2))
    at[:, : min(2, X.shape[1])] = X[:, :2]
    ax = new_axes(6.4, 5.6) if ax is None else ax
    if comparisons is not None:
        _draw_crossing(ax, X, at, comparisons, n_crossing)
    if reference is not None:
        for here, there in zip(at, np.asarray(reference)[:, :2], strict=True):
            ax.plot(*zip(here, there, strict=True), color=FAINT, linewidth=0.7, zorder=1)
        ax.scatter(*np.asarray(reference)[:, :2].T, s=22, facecolors="none", edgecolors=SERIES[2], zorder=2)
    ax.scatter(*at.T, s=14, color=SERIES[0], zorder=3, linewidths=0)
    if names is not None and len(names) <= MAX_NAMES:
        for name, place in zip(names, at, strict=True):
            ax.annotate(
                str(name), tuple(place), xytext=(3, 3), textcoords="offset points", fontsize=7.5, color=INK, zorder=4
            )
    ax.set_aspect("equal", adjustable="datalim")
    ax.grid(False)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines["bottom"].set_visible(False)
    return ax


def worst_comparisons(X: np.ndarray, comparisons: Comparisons, count: int) -> np.ndarray:
    """(at most count, 4) rows (i, j, l, k) that X violates, the most violated first: by log(d_ij^2 / d_lk^2)."""
    rows = comparisons.quadruplets()
    near, far = (((X[rows[:, a]] - X[rows[:, b]]) ** 2).sum(axis=1) for a, b in ((0, 1), (2, 3)))
    tiny = np.finfo(np.float64).tiny
    excess = np.log(np.maximum(near, tiny)) - np.log(np.maximum(far, tiny))
    order = np.argsort(-excess, kind="stable")[:count]
    return rows[order[excess[order] > 0]]


def _draw_crossing(ax: Axes, X: np.ndarray, at: np.ndarray, comparisons: Comparisons, count: int) -> None:
    for number, (i, j, l, k) in enumerate(worst_comparisons(X, comparisons, count)):  # noqa: E741  the paper's letters
        first = number == 0
        ax.plot(
            *at[[i, j]].T,
            color=SERIES[1],
            linewidth=0.8,
            alpha=0.6,
            zorder=1,
            label="said to be near" if first else None,
        )
        ax.plot(*at[[l, k]].T, color=SERIES[1], linewidth=0.8, alpha=0.6, linestyle=":", zorder=1,
                label="said to be far" if first else None)  # fmt: skip
    if ax.get_legend_handles_labels()[0]:
        legend(ax, loc="best")


def plot_error(
    curves: Mapping[str, Mapping[float, float]],
    xlabel: str,
    ax: Axes | None = None,
    *,
    ylabel: str = "share of held-out answers violated",
    logarithmic: bool = False,
    spread: Mapping[str, Mapping[float, tuple[float, float]]] | None = None,
) -> Axes:
    """Draw error curves {name: {x: error}}, for example against answers, epochs or dimension.

    spread: {name: {x: (low, high)}} is shaded, such as quartiles over seeds.
    """
    ax = new_axes() if ax is None else ax
    for name, style in series_style(curves).items():
        places = sorted(curves[name])
        values = [curves[name][place] for place in places]
        many = len(places) > 15
        ax.plot(
            places,
            values,
            color=style["color"],
            marker=None if many else style["marker"],
            markersize=4,
            linewidth=1.6,
            label=name,
        )
        if spread is not None and name in spread:
            low, high = zip(*(spread[name][place] for place in places), strict=True)
            ax.fill_between(places, low, high, color=style["color"], alpha=0.15, linewidth=0)
    if logarithmic:
        ax.set_xscale("log")
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.set_ylim(bottom=0)
    if len(curves) > 1:
        legend(ax)
    return ax
