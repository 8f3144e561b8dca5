"""`nearkin recommend`: the best unseen rights for many lefts."""

from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Embedding, FormulasAsText, History, Hits, Json, Threads
from nearkin.cli.screen import Screen, read_line


def recommend(
    folder: Embedding,
    left_ids: Annotated[
        list[str] | None, typer.Argument(help="Ids of those to recommend to, as in the table of pairs.", metavar="ID")
    ] = None,
    everybody: Annotated[bool, typer.Option("--all", help="Recommend to everybody.")] = False,
    left_file: Annotated[
        str | None, typer.Option("--left-ids", metavar="FILE", help="Recommend to the ids in this file, one a row.")
    ] = None,
    history: History = None,
    k: Annotated[int, typer.Option("-k", help="Recommendations for each.", min=1)] = 10,
    candidates: Annotated[
        str | None, typer.Option(metavar="FILE", help="Recommend these ids only (in stock, in season), one a row.")
    ] = None,
    with_seen: Annotated[bool, typer.Option("--with-seen", help="Answer pairs of the table too.")] = False,
    index: Annotated[
        str | None,
        typer.Option(metavar="INDEX", help="Rank by an index of `nearkin compress EMB --metric ip` instead."),
    ] = None,
    out: Hits = None,
    formulas_as_text: FormulasAsText = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Recommend: the best matches for one, some or all, without what they have already.

    Works on a folder of `nearkin embed` made of pairs, and on one of `nearkin train`. Ids and columns are those of the
    table of pairs.

    Examples:

    - nearkin recommend emb --all --out recs.parquet
    - nearkin recommend emb u17 u18 -k 5
    - nearkin recommend emb --left-ids vips.txt --candidates in_stock.csv --out recs.csv
    - nearkin recommend emb --history new_users.csv --out recs.csv
    """
    del threads  # its callback has set them
    screen = Screen(as_json)
    ways = {"ids": left_ids, "--all": everybody, "--left-ids": left_file, "--history": history}
    if sum(map(bool, ways.values())) != 1:
        raise ValueError("say who to recommend to: ids, or one of --all, --left-ids FILE, --history FILE")
    words = nk.pipeline.words_of(folder)
    newcomers = None
    if history is not None:
        newcomers = nk.pipeline.read_history(history, words)
    record, answers = nk.pipeline.recommend_folder(
        folder,
        out=out,
        left_ids=nk.pipeline.read_ids(left_file, word=words.left) if left_file is not None else left_ids or None,
        history=newcomers,
        k=k,
        candidates=None if candidates is None else nk.pipeline.read_ids(candidates, word=words.right),
        with_seen=with_seen,
        index=index,
        formulas_as_text=formulas_as_text,
        steps=nk.pipeline.Steps(screen.watch),
    )
    from nearkin.cli.answers import present  # it loads NumPy, and help does not

    present(screen, record, answers, k, read_line(newcomers and newcomers.source))
