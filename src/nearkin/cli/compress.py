"""`nearkin compress`: vectors to a saved index of codes."""

import shlex
from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Json, Seed, Side, Threads
from nearkin.cli.screen import Screen, pairs, read_line, show


def compress(
    vectors: Annotated[
        str,
        typer.Argument(
            help="The vectors to index: .npy, .npz (file.npz:key), .fvecs, .bvecs, .parquet, .csv, .tsv or .txt. "
            'They may exceed memory, and lie in several files: "parts/*.npy", in quotes. Or a folder of `nearkin '
            "embed`: its vectors and ids.",
            metavar="VECTORS",
        ),
    ],
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="FOLDER", help="Folder to write the index to; an index there is replaced."),
    ],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            help="none (PQ), procrustes (OPQ), givens-random, givens-greedy, givens-2opt, givens-steepest, cayley, "
            "residual, int4, int6, int8, float16, or best (a race of codes at the bytes asked for); "
            "or bits by hashing: lsh, itq, one, oge, ...",
        ),
    ] = "procrustes",
    n_bytes: Annotated[
        int | None, typer.Option("--bytes", "-b", help="Bytes of a code.  [default: 16]", min=1, show_default=False)
    ] = None,
    bits: Annotated[int | None, typer.Option(help="Bits of a code, for hashing methods.", min=1)] = None,
    centroids: Annotated[
        int, typer.Option(help="Centroids in each subspace: 256 (a byte each) or 16 (half a byte, fastest search).")
    ] = 256,
    coarse: Annotated[
        int | None,
        typer.Option(
            help="Coarse cells of an inverted file: search looks into a few of them only. About 4 times the square "
            "root of the rows is usual: 1,000 for 60,000 rows, 4,000 for a million; below 20,000 rows leave it out.",
            min=1,
        ),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Other vectors to learn from, so that the indexed ones stay unseen."),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Queries as they will be asked, where they are unlike the vectors: the rotation, or with --method "
            "best the code, is chosen by the neighbours that it keeps for them. Without them, rows are held out and "
            "stand in; --method best of pairs of `nearkin embed` takes their left rows.",
        ),
    ] = None,
    train_rows: Annotated[
        int | None,
        typer.Option(help="Rows to learn from, drawn at random.  [default: 65536]", min=1, show_default=False),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="l2, ip (inner product) or cosine; bits use hamming.  [default: l2; ip for pairs of `nearkin embed`]",
            show_default=False,
        ),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="One id a row (.npy, .txt, .csv, .parquet; file.csv:column).  [default: the ids that VECTORS holds, "
            "else row numbers]",
            show_default=False,
        ),
    ] = None,
    side: Side = None,
    keep_vectors: Annotated[
        bool, typer.Option("--keep-vectors", help="Keep exact vectors beside the codes, for search --oversample.")
    ] = False,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Folder from which an interrupted run goes on; removed at the end."),
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Compress vectors into a small, searchable index.

    Learns a quantizer on a sample of the vectors, encodes all of them a chunk at a time (the file may exceed memory;
    under torchrun several processes share the work) and writes a folder that `nearkin search`, `nk.Index.load` and, for
    its index.faiss, plain FAISS can open.

    Examples:

    - nearkin compress X.npy --bytes 16 --out idx
    - nearkin compress data.npz:base --train data.npz:learn --method givens-greedy --bytes 8 --out idx
    - nearkin compress emb --bytes 16 --out idx
    - nearkin compress X.npy --method best --queries Q.npy --bytes 12 --out idx
    - nearkin compress X.parquet --method itq --bits 64 --out idx
    - nearkin compress X.fvecs --metric ip --coarse 1024 --keep-vectors --out idx
    - torchrun --nproc-per-node 2 -m nearkin compress "parts/*.npy" --checkpoint work --out idx
    """
    screen = Screen(as_json)
    pipeline = nk.pipeline
    size = pipeline.CodeSize(n_bytes, bits, centroids, coarse)
    chosen = pipeline.find_method(method)
    quantizer = chosen.make(size, seed)
    given = pipeline.open_given(vectors, side)
    chosen.check(size, given.file.shape[1])
    if metric is None and given.metric in chosen.metrics:
        metric = given.metric
    asked = None if queries is None else pipeline.open_queries(queries).vectors
    left = given.asking(metric)
    if asked is None and method == "best" and left is not None:
        asked, queries = left, f"the left rows of {vectors}"
    made = pipeline.compress_file(
        given.file,
        quantizer,
        out,
        train=None if train is None else nk.data.open_vectors(train),
        queries=asked,
        judged_by=left,
        train_rows=train_rows,
        metric=pipeline.choose_metric(chosen, metric),
        ids=given.ids if ids is None else pipeline.read_ids(ids, len(given.file)),
        keep_vectors=keep_vectors,
        random_state=seed,
        steps=pipeline.Steps(screen.watch),
        about={"method": method, "seed": seed, "threads": threads, "train": train, "queries": queries},
        checkpoint=checkpoint,
    )
    shown = pairs(f"{out}: {method}", _for_people(made))
    asking = vectors if left is not None else queries
    judge = " ".join(["nearkin evaluate", shlex.quote(out), *([shlex.quote(asking)] if asking else [])])
    following = f"Next: {judge} --base {shlex.quote(vectors)} -k 10, or nearkin search {shlex.quote(out)} QUERIES -k 10"
    screen.finish(made, shown, read_line(given.file.about), following)


def _for_people(record: dict) -> dict[str, object]:
    seconds = record["seconds"]
    said: dict[str, object] = {"the code that won": record["code"]} if record["method"] == "best" else {}
    if record["queries"] is not None:
        said["chosen by"] = record["queries"]
    said |= {"vectors": f"{record['vectors']:,} × {record['dimensions']:,}"}
    said |= nk.pipeline.size_in_words(record, record["bytes_on_disk"])
    if record["distortion"] is not None:
        share = record["variance_kept"]
        kept = "" if share is None else f", which keeps {share:.1%} of the variance"
        said["distortion"] = f"{show(record['distortion'])}{kept}"
    for name in (name for name in record if "-recall@" in name):
        said[name] = f"{record[name]:.4f} ({record['judged_by']})"
    return said | {"seconds": ", ".join(f"{name} {value:.1f}" for name, value in seconds.items() if value >= 0.05)}
