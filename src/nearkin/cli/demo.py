"""`nearkin demo`: the whole journey on data that ships with scikit-learn."""

from pathlib import Path
from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Json, Seed, Threads
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
    done, explore = nk.pipeline.save_demo(out, seed, nk.pipeline.Steps(screen.watch))
    path = Path(out) / "report.html"
    records = [trial.record() for trial in done.trials]
    rows = [[form(record[name]) for name, form in _COLUMNS.items()] for record in records]
    made = table("1,500 handwritten digits, 297 queries", list(_COLUMNS), rows)
    record = {"seed": seed, "threads": threads, "trials": records, "report": str(path), "explore": explore}
    screen.finish(record, made, f"Report: {path}", "See the digits, and what 4 bytes keep of them:", explore)
