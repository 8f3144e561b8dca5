"""`nearkin export` and `nearkin rotate`: an index, or vectors, for other engines."""

from typing import Annotated

import typer

import nearkin as nk
from nearkin import pipeline
from nearkin.cli.options import Index, Json, Neighbours, Seed, Threads, Vectors
from nearkin.cli.screen import Screen, pairs

_NOT_SHOWN = ("index", "queries", "k", "recall", "recall_target", "self_check")


def export(
    index: Index,
    to: Annotated[
        str,
        typer.Option(metavar="TARGET", help="faiss-shards, lance, pgvector or qdrant."),
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
    url: Annotated[str | None, typer.Option(help="Address of the server (qdrant).", show_default=False)] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Table, collection or index to write.  [default: nearkin]", show_default=False),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="TYPE",
            help="Column type of a table (pgvector): bit, vector or halfvec.  [default: bit for bits, else vector]",
            show_default=False,
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite another index under that name.")] = False,
    queries: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Queries of the self-check.  [default: 100 near the rows]"),
    ] = None,
    k: Neighbours = 10,
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

    Ends with a self-check: the engine searches for 100 queries, and must find the neighbours of `nearkin search`. Only
    then is the export published. Below the target nothing is published, and the exit code is 1.

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
    Q = None if queries is None else nk.read_vectors(queries)
    steps = pipeline.run.Steps(screen.watch)
    with steps.step("load"):
        loaded = nk.index.Index.load(index)
    try:
        with steps.step("export") as callback:
            made = nk.export.export_index(
                loaded, target, queries=Q, k=k, recall_target=recall_target, callback=callback
            )
    except nk.export.RecallTooLowError as error:
        screen.say(f"nearkin: {error}")
        raise typer.Exit(1) from error
    made = {"index": index, **made, "seconds": steps.seconds}
    shown = {name: value for name, value in made.items() if name not in _NOT_SHOWN}
    shown["seconds"] = sum(steps.seconds.values())
    screen.finish(made, pairs(f"{index} to {to}", shown), made["self_check"])


def rotate(
    vectors: Vectors,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="File for the rotated vectors: .npy or .parquet.")
    ],
    engine: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="ENGINE",
            help="pgvector-bit, qdrant-scalar, qdrant-binary, lance-ivf-pq, elasticsearch-bbq, lucene-int8, zvec-int4, "
            "or faiss:FACTORY, such as faiss:SQ4.",
        ),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option("--with", metavar="FOLDER", help="Rotate queries by the rotation kept in this folder."),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="At least 20 queries, if they are unlike the vectors: the rotation is chosen by the neighbours that "
            "it keeps for them. Without them, rows are held out as queries.",
        ),
    ] = None,
    center: Annotated[
        bool,
        typer.Option(
            "--center",
            help="Subtract the mean of the vectors first, from queries too. Distances do not change; inner products "
            "and angles do. Sign bits gain most by it.",
        ),
    ] = False,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Rotate vectors so that another engine's codes keep more of their neighbours.

    The rotation is learned for the engine's codes and judged on rows held out. Distances do not change; if no rotation
    is better than none, none is applied. It is saved next to the vectors, in OUT with the ending .rotation: queries
    must be rotated by it too (--with). For an engine that rotates vectors itself the command stops and says so.

    Examples:

    - nearkin rotate X.npy --for pgvector-bit --out X_rot.parquet
    - nearkin rotate X.npy --for pgvector-bit --center --queries Q.npy --out X_rot.parquet
    - nearkin rotate Q.npy --with X_rot.rotation --out Q_rot.npy
    - nearkin rotate X.npy --for faiss:SQ4 --out X_rot.npy
    """
    screen = Screen(as_json)
    if (engine is None) == (folder is None):
        raise ValueError("say what to rotate the vectors for: --for ENGINE, or --with FOLDER for queries")
    if folder is not None and (queries is not None or center):
        raise ValueError(
            f"{'--center' if center else '--queries'} is for learning a rotation, and --with takes one that was "
            "learned; leave one of them out"
        )
    file = pipeline.inputs.open_given(vectors).file
    steps = pipeline.run.Steps(screen.watch)
    if engine is None:
        made = pipeline.rotate.rotate_with(file, folder or "", out, steps=steps)
        screen.finish(made, f"{made['vectors']:,} vectors rotated: {out}")
        return
    Q = None if queries is None else pipeline.inputs.open_queries(queries).vectors
    made = pipeline.rotate.rotate_file(file, engine, out, queries=Q, center=center, random_state=seed, steps=steps)
    made |= {"queries": queries, "center": center, "threads": threads}
    recall = ", ".join(f"{in_words(name)} {share:.3f}" for name, share in made["recall"].items())
    shown = {
        "vectors": f"{made['vectors']:,} × {made['dimensions']:,}",
        "rotation": in_words(made["chosen"]),
        "10 nearest kept by codes alone": recall,
        "gain on other queries": made["gain"],
    }
    screen.finish(made, pairs(out, shown), f"Queries: nearkin rotate Q.npy --with {made['rotation']} --out Q_rot.npy")


def in_words(name: str) -> str:
    """The name of a rotation, or of one learned from it, for people."""
    known = {"none": "no rotation", "pca": "principal axes", "random": "a random one", "hadamard": "Hadamard's"}
    start = name.removeprefix("learned from ")
    return name.removesuffix(start) + known.get(start, start)
