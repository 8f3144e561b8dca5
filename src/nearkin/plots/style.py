"""One look for all figures, and figures as inline SVG that follow the page's light or dark colours."""

import io
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

from nearkin._fields import Record

INK, FAINT, GRID = "#1c2230", "#5d6677", "#d9dde5"
# In grey print these look alike: markers tell the lines apart. The page has a lighter twin of each for dark.
SERIES = ("#2a63c9", "#c8500f", "#0b8467", "#a6297a", "#86690a", "#6a7282")
MARKERS = ("o", "s", "^", "D", "v", "P")

_WIDE = 400  # points, from which a picture scrolls on a phone in place of shrinking
_VARIABLE = {INK: "--ink", FAINT: "--faint", GRID: "--line"} | {c: f"--series-{i}" for i, c in enumerate(SERIES, 1)}
_SVG: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "nearkin"}  # text as text, and the same file each time


def new_axes(width: float = 4.4, height: float = 3.0) -> Axes:
    """One empty set of axes in the house style, on its own figure (inches); no global figure is touched."""
    ax = Figure(figsize=(width, height), layout="constrained").add_subplot()
    ax.ticklabel_format(useOffset=False)  # 371.9187, not .0087 under "+3.7191e2"
    return dress(ax)


def dress(ax: Axes) -> Axes:
    """Put the house style on `ax`: quiet frame, horizontal grid, small labels."""
    _figure(ax).patch.set_alpha(0)
    ax.patch.set_alpha(0)
    for side, spine in ax.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(FAINT)
    ax.grid(axis="y", color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(colors=FAINT, labelsize=9, length=0, which="both")
    for text, colour, size in ((ax.xaxis.label, FAINT, 9.5), (ax.yaxis.label, FAINT, 9.5), (ax.title, INK, 11)):
        text.set_parse_math(False)  # names are other people's text: "$" is a dollar
        text.set_color(colour)
        text.set_size(size)
    return ax


@contextmanager
def any_script() -> Iterator[None]:
    """No warning, in the block, of letters that matplotlib's own font lacks: the page's reader has other fonts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


def letters_without_font(texts: Iterable[str]) -> str:
    """The letters, each once, that matplotlib's font lacks: a bitmap shows boxes for them."""
    known = get_font(findfont(FontProperties()))
    letters = dict.fromkeys(letter for text in texts for letter in text if letter.isprintable())
    return "".join(letter for letter in letters if not known.get_char_index(ord(letter)))


def legend(ax: Axes, **options: Any) -> None:
    """A legend without a box, in the text's colour."""
    made = ax.legend(frameon=False, fontsize=9, labelcolor=INK, handlelength=2.4, **options)
    for text in made.get_texts():
        text.set_parse_math(False)


def series_style(names: Iterable[str]) -> dict[str, Record]:
    """Colour and marker of every series, by its place in `names`, so that figures of one page agree."""
    return {
        name: {"color": SERIES[i % len(SERIES)], "marker": MARKERS[(i + i // len(SERIES)) % len(MARKERS)]}
        for i, name in enumerate(names)
    }


def to_svg(ax: Axes, name: str) -> str:
    """The figure of `ax` as an <svg> element for a page; `name` keeps its ids apart from those of other figures.

    House colours become CSS variables with the light colour as fallback, so that dark mode reaches the lines.
    """
    buffer = io.StringIO()
    with matplotlib.rc_context(_SVG), any_script():
        _figure(ax).savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return for_page(buffer.getvalue(), name)


def _figure(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("ax belongs to no figure; make it with new_axes()")
    return figure


def for_page(svg: str, name: str) -> str:
    """The <svg> element of a drawing in the house colours, ids that begin with `name`, colours for a page."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    for size in ("width", "height"):
        svg = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", svg, count=1)
    drawn = re.search(r'viewBox="0 0 ([\d.]+)', svg)
    if drawn is not None and float(drawn[1]) > _WIDE:
        svg = svg.replace("<svg", '<svg class="wide"', 1)
    svg = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", svg)  # the page's own typeface
    for colour, variable in _VARIABLE.items():
        svg = svg.replace(colour, f"var({variable}, {colour})")
    return svg
