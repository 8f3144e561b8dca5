"""`nearkin export`, `rotate`, `ids` and `bridge`: an index, vectors or ids for other engines, and between encoders."""

from typing import Annotated

import typer

import nearkin as nk
from nearkin import jobs
from nearkin._fields import Fields, Record, command, counted
from nearkin.cli.options import File, Index, Neighbours, OutFolder, Overwrite, Seed, Vectors
from nearkin.cli.screen import NEGATIVE, Screen, pairs

_NOT_SHOWN = ("index", "queries", "k", "recall", "recall_target", "self_check")


def export(
    screen: Screen,
    index: Index,
    to: Annotated[str, typer.Option(metavar="TARGET")],
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="DIR")] = None,
    dsn: Annotated[str | None, typer.Option(metavar="URL")] = None,
    name: str | None = None,
    form: Annotated[str | None, typer.Option("--as", metavar="TYPE")] = None,
    overwrite: Overwrite = False,
    queries: File = None,
    k: Neighbours = 10,
    recall_target: Annotated[float | None, typer.Option(min=0, max=1)] = None,
) -> None:
    """Move a finished index into an engine that shards and replicates.

    Ends with a self-check: the engine searches for 100 queries, and must find the neighbours of plain FAISS. Only
    then is the export published. Below the target nothing is published, and the exit code is 1.

    Examples:

    - nearkin export idx --to pgvector --dsn postgresql://me@localhost/shop --name products
    - nearkin export idx --to pgvector --as halfvec --dsn postgresql://me@localhost/shop
    - nearkin export idx --to lance --out idx.lance

    Options:

    - to: lance or pgvector.
    + out: Folder to write (lance).
    + dsn: postgresql://user@host:5432/database (pgvector); the password by PGPASSWORD or ~/.pgpass. [default: PG...]
    + name: Table to write. [default: nearkin]
    - form: Column type of a table (pgvector): bit, vector or halfvec. [default: bit for bits, else vector]
    - overwrite: Replace what is at --out, or the table of another index.
    + queries: Queries: those of the self-check. [default: 100 near the vectors]
    - recall_target: Share of plain FAISS's neighbours that the engine must find. [default: 0.95, exact 0.99]
    """
    target = nk.export.make_target(to, out=out, dsn=dsn, name=name, form=form, overwrite=overwrite or None)
    Q = None if queries is None else nk.read_vectors(queries)
    steps = jobs.run.Steps(screen.watch)
    with steps.step("load"):
        loaded = nk.index.Index.load(index)
    wanted: Record = {"queries": Q, "k": k, "recall_target": recall_target}
    try:
        with steps.step("export") as callback:
            made = nk.export.export_index(loaded, target, **wanted, callback=callback)
    except nk.export.RecallTooLowError as error:
        screen.say(f"nearkin: {error}")
        raise typer.Exit(NEGATIVE) from error
    made = {"index": index, **made, "seconds": steps.seconds}
    shown = {name: value for name, value in made.items() if name not in _NOT_SHOWN}
    shown["wall seconds"] = sum(steps.seconds.values())
    screen.finish(made, pairs(f"{index} to {to}", shown), made["self_check"])


