"""`nearkin ids` and `nearkin bridge`: ids for generative retrieval, and a map between encoders."""

from typing import Annotated

import typer

from nearkin import pipeline
from nearkin.cli.options import Ids, Json, OutFolder, Seed, Threads, Vectors
from nearkin.cli.screen import Screen, pairs


def ids(
    vectors: Vectors,
    out: OutFolder,
    levels: Annotated[int, typer.Option(help="Codes of an id.", min=1)] = 3,
    codes: Annotated[int, typer.Option(help="Values of each code, a power of two.", min=2)] = 256,
    balance: Annotated[
        float,
        typer.Option(
            help="0 for no bound; else a prefix holds at most 1 / balance times its even share of the items.",
            min=0,
            max=1,
        ),
    ] = 0.0,
    ids: Ids = None,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Give every item a semantic id: a few codes, unique, and alike for items that are alike.

    The folder holds ids.jsonl, a line for each item with its codes and tokens such as <a_12><b_240><c_3>, and what
    `nk.SemanticIds.load` needs to give new items free ids.

    Examples:

    - nearkin ids items.npy --out ids
    - nearkin ids items.parquet --levels 4 --codes 256 --balance 0.5 --out ids
    """
    del threads  # set by its callback
    screen = Screen(as_json)
    given = pipeline.inputs.open_given(vectors)
    names = given.ids if ids is None else pipeline.inputs.read_ids(ids, len(given.file))
    steps = pipeline.run.Steps(screen.watch)
    made = pipeline.names.make_ids(
        given.file, out, names, levels=levels, codes=codes, balance=balance, random_state=seed, steps=steps
    )
    shown = {
        "items": f"{made['items']:,}",
        "shared their nearest id": f"{made['shared_before']:.1%}, now each has its own",
        "distortion added by that": f"{made['distortion_added']:.2%}",
        "codes used, by level": " ".join(f"{used}" for used in made["used"]),
    }
    screen.finish(made, pairs(f"{out}/{pipeline.names.IDS}", shown))


def bridge(
    vectors: Vectors,
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the map; with --with, the .npy file to write."),
    ],
    new: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The new encoder's vectors of the same texts, row by row."),
    ] = None,
    folder: Annotated[
        str | None, typer.Option("--with", metavar="FOLDER", help="Map vectors of the new encoder by this saved map.")
    ] = None,
    metric: Annotated[str, typer.Option(metavar="NAME", help="How the index compares: cosine, ip or l2.")] = "cosine",
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Search an old index with a new encoder: learn the map from its vectors to the old ones.

    VECTORS are the old encoder's vectors of a few thousand texts, --new the new encoder's of the same texts. Pairs held
    out choose the kind of map. Queries are then mapped by --with.

    Examples:

    - nearkin bridge old.npy --new new.npy --out bridge
    - nearkin bridge new_queries.npy --with bridge --out queries.npy
    """
    del threads  # set by its callback
    screen = Screen(as_json)
    if (new is None) == (folder is None):
        raise ValueError("type --new FILE to learn a map from pairs, or --with FOLDER to map vectors by a saved one")
    given, steps = pipeline.inputs.open_given(vectors), pipeline.run.Steps(screen.watch)
    if folder is not None:
        pipeline.outputs.check_output(out, [vectors, folder])
        made = pipeline.names.map_vectors(given.file, folder, out, steps=steps)
        screen.finish(made, f"{made['vectors']:,} vectors mapped: {out}")
        return
    other = pipeline.inputs.open_given(new or "").file
    made = pipeline.names.make_bridge(given.file, other, out, metric=metric, random_state=seed, steps=steps)
    shown = {f"10 nearest kept, {kind}": f"{share:.3f}" for kind, share in made["kept"].items()} | {
        "chosen": made["chosen"]
    }
    screen.finish(made, pairs(out, shown), f"Queries: nearkin bridge Q.npy --with {out} --out Q_old.npy")
