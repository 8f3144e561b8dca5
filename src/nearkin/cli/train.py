"""`nearkin train`: from a table of pairs to a searchable index in one command."""

import ctypes
from pathlib import Path
from typing import Annotated

import typer

import nearkin as nk
from nearkin import pipeline
from nearkin.cli.options import (
    Delimiter,
    Header,
    Json,
    Left,
    OutFolder,
    Right,
    Seed,
    Split,
    Threads,
    Timestamp,
    Weight,
)
from nearkin.cli.screen import Screen, pairs, read_line, seconds_in_words, table

_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of glibc's malloc.h
LARGE = 2**21  # bytes from which an array has its own pages, which go back to the system when it is freed


def train(
    interactions: Annotated[
        str,
        typer.Argument(
            help="A table of pairs, .csv, .tsv, .parquet or .npz: left, right[, weight][, timestamp][, split].",
            metavar="PAIRS",
        ),
    ],
    out: OutFolder,
    n_bytes: Annotated[int, typer.Option("--bytes", "-b", help="Bytes of a code; must divide --dim.", min=1)] = 16,
    dim: Annotated[int, typer.Option(help="Dimensions of the vectors.", min=1)] = 64,
    left: Left = None,
    right: Right = None,
    weight: Weight = None,
    split: Split = None,
    timestamp: Timestamp = None,
    header: Header = None,
    delimiter: Delimiter = None,
    loss: Annotated[
        str, typer.Option(help="auto chooses all-pairs or cosine-softmax; in-batch-softmax, in-batch-hinge.")
    ] = "auto",
    holdout: Annotated[
        float, typer.Option(help="Share of the pairs held out, for tables without a split; 0 for none.", min=0, max=0.5)
    ] = 0.1,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Learn vectors of both sides and a compact index of the right side, together.

    Pairs held out of training measure how well the index answers, next to exact search and codes made after training.
    The folder holds the index (its index.faiss opens in plain FAISS), the left side's vectors and a report.

    Examples:

    - nearkin train pairs.csv --bytes 16 --out idx
    - nearkin recommend idx --all --out recs.csv
    - nearkin search idx --left-id 42 -k 10
    """
    give_back_large_arrays()
    screen = Screen(as_json)
    steps, by_rule = pipeline.run.Steps(screen.watch), split in pipeline.holdout.SPLITS
    with steps.step("read"):
        record = nk.read_interactions(
            interactions, left=left, right=right, weight=weight, timestamp=timestamp, header=header,
            delimiter=delimiter, split=None if by_rule else split,
        )  # fmt: skip
    made = pipeline.train.train_index(
        record, out, n_bytes=n_bytes, dim=dim, loss=loss, holdout=holdout,
        split=split if by_rule and split is not None else "random", random_state=seed, steps=steps,
        about={"data": interactions, "seed": seed, "threads": threads},
    )  # fmt: skip
    report = Path(out) / "report.html"
    try:
        pipeline.pages.folder_page(out).write(report)
    except OSError as error:
        text = f"{out} is complete, but its report is not written ({error.strerror or error}); write it by: nearkin "
        raise OSError(error.errno, f"{text}report {out}") from error
    left_name, right_name = pipeline.inputs.side_names(out)
    shown = {
        f"{left_name} × {right_name}, pairs": f"{made['left']:,} × {made['vectors']:,}, {made['pairs']:,}",
        "bytes of a code": f"{made['bytes_per_vector']:g}, {made['compression']:.3g} times fewer than as float32",
        "seconds": seconds_in_words(made["seconds"]),
    }
    chosen = [trial["why"] for trial in made["trials"] if "why" in trial]
    measures = ("recall@20", "ndcg@20", "recall@100", "ndcg@100")
    rows = [[name, *(values[key] for key in measures)] for name, values in made["quality"].items()]
    title = pipeline.holdout.held_out_in_words(made["held_out"], left_name) if rows else ""
    judged = [table(f"Held out of training: {title}", ["search", *measures], rows)] if rows else []
    following = f"Next: nearkin recommend {out} --all --out recs.csv"
    screen.finish(made, pairs(out, shown), *judged, *chosen, read_line(record.source), f"Report: {report}", following)


def give_back_large_arrays() -> bool:
    """Make glibc return freed arrays of 2 MiB and more to the system; False for another C library.

    glibc maps such arrays until one is freed. From then on it takes all up to that size, 32 MiB at most, from one heap,
    and keeps its holes. Training allocates and frees many tables of that size, and then held a third more memory.
    """
    try:
        return bool(ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, LARGE))
    except (AttributeError, OSError, TypeError):
        return False
