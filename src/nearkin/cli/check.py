"""`nearkin check`: is a saved folder whole?"""

from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Json
from nearkin.cli.screen import Screen, pairs

DAMAGED = 2


def check(
    folder: Annotated[str, typer.Argument(help="A folder that nearkin saved: of any kind.", metavar="FOLDER")],
    as_json: Json = False,
) -> None:
    """Say what a saved folder is, and whether it is what was saved.

    Every file is compared with the length and the checksums in the folder's manifest.json. The exit code is 2 if
    something is damaged, missing, or of another folder. Folders of format version 1 have no manifest: they are not
    verified; saved again (`nk.Index.load("idx").save("idx")`) they have one.

    Example:

    - nearkin check idx
    """
    screen = Screen(as_json)
    with nk.pipeline.Steps(screen.watch).step("check") as callback:
        found = nk.pipeline.check_folder(folder, callback)
    shown = {name.replace("_", " "): found[name] for name in ("kind", "format_version", "files", "bytes")}
    verdict = "whole" if found["verified"] else "no manifest: not verified"
    shown["state"] = f"damaged, {len(found['damaged'])} files" if found["damaged"] else verdict
    if found["others"]:
        shown["not nearkin's"] = ", ".join(found["others"])
    screen.finish(found, pairs(folder, shown))
    for line in found["damaged"]:
        screen.say(f"nearkin: {line}")
    if found["damaged"]:
        raise typer.Exit(DAMAGED)
