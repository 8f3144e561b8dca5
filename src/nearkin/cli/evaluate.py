"""`nearkin evaluate`: how good an index's answers are."""

from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Folder, Json, Oversample, Queries, Threads
from nearkin.cli.screen import Screen, pairs


def evaluate(
    index: Folder,
    queries: Queries,
    truth: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Ids of each query's exact neighbours, nearest first (.npy, .npz:key, .ivecs, .csv, .parquet).",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The vectors that were indexed; the truth is then found by exact search in them."
        ),
    ] = None,
    labels: Annotated[str | None, typer.Option(metavar="FILE", help="A label for every indexed row, in order.")] = None,
    query_labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="A label for every query (with --labels).")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Neighbours to search for.", min=1)] = 100,
    oversample: Oversample = None,
    study: Annotated[
        bool,
        typer.Option(
            "--study",
            help="For bits, with --base: also judge every hashing method, shorter and longer codes, and other scales "
            "of OnE and OgE, on a sample of 5,500 rows (a minute or two).",
        ),
    ] = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Judge an index: recall against exact neighbours, mAP by label, distortion.

    "1-recall@k" is how often the nearest neighbour is among the k found; "k-recall@k" the share of the k nearest that
    is. The result is kept beside the index as evaluation.json, for `nearkin report`.

    Examples:

    - nearkin evaluate idx Q.npy --truth gt.npy
    - nearkin evaluate idx data.npz:query --base data.npz:base --json
    - nearkin evaluate idx Q.npy --labels y.npy --query-labels yq.npy
    - nearkin evaluate bits Q.npy --base X.npy --labels y.npy --query-labels yq.npy --study
    """
    screen = Screen(as_json)
    pipeline = nk.pipeline
    record = pipeline.evaluate_folder(
        index,
        nk.read_vectors(queries),
        truth=None if truth is None else nk.data.read_neighbors(truth),
        base=None if base is None else nk.data.open_vectors(base),
        labels=None if labels is None else nk.data.read_column(labels),
        query_labels=None if query_labels is None else nk.data.read_column(query_labels),
        k=k,
        oversample=oversample,
        study=study,
        steps=pipeline.Steps(screen.watch),
        about={"query_file": queries, "threads": threads},
    )
    shown = {name: value for name, value in record.items() if isinstance(value, int | float)}
    screen.finish(record, pairs(f"{index}: {record['queries']:,} queries", shown))
