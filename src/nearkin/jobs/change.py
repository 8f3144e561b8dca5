"""What `nearkin add`, `remove` and `update` share: the rows of a saved index are changed, with its folder locked."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import numpy as np

import nearkin as nk
from nearkin._check import check_output
from nearkin._fields import StrPath
from nearkin._storage import changing, read_config, replacing_folder
from nearkin._types import Record
from nearkin.data import VectorFile
from nearkin.index.identifiers import RowIds
from nearkin.jobs.inputs import LEFT, Unknown, as_own, check_typed, find_ids, places_of
from nearkin.jobs.pairs import move_left
from nearkin.jobs.run import RUN, Steps, read_record, write_record

_OF_VECTORS = ("distortion", "variance_kept", "recall_interval", "judged_by")  # and recall: of the vectors of a run


def change_rows(
    folder: StrPath, how: str, ids: Any = None, file: VectorFile | None = None, *, unknown: str = "raise"
) -> Record:
    """Load, change and save an index, with the folder locked; returns the record to print.

    how: "add" the rows of a file, with `ids` if the index has ids; "remove" the vectors of ids; "update" them to the
    rows of a file; "upsert": those that the index has, and add the others. ValueError, and no change, for an unknown
    id. The evaluation of the old vectors is left out. With `unknown` "drop", "remove" counts unknown ids, "missing".
    """
    unnamed = ids is None
    if unnamed and how in ("update", "upsert"):
        raise ValueError("say whose vectors these are: ids=FILE, one id a line")
    path, steps, missing = check_output(folder), Steps(), 0
    metric = read_config(path, "index")["metric"]
    if file is not None:
        file.check_finite(metric=metric)
    with ExitStack() as locked:
        with steps.step("wait"):
            locked.enter_context(changing(path))
        with steps.step("load"):
            index = nk.Index.load(path)
            before = index.row_ids
        with steps.step(how) as callback:
            X = cast(VectorFile, file)  # None to remove
            if how in ("add", "upsert") and len(index) and (how == "upsert" or index.ids is not None):
                ids = None if ids is None else as_own(ids, index.ids)
            if how == "add":
                index.add(X, ids=ids, callback=callback)
            elif how == "upsert":
                index.upsert(X, ids, callback=callback)
            elif how == "update":
                index.update(as_own(ids, index.ids), X, callback=callback)
            else:
                check_typed(ids, before)
                rule = Unknown.of(unknown)
                places = places_of(ids, before) if rule.drop else find_ids(ids, before, "id", rule)
                missing = int((places < 0).sum())
                index.remove(before[places[places >= 0]])
        with steps.step("save"):
            run = read_record(path, RUN)
            save_changed(path, index, before, None if run is None else run | {"vectors": len(index)})
    record = {"folder": str(folder), "vectors_before": len(before), "vectors": len(index), "missing": missing}
    return record | {"seconds": steps.seconds}


def save_changed(path: Path, index: nk.Index, before: np.ndarray, run: Record | None) -> None:
    """Replace the folder of an index by its changed state, with the left side of pairs and the record `run` less its
    figures of the old vectors.

    `before` (n,) are the ids that the vectors had, in the old order.
    """
    with replacing_folder(path, overwrite=True) as fresh:
        index.save(fresh)
        if run is not None:
            run = {name: value for name, value in run.items() if name not in _OF_VECTORS and "recall@" not in name}
            write_record(fresh / RUN, run | {"changed": True})
        if (path / LEFT).is_file():
            move_left(path, fresh, RowIds(index.ids, len(index)).positions(before))
