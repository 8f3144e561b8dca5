"""`nearkin rotate`: vectors turned for the codes of another engine."""

from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Json, Seed, Threads
from nearkin.cli.screen import Screen, pairs


def rotate(
    vectors: Annotated[
        str, typer.Argument(help="The vectors: a file as `nearkin compress` takes it, or a folder of vectors.")
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="File for the turned vectors: .npy or .parquet.")
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
        typer.Option("--with", metavar="FOLDER", help="Turn queries by the rotation kept in this folder."),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Queries as they will be asked, at least 20, where they are unlike the vectors: the rotation is "
            "chosen by the neighbours that it keeps for them. Without them, rows are held out and stand in.",
        ),
    ] = None,
    center: Annotated[
        bool,
        typer.Option(
            "--center",
            help="Take the mean of the vectors off first, from queries too. Distances stay as they are; inner products "
            "and angles do not. Sign bits gain most by it.",
        ),
    ] = False,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Turn vectors so that another engine's codes keep more of their neighbours.

    The rotation is learned for the engine's codes and judged on rows held out; distances stay as they are, and where
    no rotation helps none is made. It is kept beside the vectors, in OUT with the ending .rotation: queries must be
    turned by it too (--with). Where an engine turns vectors itself, the command says so and stops.

    Examples:

    - nearkin rotate X.npy --for pgvector-bit --out X_rot.parquet
    - nearkin rotate X.npy --for pgvector-bit --center --queries Q.npy --out X_rot.parquet
    - nearkin rotate Q.npy --with X_rot.rotation --out Q_rot.npy
    - nearkin rotate X.npy --for faiss:SQ4 --out X_rot.npy
    """
    screen = Screen(as_json)
    if (engine is None) == (folder is None):
        raise ValueError("say what to turn the vectors for: --for ENGINE, or --with FOLDER for queries")
    if folder is not None and (queries is not None or center):
        raise ValueError(
            f"{'--center' if center else '--queries'} is for learning a rotation, and --with takes one that was "
            "learned; leave one of them out"
        )
    file = nk.pipeline.open_given(vectors).file
    steps = nk.pipeline.Steps(screen.watch)
    if engine is None:
        made = nk.pipeline.rotate_with(file, folder or "", out, steps=steps)
        screen.finish(made, f"{made['vectors']:,} vectors turned: {out}")
        return
    asked = None if queries is None else nk.pipeline.open_queries(queries).vectors
    made = nk.pipeline.rotate_file(file, engine, out, queries=asked, center=center, random_state=seed, steps=steps)
    made |= {"queries": queries, "center": center, "threads": threads}
    shown = {
        "vectors": f"{made['vectors']:,} × {made['dimensions']:,}",
        "rotation": in_words(made["chosen"]),
        "10 nearest kept by codes alone": ", ".join(
            f"{in_words(name)} {share:.3f}" for name, share in made["recall"].items()
        ),
        "gain on other queries": made["gain"],
    }
    screen.finish(made, pairs(out, shown), f"Queries: nearkin rotate Q.npy --with {made['rotation']} --out Q_rot.npy")


def in_words(name: str) -> str:
    """A rotation's name, or "learned from" one: "none" is the vectors as they are."""
    known = {
        "none": "the axes as they are",
        "pca": "principal axes",
        "random": "a random one",
        "hadamard": "Hadamard's",
    }
    start = name.removeprefix("learned from ")
    return name.removesuffix(start) + known.get(start, start)