def rotate(
    screen: Screen,
    vectors: Vectors,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE")],
    engine: Annotated[str | None, typer.Option("--for", metavar="ENGINE")] = None,
    folder: Annotated[str | None, typer.Option("--with", metavar="DIR")] = None,
    queries: File = None,
    center: Annotated[bool, typer.Option("--center")] = False,
    overwrite: Overwrite = False,
    seed: Seed = 0,
) -> None:
    """Rotate vectors so that another engine's codes find more of their neighbours.

    The rotation is trained for the engine's codes and measured on held-out vectors. Distances do not change; if no
    rotation is better than none, none is applied. It is saved next to the vectors, in OUT with the ending .rotation:
    queries must be rotated by it too (--with). For an engine that rotates vectors itself the command stops with an
    error.

    Examples:

    - nearkin rotate X.npy --for pgvector-bit --out X_rot.parquet
    - nearkin rotate X.npy --for pgvector-bit --center --queries Q.npy --out X_rot.parquet
    - nearkin rotate Q.npy --with X_rot.rotation --out Q_rot.npy
    - nearkin rotate X.npy --for faiss:SQ4 --out X_rot.npy

    Options:

    + out: File to write: the rotated vectors, .npy or .parquet.
    + engine: pgvector-bit, qdrant-scalar, qdrant-binary, lance-ivf-pq, elasticsearch-bbq, lucene-int8, zvec-int4,
      or faiss:FACTORY, such as faiss:SQ4.
    + folder: A folder saved before: its rotation rotates the queries VECTORS.
    + queries: Queries, if they are unlike the vectors: the rotation is chosen by their recall; at least 20. Without
      them, vectors are held out as queries.
    - center: Subtract the mean of the vectors first, from queries too. Distances do not change; inner products and
      angles do. Sign bits gain most by it.
    """
    if (engine is None) == (folder is None):
        raise ValueError("say what to rotate the vectors for: --for ENGINE, or --with FOLDER for queries")
    if folder is not None and (queries is not None or center):
        raise ValueError(
            f"{'--center' if center else '--queries'} is for training a rotation, and --with takes one that was "
            "trained; leave one of them out"
        )
    file = jobs.inputs.open_file(vectors)
    steps = jobs.run.Steps(screen.watch)
    if engine is None:
        made = jobs.rotate.transform_file(file, nk.Rotation, folder or "", out, steps=steps)
        screen.finish(made, f"{counted(made['vectors'], 'vector')} rotated: {out}")
        return
    Q = None if queries is None else jobs.inputs.open_queries(queries).vectors
    made = jobs.rotate.rotate_file(
        file, engine, out, queries=Q, center=center, random_state=seed, steps=steps, overwrite=overwrite
    )
    from nearkin.metrics.trial import Difference  # loads NumPy, which --help must not

    made |= {"queries": queries, "center": center, "threads": screen.threads}
    recall = ", ".join(f"{in_words(name)} {share:.3f}" for name, share in made["recall"].items())
    shown = {
        "vectors": f"{made['vectors']:,} × {made['dimensions']:,}",
        "rotation": in_words(made["chosen"]),
        f"recall@10 by {engine} of {'queries' if queries else 'vectors held out'}": recall,
        "gain on others of them": str(Difference(made["gain"], 0.0, *made["gain_interval"])),
    }
    following = command("rotate", "Q.npy", **{"with": made["rotation"]}, out="Q_rot.npy")
    screen.finish(made, pairs(out, shown), f"Queries: {following}")


def in_words(name: str) -> str:
    """The name of a rotation, or of one learned from it, for people."""
    known = {"none": "no rotation", "pca": "principal axes", "random": "a random one"}
    start = name.removeprefix("trained from ")
    return name.removesuffix(start) + known.get(start, start)


