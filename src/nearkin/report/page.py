"""A report as one HTML file: no script, no network, light or dark. Text is escaped here, once."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import nearkin
from nearkin._fields import Fields, StrPath, is_text, show
from nearkin._storage import replacing


@dataclass(frozen=True)
class Section:
    """One part of a report: a heading, an optional sentence under it, and HTML of the pieces below."""

    title: str
    body: str
    lead: str = ""

    def html(self) -> str:
        lead = f'<p class="lead">{html.escape(self.lead)}</p>\n' if self.lead else ""
        return f"<section>\n<h2>{html.escape(self.title)}</h2>\n{lead}{self.body}\n</section>"


@dataclass
class Page:
    """A report in the making; features add their sections to it."""

    title: str
    eyebrow: str = "nearkin report"
    lead: str = ""
    made_by: str = ""  # the command that writes this page again
    sections: list[Section] = field(default_factory=list)

    def add(self, *sections: Section | None) -> "Page":
        """Append sections (None adds nothing) and return the page."""
        self.sections += filter(None, sections)
        return self

    def html(self) -> str:
        return _file("page.html").format(
            title=html.escape(self.title),
            eyebrow=html.escape(self.eyebrow),
            lead=f'<p class="lead">{html.escape(self.lead)}</p>' if self.lead else "",
            style=_file("style.css"),
            sections="\n".join(section.html() for section in self.sections),
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


def facts(values: Fields) -> str:
    """Big numbers with small names under them, side by side."""
    items = "".join(f"<div><dd>{_text(value)}</dd><dt>{html.escape(name)}</dt></div>" for name, value in values.items())
    return f'<dl class="facts">{items}</dl>'


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, formats: Mapping[int, str] | None = None) -> str:
    """A table that scrolls sideways on a narrow screen; text is set left, numbers right.

    `formats` maps a column's number to a format such as ".2f". Rows with the same first cell form a group.
    """
    formats = formats or {}
    text = {j for j in range(len(columns)) if any(is_text(row[j]) for row in rows)}
    grouped = len({row[0] for row in rows}) < len(rows)
    head = "".join(f'<th scope="col"{_css(j in text and "text")}>{html.escape(c)}</th>' for j, c in enumerate(columns))
    head = f"<thead><tr>{head}</tr></thead>" if any(columns) else ""
    body = []
    for i, row in enumerate(rows):
        cells = "".join(
            f"<td{_css(j in text and 'text')}>{_text(cell, formats.get(j, '.4g'))}</td>" for j, cell in enumerate(row)
        )
        opens = grouped and i > 0 and rows[i - 1][0] != row[0]
        body.append(f"<tr{_css(opens and 'group')}>{cells}</tr>")
    kind = "scroll" if head else "scroll settings"
    return f'<div class="{kind}" tabindex="0"><table>{head}<tbody>{"".join(body)}</tbody></table></div>'


def _css(*names: str | bool) -> str:
    kept = " ".join(name for name in names if isinstance(name, str))
    return f' class="{kept}"' if kept else ""


def figures(*figures: tuple[str, str]) -> str:
    """Figures side by side if the page is wide enough: pairs of an <svg> (from `plots.to_svg`) and a caption."""
    parts = "".join(f"<figure>{svg}<figcaption>{html.escape(text)}</figcaption></figure>" for svg, text in figures)
    parts = parts.replace('<figure><svg class="wide"', '<figure tabindex="0"><svg class="wide"')  # keys scroll it
    return f'<div class="figures">{parts}</div>'


def _text(value: object, form: str = ".4g") -> str:
    return "–" if value is None else html.escape(show(value, form))
