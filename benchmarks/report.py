"""One HTML page of all that a pass of the benchmarks measured."""

import html
from pathlib import Path

from benchmarks.subjects import SUBJECTS
from benchmarks.table import RESULTS, Results
from nearkin.report import Page, Section
from nearkin.report.page import paragraph, table


def write_report(folder: Path) -> Path:
    """Write FOLDER/report.html from the JSON in it and return its path."""
    page = Page(
        title="nearkin beside its peers",
        lead="CPU time of one thread on this machine, both sides in one run. A dash is what was not measured or not "
        "reached.",
        made_by="python -m benchmarks",
    )
    results = Results(folder)
    for subject in SUBJECTS.values():
        if folder != RESULTS and not subject.quick:
            continue  # a quick pass has not measured all that the papers claim
        parts = []
        for found in subject.tables(results):
            parts.append(f"<h3>{html.escape(found.title)}</h3>")
            parts.append(table(found.columns, found.rows))
            source = f"From {found.source}.json." if found.source else ""
            parts.append(paragraph(f"{found.note} {source}".strip()))
        page.add(Section(subject.title, "".join(parts) or paragraph("Not run.")))
    path = folder / "report.html"
    page.write(path)
    return path
