"""A report as one HTML file: no script, no network, light or dark. Text is escaped here, once."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import NamedTuple

import nearkin
from nearkin._fields import StrPath, is_text, show
from nearkin._storage import replacing


class Section(NamedTuple):
    """One part of a report: a heading, and HTML of the pieces below."""

    title: str
    body: str


@dataclass
class Page:
    """A report in the making; features add their sections to it."""

    title: str
    made_by: str = ""  # the command that writes this page again
    sections: list[Section] = field(default_factory=list)

    def add(self, *sections: Section | None) -> "Page":
        """Append sections (None adds nothing) and return the page."""
        self.sections += filter(None, sections)
        return self

    def html(self) -> str:
        sections = (f"<section>\n<h2>{html.escape(title)}</h2>\n{body}\n</section>" for title, body in self.sections)
        return _file("page.html").format(
            title=html.escape(self.title),
            style=_file("style.css"),
            sections="\n".join(sections),
            version=nearkin.__version__,
            made_by=f" · <code>{html.escape(self.made_by)}</code>" if self.made_by else "",
        )

    def write(self, path: StrPath) -> None:
        """Write the page to one .html file, whole or not at all."""
        with replacing(path) as fresh:
            fresh.write_text(self.html(), encoding="utf-8")


def _file(name: str) -> str:
    return files("nearkin.report").joinpath(name).read_text(encoding="utf-8")


def paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table that scrolls sideways on a narrow screen; text is set left, numbers right."""
    styles = [' class="text"' if any(is_text(row[j]) for row in rows) else "" for j in range(len(columns))]
    names = zip(styles, columns, strict=True)
    head = "".join(f'<th scope="col"{style}>{html.escape(name)}</th>' for style, name in names) if any(columns) else ""
    body = "".join(f"<tr>{''.join(map(_cell, styles, row))}</tr>" for row in rows)
    kind = "scroll" if head else "scroll settings"
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<div class="{kind}" tabindex="0"><table>{head}<tbody>{body}</tbody></table></div>'


def _cell(style: str, value: object) -> str:
    return f"<td{style}>{'–' if value is None else html.escape(show(value))}</td>"


def figures(*figures: tuple[str, str]) -> str:
    """Figures side by side if the page is wide enough: pairs of an <svg> (from `plots.to_svg`) and a caption."""
    parts = "".join(f"<figure>{svg}<figcaption>{html.escape(text)}</figcaption></figure>" for svg, text in figures)
    parts = parts.replace('<figure><svg class="wide"', '<figure tabindex="0"><svg class="wide"')  # keys scroll it
    return f'<div class="figures">{parts}</div>'
