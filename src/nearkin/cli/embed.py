"""`nearkin embed`: signals of similarity to vectors, whichever of the two signals a table holds."""

from typing import Annotated

import typer
from rich.table import Table

import nearkin as nk
from nearkin._fields import Record
from nearkin.cli.options import Delimiter, Header, Json, Left, Right, Seed, Split, Threads, Timestamp, Weight
from nearkin.cli.screen import Screen, pairs, read_line, table


def embed(
    signals: Annotated[
        str,
        typer.Argument(
            help="A table, .csv, .tsv, .parquet or .npz: pairs (user, item[, weight][, timestamp]), or comparisons "
            "(i, j, k): i is more like j than like k.",
            metavar="SIGNALS",
        ),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to write the vectors to.")],
    left: Left = None,
    right: Right = None,
    weight: Weight = None,
    timestamp: Timestamp = None,
    split: Split = None,
    anchor: Annotated[
        str | None, typer.Option(help='Comparisons: the column of the object compared; "0" is the first.')
    ] = None,
    near: Annotated[str | None, typer.Option(help="Comparisons: the column of the nearer object.")] = None,
    far: Annotated[str | None, typer.Option(help="Comparisons: the column of the farther object.")] = None,
    response: Annotated[
        str | None,
        typer.Option(help="Comparisons: the column that says which was chosen; COLUMN=VALUE: VALUE chooses the first."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(help="Comparisons: triplet, quadruplet, odd-one-out, most-central, similarity, dissimilarity."),
    ] = None,
    raters: Annotated[
        str | None,
        typer.Option(
            help="Comparisons: equal, or estimated: weigh each rater's answers by how reliable they prove.  "
            "[default: equal]",
            show_default=False,
        ),
    ] = None,
    header: Header = None,
    delimiter: Delimiter = None,
    left_features: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Pairs: a table with an id of the left side first, then its features."),
    ] = None,
    right_features: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Pairs: the same for the right side; its ids may lack pairs."),
    ] = None,
    dim: Annotated[
        str | None,
        typer.Option(
            help="Dimensions of the vectors; auto, for comparisons, chooses by cross-validation.  "
            "[default: 64 for pairs, 2 for comparisons]",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="Pairs: all-pairs, in-batch-softmax, sampled-bce.  Comparisons: ste, t-ste, gnmds, ckl, soe.  "
            "[default: all-pairs, ste]",
            show_default=False,
        ),
    ] = None,
    solver: Annotated[str, typer.Option(help="How to optimize; auto is the fastest that is safe.")] = "auto",
    kind: Annotated[
        str, typer.Option(help="pairs, comparisons, or auto: what the columns say, if they say it.")
    ] = "auto",
    next_queries: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Comparisons: write the N questions worth asking next to questions.csv."),
    ] = 0,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="EMB",
            help="Pairs: go on from this folder with SIGNALS as new pairs, in a fraction of the time; --out may be it.",
        ),
    ] = None,
    tables: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="Write the vectors as tables too, beside the model: csv or parquet."),
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Learn vectors from pairs or from comparisons.

    Pairs (who took what) give vectors for both sides; comparisons (is A more like B or like C?) give a map of the
    objects. A share of the signals is held out first, to say how good the vectors are.

    Examples:

    - nearkin embed pairs.csv --left user --right item --dim 64 --out emb
    - nearkin embed pairs.csv --right-features items.csv --out emb
    - nearkin embed pairs.csv --split time --timestamp when --tables parquet --out emb
    - nearkin embed today.csv --start emb --out emb
    - nearkin embed answers.csv --dim 2 --loss t-ste --out map
    - nearkin embed answers.csv --next-queries 20 --out map
    """
    del threads  # its callback has set them
    screen = Screen(as_json)
    with screen.watch("embed") as callback:
        record = nk.pipeline.embed_signals(
            signals,
            out,
            kind=kind,
            dim=_size(dim),
            loss=loss,
            solver=solver,
            seed=seed,
            next_queries=next_queries,
            callback=callback,
            left=left,
            right=right,
            weight=weight,
            timestamp=timestamp,
            anchor=anchor,
            near=near,
            far=far,
            response=response,
            form=form,
            raters=raters,
            header=header,
            delimiter=delimiter,
            left_features=left_features,
            right_features=right_features,
            split=split,
            start=start,
            tables=tables,
        )
    notes = [read_line(record.get("understood"))]
    notes += [f"Note: {note}" for note in record.get("notes", [])]
    shown, judged = (_of_pairs if record["signals"] == "pairs" else _of_comparisons)(record)
    report = f"nearkin report {out}"
    following = (
        f"nearkin recommend {out} --all --out recs.csv" if record["signals"] == "pairs" else f"open {out}/map.png"
    )
    screen.finish(record, pairs(out, shown), *judged, *notes, f"Next: {following}, or {report}")


def _of_pairs(record: Record) -> tuple[Record, list[Table]]:
    """Facts and the table of measures, in the words of the file."""
    left, right = record["words"]["left"], record["words"]["right"]
    shown = {
        left: record["left"],
        right: record["right"],
        "pairs": record["pairs"],
        "learned from": record["learned_from"],
        **{name: record[name] for name in ("dim", "loss", "solver", "omega", "regularization", "steps", "seconds")},
    }
    quality = record["quality"]
    if not quality:
        return shown, []
    measures = list(next(iter(quality.values())))
    rows = [[name, *(values[measure] for measure in measures)] for name, values in quality.items()]
    judged = nk.pipeline.held_out_in_words(record["held_out"], left)
    return shown, [table(f"Held out of training, split {record['split']}: {judged}", ["", *measures], rows)]


def _of_comparisons(record: Record) -> tuple[Record, list[Table]]:
    plain = {name: value for name, value in record.items() if not isinstance(value, dict | list) and value is not None}
    shown = {name.replace("_", " "): value for name, value in plain.items() if name != "understood"}
    weights = record.get("rater_reliability")
    return shown, [] if weights is None else [_of_raters(weights)]


def _of_raters(weights: dict[str, float]) -> Table:
    """The raters that weigh most and least."""
    ordered = sorted(weights.items(), key=lambda item: -item[1])
    shown = ordered if len(ordered) <= 20 else [*ordered[:10], *ordered[-10:]]
    title = "Raters" + ("" if shown == ordered else f" (10 highest and lowest of {len(ordered)})")
    return table(title, ["rater", "weight of each answer"], [list(row) for row in shown])


def _size(dim: str | None) -> int | str | None:
    if dim is None or dim == "auto":
        return dim
    if not dim.isdecimal() or int(dim) < 1:
        raise ValueError(f"--dim is {dim!r}; it must be a number of at least 1, or auto (for comparisons)")
    return int(dim)
