"""`nearkin similar`: what is most like what."""

from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Embedding, FormulasAsText, History, Hits, Json, Side, Threads
from nearkin.cli.screen import Screen, read_line


def similar(
    folder: Embedding,
    ids: Annotated[
        list[str] | None, typer.Argument(help="Ids to find the likes of, as in the table.", metavar="ID")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Find the likes of every one.")] = False,
    k: Annotated[int, typer.Option("-k", help="Likes of each.", min=1)] = 10,
    side: Side = None,
    history: History = None,
    out: Hits = None,
    formulas_as_text: FormulasAsText = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Find what is most like each of some ids, or of all of them.

    Pairs: the right side by cosine ("who took this also takes"); --side left finds people alike. Comparisons: the
    objects at the smallest distance.

    Examples:

    - nearkin similar emb i42
    - nearkin similar emb --all -k 20 --out similar.parquet
    - nearkin similar emb --history new_items.csv
    - nearkin similar map lisbon
    """
    del threads  # its callback has set them
    screen = Screen(as_json)
    if bool(ids) + everything + (history is not None) != 1:
        raise ValueError("say whose likes to find: ids, or one of --all, --history FILE")
    newcomers = None
    if history is not None:
        newcomers = nk.pipeline.read_history(history, nk.pipeline.words_of(folder))
    record, answers = nk.pipeline.similar_folder(
        folder,
        out=out,
        ids=ids or None,
        k=k,
        side=side,
        history=newcomers,
        formulas_as_text=formulas_as_text,
        steps=nk.pipeline.Steps(screen.watch),
    )
    from nearkin.cli.answers import present  # it loads NumPy, and help does not

    present(screen, record, answers, k, read_line(newcomers and newcomers.source))
