"""`nearkin embed` and `nearkin train`: vectors from pairs or comparisons, and an index learned with them."""

import ctypes
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import nearkin as nk
from nearkin import pipeline
from nearkin._fields import Fields, Record
from nearkin.cli.export import about_ids
from nearkin.cli.options import File, Header, OutFolder, Seed
from nearkin.cli.screen import Screen, pairs, ranking_table, read_line, seconds_in_words, table

VALUES = {  # of options, whatever the table holds
    "kind": ("pairs", "comparisons", "auto"),
    "tables": ("csv", "parquet"),
    "reversed": ("keep", "turn", "drop"),
    "raters": ("equal", "estimated"),
    "duplicates": ("sum", "last", "max"),
    "form": ("triplet", "quadruplet", "odd-one-out", "most-central", "rating", "similarity", "dissimilarity"),
}
FOR_PAIRS = (
    *("left", "right", "weight", "min_weight", "duplicates", "timestamp", "left_features", "right_features", "split"),
    "start",
)
FOR_COMPARISONS = ("anchor", "near", "far", "response", "form", "raters", "reversed_raters", "missing")
COLUMNS = (*FOR_PAIRS, *FOR_COMPARISONS, "header")


def embed(
    screen: Screen,
    signals: Annotated[str, typer.Argument(metavar="SIGNALS")],
    out: OutFolder,
    left: str | None = None,
    right: str | None = None,
    weight: str | None = None,
    min_weight: float | None = None,
    duplicates: str | None = None,
    timestamp: str | None = None,
    split: str | None = None,
    anchor: str | None = None,
    near: str | None = None,
    far: str | None = None,
    response: str | None = None,
    form: str | None = None,
    raters: str | None = None,
    reversed_raters: Annotated[str | None, typer.Option("--reversed", metavar="keep|turn|drop")] = None,
    missing: Annotated[str | None, typer.Option(metavar="raise|drop|CODES")] = None,
    header: Header = None,
    left_features: File = None,
    right_features: File = None,
    dim: str | None = None,
    loss: str | None = None,
    solver: str = "auto",
    kind: str = "auto",
    next_queries: Annotated[int, typer.Option(min=0, metavar="N")] = 0,
    start: Annotated[str | None, typer.Option(metavar="EMB")] = None,
    tables: Annotated[str | None, typer.Option(metavar="FORMAT")] = None,
    seed: Seed = 0,
) -> None:
    """Learn vectors from pairs or from comparisons.

    Pairs (who took what) give vectors for both sides; comparisons (is A more like B or like C?) give a map of the
    objects. A share of the signals is held out first, to measure how good the vectors are.

    Examples:

    - nearkin embed pairs.csv --left user --right item --dim 64 --out emb
    - nearkin embed pairs.csv --right-features items.csv --out emb
    - nearkin embed today.csv --start emb --out emb
    - nearkin embed answers.csv --dim 2 --loss t-ste --out map

    Options:

    - signals: A table, .csv, .tsv, .jsonl, .parquet, .feather or .npz: pairs (user, item[, weight][, timestamp]), or
      comparisons (i, j, k): i is more like j than like k.
    + anchor: Comparisons: the column of the object compared; "0" is the first.
    + near: Comparisons: the column of the nearer object.
    + far: Comparisons: the column of the farther object.
    - response: Comparisons: the column of what was chosen; COLUMN=VALUE: VALUE chooses the first.
    - form: Comparisons: triplet, quadruplet, odd-one-out, most-central, similarity, dissimilarity.
    + raters: Comparisons: equal, or estimated: weigh each rater's answers by their reliability. [default: equal]
    - reversed_raters: Comparisons: answers of raters who answer the opposite of the others: keep, turn (round) or drop.
      [default: keep]
    - missing: Comparisons: rows without an answer (empty, NA, -99): raise an error, or drop and count them; 9,skip
      drops these answers too. [default: raise]
    - left_features: Pairs: a table with an id of the left side first, then its features.
    - right_features: Pairs: the same for the right side; its ids may lack pairs.
    + dim: Dimensions of the vectors; auto, for comparisons, chooses by cross-validation. [default: 64 for pairs, 2
      for comparisons]
    - loss: Pairs: auto (by held-out pairs), all-pairs, cosine-softmax, in-batch-softmax, sampled-bce. Comparisons:
      ste, t-ste, gnmds, ckl, soe. [default: auto, ste]
    - solver: The optimizer; auto is the fastest robust one.
    - kind: pairs, comparisons, or auto: decided by the columns.
    - next_queries: Comparisons: write the N most informative next questions to questions.csv.
    - start: Pairs: train this folder's model further with SIGNALS as new pairs, also into the same folder.
    - tables: Write the vectors as tables too: csv or parquet.
    """
    given: Record = {name: value for name, value in locals().items() if name in COLUMNS and value is not None}
    _check_values(kind=kind, tables=tables, reversed=reversed_raters, raters=raters, duplicates=duplicates, form=form)
    size, of_pairs = _size(dim), _are_pairs(signals, kind, given, loss)
    _check_options(of_pairs, given, size, next_queries)
    with screen.watch("embed") as callback:
        given |= {"out": out, "dim": size, "loss": loss, "solver": solver, "seed": seed, "tables": tables}
        if of_pairs:
            record = pipeline.pairs.embed_pairs(signals, callback=callback, **given)
        else:
            record = pipeline.embed_comparisons.embed_comparisons(
                signals, next_queries=next_queries, callback=callback, **given
            )
    record = {"signals": "pairs" if of_pairs else "comparisons", **record}
    notes = [read_line(record.get("understood")), *(f"Note: {note}" for note in record.get("notes", []))]
    shown, judged = (_pairs_for_people if of_pairs else _comparisons_for_people)(record)
    following = f"nearkin recommend {out} --all --out recs.csv" if of_pairs else f"open {out}/map.png"
    screen.finish(record, pairs(out, shown), *judged, *notes, f"Next: {following}, or nearkin report {out}")


