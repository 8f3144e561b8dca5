"""Rows into and out of a saved index; what lies beside it goes along, and the folder is the old one or the new.

Several processes may change one folder: each waits for the one before, so that no change is lost.
"""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import nearkin as nk
from nearkin._storage import changing, read_config, replacing_folder
from nearkin._types import ArrayLike, Record
from nearkin.contracts import Callback
from nearkin.data import VectorFile
from nearkin.index.identifiers import positions
from nearkin.pipeline.folder import RUN, read_record, write_record
from nearkin.pipeline.left_side import LEFT, move_seen
from nearkin.pipeline.steps import Steps


def add_rows(
    folder: str | os.PathLike, file: VectorFile, ids: np.ndarray | None = None, *, steps: Steps | None = None
) -> Record:
    """Add the rows of a file, under `ids` where the index has names of its own; returns the record to print."""

    def change(index: nk.Index, callback: Callback) -> None:
        index.add(file.read(), ids=ids, callback=callback)

    file.check_finite(metric=read_config(folder, "index")["metric"])
    return _changed(folder, change, steps or Steps(), "add")


def remove_rows(folder: str | os.PathLike, ids: ArrayLike, *, steps: Steps | None = None) -> Record:
    """Take out the rows of ids, given as they are or as text; ValueError, and nothing changes, for an unknown one."""

    def change(index: nk.Index, callback: Callback) -> None:
        index.remove(as_own(ids, index.ids))

    return _changed(folder, change, steps or Steps(), "remove")


def update_rows(folder: str | os.PathLike, file: VectorFile, ids: ArrayLike, *, steps: Steps | None = None) -> Record:
    """Put the rows of a file in the place of those of ids; ValueError, and nothing changes, for an unknown one."""

    def change(index: nk.Index, callback: Callback) -> None:
        index.update(as_own(ids, index.ids), file.read(), callback=callback)

    file.check_finite(metric=read_config(folder, "index")["metric"])
    return _changed(folder, change, steps or Steps(), "update")


def as_own(ids: ArrayLike, own: np.ndarray | None) -> np.ndarray:
    """Ids as the type that the index's ids have: numbers given as text are read."""
    given = np.asarray(ids)
    if given.dtype.kind == "U" and (own is None or own.dtype.kind != "U"):
        wrong = [text for text in given.tolist() if not text.lstrip("-").isdecimal()]
        if wrong:
            raise ValueError(f"id {wrong[0]!r} is no number, and the ids of this index are numbers")
        return given.astype(np.int64)
    return given.astype(str) if own is not None and own.dtype.kind == "U" else given


def _changed(
    folder: str | os.PathLike, change: Callable[[nk.Index, Callback], None], steps: Steps, step: str
) -> Record:
    """Load, change and save, alone; an evaluation of the old rows is not kept."""
    path = Path(folder)
    read_config(path, "index")
    with ExitStack() as alone:
        with steps.step("wait"):
            alone.enter_context(changing(path))
        before, after = _replaced(path, change, steps, step)
    return {"folder": str(folder), "vectors_before": before, "vectors": after, "seconds": steps.seconds}


def _replaced(path: Path, change: Callable[[nk.Index, Callback], None], steps: Steps, step: str) -> tuple[int, int]:
    """Numbers of rows before and after."""
    with steps.step("load"):
        index = nk.Index.load(path)
        before = np.arange(len(index)) if index.ids is None else index.ids
    with steps.step(step) as callback:
        change(index, callback)
    with steps.step("save"):
        run = read_record(path, RUN)
        after = np.arange(len(index)) if index.ids is None else index.ids
        with replacing_folder(path) as fresh:
            index.save(fresh)
            if run is not None:
                write_record(fresh / RUN, run | {"vectors": len(index)})
            if (path / LEFT).is_file():
                move_seen(path / LEFT, fresh / LEFT, positions(after, len(after), before))
    return len(before), len(index)
