"""`nearkin add`, `remove`, `update`: rows into and out of a saved index."""

from typing import Annotated, Any

import typer

import nearkin as nk
from nearkin._fields import Fields
from nearkin.cli.options import Folder, Json, Side, Threads
from nearkin.cli.screen import Screen, read_line

Vectors = Annotated[
    str, typer.Argument(help="The vectors: a file as `nearkin compress` takes it, or a folder of vectors.")
]


def add(
    index: Folder,
    vectors: Vectors,
    ids: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="One id a row, where the index has ids.  [default: those that VECTORS holds]"
        ),
    ] = None,
    side: Side = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Add rows to an index. The folder is the old index or the new one at every moment.

    The rows are coded as the others are; nothing is learned again. The old evaluation is not kept.

    Examples:

    - nearkin add idx new.npy
    - nearkin add idx new.parquet --ids new_ids.txt
    """
    del threads  # its callback has set them
    screen = Screen(as_json)
    given = nk.pipeline.open_given(vectors, side)
    names = given.ids if ids is None else nk.pipeline.read_ids(ids, len(given.file))
    made = nk.pipeline.add_rows(index, given.file, names, steps=nk.pipeline.Steps(screen.watch))
    _finish(screen, made, given.file.about)


def remove(
    index: Folder,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of the rows to take out.", metavar="ID")] = None,
    ids_file: Annotated[str | None, typer.Option("--ids", metavar="FILE", help="A file of ids, one a row.")] = None,
    as_json: Json = False,
) -> None:
    """Take rows out of an index, by their ids. An unknown id is an error, and nothing changes.

    The folder is the old index or the new one at every moment. The old evaluation is not kept.

    Examples:

    - nearkin remove idx 17 42
    - nearkin remove idx --ids gone.txt
    """
    screen = Screen(as_json)
    if bool(ids) == (ids_file is not None):
        raise ValueError("say which rows to take out: ids, or --ids FILE")
    names: Any = ids if ids_file is None else nk.data.read_column(ids_file)
    _finish(screen, nk.pipeline.remove_rows(index, names, steps=nk.pipeline.Steps(screen.watch)))


def update(
    index: Folder,
    vectors: Vectors,
    ids: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The ids whose rows these are, one a row.  [default: those that VECTORS holds]"
        ),
    ] = None,
    side: Side = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Put new vectors in the place of those of some ids. An unknown id is an error, and nothing changes.

    The folder is the old index or the new one at every moment. The old evaluation is not kept.

    Example:

    - nearkin update idx changed.npy --ids changed_ids.txt
    """
    del threads  # its callback has set them
    screen = Screen(as_json)
    given = nk.pipeline.open_given(vectors, side)
    names = given.ids if ids is None else nk.pipeline.read_ids(ids, len(given.file))
    if names is None:
        raise ValueError("say whose vectors these are: --ids FILE, one id a row")
    made = nk.pipeline.update_rows(index, given.file, names, steps=nk.pipeline.Steps(screen.watch))
    _finish(screen, made, given.file.about)


def _finish(screen: Screen, made: Fields, about: str = "") -> None:
    before, now = made["vectors_before"], made["vectors"]
    screen.finish(made, f"{made['folder']}: {before:,} vectors before, {now:,} now", read_line(about))
