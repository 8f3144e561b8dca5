"""`nearkin export`: a saved index into an engine that scales."""

from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Folder, Json
from nearkin.cli.screen import Screen, pairs


def export(
    index: Folder,
    to: Annotated[
        str,
        typer.Option(metavar="TARGET", help="faiss-shards, lance, pgvector, qdrant, milvus or opensearch."),
    ],
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to write (faiss-shards, lance).")
    ] = None,
    shards: Annotated[
        int | None, typer.Option(help="Files to cut into (faiss-shards).  [default: 2]", min=1, show_default=False)
    ] = None,
    dsn: Annotated[
        str | None,
        typer.Option(
            help="postgresql://user@host:5432/database (pgvector); the password by PGPASSWORD or ~/.pgpass.  "
            "[default: the PG... variables]",
            show_default=False,
        ),
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Where the server answers (qdrant, milvus, opensearch).", show_default=False)
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Table, collection or index to write.  [default: nearkin]", show_default=False),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="TYPE",
            help="What a table holds (pgvector): bit, vector or halfvec.  [default: bit for bits, else vector]",
            show_default=False,
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite another index under that name.")] = False,
    queries: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Queries of the self-check.  [default: 100 near the rows]"),
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Neighbours of each query that the self-check compares.", min=1)] = 10,
    recall_target: Annotated[
        float | None,
        typer.Option(
            help="Share of `nearkin search`'s neighbours that the engine must find.  [default: 0.95; exact ones 0.99]",
            min=0,
            max=1,
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Move a finished index into an engine that shards and replicates.

    Ends with a self-check: the engine answers 100 queries, and what it names must be what `nearkin search` names.
    Only then is the export published; below the target nothing is, and the exit code is 1.

    Examples:

    - nearkin export idx --to pgvector --dsn postgresql://me@localhost/shop --name products
    - nearkin export idx --to pgvector --as halfvec --dsn postgresql://me@localhost/shop
    - nearkin export idx --to lance --out idx.lance
    - nearkin export idx --to faiss-shards --shards 8 --out shards
    - nearkin export idx --to qdrant --url http://localhost:6333
    """
    screen = Screen(as_json)
    target = nk.export.make_target(
        to, out=out, shards=shards, dsn=dsn, url=url, name=name, form=form, replace=replace or None
    )
    asked = None if queries is None else nk.read_vectors(queries)
    try:
        made = nk.pipeline.export_folder(
            index, target, queries=asked, k=k, recall_target=recall_target, steps=nk.pipeline.Steps(screen.watch)
        )
    except nk.export.RecallTooLowError as error:
        screen.say(f"nearkin: {error}")
        raise typer.Exit(1) from error
    shown = {name.replace("_", " "): value for name, value in made.items() if name not in _NOT_SHOWN}
    shown["seconds"] = sum(made["seconds"].values())
    screen.finish(made, pairs(f"{index} to {to}", shown), made["self_check"])


_NOT_SHOWN = ("index", "queries", "k", "recall", "recall_target", "self_check")
