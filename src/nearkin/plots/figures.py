"""The figures: curves of an error or a distortion, a measure against bytes, and maps whose names do not collide."""

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox
from scipy.stats import f

from nearkin._check import check_instance, check_mapping, check_real, from_tensor
from nearkin._fields import counted
from nearkin._types import ArrayLike, Record
from nearkin.plots.style import FAINT, INK, SERIES, house_style, new_axes

ALL = 50  # up to this number of points each gets a name, with a thin line to it where it does not fit next to the point
_TRIES = 100  # names to try above that
_REACH = 3.0  # pixels around a point that no name may cover
_PLACES = [  # points between a point and its name, and the direction, to try in turn
    (gap, np.cos(angle), np.sin(angle))
    for gap, parts in ((3.0, 8), (12.0, 16), (24.0, 24), (40.0, 32), (64.0, 48), (100.0, 72), (160.0, 112))
    for angle in np.pi / 6 + 2 * np.pi * np.arange(parts) / parts
]


@house_style()
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
    numbered: Record = {name: dict(enumerate(of, 1)) for name, of in check_mapping(curves, "curves").items()}
    ax = _draw(ax, numbered, "curves", "iteration", ylabel)
    ax.set_xlim(left=1)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


@house_style()
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
        if not isinstance(reference, tuple | list) or len(reference) != 2:
            raise TypeError(f"reference is {reference!r}; it must be (name, value)")
        label, height = reference[0], check_real(reference[1], "reference[1]")
        ax.axhline(height, color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)), label=label)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.legend()
    return ax


@house_style()
def plot_error(curves: Mapping[str, Mapping[float, float]], xlabel: str, ax: Axes | None = None) -> Axes:
    """Draw curves {name: {x: error}}, for example against answers, epochs or dimension."""
    ax = _draw(ax, curves, "curves", xlabel, "share of held-out answers violated")
    ax.set_ylim(bottom=0)
    return ax


def _axes(ax: Axes | None, width: float = 4.4, height: float = 3.0) -> Axes:
    """The axes that were given, or new ones; TypeError for anything else."""
    return new_axes(width, height) if ax is None else check_instance(ax, "ax", Axes)


def _draw(ax: Axes | None, curves: Mapping[str, Mapping[float, float]], name: str, xlabel: str, ylabel: str) -> Axes:
    """A line for each curve {x: value}."""
    ax = _axes(ax)
    for label, values in check_mapping(curves, name).items():
        points = check_mapping(values, f"{name}[{label!r}]")
        ax.plot(sorted(points), [points[place] for place in sorted(points)], label=label)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if len(curves) > 1:
        ax.legend()
    return ax


@house_style()
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
        ax.plot(*np.stack([at, reference]).transpose(2, 0, 1), color=FAINT, linewidth=0.7, marker="", zorder=1)
        ax.scatter(*reference.T, s=22, facecolors="none", edgecolors=SERIES[2], zorder=2)
    ax.scatter(*at.T, s=14, color=SERIES[0], zorder=3, linewidths=0)
    ax.set(aspect="equal", adjustable="datalim", xticks=[], yticks=[])
    ax.spines["bottom"].set_visible(False)
    if X.shape[1] > 2:
        ax.set_xlabel(f"2 of {X.shape[1]} dimensions shown, those of the largest variance")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.04), ncols=1)
    if names is not None:
        label_points(ax, at, names, reference)
    return ax


def _of_shape(array: ArrayLike, name: str, shape: str, ndim: int) -> np.ndarray:
    values = np.asarray(from_tensor(array, name), dtype=np.float64)
    if values.ndim != ndim or not values.shape[-1]:
        raise ValueError(f"{name} has shape {values.shape}; it must be {shape}")
    return values


def _plane(X: np.ndarray) -> np.ndarray:
    """The first two columns of X (n, p), the second one of zeros if p is 1."""
    return np.pad(X, ((0, 0), (0, 1)))[:, :2]


def _draw_ellipses(ax: Axes, draws: np.ndarray, level: float) -> None:
    """An ellipse per object: mean and covariance of its r draws, out to Hotelling's quantile for one more draw."""
    r, width_of_line = len(draws), 6.0 if draws.shape[2] == 1 else 0.6  # an interval is flat
    reach = np.sqrt(2 * (r**2 - 1) / (r * (r - 2)) * f.ppf(level, 2, r - 2))
    for number in range(draws.shape[1]):
        cloud = _plane(draws[:, number])
        values, axes = np.linalg.eigh(np.cov(cloud.T))
        width, height = 2 * reach * np.sqrt(np.maximum(values[::-1], 0.0))
        angle = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
        label = None if number else f"where {level:.0%} of the places lie when the judgements are drawn again"
        style: Record = {"color": SERIES[0], "alpha": 0.08, "linewidth": width_of_line, "zorder": 0.5, "label": label}
        ax.add_patch(Ellipse(tuple(cloud.mean(axis=0)), width, height, angle=angle, **style))


@house_style()
def label_points(
    ax: Axes,
    at: np.ndarray,  # (n, 2) in data coordinates
    names: Sequence[object],  # n
    marks: np.ndarray | None = None,  # (m, 2), what else no name may cover
) -> list[int]:
    """Write names next to points, or with a thin line to them, in their order; the numbers of the points that got one.
    Draw everything else before. Of more than `ALL`, names that do not fit next to their points are left out."""
    figure = cast(Figure, ax.get_figure(root=True))
    figure.draw_without_rendering()  # settles the axes' size and limits
    renderer = RendererAgg(*figure.bbox.size, figure.dpi)  # else matplotlib makes one for each box
    frame, drawn = ax.get_window_extent(), at if marks is None else np.concatenate([at, marks])
    taken = [Bbox.from_extents(*(place - _REACH), *(place + _REACH)) for place in ax.transData.transform(drawn)]
    written = list[int]()
    for n, (x, y) in enumerate(at[:_TRIES].tolist()):
        # names are other people's text, and SVG has no control characters
        name = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(names[n]))
        text = ax.annotate(name, (x, y), (0, 0), textcoords="offset points", fontsize=7.5, color=INK, zorder=4)
        for gap, right, up in _PLACES if len(at) <= ALL else _PLACES[:8]:
            text.set(position=(gap * right, gap * up), ha=_side(right, "left", "right"), va=_side(up, "bottom", "top"))
            box = text.get_window_extent(renderer)
            if frame.count_contains(box.corners()) == 4 and not box.count_overlaps(taken):
                break
        else:
            text.remove()
            continue
        taken.append(box)
        written.append(n)
        if gap > _PLACES[0][0]:
            ends = np.stack([at[n], ax.transData.inverted().transform(np.mean([box.p0, box.p1], axis=0))])
            ax.add_line(Line2D(*ends.T, color=FAINT, linewidth=0.5, zorder=1.5))
    return written


def _side(part: float, after: str, before: str) -> str:
    """The alignment of a name that lies in a direction."""
    return after if part > 0.3 else before if part < -0.3 else "center"
