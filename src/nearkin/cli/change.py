"""`nearkin add`, `remove`, `update`, `watch`, `refresh`, `check`: the rows, codes and files of a saved index."""

from typing import Annotated, Any

import typer

import nearkin as nk
from nearkin import jobs
from nearkin._fields import Fields, command, counted
from nearkin.cli.options import File, Index, Neighbours, Seed, Unknown, Vectors
from nearkin.cli.screen import NEGATIVE, Screen, pairs, read_line, table


def add(
    screen: Screen,
    index: Index,
    vectors: Vectors,
    ids: File = None,
    upsert: Annotated[bool, typer.Option("--upsert")] = False,
) -> None:
    """Add vectors to an index. The folder is the old index or the new one at every moment.

    The vectors are encoded as the others were; nothing is trained again. The old evaluation is removed.

    Examples:

    - nearkin add idx new.npy
    - nearkin add idx new.parquet --ids new_ids.txt
    - nearkin add idx today.npy --ids today_ids.txt --upsert

    Options:

    + upsert: Replace the vectors whose ids the index has, add the others.
    """
    _change(screen, index, "upsert" if upsert else "add", vectors, ids)


def remove(
    screen: Screen,
    index: Index,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID")] = None,
    ids_file: Annotated[str | None, typer.Option("--ids", metavar="FILE")] = None,
    unknown: Unknown = "raise",
) -> None:
    """Remove vectors from an index, by their ids. An unknown id is an error, and nothing changes; see --unknown.

    The folder is the old index or the new one at every moment. The old evaluation is removed.

    Examples:

    - nearkin remove idx 17 42
    - nearkin remove idx --ids gone.txt --unknown drop

    Options:

    + ids: Ids of the vectors to remove.
    + ids_file: Ids, one a line: those to remove (.npy, .txt, .csv, .parquet; file.csv:column).
    """
    if bool(ids) == (ids_file is not None):
        raise ValueError("say which vectors to remove: ids, or --ids FILE")
    names: Any = ids if ids_file is None else nk.data.read_column(ids_file)
    steps = jobs.run.Steps(screen.watch)
    _finish(screen, jobs.change.change_rows(index, "remove", names, unknown=unknown, steps=steps))


def update(screen: Screen, index: Index, vectors: Vectors, ids: File = None) -> None:
    """Replace the vectors of some ids by new ones. An unknown id is an error, and nothing changes.

    The folder is the old index or the new one at every moment. The old evaluation is removed.

    Example:

    - nearkin update idx changed.npy --ids changed_ids.txt
    """
    _change(screen, index, "update", vectors, ids)


def _change(screen: Screen, index: str, how: str, vectors: str, ids: str | None) -> None:
    """Bring the rows of a file into an index."""
    given = jobs.inputs.open_given(vectors, ids=ids)
    if given.ids is None and how != "add":
        raise ValueError("say whose vectors these are: --ids FILE, one id a line")
    steps = jobs.run.Steps(screen.watch)
    _finish(screen, jobs.change.change_rows(index, how, given.ids, given.file, steps=steps), given.about)


def _finish(screen: Screen, made: Fields, about: str = "") -> None:
    before, now = made["vectors_before"], made["vectors"]
    lacked = f"; not in it: {counted(made['missing'], 'id')}" if made["missing"] else ""
    screen.finish(made, f"{made['folder']}: {counted(before, 'vector')} before, {now:,} now{lacked}", read_line(about))


_CODES = {"codes of the index": "now", "trained again": "again"}


