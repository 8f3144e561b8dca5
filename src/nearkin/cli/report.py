"""`nearkin report`: one HTML file about a saved folder."""

from pathlib import Path
from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Json
from nearkin.cli.screen import Screen


def report(
    folders: Annotated[
        list[str],
        typer.Argument(
            help="A folder that nearkin wrote: an index, vectors or a map; or several indexes.", metavar="FOLDER"
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The file to write.  [default: FOLDER/report.html]", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a self-contained HTML page about a folder: how it was made, what it costs, how well it answers.

    What `nearkin evaluate` found is part of it; several indexes that were judged stand side by side. The page needs no
    network and can be mailed.

    Examples:

    - nearkin report idx --out report.html
    - nearkin report emb
    - nearkin report idx8 idx16 idx32 --out compared.html
    """
    if len(folders) > 1 and out is None:
        raise ValueError("several folders go into one report; say where with --out FILE")
    path = Path(folders[0]) / "report.html" if out is None else Path(out)
    nk.pipeline.check_output(path, folders)
    page = nk.pipeline.folder_page(folders[0]) if len(folders) == 1 else nk.pipeline.comparison_page(folders)
    page.write(path)
    Screen(as_json).finish({"folder": folders[0], "folders": folders, "report": str(path)}, f"Report: {path}")
