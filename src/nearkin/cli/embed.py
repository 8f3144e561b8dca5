"""`nearkin embed`: vectors from a table of pairs or of comparisons."""

from typing import Annotated, Any

import typer
from rich.table import Table

import nearkin as nk
from nearkin import pipeline
from nearkin._fields import Fields, Record
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
from nearkin.cli.screen import Screen, pairs, read_line, table

KINDS = ("pairs", "comparisons", "auto")
FOR_PAIRS = ("left", "right", "weight", "timestamp", "left_features", "right_features", "split", "start")
FOR_COMPARISONS = ("anchor", "near", "far", "response", "form", "raters")


def embed(
    signals: Annotated[
        str,
        typer.Argument(
            help="A table, .csv, .tsv, .parquet or .npz: pairs (user, item[, weight][, timestamp]), or comparisons "
            "(i, j, k): i is more like j than like k.",
            metavar="SIGNALS",
        ),
    ],
    out: OutFolder,
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
            help="Comparisons: equal, or estimated: weigh each rater's answers by their reliability.  [default: equal]",
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
            help="Pairs: auto (by held-out pairs), all-pairs, cosine-softmax, in-batch-softmax, sampled-bce.  "
            "Comparisons: ste, t-ste, gnmds, ckl, soe.  [default: auto, ste]",
            show_default=False,
        ),
    ] = None,
    solver: Annotated[str, typer.Option(help="The optimizer; auto is the fastest that is safe.")] = "auto",
    kind: Annotated[str, typer.Option(help="pairs, comparisons, or auto: decided by the columns.")] = "auto",
    next_queries: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Comparisons: write the N questions worth asking next to questions.csv."),
    ] = 0,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="EMB",
            help="Pairs: train this folder's model further with SIGNALS as new pairs, in a fraction of the time; --out "
            "may be the same folder.",
        ),
    ] = None,
    tables: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Write the vectors as tables too: csv or parquet.")
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Learn vectors from pairs or from comparisons.

    Pairs (who took what) give vectors for both sides; comparisons (is A more like B or like C?) give a map of the
    objects. A share of the signals is held out first, to measure how good the vectors are.

    Examples:

    - nearkin embed pairs.csv --left user --right item --dim 64 --out emb
    - nearkin embed pairs.csv --right-features items.csv --out emb
    - nearkin embed pairs.csv --split time --timestamp when --tables parquet --out emb
    - nearkin embed today.csv --start emb --out emb
    - nearkin embed answers.csv --dim 2 --loss t-ste --out map
    - nearkin embed answers.csv --next-queries 20 --out map
    """
    del threads  # set by its callback
    screen, size = Screen(as_json), _size(dim)
    columns = {
        "left": left, "right": right, "weight": weight, "timestamp": timestamp, "anchor": anchor, "near": near,
        "far": far, "response": response, "form": form, "raters": raters, "header": header, "delimiter": delimiter,
        "left_features": left_features, "right_features": right_features, "split": split, "start": start,
    }  # fmt: skip
    given: dict[str, Any] = {name: value for name, value in columns.items() if value is not None}
    of_pairs = _are_pairs(signals, kind, given, loss)
    _check_options(of_pairs, given, size, next_queries)
    with screen.watch("embed") as callback:
        given |= {"out": out, "dim": size, "loss": loss, "solver": solver, "seed": seed, "tables": tables}
        if of_pairs:
            record = pipeline.embed_pairs.embed_pairs(signals, callback=callback, **given)
        else:
            record = pipeline.embed_comparisons.embed_comparisons(
                signals, next_queries=next_queries, callback=callback, **given
            )
    record = {"signals": "pairs" if of_pairs else "comparisons", **record}
    notes = [read_line(record.get("understood")), *(f"Note: {note}" for note in record.get("notes", []))]
    shown, judged = (_pairs_for_people if of_pairs else _comparisons_for_people)(record)
    following = f"nearkin recommend {out} --all --out recs.csv" if of_pairs else f"open {out}/map.png"
    screen.finish(record, pairs(out, shown), *judged, *notes, f"Next: {following}, or nearkin report {out}")


def _are_pairs(signals: str, kind: str, given: Fields, loss: str | None) -> bool:
    """Whether the table holds pairs: by --kind, else by the loss, by an option, or by the columns."""
    if kind not in KINDS:
        raise ValueError(f"--kind is {kind!r}; it must be pairs, comparisons or auto")
    if kind != "auto":
        return kind == "pairs"
    if loss is not None:
        return loss not in nk.embedding.ordinal.losses.LOSSES
    if set(given) & set(FOR_COMPARISONS):
        return False
    if {"left", "right", "start"} & set(given):
        return True
    return nk.data.kind_of(signals, header=given.get("header"), delimiter=given.get("delimiter")) == "pairs"


def _check_options(of_pairs: bool, given: Fields, size: int | str | None, next_queries: int) -> None:
    """ValueError for an option of the other kind of signals."""
    kind, other = ("comparisons", "pairs") if of_pairs else ("pairs", "comparisons")
    wrong = sorted(set(FOR_COMPARISONS if of_pairs else FOR_PAIRS) & set(given))
    if wrong:
        raise ValueError(f"--{wrong[0].replace('_', '-')} is for {kind}; the table is read as {other} (--kind {other})")
    if of_pairs and next_queries:
        raise ValueError("--next-queries is for comparisons; pairs have no questions")
    if of_pairs and size == "auto":
        raise ValueError("--dim auto is for comparisons; give a number for pairs, for example --dim 64")


def _pairs_for_people(record: Record) -> tuple[Record, list[Table]]:
    """Facts and the table of measures."""
    names, quality = record["words"], record["quality"]
    shown = {names["left"]: record["left"], names["right"]: record["right"]}
    for name in ("pairs", "learned_from", "dim", "loss", "solver", "omega", "regularization", "steps", "seconds"):
        shown[name] = record[name]
    if not quality:
        return shown, []
    measures = list(next(iter(quality.values())))
    rows = [[name, *(values[measure] for measure in measures)] for name, values in quality.items()]
    judged = pipeline.holdout.held_out_in_words(record["held_out"], names["left"])
    return shown, [table(f"Held out of training, split {record['split']}: {judged}", ["", *measures], rows)]


def _comparisons_for_people(record: Record) -> tuple[Record, list[Table]]:
    """Facts, and the raters of most and least weight."""
    shown = {name: value for name, value in record.items() if not isinstance(value, dict | list) and value is not None}
    shown.pop("understood", None)
    weights = record.get("rater_reliability")
    if weights is None:
        return shown, []
    ordered = sorted(weights.items(), key=lambda item: -item[1])
    rows = ordered if len(ordered) <= 20 else [*ordered[:10], *ordered[-10:]]
    title = "Raters" + ("" if rows == ordered else f" (10 highest and lowest of {len(ordered)})")
    return shown, [table(title, ["rater", "weight of each answer"], [list(row) for row in rows])]


def _size(dim: str | None) -> int | str | None:
    if dim is None or dim == "auto":
        return dim
    if not dim.isdecimal() or int(dim) < 1:
        raise ValueError(f"--dim is {dim!r}; it must be a number of at least 1, or auto (for comparisons)")
    return int(dim)
