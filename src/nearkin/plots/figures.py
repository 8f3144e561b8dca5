"""The figures: curves of an error or a distortion, a measure against bytes, and maps whose names do not collide."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from scipy.stats import f

from nearkin._check import check_instance
from nearkin._fields import counted
from nearkin._types import ArrayLike, Record
from nearkin.plots.style import FAINT, INK, SERIES, any_script, legend, new_axes, series_style

ALL = 50  # up to this number of points each gets a name, with a thin line to it where it does not fit next to the point
_TRIES = 200  # names to try above that
_GAPS = (3.0, 12.0, 22.0, 34.0, 48.0, 64.0, 90.0, 120.0, 160.0)  # points between a point and its name
_APART = 1.25  # times a size: the names of closer ones would overlap
_ERROR = "share of held-out answers violated"


def plot_convergence(
    curves: Mapping[str, Sequence[float]], ax: Axes | None = None, ylabel: str = "distortion on the training vectors"
) -> Axes:
    """Draw one curve per method: a value after every outer iteration.

    Parameters
    ----------
    curves: {name: values}, such as the distortions of `quantizer.history_`.
    ax: matplotlib axes; None makes them.
    ylabel: text of the y axis.

    Returns
    -------
    ax: the axes.

    Examples
    --------
    >>> nk.plots.plot_convergence({"procrustes": [3.0, 2.0, 1.5]}).get_ylabel()
    'distortion on the training vectors'
    """
    given = check_instance(curves, "curves", Mapping).items()
    numbered = {name: {float(n): v for n, v in enumerate(values, start=1)} for name, values in given}
    ax = _draw(ax, numbered, "curves", "iteration", ylabel)
    ax.set_xlim(left=1)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def plot_against_bytes(
    series: Mapping[str, Mapping[float, float]],
    ylabel: str,
    ax: Axes | None = None,
    reference: tuple[str, float] | None = None,
) -> Axes:
    """Draw values of methods against bytes a vector, the bytes on a log axis.

    Parameters
    ----------
    series: {name: {bytes: value}}.
    ylabel: text of the y axis.
    ax: matplotlib axes; None makes them.
    reference: (name, value), a horizontal line.

    Returns
    -------
    ax: the axes.

    Examples
    --------
    >>> nk.plots.plot_against_bytes({"OPQ": {4: 0.3, 8: 0.5}}, "recall@10").get_ylabel()
    'recall@10'
    """
    ax = _draw(ax, series, "series", "bytes per vector", ylabel)
    if reference is not None:
        label, value = reference
        ax.axhline(value, color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)), label=label)
    sizes = sorted({size for values in series.values() for size in values}, reverse=True)
    named = sizes[:1]  # of sizes whose names would touch the largest is named
    named += [size for size, longer in pairwise(sizes[::-1]) if longer >= _APART * size]
    ax.set_xscale("log", base=2)
    ax.set_xticks(named)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    legend(ax)
    return ax


def plot_error(curves: Mapping[str, Mapping[float, float]], xlabel: str, ax: Axes | None = None) -> Axes:
    """Draw curves {name: {x: error}}, for example against answers, epochs or dimension."""
    ax = _draw(ax, curves, "curves", xlabel, _ERROR)
    ax.set_ylim(bottom=0)
    return ax


def _axes(ax: Axes | None, width: float = 4.4, height: float = 3.0) -> Axes:
    """The axes that were given, or new ones; TypeError for anything else."""
    return new_axes(width, height) if ax is None else check_instance(ax, "ax", Axes)


def _draw(ax: Axes | None, curves: Mapping[str, Mapping[float, float]], name: str, xlabel: str, ylabel: str) -> Axes:
    """A line for each curve {x: value}."""
    ax = _axes(ax)
    styles = series_style(check_instance(curves, name, Mapping))
    for label, values in curves.items():
        places = sorted(check_instance(values, f"{name}[{label!r}]", Mapping))
        ax.plot(places, [values[place] for place in places], label=label, linewidth=1.7, markersize=3, **styles[label])
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if len(curves) > 1:
        legend(ax)
    return ax


def plot_map(
    X: np.ndarray,
    names: Sequence[object] | None = None,
    ax: Axes | None = None,
    *,
    reference: np.ndarray | None = None,
    draws: np.ndarray | None = None,
    level: float = 0.9,
) -> Axes:
    """Draw objects at the first two coordinates, on a line if there is one; text names their number if it is above 2.

    Parameters
    ----------
    X: (n, p) places.
    names: all are written if there are at most 50, else those for which there is room.
    ax: matplotlib axes; None makes them.
    reference: (n, 2) true places in the same coordinates, as hollow circles joined to their place on the map.
    draws: (r, n, p), of `OrdinalEmbedding.bootstrap`: an ellipse a point.
    level: share of the draws that an ellipse holds, if they are normal.

    Returns
    -------
    ax: the axes.

    Examples
    --------
    >>> nk.plots.plot_map(np.array([[0.0, 0.0], [1.0, 2.0]]), names=["Oslo", "Rome"]).get_figure() is None
    False
    """
    X = _of_shape(X, "X", "(n, p)", 2)
    if names is not None and len(names) != len(X):
        raise ValueError(f"names has {counted(len(names), 'value')} and X {counted(len(X), 'vector')}; give one each")
    at = _plane(X)
    is_line = X.shape[1] == 1
    ax = _axes(ax, 6.4, 2.0 if is_line else 5.6)
    if is_line:
        ax.axhline(0, color=FAINT, linewidth=0.7, zorder=0)
    if draws is not None:
        _draw_ellipses(ax, _of_shape(draws, "draws", "(r, n, p)", 3), level)
    if reference is not None:
        reference = _of_shape(reference, "reference", "(n, 2)", 2)[:, :2]
        ax.plot(*np.stack([at, reference]).transpose(2, 0, 1), color=FAINT, linewidth=0.7, zorder=1)
        ax.scatter(*reference.T, s=22, facecolors="none", edgecolors=SERIES[2], zorder=2)
    ax.scatter(*at.T, s=14, color=SERIES[0], zorder=3, linewidths=0)
    ax.set_aspect("equal", adjustable="datalim")
    ax.grid(False)
    ax.set(xticks=[], yticks=[])
    ax.spines["bottom"].set_visible(False)
    if X.shape[1] > 2:
        ax.set_xlabel(f"2 of {X.shape[1]} dimensions shown, those of the largest variance")
    if ax.get_legend_handles_labels()[0]:
        legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.04), ncols=1)
    if names is not None:
        label_points(ax, at, names, reference)
    return ax


def _of_shape(array: ArrayLike, name: str, shape: str, ndim: int) -> np.ndarray:
    values = np.asarray(array, dtype=np.float64)
    if values.ndim != ndim or not values.shape[-1]:
        raise ValueError(f"{name} has shape {values.shape}; it must be {shape}")
    return values


def _plane(X: np.ndarray) -> np.ndarray:
    """The first two columns of X (n, p), the second one of zeros if p is 1."""
    return np.pad(X, ((0, 0), (0, 1)))[:, :2]


def _draw_ellipses(ax: Axes, draws: np.ndarray, level: float) -> None:
    """An ellipse per object: mean and covariance of its r draws, out to Hotelling's quantile for one more draw."""
    r = len(draws)
    reach = np.sqrt(2 * (r**2 - 1) / (r * (r - 2)) * f.ppf(level, 2, r - 2))
    for number in range(draws.shape[1]):
        cloud = _plane(draws[:, number])
        if draws.shape[2] == 1:  # an interval
            half = reach * cloud[:, 0].std(ddof=1)
            ends = cloud[:, 0].mean() + np.array([-half, half])
            ax.plot(ends, [0, 0], color=SERIES[0], alpha=0.15, linewidth=6, solid_capstyle="butt", zorder=0.5)
            continue
        values, axes = np.linalg.eigh(np.cov(cloud.T))
        width, height = 2 * reach * np.sqrt(np.maximum(values[::-1], 0.0))
        angle = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
        label = None if number else f"where {level:.0%} of the places lie when the judgements are drawn again"
        style: Record = {"color": SERIES[0], "alpha": 0.08, "linewidth": 0.6, "zorder": 0.5, "label": label}
        ax.add_patch(Ellipse(tuple(cloud.mean(axis=0)), width, height, angle=angle, **style))


