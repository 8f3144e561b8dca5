"""`nearkin report` and `nearkin demo`: HTML pages about saved folders, and the whole journey on digits."""

from pathlib import Path
from typing import Annotated

import typer

from nearkin import pipeline
from nearkin.cli.options import Json, OutPage, Seed, Threads
from nearkin.cli.screen import Screen, table

_COLUMNS = {
    "bytes": str,
    "method": str,
    "code smaller": "{:.0f}×".format,
    "distortion": "{:.1f}".format,
    "recall@10": "{:.3f}".format,
    "mAP by label": "{:.3f}".format,
    "train s": "{:.2f}".format,
}


def report(
    folders: Annotated[
        list[str],
        typer.Argument(
            help="A folder that nearkin wrote: an index, vectors or a map; or several indexes.", metavar="FOLDER"
        ),
    ],
    out: OutPage = None,
    as_json: Json = False,
) -> None:
    """Write a self-contained HTML page about a folder: how it was made, what it costs, how well it answers.

    The result of `nearkin evaluate` is part of it; several indexes that were judged stand side by side. The page needs
    no network and can be mailed. Without --out it is FOLDER/report.html.

    Examples:

    - nearkin report idx --out report.html
    - nearkin report emb
    - nearkin report idx8 idx16 idx32 --out compared.html
    """
    if len(folders) > 1 and out is None:
        raise ValueError("several folders go into one report; say where with --out FILE")
    path = Path(folders[0]) / "report.html" if out is None else Path(out)
    pipeline.outputs.check_output(path, folders)
    pages = pipeline.pages
    page = pages.folder_page(folders[0]) if len(folders) == 1 else pages.comparison_page(folders)
    page.write(path)
    Screen(as_json).finish({"folder": folders[0], "folders": folders, "report": str(path)}, f"Report: {path}")


def demo(
    out: Annotated[str, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the report.")] = "demo",
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Search 1,500 handwritten digits exactly and through codes of 2 to 16 bytes, and write a report.

    Takes a few seconds and no download: the images ship with scikit-learn.

    Examples:

    - nearkin demo
    - nearkin demo --out digits --json
    """
    screen = Screen(as_json)
    trials, explore = pipeline.demo.save_demo(out, seed, pipeline.run.Steps(screen.watch))
    path = Path(out) / "report.html"
    pipeline.pages.folder_page(out).write(path)
    records = [trial.record() for trial in trials]
    rows = [[form(record[name]) for name, form in _COLUMNS.items()] for record in records]
    made = table("1,500 handwritten digits, 297 queries", list(_COLUMNS), rows)
    record = {"seed": seed, "threads": threads, "trials": records, "report": str(path), "explore": explore}
    screen.finish(record, made, f"Report: {path}", "See the digits, and what 4 bytes keep of them:", explore)
