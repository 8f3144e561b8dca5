"""`nearkin evaluate`: how good an index's answers are."""

from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import QUERIES, Folder, Json, Oversample, Threads
from nearkin.cli.screen import Screen, pairs, table


def evaluate(
    index: Folder,
    queries: Annotated[str | None, QUERIES] = None,
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
    labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="A label for every indexed row, in order (file.csv:column).")
    ] = None,
    query_labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="A label for every query (with --labels).")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Neighbours to search for.", min=1)] = 100,
    oversample: Oversample = None,
    n_probe: Annotated[
        str | None,
        typer.Option(
            "--n-probe",
            metavar="COUNTS",
            help="Coarse cells to look into; several, as 1,4,16,64, give the curve of recall and speed.",
        ),
    ] = None,
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

    "1-recall@k" is how often the nearest neighbour is among the first k found; "k-recall@k" the share of the k nearest
    that is. All of them are of one search, for the number of neighbours that -k says, with the options that
    `nearkin search` has. Without QUERIES rows of --base are asked, and none counts as its own neighbour. The result is
    kept in the index's folder as evaluation.json, for `nearkin report`.

    Examples:

    - nearkin evaluate idx Q.npy --truth gt.npy
    - nearkin evaluate idx --base X.npy -k 10
    - nearkin evaluate idx data.npz:query --base data.npz:base --json
    - nearkin evaluate idx Q.npy --truth gt.npy -k 10 --oversample 4
    - nearkin evaluate idx Q.npy --truth gt.npy --n-probe 1,4,16,64
    - nearkin evaluate idx Q.npy --labels y.npy --query-labels yq.npy
    - nearkin evaluate bits Q.npy --base X.npy --labels y.npy --query-labels yq.npy --study
    """
    screen = Screen(as_json)
    pipeline = nk.pipeline
    Q = None if queries is None else pipeline.open_queries(queries).vectors
    record = pipeline.evaluate_folder(
        index,
        Q,
        truth=None if truth is None else nk.data.read_neighbors(truth),
        base=None if base is None else pipeline.open_given(base).file,
        labels=None if labels is None else nk.data.read_column(labels, pipeline.rows_in(index)),
        query_labels=None if query_labels is None else nk.data.read_column(query_labels, None if Q is None else len(Q)),
        k=k,
        oversample=oversample,
        n_probes=_counts(n_probe),
        study=study,
        steps=pipeline.Steps(screen.watch),
        about={"query_file": queries, "threads": threads},
    )
    shown = {name: value for name, value in record.items() if type(value) in (int, float)}
    asked = f"{record['queries']:,} " + ("rows, each without itself" if Q is None else "queries")
    tables = [pairs(f"{index}: {asked}", {n: v for n, v in shown.items() if "recall@" not in n})]
    if "searches" in record:
        columns, rows = nk.pipeline.search_rows(record["searches"])
        turned = [list(cells) for cells in zip(columns, *rows, strict=True)]  # a column a search fits the screen
        tables.append(table(f"Recall of a search for {record['k']}", turned[0], turned[1:]))
    if "probing" in record:
        columns = list(record["probing"][0])
        tables.append(table("Coarse cells looked into", columns, [list(row.values()) for row in record["probing"]]))
    judged = "searches" in record or "mAP" in " ".join(shown)
    screen.finish(
        record, *tables, "" if judged else "For the recall give --base VECTORS or --truth FILE; --labels for mAP."
    )


def _counts(text: str | None) -> list[int]:
    parts = [] if text is None else text.split(",")
    if not all(part.strip().isdecimal() and int(part) for part in parts):
        raise ValueError(f"--n-probe is {text!r}; it must be a number from 1 on, or several: 1,4,16")
    return [int(part) for part in parts]