def watch(screen: Screen, index: Index, vectors: Vectors, k: Neighbours = 10, seed: Seed = 0) -> None:
    """Test whether training again, as `nearkin refresh` does, would raise the recall for new vectors.

    A second quantizer is trained on half of the new vectors and those of the index; the other half measures the recall
    of both. It is a drift if the new recall is higher, by half a point or more with 97.5 % confidence. The index is not
    changed. Give vectors that it does not hold. The exit code is 1 for a drift.

    Examples:

    - nearkin watch idx today.npy
    - nearkin watch idx today.parquet -k 100 --json
    """
    file = jobs.inputs.open_file(vectors)
    found = jobs.change.watch(index, file, k=k, random_state=seed, steps=jobs.run.Steps(screen.watch))
    title = "recall@{k} without rescoring of {queries:,} new vectors among {rows:,} others".format(**found)
    ends = ("mean", "low", "high")
    rows = [[name, *(found[at][end] for end in ends)] for name, at in _CODES.items()]
    mean, low, high = (f"{100 * found['gain'][end]:+.1f}" for end in ends)
    word, advice = "No drift found", ""
    if found["drift"]:
        word, advice = "Drift", f"Next: {command('refresh', index, vectors)}"
    sentence = f"{word}: training again changes the recall of new vectors by {mean} points (95 %: {low} to {high})"
    screen.finish(found, table(title, ["codes", "mean", "at least", "at most"], rows), sentence, advice)
    if found["drift"]:
        raise typer.Exit(NEGATIVE)


def refresh(screen: Screen, index: Index, vectors: Vectors, seed: Seed = 0) -> None:
    """Train the quantizer of an index again, on its vectors and new ones, and encode its vectors again.

    The folder is the old index or the new one at every moment. The new vectors are not added: `nearkin add` does that.
    Without kept vectors, those of the index are decoded, and the error of the old codes remains. The old evaluation is
    removed.

    Example:

    - nearkin refresh idx today.npy
    """
    file = jobs.inputs.open_file(vectors)
    made = jobs.change.refresh(index, file, random_state=seed, steps=jobs.run.Steps(screen.watch))
    source = "kept vectors" if made["from_kept_vectors"] else "their old codes, whose error remains"
    done = f"{index}: {counted(made['vectors'], 'vector')} encoded again, from {source}"
    screen.finish(made, done, f"Next: {command('add', index, vectors)}")


def check(screen: Screen, folder: Annotated[str, typer.Argument(metavar="FOLDER")]) -> None:
    """Print the kind of a saved folder, and whether it is complete and unchanged.

    Every file is compared with the size and the checksums in the folder's manifest.json. The exit code is 1 for a
    damaged or missing file. Of an index it also prints what FAISS alone does with index.faiss: how it compares vectors,
    and the share of this index's ten results that it finds, for up to 100 of its vectors; and the recall of a search
    next to that of its codes, each of which is compared.

    Example:

    - nearkin check idx

    Options:

    + folder: A folder that nearkin saved: of any kind.
    """
    with jobs.run.Steps(screen.watch).step("check") as callback:
        found = jobs.change.check_folder(folder, callback)
    shown = {name: found[name] for name in ("kind", "format_version", "files", "bytes")}
    shown["state"] = f"damaged, {counted(len(found['damaged']), 'file')}" if found["damaged"] else "whole"
    if offered := found.get("plain_faiss"):
        asked = f"for {counted(offered['queries'], 'vector')} of it"
        same = "" if offered["same"] is None else f", {offered['same']:.1%} of the same {offered['k']} results {asked}"
        shown["plain FAISS"] = f"{offered['codec']}, compares {offered['compares']}{same}"
    if codes := found.get("codes"):
        each = zip(codes["k"], codes["search"], codes["codes"], strict=True)
        recalls = ", ".join(f"@{k} {search:.4f} ({alone:.4f})" for k, search, alone in each)
        shown["recall (of all codes)"] = f"{recalls}, of the nearest {codes['of']}, queries between two vectors"
    if found["others"]:
        shown["not nearkin's"] = ", ".join(found["others"])
    screen.finish(found, pairs(folder, shown))
    for line in found["damaged"]:
        screen.say(f"nearkin: {line}")
    if found["damaged"]:
        raise typer.Exit(NEGATIVE)