def label_points(
    ax: Axes,
    at: np.ndarray,  # (n, 2) in data coordinates
    names: Sequence[object],  # n
    marks: np.ndarray | None = None,  # (m, 2), what else no name may cover
) -> list[int]:
    """Write names next to points; the numbers of the points that got one. Draw everything else before. The most
    spread ones come first; of more than `ALL`, names that do not fit are left out."""
    figure = ax.get_figure(root=True)
    if not isinstance(figure, Figure) or not len(at):
        return []
    marks = np.empty((0, 2)) if marks is None else marks
    gaps_tried = _GAPS if len(at) <= ALL else _GAPS[:1]
    written: list[int] = []
    with any_script():
        figure.draw_without_rendering()  # settles the axes' size and limits
        scale, frame, to_pixels = figure.dpi / 72, ax.get_window_extent().extents, ax.transData
        places, radii = to_pixels.transform(np.concatenate([at, marks])), np.repeat([2.0, 3.0], [len(at), len(marks)])
        reach = scale * radii[:, None]
        taken = np.hstack([places - reach, places + reach])  # boxes (x0, y0, x1, y1)
        for n in spread_order(at, min(len(at), _TRIES)):
            # names are other people's text, and SVG has no control characters
            name = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(names[n]))
            style: Record = {"textcoords": "offset points", "fontsize": 7.5, "color": INK, "zorder": 4}
            place = float(at[n, 0]), float(at[n, 1])
            text = ax.annotate(name, place, (0, 0), annotation_clip=False, parse_math=False, **style)
            size = np.asarray(text.get_window_extent().size)
            offsets, gaps = _offsets(size / scale, gaps_tried)
            low = places[n] + scale * offsets
            boxes = np.hstack([low, low + size])
            free = (boxes[:, :2] >= frame[:2]).all(axis=1) & (boxes[:, 2:] <= frame[2:]).all(axis=1)
            overlap = (boxes[:, None, :2] < taken[:, 2:]) & (taken[:, :2] < boxes[:, None, 2:])  # by axis
            free &= ~np.any(overlap.all(axis=2), axis=1)
            if not free.any():
                text.remove()
                continue
            best = int(free.argmax())
            text.set_position((float(offsets[best, 0]), float(offsets[best, 1])))
            taken = np.vstack([taken, boxes[best]])
            if gaps[best] > _GAPS[0]:
                ends = to_pixels.inverted().transform([places[n], low[best] + size / 2])
                ax.plot(*ends.T, color=FAINT, linewidth=0.5, zorder=1.5, scalex=False, scaley=False)
            written.append(n)
    return written


def spread_order(at: np.ndarray, count: int) -> list[int]:
    """`count` points in an order in which each is the farthest from all before it, the outermost first."""
    distance = ((at - at.mean(axis=0)) ** 2).sum(axis=1)
    order = [int(distance.argmax())]
    nearest = np.full(len(at), np.inf)
    while len(order) < count:
        nearest = np.minimum(nearest, ((at - at[order[-1]]) ** 2).sum(axis=1))
        nearest[order] = -1.0
        order.append(int(nearest.argmax()))
    return order


def _offsets(size: np.ndarray, gaps: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Offsets (c, 2) to try, in points, of the lower left corner of a box of that size, near ones first, and the gaps
    (c,) that they leave."""
    counts = [8 * round(1 + gap / 12) for gap in gaps]
    angles = np.pi / 6 + np.concatenate([2 * np.pi * np.arange(count) / count for count in counts])
    directions, gap = np.column_stack([np.cos(angles), np.sin(angles)]), np.repeat(gaps, counts)
    parts = np.select([directions > 0.3, directions < -0.3], [0.0, 1.0], 0.5)  # of the box on the far side of the point
    return gap[:, None] * directions - parts * size, gap
