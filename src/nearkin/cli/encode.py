"""`nearkin encode`: many files of vectors to files of codes."""

from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Json
from nearkin.cli.screen import Screen, pairs


def encode(
    shards: Annotated[
        list[str], typer.Argument(help='Files or patterns, .npy or .parquet: "parts/*.parquet".', metavar="SHARDS...")
    ],
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="FOLDER", help="The index, or saved quantizer, whose codes to give.")
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the codes, a file a shard.")],
    workers: Annotated[int, typer.Option(help="Processes, of one thread each; 0 works in this one.", min=0)] = 1,
    replace: Annotated[bool, typer.Option("--replace", help="Start anew where `out` holds other codes.")] = False,
    as_json: Json = False,
) -> None:
    """Encode shards of vectors, however many, with a quantizer that is already learned.

    Killed or out of space, the same command goes on where it stopped: finished shards are checked and skipped.

    Examples:

    - nearkin encode "parts/*.parquet" --model idx --out codes --workers 8
    - nearkin encode part-0.npy part-1.npy --model idx --out codes
    """
    screen = Screen(as_json)
    steps = nk.pipeline.Steps(screen.watch)
    with steps.step("encode") as callback:
        made = nk.pipeline.encode_shards(shards, model, out, workers=workers, replace=replace, callback=callback)
    made |= {"seconds": steps.seconds["encode"], "workers": workers}
    screen.finish(made, pairs(f"Codes in {out}", {name.replace("_", " "): value for name, value in made.items()}))
