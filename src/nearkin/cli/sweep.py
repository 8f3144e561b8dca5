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
        typer.Option(metavar="FILE", help="Real queries. Without them, rows are held out and stand in."),
    ] = None,
    recall: Annotated[
        float, typer.Option(help="Share of each query's k nearest neighbours to keep.", min=0.01, max=0.999)
    ] = 0.95,
    k: Annotated[int, typer.Option("-k", help="Neighbours that a query asks for.", min=1)] = 10,
    metric: Annotated[str, typer.Option(metavar="NAME", help="l2, ip (inner product) or cosine.")] = "l2",
    methods: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Methods to race, separated by commas.", show_default=False),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Start no further trial after so many seconds.", min=1)] = 300.0,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="An HTML page with the table and the picture.")
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Find the code of fewest bytes that keeps enough neighbours, and print the command that makes it.

    Looks at the vectors, then trains, encodes and searches them with one method and size after another, first in
    doubling sizes, then finer where the answer lies. Two answers are printed: by the codes alone, and with the exact
    vectors kept on disk, by which the best candidates are ranked again (search --oversample).

    In the table, "codes" is the recall by codes alone, "x4" and "x16" that of 4 and 16 times k candidates ranked again
    by exact vectors. A code counts only if its recall lies above the target with 97.5 % confidence, judged by all
    queries: more queries give a finer answer.

    Examples:

    - nearkin sweep X.npy --queries Q.npy --recall 0.95
    - nearkin sweep data.npz:base --queries data.npz:query --recall 0.9 -k 100 --out sweep.html
    - nearkin sweep X.parquet --metric cosine --methods procrustes,int8 --seconds 60
    """
    screen = Screen(as_json)
    pipeline = nk.pipeline
    file = pipeline.open_given(vectors).file
    found = pipeline.sweep.sweep(
        file,
        None if queries is None else nk.read_vectors(queries),
        target=recall,
        k=k,
        metric=metric,
        methods=pipeline.sweep.METHODS if methods is None else tuple(name.strip() for name in methods.split(",")),
        seconds=seconds,
        random_state=seed,
        steps=pipeline.Steps(screen.watch),
    )
    record = found.record(vectors) | {"threads": threads, "seed": seed}
    if out is not None:
        pipeline.sweep.sweep_page(found, vectors).write(out)
    for sentence in found.diagnosis.sentences():
        screen.say(sentence)
    shown = table(f"recall {k}@{k}: {found.judged_by()}", *found.rows())
    screen.finish(record, shown, read_line(file.about), *found.answers(vectors))
