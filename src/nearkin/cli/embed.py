"""`nearkin embed` and `nearkin train`: vectors from pairs or comparisons, and an index learned with them."""

import ctypes
from typing import Annotated

import typer
from rich.table import Table

import nearkin as nk
from nearkin import jobs
from nearkin._fields import Fields, Record, command, quoted
from nearkin.cli.export import about_ids
from nearkin.cli.options import Column, File, MinWeight, Missing, OutFolder, Overwrite, Seed, Split
from nearkin.cli.screen import Screen, pairs, ranking_table, read_line, seconds_in_words, table


def embed(
    screen: Screen,
    signals: Annotated[str, typer.Argument(metavar="SIGNALS")],
    out: OutFolder,
    left: Column = None,
    right: Column = None,
    timestamp: Column = None,
    min_weight: MinWeight = None,
    split: Split = None,
    right_features: File = None,
    start: Annotated[str | None, typer.Option(metavar="DIR")] = None,
    form: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    scale: Annotated[str | None, typer.Option(metavar="FAR:NEAR")] = None,
    missing: Missing = None,
    dim: Annotated[str | None, typer.Option(metavar="INT|auto")] = None,
    loss: str | None = None,
    overwrite: Overwrite = False,
    seed: Seed = 0,
) -> None:
    """Train vectors on pairs or comparisons.

    Pairs (who took what) give vectors for both sides; comparisons (is A more like B or like C?) give a map of the
    objects. A share of the signals is held out first, to measure how good the vectors are.

    The names of columns, or an option for one of both, decide which the table holds: docs/reading.md has the names.
    Other names of weights, objects and answers, features of the left side, and weights of raters are arguments in
    Python.

    Examples:

    - nearkin embed pairs.csv --left user --right item --dim 64 --out emb
    - nearkin embed pairs.csv --right-features items.csv --out emb
    - nearkin embed today.csv --start emb --out emb
    - nearkin embed answers.csv --dim 2 --loss t-ste --out map

    Options:

    - signals: A table, .csv, .tsv, .jsonl, .parquet, .feather or .npz: pairs (user, item[, weight][, timestamp]), or
      comparisons (i, j, k): i is more like j than like k.
    - right_features: Pairs: a table of features of the right side with a column of ids (id, item, ...); its ids may
      lack pairs.
    - form: triplet, odd-one-out, ranking or rated: the form of comparisons with an answer (triplet: the nearer of two).
    - scale: Comparisons, rated: the rating that means farthest, and the one that means nearest: 1:7 or 7:1.
    + dim: Dimensions of the vectors; auto, for comparisons, chooses by cross-validation. [default: 64 for pairs, 2
      for comparisons]
    - loss: The loss: for pairs auto (by held-out pairs), all-pairs, cosine-softmax, in-batch-softmax; for comparisons
      ste, t-ste, gnmds, ckl, soe. [default: auto, ste]
    - start: Pairs: train this folder's model further with SIGNALS as new pairs, also into the same folder.
    """
    given: Record = {
        "left": left, "right": right, "timestamp": timestamp, "min_weight": min_weight, "split": split,
        "right_features": right_features, "start": start, "form": form, "scale": _scale(scale), "missing": missing,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    size, kind = _size(dim), _kind_of(signals, given, loss)
    if kind == "pairs" and size == "auto":
        raise ValueError("--dim auto is for comparisons; give a number for pairs, for example --dim 64")
    embed_them = jobs.pairs.embed_pairs if kind == "pairs" else jobs.embed_comparisons.embed_comparisons
    given |= {"out": out, "dim": size, "loss": loss, "seed": seed}
    with screen.watch("embed") as callback:
        record = embed_them(signals, overwrite=overwrite, callback=callback, **given)
    of_pairs, record = kind == "pairs", {"signals": kind, **record}
    notes = [read_line(record.get("understood")), *(f"Note: {note}" for note in record.get("notes", []))]
    shown, judged = (_pairs_for_people if of_pairs else _comparisons_for_people)(record)
    following = command("recommend", out, all=True, out="recs.csv") if of_pairs else f"open {quoted(f'{out}/map.png')}"
    screen.finish(record, pairs(out, shown), *judged, *notes, f"Next: {following}, or {command('report', out)}")


def _scale(text: str | None) -> tuple[float, float] | None:
    """The two ends of a scale, FAR:NEAR."""
    if text is None:
        return None
    try:
        far, near = map(float, text.split(":"))
    except ValueError:
        raise ValueError(f"--scale is {text!r}; it must be two numbers, FAR:NEAR, such as 1:7") from None
    return far, near


_OWN = {
    "pairs": ("left", "right", "timestamp", "min_weight", "split", "right_features", "start"),
    "comparisons": ("form", "scale"),
}


def _kind_of(signals: str, given: Fields, loss: str | None) -> str:
    """Whether the table holds pairs or comparisons: by the options, else by the loss, else by its columns."""
    options = {kind: f"--{name.replace('_', '-')}" for kind, names in _OWN.items() for name in names if name in given}
    if loss is not None:
        options.setdefault("comparisons" if _is_of_comparisons(loss) else "pairs", f"--loss {loss}")
    if len(options) == 2:
        raise ValueError(
            f"{options['pairs']} is for pairs, and {options['comparisons']} for comparisons; give one of them"
        )
    return next(iter(options), None) or nk.data.kind_of(signals, **given)


def _is_of_comparisons(loss: str) -> bool:
    from nearkin.embedding.ordinal.losses import LOSSES  # loads numba

    if loss in LOSSES:
        return True
    from nearkin.embedding.two_tower.fitting import LOSSES as OF_PAIRS  # loads torch

    if loss != "auto" and loss not in OF_PAIRS:
        known = f"auto, {', '.join(OF_PAIRS)} for pairs, or {', '.join(LOSSES)} for comparisons"
        raise ValueError(f"--loss is {loss!r}; it must be one of {known}")
    return False


def _pairs_for_people(record: Record) -> tuple[Record, list[Table | str]]:
    """Facts, the table of measures, and differences between its rows."""
    names, quality = record["words"], record["quality"]
    shown = {names["left"]: record["left"], names["right"]: record["right"]}
    for name in ("pairs", "learned_from", "dim", "loss", "solver", "omega", "regularization", "steps"):
        shown[name] = record[name]
    shown["wall seconds"] = record["seconds"]
    if not quality:
        return shown, []
    judged = jobs.pairs.held_out_in_words(record["held_out"], names["left"])
    made = ranking_table(f"Held out of training, split {record['split']}: {judged}", quality)
    return shown, [made, *jobs.pairs.differences_in_words(record["differences"])]


def _comparisons_for_people(record: Record) -> tuple[Record, list[Table | str]]:
    """Facts, and the error by dimension where it was chosen."""
    shown = {name: value for name, value in record.items() if not isinstance(value, dict | list) and value is not None}
    shown.pop("understood", None)
    tables: list[Table | str] = []
    curve = record.get("dimension_curve")
    if curve is not None:
        columns = ["dimension", "error", "standard_error"]
        rows = list(zip(*(curve[name] for name in columns), strict=True))
        chance = f"coin flips have {curve['chance']:.3f} or more 19 times of 20"
        tables.append(table(f"Error of cross-validation; {chance}", columns, rows))
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
    levels: Annotated[int | None, typer.Option(min=1)] = None,
    codes: Annotated[int | None, typer.Option(min=2)] = None,
    dim: Annotated[int, typer.Option(min=1)] = 64,
    left: Column = None,
    right: Column = None,
    weight: Column = None,
    timestamp: Column = None,
    min_weight: MinWeight = None,
    split: Split = None,
    missing: Missing = None,
    loss: str | None = None,
    overwrite: Overwrite = False,
    seed: Seed = 0,
) -> None:
    """Train vectors of users and items and a compact index of the items, together.

    Pairs held out of training measure the recall of the index, next to exact search and codes made after training.
    The folder holds the index (its index.faiss opens in plain FAISS), the users' vectors and a report. With
    --levels or --codes it holds semantic ids of the items, trained with the vectors, in files as `nearkin ids`
    writes them.

    Examples:

    - nearkin train pairs.csv --bytes 16 --out idx
    - nearkin train pairs.csv --levels 3 --out ids
    - nearkin recommend idx --all --out recs.csv
    - nearkin search idx --left-id 42 -k 10

    Options:

    - interactions: A table of pairs, .csv, .jsonl, .parquet, ...: left, right[, weight][, timestamp][, split].
    + n_bytes: Bytes of a code; must divide --dim. [default: 16]
    + levels: Codes of a semantic id: train ids in place of an index. [default with --codes: 3]
    + codes: Values of each code of a semantic id, a power of two. [default with --levels: 256]
    + dim: Dimensions of the vectors.
    - loss: The loss: auto (all-pairs or cosine-softmax, by held-out pairs), all-pairs, cosine-softmax,
      in-batch-softmax. [default: auto]
    """
    ids = levels is not None or codes is not None
    if ids and n_bytes is not None:
        given = "--codes" if levels is None else "--levels"
        raise ValueError(f"--bytes is {n_bytes}, of an index, and {given} makes semantic ids; give one of them")
    give_back_large_arrays()
    steps = jobs.run.Steps(screen.watch)
    with steps.step("read"):
        record = nk.read_interactions(
            interactions, left=left, right=right, weight=weight, timestamp=timestamp, min_weight=min_weight,
            split=None if split in jobs.pairs.SPLITS else split, missing=missing or "raise",
        )  # fmt: skip
    index = nk.SemanticIds(levels or 3, codes or 256, random_state=seed) if ids else None
    made = jobs.pairs.train_index(
        record, out, n_bytes=n_bytes or 16, ids=index, dim=dim, loss=loss or "auto", split=split,
        random_state=seed, steps=steps, overwrite=overwrite,
        about={"data": interactions, "seed": seed, "threads": screen.threads},
    )  # fmt: skip
    try:
        report = jobs.pages.write_report(out)
    except OSError as error:
        text = f"{out} is complete, but its report is not written ({error.strerror or error}); write it by: "
        raise OSError(error.errno, text + command("report", out)) from error
    left_name, right_name = jobs.inputs.side_names_of(record)
    shown = {f"{left_name} × {right_name}, pairs": f"{record.shape[0]:,} × {record.shape[1]:,}, {made['pairs']:,}"}
    if ids:
        shown |= about_ids(made)
    else:
        shown["bytes of a code"] = (
            f"{made['bytes_per_vector']:g}, {jobs.run.times(made['compression'], 'fewer', 'more')} than as float32"
        )
    shown["wall seconds"] = seconds_in_words(made["seconds"])
    chosen = [trial["why"] for trial in made["trials"] if "why" in trial]
    measures = ("recall@20", "ndcg@20", "recall@100", "ndcg@100")
    judged = []
    if made["quality"]:
        title = f"Held out of training: {jobs.pairs.held_out_in_words(made['held_out'], left_name)}"
        paired = jobs.pairs.differences_in_words(made["differences"])
        judged = [ranking_table(title, made["quality"], measures), *paired]
    asked = [f"Note: {note}" for note in (*made["notes"], *(record.source.questions if record.source else ()))]
    following = f"Report: {report}", "" if ids else f"Next: {command('recommend', out, all=True, out='recs.csv')}"
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
