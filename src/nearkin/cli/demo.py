"""`nearkin demo`: the whole journey on data that ships with scikit-learn."""

from pathlib import Path
from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Json, Seed, Threads
from nearkin.cli.screen import Screen, table


def demo(
    out: Annotated[str, typer.Option("--out", "-o", help="Folder for the report.")] = "demo",
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Search 1,500 handwritten digits exactly and through codes of 2 to 16 bytes, and write a report.

    Takes a few seconds and no download: the images ship with scikit-learn.
    """
    screen = Screen(as_json)
    done = nk.pipeline.run_demo(seed, nk.pipeline.Steps(screen.watch))
    path = Path(out) / "report.html"
    nk.pipeline.demo_page(done).write(path)
    records = [trial.record() for trial in done.trials]
    rows = [[_cell(name, value) for name, value in record.items()] for record in records]
    for before, row in zip([None, *records], rows, strict=False):
        if before is not None and before["bytes"] == records[rows.index(row)]["bytes"]:
            row[1] = ""
    made = table("Handwritten digits: 1,500 indexed, 297 queries", list(records[0]), rows)
    screen.finish({"seed": seed, "threads": threads, "trials": records, "report": str(path)}, made, f"Report: {path}")


def _cell(name: str, value: object) -> object:
    forms = {"compression": "{:.0f}×", "distortion": "{:.1f}", "train seconds": "{:.2f}"}
    return f"{value:.3f}" if isinstance(value, float) and name not in forms else forms.get(name, "{}").format(value)
