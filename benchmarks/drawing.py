"""One style for the figures of docs: ours in colour, the best rival in the second colour, all others grey.

At most six lines a panel; markers and dashes tell them apart in grey print.
"""

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.options import FIGURES
from nearkin.plots.style import FAINT, SERIES, house_style

MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", (0, (5, 1.5)), (0, (2, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (1, 1)), (0, (8, 3)))  # of grey print

GREY = "#8b93a1"
OURS, RIVAL, REST = "ours", "rival", "rest"
_MOST = 6


def panels(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes (rows, columns); width and height of one panel in inches."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    with house_style():
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    figure.patch.set(facecolor="white", alpha=1)
    return figure, axes


def styles(roles: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Colour, marker and dash of each line, from its role; ours take turns through three hues, the others one each."""
    if len(roles) > _MOST:
        raise ValueError(f"{len(roles)} lines; a panel has at most {_MOST}: {', '.join(roles)}")
    hues = {OURS: [SERIES[0], SERIES[2], SERIES[3]], RIVAL: [SERIES[1]], REST: [GREY]}
    seen, found = dict.fromkeys(hues, 0), {}
    for place, (name, role) in enumerate(roles.items()):
        colour = hues[role][seen[role] % len(hues[role])]
        width, above = (1.2, 2) if role == REST else (1.8, 3)
        found[name] = {
            "color": colour, "marker": MARKERS[place], "linestyle": DASHES[place], "linewidth": width,
            "markersize": 4, "zorder": above, "label": name,
        }  # fmt: skip
        seen[role] += 1
    return found


def legend(panel: Axes, **options: Any) -> None:
    panel.legend(frameon=False, fontsize=8.5, labelcolor=FAINT, handlelength=3, **options)


def save(figure: Figure, name: str, folder: Path = FIGURES) -> Path:
    """Write an SVG whose bytes depend on the data only."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.svg"
    with matplotlib.rc_context({"svg.hashsalt": "nearkin", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None, "Creator": None})
    return path
