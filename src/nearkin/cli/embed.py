"""`nearkin embed`: signals of similarity to vectors, whichever of the two signals a table holds."""

from typing import Annotated

import typer

import nearkin as nk
from nearkin.cli.options import Delimiter, Header, Json, Seed, Threads, Timestamp
from nearkin.cli.screen import Screen, pairs


def embed(
    signals: Annotated[
        str,
        typer.Argument(
            help="A table, .csv, .tsv, .parquet or .npz: pairs (user, item[, weight][, timestamp]), or comparisons "
            "(i, j, k): i is more like j than like k.",
            metavar="SIGNALS",
        ),
    ],
    out: Annotated[str, typer.Option("--out", "-o", help="Folder to write the vectors to.")],
    left: Annotated[str | None, typer.Option(help="Pairs: the column of one side, for example user.")] = None,
    right: Annotated[str | None, typer.Option(help="Pairs: the column of the other side, for example item.")] = None,
    weight: Annotated[str | None, typer.Option(help="Pairs: the column of weights, for example rating.")] = None,
    timestamp: Timestamp = None,
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
            header=header,
            delimiter=delimiter,
            left_features=left_features,
            right_features=right_features,
        )
    pairs_given = record["signals"] == "pairs"
    following = f"nk.TwoTower.load({out!r}).recommend(...)" if pairs_given else f"open {out}/map.png"
    shown = {
        name.replace("_", " "): v
        for name, v in record.items()
        if name != "understood" and not isinstance(v, dict | list) and v is not None
    }
    notes = [f"Read {record['understood']}"] if "understood" in record else []
    notes += [f"Note: {note}" for note in record.get("notes", [])]
    screen.finish(record, pairs(out, shown), *notes, f"Next: {following}")


def _size(dim: str | None) -> int | str | None:
    if dim is None or dim == "auto":
        return dim
    if not dim.isdecimal() or int(dim) < 1:
        raise ValueError(f"--dim is {dim!r}; it must be a number of at least 1, or auto (for comparisons)")
    return int(dim)
