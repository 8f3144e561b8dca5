"""`nearkin report`: one HTML file about a saved folder."""

from pathlib import Path
from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Folder, Json
from nearkin.cli.screen import Screen


def report(
    folder: Folder,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The file to write.  [default: INDEX/report.html]", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a self-contained HTML page about an index: how it was made, what it costs, how well it answers.

    What `nearkin evaluate` found is part of it. The page needs no network and can be mailed.

    Example:

    - nearkin report idx --out report.html
    """
    path = Path(folder) / "report.html" if out is None else Path(out)
    nk.pipeline.folder_page(folder).write(path)
    Screen(as_json).finish({"folder": folder, "report": str(path)}, f"Report: {path}")
