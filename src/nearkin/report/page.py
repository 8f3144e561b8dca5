"""A report as one HTML file: no script, no network, readable on a phone, light or dark as the reader's system is."""

import html
import os
from dataclasses import dataclass, field
from importlib.resources import files

import nearkin
from nearkin._storage import replacing


@dataclass(frozen=True)
class Section:
    """One part of a report: a heading, an optional sentence under it, and HTML from `nearkin.report.parts`."""

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

    def add(self, section: Section | None) -> "Page":
        """Append a section (None adds nothing) and return the page."""
        if section is not None:
            self.sections.append(section)
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

    def write(self, path: str | os.PathLike) -> None:
        """Write the page to one .html file, whole or not at all."""
        with replacing(path) as fresh:
            fresh.write_text(self.html(), encoding="utf-8")


def _file(name: str) -> str:
    return files("nearkin.report").joinpath(name).read_text(encoding="utf-8")
