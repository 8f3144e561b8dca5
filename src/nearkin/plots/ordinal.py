"""Ordinal embeddings: a map of the objects by name, with the answers it cannot satisfy, and curves of the error."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse
from scipy.stats import f

from nearkin._check import check_instance, check_integer
from nearkin._types import ArrayLike, Record
from nearkin.plots.labels import label_points
from nearkin.plots.style import FAINT, SERIES, axes_or_new, check_curves, legend, series_style
from nearkin.records import Comparisons


def plot_map(
    X: np.ndarray,
    names: Sequence[object] | None = None,
    comparisons: Comparisons | None = None,
    ax: Axes | None = None,
    *,
    reference: np.ndarray | None = None,
    draws: np.ndarray | None = None,
    level: float = 0.9,
    n_crossing: int = 20,
) -> Axes:
    """Draw the objects at the first two coordinates of X (n, p); a line of text says so if there are more.

    names: all are written if there are at most 50, else those for which there is room, those of the five worst answers
    first. comparisons: those that X violates most, `n_crossing` of them, are drawn: a full line between the two that
    were said to be nearer, a dotted one between the two that were said to be farther. reference (n, 2): where the
    objects truly are, in the same coordinates, as hollow circles joined to their place on the map. draws (r, n, p), of
    `OrdinalEmbedding.bootstrap`: an ellipse a point that holds a share `level` of them, if they are normal.
    """
    X = _of_shape(X, "X", "(n, p)", 2)
    if names is not None and len(names) != len(X):
        raise ValueError(f"names has {len(names)} values and X {len(X)} rows; give one for each")
    at = np.zeros((len(X), 2))
    at[:, : min(2, X.shape[1])] = X[:, :2]
    ax = axes_or_new(ax, 6.4, 5.6)
    if comparisons is not None:
        check_instance(comparisons, "comparisons", Comparisons)
    n_crossing = check_integer(n_crossing, "n_crossing", low=0)
    worst = np.empty((0, 4), np.int64) if comparisons is None else worst_comparisons(X, comparisons, n_crossing)
    _draw_crossing(ax, at, worst, 0 if comparisons is None else len(comparisons))
    if draws is not None:
        _draw_ellipses(ax, _of_shape(draws, "draws", "(r, n, p)", 3), level)
    if reference is not None:
        reference = _of_shape(reference, "reference", "(n, 2)", 2)[:, :2]
        for here, there in zip(at, reference, strict=True):
            ax.plot(*zip(here, there, strict=True), color=FAINT, linewidth=0.7, zorder=1)
        ax.scatter(*reference.T, s=22, facecolors="none", edgecolors=SERIES[2], zorder=2)
    ax.scatter(*at.T, s=14, color=SERIES[0], zorder=3, linewidths=0)
    ax.set_aspect("equal", adjustable="datalim")
    ax.grid(False)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines["bottom"].set_visible(False)
    if X.shape[1] > 2:
        ax.set_xlabel(f"2 of {X.shape[1]} dimensions shown, those of the largest variance")
    if ax.get_legend_handles_labels()[0]:
        legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.04), ncols=1)
    if names is not None:
        marks = None if reference is None else np.asarray(reference, dtype=np.float64)[:, :2]
        label_points(ax, at, names, np.unique(worst[:5]).tolist(), marks)
    return ax


def _of_shape(array: ArrayLike, name: str, shape: str, ndim: int) -> np.ndarray:
    values = np.asarray(array, dtype=np.float64)
    if values.ndim != ndim or not values.shape[-1]:
        raise ValueError(f"{name} has shape {values.shape}; it must be {shape}")
    return values


def worst_comparisons(X: np.ndarray, comparisons: Comparisons, count: int) -> np.ndarray:
    """(at most count, 4) rows (i, j, l, k) that X violates, the most violated first: by log(d_ij^2 / d_lk^2)."""
    rows = comparisons.quadruplets()
    near, far = (((X[rows[:, a]] - X[rows[:, b]]) ** 2).sum(axis=1) for a, b in ((0, 1), (2, 3)))
    tiny = np.finfo(np.float64).tiny
    excess = np.log(np.maximum(near, tiny)) - np.log(np.maximum(far, tiny))
    order = np.argsort(-excess, kind="stable")[:count]
    return rows[order[excess[order] > 0]]


def _draw_crossing(ax: Axes, at: np.ndarray, worst: np.ndarray, n_answers: int) -> None:
    """Lines for the answers worst (r, 4), and a legend that says what they are."""
    style: Record = {"color": SERIES[1], "linewidth": 0.8, "alpha": 0.6, "zorder": 1}
    near = f"said to be nearer: the {len(worst)} answers of {n_answers} that the map violates most"
    for number, (i, j, l, k) in enumerate(worst):  # noqa: E741  the paper's letters
        first = number == 0
        ax.plot(*at[[i, j]].T, label=near if first else None, **style)
        ax.plot(*at[[l, k]].T, label="said to be farther, in the same answers" if first else None, ls=":", **style)


def _draw_ellipses(ax: Axes, draws: np.ndarray, level: float) -> None:
    """An ellipse per object: its draws' mean and covariance, out to Hotelling's quantile for so many draws."""
    r = len(draws)
    reach = np.sqrt(2 * (r - 1) / (r - 2) * f.ppf(level, 2, r - 2))
    for number in range(draws.shape[1]):
        cloud = np.zeros((r, 2))
        cloud[:, : min(2, draws.shape[2])] = draws[:, number, :2]
        values, axes = np.linalg.eigh(np.cov(cloud.T))
        width, height = 2 * reach * np.sqrt(np.maximum(values[::-1], 0.0))
        angle = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
        label = f"where {level:.0%} of the places lie when the questions are drawn again" if number == 0 else None
        style: Record = {"color": SERIES[0], "alpha": 0.08, "linewidth": 0.6, "zorder": 0.5, "label": label}
        ax.add_patch(Ellipse(tuple(cloud.mean(axis=0)), width, height, angle=angle, **style))


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
    check_instance(logarithmic, "logarithmic", bool, int)
    ax = axes_or_new(ax)
    check_curves(curves, "curves", Mapping)
    if spread is not None:
        check_curves(spread, "spread", Mapping)
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
