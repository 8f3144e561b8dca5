"""`nearkin sweep`: which code is the cheapest that keeps enough neighbours."""

from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Json, Seed, Threads
from nearkin.cli.screen import Screen, read_line, table


def sweep(
    vectors: Annotated[
        str,
        typer.Argument(
            help="The vectors to index: .npy, .npz (file.npz:key), .fvecs, .bvecs, .parquet, .csv, .tsv or .txt, or "
            "a folder of `nearkin embed`.",
            metavar="VECTORS",
        ),
    ],
    queries: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Real queries.  [default: the left rows of pairs, else rows held out]"),
    ] = None,
    recall: Annotated[
        float, typer.Option(help="Share of each query's k nearest neighbours to keep.", min=0.01, max=0.999)
    ] = 0.95,
    k: Annotated[int, typer.Option("-k", help="Neighbours that a query asks for.", min=1)] = 10,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="l2, ip (inner product) or cosine.  [default: l2; ip for pairs of `nearkin embed`]",
            show_default=False,
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Methods to race, separated by commas, of those of compress.  [default: procrustes, residual, "
            "product-residual, int4, int6, int8, float16]",
            show_default=False,
        ),
    ] = None,
    per_second: Annotated[
        float,
        typer.Option(
            help="Queries a second that an answer must manage on this machine; also tries inverted lists below 20,000 "
            "rows.  [default: any]",
            min=0,
            show_default=False,
        ),
    ] = 0.0,
    minutes: Annotated[float, typer.Option(help="Time that the answer may take.", min=0.01)] = 5.0,
    seconds: Annotated[float | None, typer.Option(help="The same in seconds.", min=0.1, hidden=True)] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="An HTML page with the table and the pictures.")
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Find the code of fewest bytes that keeps enough neighbours, and print the command that makes it.

    Looks at the vectors, learns codes of doubling sizes from few rows, then trains, encodes and searches whole codes
    where the answer lies. Two answers are printed: by the codes alone, and with the exact vectors kept on disk, by
    which the best candidates are ranked again (search --oversample). From 20,000 rows on inverted lists are tried too,
    and where they are clearly faster, the fastest choice is printed beside the cheapest. Under each answer stands the
    command that makes the index and the one that judges it, with the same recall.

    In the table, "codes" is the recall by codes alone, "at least" what it is with 97.5 % confidence for queries like
    these, "x4" and "x16" that of 4 and 16 times k candidates ranked again by exact vectors. A code counts only if "at
    least" is above the target: more queries give a finer answer.

    Examples:

    - nearkin sweep X.npy --queries Q.npy --recall 0.95
    - nearkin sweep data.npz:base --queries data.npz:query --recall 0.9 -k 100 --out sweep.html
    - nearkin sweep X.npy --queries Q.npy --recall 0.9 --per-second 1000
    - nearkin sweep X.parquet --metric cosine --methods procrustes,int8 --minutes 1
    """
    screen = Screen(as_json)
    pipeline = nk.pipeline
    given = pipeline.open_given(vectors)
    if queries is None and given.asking(metric or given.metric) is not None:
        queries = vectors
    asked = None if queries is None else pipeline.open_queries(queries)
    found = pipeline.sweep.sweep(
        given.file,
        None if asked is None else asked.vectors,
        target=recall,
        k=k,
        metric=metric or given.metric or "l2",
        methods=pipeline.sweep.METHODS if methods is None else tuple(name.strip() for name in methods.split(",")),
        rate=per_second,
        seconds=60 * minutes if seconds is None else seconds,
        random_state=seed,
        steps=pipeline.Steps(screen.watch),
    )
    record = found.record(vectors, queries) | {"threads": threads, "seed": seed}
    if out is not None:
        pipeline.sweep.sweep_page(found, vectors, queries).write(out)
    for sentence in found.diagnosis.sentences():
        screen.say(sentence)
    shown = table(f"recall {k}@{k}: {found.judged_by()}", *found.rows())
    lines = [
        line for said, commands in found.answers(vectors, queries) for line in (said, *(f"  {c}" for c in commands))
    ]
    screen.finish(record, shown, read_line(given.file.about), *lines, *found.notes())