def _check_values(**given: str | None) -> None:
    """ValueError for a value that its option does not have; the table is read after that."""
    for name, value in given.items():
        if value is not None and value not in VALUES[name]:
            raise ValueError(f"--{name} is {value!r}; it must be one of {', '.join(VALUES[name])}")


def _are_pairs(signals: str, kind: str, given: Fields, loss: str | None) -> bool:
    """Whether the table holds pairs: by --kind, else by the loss, by an option, or by the columns."""
    if kind != "auto":
        return kind == "pairs"
    if loss is not None:
        from nearkin.embedding.ordinal.losses import LOSSES  # loads numba

        if loss in LOSSES:
            return False
        from nearkin.embedding.two_tower.fitting import LOSSES as OF_PAIRS  # loads torch

        if loss not in OF_PAIRS:
            known = f"{', '.join(OF_PAIRS)} for pairs, or {', '.join(LOSSES)} for comparisons"
            raise ValueError(f"--loss is {loss!r}; it must be one of {known}")
        return True
    found = nk.data.kind_of(signals, header=given.get("header"), given=given)
    return found == "pairs"


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


def _pairs_for_people(record: Record) -> tuple[Record, list[Table | str]]:
    """Facts, the table of measures, and differences between its rows."""
    names, quality = record["words"], record["quality"]
    shown = {names["left"]: record["left"], names["right"]: record["right"]}
    for name in ("pairs", "learned_from", "dim", "loss", "solver", "omega", "regularization", "steps"):
        shown[name] = record[name]
    shown["wall seconds"] = record["seconds"]
    if not quality:
        return shown, []
    judged = pipeline.pairs.held_out_in_words(record["held_out"], names["left"])
    made = ranking_table(f"Held out of training, split {record['split']}: {judged}", quality)
    return shown, [made, *pipeline.pairs.differences_in_words(record["differences"])]


def _comparisons_for_people(record: Record) -> tuple[Record, list[Table | str]]:
    """Facts, and the raters of most and least weight."""
    shown = {name: value for name, value in record.items() if not isinstance(value, dict | list) and value is not None}
    shown.pop("understood", None)
    tables: list[Table | str] = []
    curve, weights = record.get("dimension_curve"), record.get("rater_reliability")
    if curve is not None:
        columns = ["dimension", "error", "standard_error"]
        rows = list(zip(*(curve[name] for name in columns), strict=True))
        chance = f"coin flips have {curve['chance']:.3f} or more 19 times of 20"
        tables.append(table(f"Error of cross-validation; {chance}", columns, rows))
    if weights is not None:
        ordered = sorted(weights.items(), key=lambda item: -item[1])
        rows = ordered if len(ordered) <= 20 else [*ordered[:10], *ordered[-10:]]
        title = "Raters" + ("" if rows == ordered else f" (10 highest and lowest of {len(ordered)})")
        tables.append(table(title, ["rater", "weight of each answer"], rows))
    return shown, tables


def _size(dim: str | None) -> int | str | None:
    if dim is None or dim == "auto":
        return dim
    if not dim.isdecimal() or int(dim) < 1:
        raise ValueError(f"--dim is {dim!r}; it must be a number of at least 1, or auto (for comparisons)")
    return int(dim)


_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of glibc's malloc.h
LARGE = 2**21  # bytes from which an array has its own pages, which go back to the system when it is freed


