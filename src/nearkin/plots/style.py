"""One look for all figures, and figures as inline SVG that follow the page's light or dark colours."""

import io
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import cast

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

INK, FAINT, GRID = "#1c2230", "#5d6677", "#d9dde5"  # as in house.mplstyle
SERIES = ("#2a63c9", "#c8500f", "#0b8467", "#a6297a", "#86690a", "#6a7282")

_WIDE = 400  # points, from which a picture scrolls on a phone in place of shrinking
_VARIABLE = {INK: "--ink", FAINT: "--faint", GRID: "--line"} | {c: f"--series-{i}" for i, c in enumerate(SERIES, 1)}


@contextmanager
def house_style() -> Iterator[None]:
    """What is drawn in the block has the look of house.mplstyle, and gives no warning of letters that matplotlib's own
    font lacks: the page's reader has other fonts."""
    with style.context("nearkin.plots.house"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


@house_style()
def new_axes(width: float = 4.4, height: float = 3.0) -> Axes:
    """One empty set of axes in the house style, on its own figure (inches); no global figure is touched."""
    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def letters_without_font(texts: Iterable[str]) -> str:
    """The letters, each once, that matplotlib's font lacks: a bitmap shows boxes for them."""
    known = get_font(findfont(FontProperties()))
    letters = dict.fromkeys(letter for text in texts for letter in text if letter.isprintable())
    return "".join(letter for letter in letters if not known.get_char_index(ord(letter)))


@house_style()
def to_svg(ax: Axes, name: str) -> str:
    """The figure of `ax` as an <svg> element for a page; `name` keeps its ids apart from those of other figures.

    House colours become CSS variables with the light colour as fallback, so that dark mode reaches the lines.
    """
    buffer = io.StringIO()
    cast(Figure, ax.get_figure(root=True)).savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return for_page(buffer.getvalue(), name)


def for_page(svg: str, name: str) -> str:
    """The <svg> element of a drawing in the house colours, ids that begin with `name`, colours for a page."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r' (?:width|height)="[^"]*"', "", svg, count=2)
    if (drawn := re.search(r'viewBox="0 0 ([\d.]+)', svg)) and float(drawn[1]) > _WIDE:
        svg = svg.replace("<svg", '<svg class="wide"', 1)
    svg = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", svg)  # the page's own typeface
    for colour, variable in _VARIABLE.items():
        svg = svg.replace(colour, f"var({variable}, {colour})")
    return svg