def ids(
    screen: Screen,
    vectors: Vectors,
    out: OutFolder,
    levels: Annotated[int, typer.Option(min=1)] = 3,
    codes: Annotated[int, typer.Option(min=2)] = 256,
    balance: Annotated[float, typer.Option(min=0, max=1)] = 0.0,
    towers: Annotated[str | None, typer.Option(metavar="DIR")] = None,
    alpha: Annotated[float, typer.Option(min=0, max=1)] = 0.5,
    ids: File = None,
    texts: File = None,
    parquet: Annotated[bool, typer.Option("--parquet")] = False,
    overwrite: Overwrite = False,
    seed: Seed = 0,
) -> None:
    """Give every item a unique semantic id of a few codes; similar items share their first codes.

    The folder holds ids.jsonl, a line for each item with its codes and tokens such as <a_12><b_240><c_3>, the same
    tokens as index.json in the form of LC-Rec, vocabulary.txt with every token, and what `nk.SemanticIds.load` needs
    to give new items free ids.

    Examples:

    - nearkin ids items.npy --out ids
    - nearkin ids items.parquet --levels 4 --codes 256 --balance 0.5 --out ids
    - nearkin embed pairs.csv --out emb && nearkin ids items.parquet --towers emb --out ids

    Options:

    - balance: 0 for no bound; else a prefix holds at most 1 / balance times its even share of the items.
    + towers: A folder of `nearkin embed`: items of the same users then share prefixes too.
    - alpha: With --towers, the share of its vectors of the squared distances; the rest is that of VECTORS.
    - parquet: Write ids.parquet too.
    """
    given = jobs.inputs.open_given(vectors, ids=ids)
    steps = jobs.run.Steps(screen.watch)
    made = jobs.ids.make_ids(
        given.file, out, nk.SemanticIds(levels, codes, balance, seed), given.ids, alpha=alpha, parquet=parquet,
        towers=None if towers is None else jobs.inputs.open_given(towers),
        titles=None if texts is None else jobs.inputs.read_ids(texts, len(given.file)), steps=steps,
        overwrite=overwrite,
    )  # fmt: skip
    screen.finish(made, pairs(f"{out}/{jobs.ids.LINES}", about_ids(made)), f"Next: {command('report', out)}")


def about_ids(made: Fields) -> dict[str, str]:
    """Facts of a record of ids, for people."""
    return {
        "items": f"{made['items']:,}",
        "shared their nearest id": f"{made['shared_before']:.1%}, now each has its own",
        "distortion added by that": f"{made['distortion_added']:.2%}",
        "codes used, by level": " ".join(f"{used}" for used in made["used"]),
        "perplexity": " ".join(f"{value:.0f}" for value in made["perplexity"]),
        "recall@10 by shared prefix": " ".join(f"{share:.3f}" for share in made["prefix_recall"]),
    }


def bridge(
    screen: Screen,
    vectors: Vectors,
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR|FILE")],
    old: File = None,
    folder: Annotated[str | None, typer.Option("--with", metavar="DIR")] = None,
    metric: Annotated[str, typer.Option(metavar="NAME")] = "cosine",
    overwrite: Overwrite = False,
    seed: Seed = 0,
) -> None:
    """Search an old index with a new encoder: train the map from its vectors to the old ones.

    VECTORS are the new encoder's vectors of a few thousand texts, --old the old encoder's of the same texts. Pairs held
    out choose the kind of map. Queries are then mapped by --with.

    Examples:

    - nearkin bridge new.npy --old old.npy --out bridge
    - nearkin bridge new_queries.npy --with bridge --out queries.npy

    Options:

    + out: Folder to write: the map; with --with, a .npy file.
    + old: The old encoder's vectors of the same texts, in the same order.
    + folder: A folder saved before: its map maps VECTORS of the new encoder.
    + metric: The metric of the index: cosine, ip or l2.
    """
    if (old is None) == (folder is None):
        raise ValueError("type --old FILE to train a map on pairs, or --with FOLDER to map vectors by a saved one")
    file, steps = jobs.inputs.open_file(vectors), jobs.run.Steps(screen.watch)
    if folder is not None:
        jobs.outputs.check_target(out, overwrite, [vectors, folder], folder=False)
        made = jobs.rotate.transform_file(file, nk.Bridge, folder, out, steps=steps)
        screen.finish(made, f"{counted(made['vectors'], 'vector')} mapped: {out}")
        return
    learner = nk.Bridge(metric=metric, random_state=seed)
    made = jobs.rotate.make_bridge(
        file, jobs.inputs.open_file(old or ""), out, learner, steps=steps, overwrite=overwrite
    )
    shown = {f"recall@10 of pairs held out, {kind}": f"{share:.3f}" for kind, share in made["kept"].items()}
    shown |= {"recall@10 by chance": f"{made['chance']:.3f}", "chosen": made["chosen"]}
    following = command("bridge", "Q.npy", **{"with": out}, out="Q_old.npy")
    screen.finish(made, pairs(out, shown), f"Queries: {following}")
