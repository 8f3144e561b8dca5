"""The pieces that sections are made of: facts, tables, figures, thumbnails. Text is escaped here, once."""

import base64
import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.image import imsave

from nearkin._types import Fields


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{html.escape(text)}</p>"


def facts(values: Fields) -> str:
    """Big numbers with small names under them, side by side."""
    items = "".join(f"<div><dd>{_text(value)}</dd><dt>{html.escape(name)}</dt></div>" for name, value in values.items())
    return f'<dl class="facts">{items}</dl>'


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    formats: Mapping[int, str] | None = None,
    best: Mapping[int, str] | None = None,
) -> str:
    """A table that scrolls sideways on a narrow screen; text is set left, numbers right.

    `formats` maps a column's number to a format such as ".2f". Rows with the same first cell form a group; `best` maps
    a column to "min" or "max", and its best cell of every group is set in bold.
    """
    bold, formats = _best_cells(rows, best or {}), formats or {}
    text = {j for j in range(len(columns)) if any(_is_text(row[j]) for row in rows)}
    grouped = len({row[0] for row in rows}) < len(rows)
    head = "".join(f'<th scope="col"{_css(j in text and "text")}>{html.escape(c)}</th>' for j, c in enumerate(columns))
    head = f"<thead><tr>{head}</tr></thead>" if any(columns) else ""
    body = []
    for i, row in enumerate(rows):
        cells = "".join(
            f"<td{_css(j in text and 'text', (i, j) in bold and 'best')}>{_text(cell, formats.get(j, '.4g'))}</td>"
            for j, cell in enumerate(row)
        )
        opens = grouped and i > 0 and rows[i - 1][0] != row[0]
        body.append(f"<tr{_css(opens and 'group')}>{cells}</tr>")
    kind = "scroll" if head else "scroll settings"
    return f'<div class="{kind}"><table>{head}<tbody>{"".join(body)}</tbody></table></div>'


def _css(*names: str | bool) -> str:
    kept = " ".join(name for name in names if isinstance(name, str))
    return f' class="{kept}"' if kept else ""


def _best_cells(rows: Sequence[Sequence[object]], best: Mapping[int, str]) -> set[tuple[int, int]]:
    found = set()
    for j, rule in best.items():
        for group in {row[0] for row in rows}:
            own = {i: row[j] for i, row in enumerate(rows) if row[0] == group}
            cells = {i: value for i, value in own.items() if isinstance(value, int | float)}
            if len(set(cells.values())) > 1:
                goal = min(cells.values()) if rule == "min" else max(cells.values())
                found |= {(i, j) for i, value in cells.items() if value == goal}
    return found


def figures(*figures: tuple[str, str]) -> str:
    """Figures side by side if the page is wide enough: pairs of an <svg> (from `plots.to_svg`) and a caption."""
    parts = "".join(f"<figure>{svg}<figcaption>{html.escape(text)}</figcaption></figure>" for svg, text in figures)
    return f'<div class="figures">{parts}</div>'


def thumbnail(image: np.ndarray, label: str, css_class: str = "") -> str:
    """A grey image (h, w), 0 to 1, as an inline <img>: ink on paper by day, light on dark by night."""
    buffer = io.BytesIO()
    imsave(buffer, image, cmap="gray_r", vmin=0, vmax=1, format="png")
    data = base64.b64encode(buffer.getvalue()).decode()
    height, width = image.shape
    kind = f' class="{css_class}"' if css_class else ""
    return (
        f'<img{kind} width="{width}" height="{height}" alt="{html.escape(label)}" src="data:image/png;base64,{data}">'
    )


def _is_text(cell: object) -> bool:
    return isinstance(cell, str) and not set(cell) <= set("0123456789.,+-–×%")


def _text(value: Any, form: str = ".4g") -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:{form}}"
    return html.escape(str(value))
