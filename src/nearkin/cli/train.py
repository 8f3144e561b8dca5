"""`nearkin train`: from a table of pairs to a searchable index in one command."""

from pathlib import Path
from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.memory import give_back_large_arrays
from nearkin.cli.options import Delimiter, Header, Json, Left, Right, Seed, Split, Threads, Timestamp, Weight
from nearkin.cli.screen import Screen, pairs, read_line, table


def train(
    interactions: Annotated[
        str,
        typer.Argument(
            help="A table of pairs, .csv, .tsv, .parquet or .npz: left, right[, weight][, timestamp][, split].",
            metavar="PAIRS",
        ),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to write the index to.")],
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
        str, typer.Option(help="all-pairs or cosine-softmax (both block by block), in-batch-softmax, in-batch-hinge.")
    ] = "all-pairs",
    holdout: Annotated[
        float, typer.Option(help="Share of the pairs that judges, where there is no split; 0 for none.", min=0, max=0.5)
    ] = 0.1,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Learn vectors of both sides and a compact index of the right side, together.

    Pairs held out of training say how well the index answers, beside exact search and beside codes that were made after
    training. The folder holds the index (its index.faiss opens in plain FAISS), the left side's vectors and a report.

    Examples:

    - nearkin train pairs.csv --bytes 16 --out idx
    - nearkin recommend idx --all --out recs.csv
    - nearkin search idx --left-id 42 -k 10
    """
    give_back_large_arrays()
    screen = Screen(as_json)
    steps = nk.pipeline.Steps(screen.watch)
    by_rule = split in nk.pipeline.SPLITS
    with steps.step("read"):
        record = nk.read_interactions(
            interactions, left=left, right=right, weight=weight, timestamp=timestamp, header=header,
            delimiter=delimiter, split=None if by_rule else split,
        )  # fmt: skip
    made = nk.pipeline.train_index(
        record, out, n_bytes=n_bytes, dim=dim, loss=loss, holdout=holdout,
        split=split if by_rule and split is not None else "random", random_state=seed, steps=steps,
        about={"data": interactions, "seed": seed, "threads": threads},
    )  # fmt: skip
    words, report = nk.pipeline.words_of(out), Path(out) / "report.html"
    try:
        nk.pipeline.folder_page(out).write(report)
    except OSError as error:
        text = f"{out} is written whole, but its report is not ({error.strerror or error}); make it by: nearkin report"
        raise OSError(error.errno, f"{text} {out}") from error
    shown = {
        f"{words.left} × {words.right}, pairs": f"{made['left']:,} × {made['vectors']:,}, {made['pairs']:,}",
        "bytes of a code": f"{made['bytes_per_vector']:g}, {made['compression']:.3g} times fewer than as float32",
        "seconds": ", ".join(f"{name} {value:.1f}" for name, value in made["seconds"].items() if value >= 0.05),
    }
    measures = ("recall@20", "ndcg@20", "recall@100", "ndcg@100")
    rows = [[name, *(values[key] for key in measures)] for name, values in made["quality"].items()]
    title = nk.pipeline.held_out_in_words(made["held_out"], words.left) if rows else ""
    judged = [table(f"Held out of training: {title}", ["search", *measures], rows)] if rows else []
    screen.finish(
        made,
        pairs(out, shown),
        *judged,
        read_line(record.source),
        f"Report: {report}",
        f"Next: nearkin recommend {out} --all --out recs.csv",
    )
