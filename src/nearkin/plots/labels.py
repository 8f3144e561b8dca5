"""Names beside points without collisions: every one where there are few, those that matter where there are many."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from nearkin.plots.style import FAINT, INK, any_script

ALL = 50  # up to so many points each gets a name, with a thin line to it where there is no room beside it
TRIES = 200  # names to try above that
GAPS = (3.0, 12.0, 22.0, 34.0, 48.0, 64.0, 90.0, 120.0, 160.0)  # points between a point and its name


def label_points(
    ax: Axes,
    at: np.ndarray,  # (n, 2) in data coordinates
    names: Sequence[object],  # n
    first: Sequence[int] = (),
    marks: np.ndarray | None = None,  # (m, 2), what else no name may cover
) -> list[int]:
    """Write names beside points; the numbers of the points that got one. Draw everything else before.

    The points of `first` come first, then those that spread most over the map. With more than `ALL` points, a name of
    the others is left out where there is no room beside its point.
    """
    figure = ax.get_figure(root=True)
    if figure is None or not len(at):
        return []
    with any_script():
        return _labelled(ax, figure, at, names, first, np.empty((0, 2)) if marks is None else marks)


def _labelled(
    ax: Axes, figure: Figure, at: np.ndarray, names: Sequence[object], first: Sequence[int], marks: np.ndarray
) -> list[int]:
    figure.draw_without_rendering()  # settles the axes' size and limits
    scale = figure.dpi / 72
    places = ax.transData.transform(at)
    taken = [
        Bbox.from_extents(x - r * scale, y - r * scale, x + r * scale, y + r * scale)
        for drawn, r in ((places, 2.0), (ax.transData.transform(marks), 3.0))
        for x, y in drawn
    ]
    lines = set(range(len(at)) if len(at) <= ALL else first)
    order = list(dict.fromkeys([*first, *spread_order(at, min(len(at), TRIES))]))
    return [
        number
        for number in order
        if _write(ax, at[number], places[number], _shown(names[number]), taken, number in lines)
    ]


def _shown(name: object) -> str:
    """A name without control characters, which no SVG can hold."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(name))


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


def _write(ax: Axes, point: np.ndarray, place: np.ndarray, name: str, taken: list[Bbox], lines: bool) -> bool:
    """Write one name where its box is free, and take the box; False if it is left out."""
    text = ax.annotate(
        name,
        (float(point[0]), float(point[1])),
        xytext=(0, 0),
        textcoords="offset points",
        fontsize=7.5,
        color=INK,
        zorder=4,
        annotation_clip=False,
        parse_math=False,  # names are other people's text
    )
    size = text.get_window_extent()
    figure = ax.get_figure(root=True)
    scale = 1.0 if figure is None else figure.dpi / 72
    frame = ax.get_window_extent()
    for dx, dy, far in _offsets(size.width / scale, size.height / scale, lines):
        box = Bbox.from_bounds(place[0] + dx * scale, place[1] + dy * scale, size.width, size.height)
        inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
        if inside and not box.count_overlaps(taken):
            text.set_position((dx, dy))
            taken.append(box)
            if far:
                middle = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
                ends = ax.transData.inverted().transform(np.array([place, middle]))
                ax.plot(*ends.T, color=FAINT, linewidth=0.5, zorder=1.5, scalex=False, scaley=False)
            return True
    text.remove()
    return False


def _offsets(width: float, height: float, lines: bool) -> Iterator[tuple[float, float, bool]]:
    """Offsets (points) of a box's lower left corner to try, near ones first, and whether a line must lead there."""
    for gap in GAPS if lines else GAPS[:1]:
        count = 8 * round(1 + gap / 12)
        angles = np.pi / 6 + 2 * np.pi * np.arange(count) / count
        for right, up in zip(np.cos(angles), np.sin(angles), strict=True):
            dx = gap * right - width * (0.0 if right > 0.3 else 1.0 if right < -0.3 else 0.5)
            dy = gap * up - height * (0.0 if up > 0.3 else 1.0 if up < -0.3 else 0.5)
            yield float(dx), float(dy), gap > GAPS[0]