def train(
    screen: Screen,
    interactions: Annotated[str, typer.Argument(metavar="PAIRS")],
    out: OutFolder,
    n_bytes: Annotated[int | None, typer.Option("--bytes", "-b", min=1)] = None,
    ids: Annotated[bool, typer.Option("--ids")] = False,
    levels: Annotated[int, typer.Option(min=1)] = 3,
    codes: Annotated[int, typer.Option(min=2)] = 256,
    dim: Annotated[int, typer.Option(min=1)] = 64,
    left: str | None = None,
    right: str | None = None,
    weight: str | None = None,
    min_weight: float | None = None,
    duplicates: str = "sum",
    split: str | None = None,
    timestamp: str | None = None,
    header: Header = None,
    loss: str = "auto",
    holdout: Annotated[float, typer.Option(min=0, max=0.5)] = 0.1,
    seed: Seed = 0,
) -> None:
    """Learn vectors of both sides and a compact index of the right side, together.

    Pairs held out of training measure how well the index answers, next to exact search and codes made after training.
    The folder holds the index (its index.faiss opens in plain FAISS), the left side's vectors and a report. With --ids
    it holds semantic ids of the right side, learned with the vectors, in the files of `nearkin ids`.

    Examples:

    - nearkin train pairs.csv --bytes 16 --out idx
    - nearkin train pairs.csv --ids --out ids
    - nearkin recommend idx --all --out recs.csv
    - nearkin search idx --left-id 42 -k 10

    Options:

    - interactions: A table of pairs, .csv, .jsonl, .parquet, ...: left, right[, weight][, timestamp][, split].
    + n_bytes: Bytes of a code; must divide --dim. [default: 16]
    + ids: Learn semantic ids in place of an index.
    + dim: Dimensions of the vectors.
    - loss: auto chooses all-pairs or cosine-softmax; in-batch-softmax, in-batch-hinge.
    - holdout: Share of the pairs held out, for tables without a split; 0 for none.
    """
    if ids and n_bytes is not None:
        raise ValueError(f"--bytes is {n_bytes} and --ids is given; an id has --levels codes of --codes values instead")
    give_back_large_arrays()
    steps = pipeline.run.Steps(screen.watch)
    with steps.step("read"):
        record = nk.read_interactions(
            interactions, left=left, right=right, weight=weight, timestamp=timestamp, header=header,
            min_weight=min_weight, duplicates=duplicates,
            split=None if split in pipeline.pairs.SPLITS else split,
        )  # fmt: skip
    index = nk.SemanticIds(levels, codes, random_state=seed) if ids else None
    made = pipeline.pairs.train_index(
        record, out, n_bytes=n_bytes or 16, ids=index, dim=dim, loss=loss, holdout=holdout,
        split=split, random_state=seed, steps=steps,
        about={"data": interactions, "seed": seed, "threads": screen.threads},
    )  # fmt: skip
    report = Path(out) / "report.html"
    try:
        pipeline.pages.folder_page(out).write(report)
    except OSError as error:
        text = f"{out} is complete, but its report is not written ({error.strerror or error}); write it by: nearkin "
        raise OSError(error.errno, f"{text}report {out}") from error
    left_name, right_name = pipeline.inputs.side_names_of(record)
    shown = {f"{left_name} × {right_name}, pairs": f"{record.shape[0]:,} × {record.shape[1]:,}, {made['pairs']:,}"}
    if ids:
        shown |= about_ids(made)
    else:
        shown["bytes of a code"] = (
            f"{made['bytes_per_vector']:g}, {made['compression']:.3g} times fewer than as float32"
        )
    shown["wall seconds"] = seconds_in_words(made["seconds"])
    chosen = [trial["why"] for trial in made["trials"] if "why" in trial]
    measures = ("recall@20", "ndcg@20", "recall@100", "ndcg@100")
    judged = []
    if made["quality"]:
        title = f"Held out of training: {pipeline.pairs.held_out_in_words(made['held_out'], left_name)}"
        paired = pipeline.pairs.differences_in_words(made["differences"])
        judged = [ranking_table(title, made["quality"], measures), *paired]
    asked = [f"Note: {note}" for note in (*made["notes"], *(record.source.questions if record.source else ()))]
    following = f"Report: {report}", "" if ids else f"Next: nearkin recommend {out} --all --out recs.csv"
    screen.finish(made, pairs(out, shown), *judged, *chosen, read_line(record.source), *asked, *following)


def give_back_large_arrays() -> bool:
    """Make glibc return freed arrays of 2 MiB and more to the system; False for another C library.

    glibc maps such arrays until one is freed. From then on it takes all up to that size, 32 MiB at most, from one heap,
    and keeps its holes. Training allocates and frees many tables of that size, and then held a third more memory.
    """
    try:
        return bool(ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, LARGE))
    except (AttributeError, OSError, TypeError):
        return False
