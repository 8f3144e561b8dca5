"""The options that commands share."""

import os
from typing import Annotated

import typer


def limit_threads(threads: int | None) -> int | None:
    """Hold every numerical library to `threads`: those loaded already, and those that load later."""
    if threads is not None:
        for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
            os.environ[f"{name}_NUM_THREADS"] = str(threads)
        from threadpoolctl import threadpool_limits  # slow to import, needed by this option only

        threadpool_limits(threads)
    return threads


Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON record on stdout and nothing else there.", show_default=False)
]
Seed = Annotated[int, typer.Option(help="Seed of everything random: the same seed gives the same result.", min=0)]
Threads = Annotated[
    int | None,
    typer.Option(help="Threads to use.  [default: all cores]", min=1, callback=limit_threads, show_default=False),
]
Folder = Annotated[str, typer.Argument(help="The folder that `nearkin compress --out` wrote.", metavar="INDEX")]
QUERIES = typer.Argument(
    help="Query vectors: .npy, .npz (file.npz:key), .fvecs, .bvecs, .parquet, .csv, .tsv or .txt.", metavar="QUERIES"
)
Queries = Annotated[str, QUERIES]
Oversample = Annotated[
    int | None,
    typer.Option(
        help="Fetch this many times k candidates by their codes and rank them by exact vectors "
        "(needs compress --keep-vectors).",
        min=1,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether the first line names columns.  [default: look]", show_default=False
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="comma, semicolon, tab, bar, space or the character.  [default: look]", show_default=False),
]
Timestamp = Annotated[str | None, typer.Option(help="Pairs: the column of times: numbers or ISO dates.")]
Left = Annotated[
    str | None, typer.Option(help="Pairs: the column of the left side, the one that asks, for example user.")
]
Right = Annotated[
    str | None, typer.Option(help="Pairs: the column of the right side, the one that is found, for example item.")
]
Weight = Annotated[str | None, typer.Option(help="Pairs: the column of weights, for example rating.")]
Split = Annotated[
    str | None,
    typer.Option(
        help="Pairs: which are held out to measure: random, time (the latest), leave-last-out, or a column of 0 "
        "(train), 1 (validation), 2 (test).  [default: random]",
        show_default=False,
    ),
]
Embedding = Annotated[
    str, typer.Argument(help="The folder that `nearkin embed --out` or `nearkin train --out` wrote.", metavar="EMB")
]
Hits = Annotated[
    str | None,
    typer.Option("--out", "-o", metavar="FILE", help="File for the answers: .parquet, .csv, .tsv or .npz."),
]
History = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="For newcomers, whom training has not seen: a table of their pairs, in the columns of the first one.",
    ),
]
FormulasAsText = Annotated[
    bool,
    typer.Option(
        "--formulas-as-text",
        help="In .csv and .tsv, a ' before ids that a spreadsheet would compute (=, +, -, @).",
    ),
]
Side = Annotated[
    str | None,
    typer.Option(
        metavar="SIDE",
        help="Of a folder of `nearkin embed`: left or right of its pairs.  [default: right; left of QUERIES]",
        show_default=False,
    ),
]
