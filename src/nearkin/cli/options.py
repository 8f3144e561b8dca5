"""The options and arguments that commands share, each declared once, and the help of the others."""

import inspect
import os
import re
from collections.abc import Callable
from copy import copy
from typing import Annotated

import typer


def described(command: Callable[..., None]) -> Callable[..., None]:
    """The command whose docstring lists its own options, "- name: help" under "Options:", with these as their help."""
    text, _, listed = inspect.cleandoc(command.__doc__ or "").partition("\n\nOptions:\n\n")
    command.__doc__ = text
    for name, words in re.findall(r"^- (\w+): (.+?)(?=\n- |\Z)", listed, re.DOTALL | re.MULTILINE):
        given = command.__annotations__[name]
        kind, info = (given.__origin__, given.__metadata__[0]) if hasattr(given, "__metadata__") else (given, None)
        info = copy(info or typer.Option())
        info.help = " ".join(words.split()).replace(" [default: ", "  [default: ")
        info.show_default = "[default: " not in info.help
        command.__annotations__[name] = Annotated[kind, info]
    return command


def limit_threads(threads: int | None) -> int | None:
    """Limit every numerical library to `threads`: those that are loaded already, and those that load later."""
    if threads is not None:
        for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
            os.environ[f"{name}_NUM_THREADS"] = str(threads)
        from threadpoolctl import threadpool_limits  # slow to import, and needed by this option only

        threadpool_limits(threads)
    return threads


_VECTORS = ".npy, .npz (file.npz:key), .fvecs, .bvecs, .parquet, .csv, .tsv or .txt"
_QUERIES = typer.Argument(help=f"Query vectors: {_VECTORS}.", metavar="QUERIES")
_FOLDER = typer.Option("--out", "-o", metavar="FOLDER", help="Folder to write; an earlier output there is replaced.")
_PAGE = typer.Option("--out", "-o", metavar="FILE", help="HTML file to write.")

# On any command
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON record on stdout and nothing else there.", show_default=False)
]
Seed = Annotated[int, typer.Option(help="Seed of everything random: the same seed gives the same result.", min=0)]
Threads = Annotated[
    int | None,
    typer.Option(help="Threads to use.  [default: all cores]", min=1, callback=limit_threads, show_default=False),
]
OutFolder = Annotated[str, _FOLDER]
OutPage = Annotated[str | None, _PAGE]
OutAnswers = Annotated[
    str | None, typer.Option("--out", "-o", metavar="FILE", help="File for the answers: .parquet, .csv, .tsv or .npz.")
]

File = Annotated[str | None, typer.Option(metavar="FILE")]

# Saved folders
Index = Annotated[str, typer.Argument(help="The folder that `nearkin compress --out` wrote.", metavar="INDEX")]
Embedding = Annotated[
    str, typer.Argument(help="The folder that `nearkin embed --out` or `nearkin train --out` wrote.", metavar="EMB")
]
Side = Annotated[
    str | None,
    typer.Option(
        metavar="SIDE",
        help="Of a folder of `nearkin embed`: left or right of its pairs.  [default: right; left of QUERIES]",
        show_default=False,
    ),
]

# Vectors and searches
Vectors = Annotated[
    str,
    typer.Argument(
        help=f"The vectors: {_VECTORS}. They may exceed memory, and lie in several files: "
        '"parts/*.npy", in quotes. Or a folder of `nearkin embed`: its vectors and ids.',
        metavar="VECTORS",
    ),
]
Queries = Annotated[str | None, _QUERIES]
Metric = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="l2, ip (inner product) or cosine; bits use hamming.  [default: l2; ip for pairs of `nearkin embed`]",
        show_default=False,
    ),
]
Neighbours = Annotated[int, typer.Option("-k", help="Neighbours of each query.", min=1)]
Oversample = Annotated[
    int | None,
    typer.Option(
        help="Fetch this many times k candidates by their codes and rank them by exact vectors "
        "(needs compress --keep-vectors).",
        min=1,
    ),
]
Ids = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="One id a row (.npy, .txt, .csv, .parquet; file.csv:column).  [default: the ids that VECTORS holds, else "
        "row numbers]",
        show_default=False,
    ),
]

# Tables of pairs
Left = Annotated[str | None, typer.Option(help="Pairs: the column of the left side, for example user.")]
Right = Annotated[str | None, typer.Option(help="Pairs: the column of the right side, for example item.")]
Weight = Annotated[str | None, typer.Option(help="Pairs: the column of weights, for example rating.")]
Timestamp = Annotated[str | None, typer.Option(help="Pairs: the column of times: numbers or ISO dates.")]
Split = Annotated[
    str | None,
    typer.Option(
        help="Pairs: which are held out to measure: random, time (the latest), leave-last-out, or a column of 0 "
        "(train), 1 (validation), 2 (test).  [default: random]",
        show_default=False,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line names columns.  [default: decided by its content]",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="comma, semicolon, tab, bar, space or the character.  [default: found by counting]", show_default=False
    ),
]
History = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="A table of pairs of new entities, in the columns of the first table: answers for them."
    ),
]
