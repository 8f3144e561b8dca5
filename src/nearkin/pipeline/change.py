"""Add, remove and update rows of a saved index with all its files: the folder is always the old one or the new one.

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
from nearkin.pipeline.inputs import LEFT, ids_of
from nearkin.pipeline.run import RUN, Steps, read_record, write_record
from nearkin.pipeline.train import move_left


def add_rows(
    folder: str | os.PathLike, file: VectorFile, ids: np.ndarray | None = None, *, steps: Steps | None = None
) -> Record:
    """Add the rows of a file, with `ids` if the index has ids; returns the record to print."""
    file.check_finite(metric=read_config(folder, "index")["metric"])
    return _changed(folder, "add", lambda index, callback: index.add(file.read(), ids=ids, callback=callback), steps)


def upsert_rows(folder: str | os.PathLike, file: VectorFile, ids: ArrayLike, *, steps: Steps | None = None) -> Record:
    """Replace the rows whose ids the index has by those of a file, and add the others."""
    file.check_finite(metric=read_config(folder, "index")["metric"])

    def upsert(index: nk.Index, callback: Callback) -> None:
        index.upsert(file.read(), as_own(ids, index.ids) if len(index) else np.asarray(ids), callback=callback)

    return _changed(folder, "upsert", upsert, steps)


def remove_rows(folder: str | os.PathLike, ids: ArrayLike, *, steps: Steps | None = None) -> Record:
    """Remove the rows of ids, which may be text; ValueError, and no change, for an unknown one."""
    return _changed(folder, "remove", lambda index, callback: index.remove(as_own(ids, index.ids)), steps)


def update_rows(folder: str | os.PathLike, file: VectorFile, ids: ArrayLike, *, steps: Steps | None = None) -> Record:
    """Replace the rows of ids by those of a file; ValueError, and no change, for an unknown id."""
    file.check_finite(metric=read_config(folder, "index")["metric"])

    def update(index: nk.Index, callback: Callback) -> None:
        index.update(as_own(ids, index.ids), file.read(), callback=callback)

    return _changed(folder, "update", update, steps)


def as_own(ids: ArrayLike, own: np.ndarray | None) -> np.ndarray:
    """Ids in the type of the index's ids `own`; numbers may be given as text."""
    given = np.asarray(ids)
    if given.dtype.kind == "U" and (own is None or own.dtype.kind != "U"):
        wrong = [text for text in given.tolist() if not text.lstrip("-").isdecimal()]
        if wrong:
            raise ValueError(f"id {wrong[0]!r} is no number, and the ids of this index are numbers")
        return given.astype(np.int64)
    return given.astype(str) if own is not None and own.dtype.kind == "U" else given


def _changed(
    folder: str | os.PathLike, step: str, change: Callable[[nk.Index, Callback], object], steps: Steps | None
) -> Record:
    """Load, change and save, with the folder locked. The evaluation of the old rows is left out."""
    path, steps = Path(folder), steps or Steps()
    read_config(path, "index")
    with ExitStack() as locked:
        with steps.step("wait"):
            locked.enter_context(changing(path))
        with steps.step("load"):
            index = nk.Index.load(path)
            before = ids_of(index)
        with steps.step(step) as callback:
            change(index, callback)
        with steps.step("save"):
            _save(index, path, before)
    return {"folder": str(folder), "vectors_before": len(before), "vectors": len(index), "seconds": steps.seconds}


def _save(index: nk.Index, path: Path, before: np.ndarray) -> None:
    """Save the index with its run.json and, if there is one, its left side; `before` are the ids of the old rows."""
    run = read_record(path, RUN)
    with replacing_folder(path) as fresh:
        index.save(fresh)
        if run is not None:
            write_record(fresh / RUN, run | {"vectors": len(index)})
        if (path / LEFT).is_file():
            move_left(path, fresh, positions(ids_of(index), len(index), before))
