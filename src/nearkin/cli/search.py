"""`nearkin search`: the nearest indexed vectors of every query."""

from collections.abc import Iterable
from typing import Annotated

import typer

import nearkin as nk
from nearkin._fields import Record
from nearkin._words import counted
from nearkin.cli.options import QUERIES, Folder, FormulasAsText, Json, Oversample, Side, Threads
from nearkin.cli.screen import Screen, read_line, table

_SHOWN = 5  # queries in the table when no file takes the hits


def search(
    index: Folder,
    queries: Annotated[str | None, QUERIES] = None,
    k: Annotated[int, typer.Option("-k", help="Neighbours of each query.", min=1)] = 10,
    left_id: Annotated[
        list[str] | None,
        typer.Option(help="Ask for this left entity of `nearkin train`, instead of QUERIES; may be repeated."),
    ] = None,
    with_seen: Annotated[
        bool, typer.Option("--with-seen", help="With --left-id: answer pairs of the training table too.")
    ] = False,
    side: Side = None,
    query_ids: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="One id a query, for the hits.  [default: the ids that QUERIES holds, else row numbers]",
            show_default=False,
        ),
    ] = None,
    oversample: Oversample = None,
    n_probe: Annotated[
        int | None,
        typer.Option(
            "--n-probe",
            help="Coarse cells to look into: more find more, and take longer.  [default: a sixteenth, at least 8]",
            min=1,
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="File for the hits: .parquet, .csv, .tsv or .npz.")
    ] = None,
    formulas_as_text: FormulasAsText = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Find the nearest indexed vectors of every query.

    Without --out, the first queries' neighbours are shown (with --json, all of them). A folder of `nearkin embed` is
    searched exactly, by inner product for pairs, by distance for coordinates; as QUERIES it asks with its left side.

    Examples:

    - nearkin search idx Q.npy -k 10 --out hits.csv
    - nearkin search idx Q.npy -k 10 --oversample 4 --out hits.parquet
    - nearkin search idx data.npz:query -k 3 --json
    - nearkin search idx emb -k 10 --out hits.parquet
    - nearkin search idx --left-id 42 -k 10
    """
    screen = Screen(as_json)
    if (queries is None) == (not left_id):
        raise ValueError("give either QUERIES, a file of vectors, or --left-id, an id of `nearkin train`'s left side")
    if out is not None:
        nk.pipeline.check_hits_path(out)
    steps = nk.pipeline.Steps(screen.watch)
    with steps.step("load"):
        opened = nk.pipeline.open_index(index)
        if n_probe is not None:
            opened.n_probe = n_probe
        asked = None if queries is None else nk.pipeline.open_queries(queries, side, query_ids)
    with steps.step("search") as callback:
        if asked is None:
            names = left_id or []
            scores, ids = nk.pipeline.search_left(index, names, k, with_seen=with_seen, index=opened)
        else:
            names = asked.ids.tolist()
            scores, ids = nk.pipeline.search_in_batches(opened, asked.vectors, k, oversample, callback)
    seconds = steps.seconds["search"]
    understood = "" if asked is None else read_line(asked.about)
    record: Record = {
        "index": index, "queries": len(names), "k": k, "oversample": oversample, "n_probe": opened.n_probe,
        "seconds": seconds, "threads": threads, "out": out,
    }  # fmt: skip
    all_of_them = f"{counted(len(names), 'query', 'queries')}, {counted(ids.shape[1], 'neighbour')} each"
    if out is not None:
        nk.pipeline.write_hits(out, scores, ids, names, formulas_as_text=formulas_as_text)
        screen.finish(record, f"{all_of_them}: {out} ({seconds:.2f} s)", understood)
        return
    rows = [[str(names[q]), *ids[q, :_SHOWN]] for q in range(min(len(names), _SHOWN))]
    columns = ["query", *(f"#{place}" for place in range(1, min(ids.shape[1], _SHOWN) + 1))]
    if as_json:
        hits = zip(names, ids, scores, strict=True)
        record["hits"] = [{"query": name, "ids": i.tolist(), "scores": _finite(s)} for name, i, s in hits]
    more = "" if len(names) <= _SHOWN and ids.shape[1] <= _SHOWN else f"{all_of_them}; --out FILE keeps all."
    screen.finish(record, table("Nearest ids", columns, rows), more, understood)


def _finite(scores: Iterable[float]) -> list[float | None]:
    """Scores as JSON has them: the empty places of a query that found fewer than k become null."""
    return [float(score) if abs(score) < float("inf") else None for score in scores]
