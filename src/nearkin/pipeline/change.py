"""`nearkin add`, `remove`, `update` and `check`: the rows and the files of a saved folder."""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from nearkin._storage import changing, one_version, read_config, read_manifest, replacing_folder
from nearkin._types import ArrayLike, Record
from nearkin.contracts import Callback, ignore
from nearkin.data import VectorFile
from nearkin.index.identifiers import positions
from nearkin.index.saved import read_parts
from nearkin.pipeline.encode import MANIFEST, is_whole, read_codes
from nearkin.pipeline.inputs import LEFT, ids_of
from nearkin.pipeline.pairs import move_left
from nearkin.pipeline.run import RUN, Steps, read_record, write_record


def change_rows(
    folder: str | os.PathLike,
    how: str,
    ids: Any = None,
    file: VectorFile | None = None,
    *,
    missing_ok: bool = False,
    steps: Steps | None = None,
) -> Record:
    """Load, change and save an index, with the folder locked; returns the record to print.

    how: "add" the rows of a file, with `ids` if the index has ids; "remove" the rows of ids; "update" them to the rows
    of a file; "upsert": those that the index has, and add the others. ValueError, and no change, for an unknown id. The
    evaluation of the old rows is left out. With `missing_ok`, "remove" counts unknown ids, "missing".
    """
    path, steps, missing = Path(folder), steps or Steps(), 0
    metric = read_config(path, "index")["metric"]
    if file is not None:
        file.check_finite(metric=metric)
    with ExitStack() as locked:
        with steps.step("wait"):
            locked.enter_context(changing(path))
        with steps.step("load"):
            index = nk.Index.load(path)
            before = ids_of(index)
        with steps.step(how) as callback:
            X: Any = None if file is None else file.read()
            if how in ("add", "upsert") and len(index) and (how == "upsert" or index.ids is not None):
                ids = None if ids is None else as_own(ids, index.ids)
            if how == "add":
                index.add(X, ids=ids, callback=callback)
            elif how == "upsert":
                index.upsert(X, np.asarray(ids), callback=callback)
            elif how == "update":
                index.update(as_own(ids, index.ids), X, callback=callback)
            else:
                gone = as_own(ids, index.ids)
                known = positions(index.ids, len(index), gone) >= 0
                missing = int((~known).sum())
                if missing and not missing_ok:
                    some = f"{missing:,} of {len(gone):,} ids are not in the index, the first is"
                    raise ValueError(f"{some} {gone[~known][0].item()!r}; --missing ok removes the others")
                index.remove(gone[known])
        with steps.step("save"):
            run = read_record(path, RUN)
            save_changed(path, index, before, None if run is None else run | {"vectors": len(index)})
    return {"folder": str(folder), "vectors_before": len(before), "vectors": len(index), "missing": missing} | {
        "seconds": steps.seconds
    }


def save_changed(path: Path, index: nk.Index, before: np.ndarray, run: Record | None) -> None:
    """Replace the folder of an index by its changed state, with the record `run` and the left side of pairs. `before`
    (n,) are the ids that the rows had, in the old order."""
    with replacing_folder(path) as fresh:
        index.save(fresh)
        if run is not None:
            write_record(fresh / RUN, run)
        if (path / LEFT).is_file():
            move_left(path, fresh, positions(ids_of(index), len(index), before))


def as_own(ids: ArrayLike, own: np.ndarray | None) -> np.ndarray:
    """Ids in the type of the index's ids `own`; numbers may be given as text."""
    given = np.asarray(ids)
    if given.dtype.kind == "U" and (own is None or own.dtype.kind != "U"):
        wrong = [text for text in given.tolist() if not text.lstrip("-").isdecimal()]
        if wrong:
            raise ValueError(f"id {wrong[0]!r} is no number, and the ids of this index are numbers")
        return given.astype(np.int64)
    return given.astype(str) if own is not None and own.dtype.kind == "U" else given


def check_folder(folder: str | os.PathLike, callback: Callback = ignore) -> Record:
    """Compare every file of a folder that nearkin saved with its manifest.

    Returns {"folder", "kind", "format_version", "files", "bytes", "verified", "damaged", "others"}: `damaged` has a
    line for each file that is missing or changed, `others` are files that nearkin did not write. Folders of early
    versions have no manifest: "verified" is False. FileNotFoundError or ValueError for a folder that nearkin did not
    save. `callback(files done, {"total": n})` is called after each file.
    """
    folder = Path(folder)
    if (folder / MANIFEST).is_file() and not (folder / "config.json").is_file():
        return _check_codes(folder, callback)
    return one_version(folder, lambda path: _check(path, callback))


def _check(folder: Path, callback: Callback) -> Record:
    """The record of a folder with a config.json."""
    config, damaged = {}, []
    try:
        config = read_config(folder)
    except ValueError as error:
        if not (folder / MANIFEST).is_file():
            raise
        damaged.append(str(error))
    manifest, version = read_manifest(folder), config.get("format_version")
    if manifest is None:
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        return _record(folder, config.get("kind"), version, sizes, damaged) | {"verified": False}
    found = []
    for done, name in enumerate(manifest.files, 1):
        try:
            manifest.verify(name)
        except (ValueError, OSError) as error:
            found.append(str(error))
        callback(done, {"total": len(manifest.files)})
    if manifest.kind == "index" and not found:
        try:  # the files may be whole and of two different indexes
            read_parts(folder)
        except ValueError as error:
            found.append(str(error))
    others = [] if manifest.growing else manifest.strangers()
    sizes = [entry.bytes for entry in manifest.files.values()]
    return _record(folder, manifest.kind, version, sizes, found or damaged) | {"others": others}


def _check_codes(folder: Path, callback: Callback) -> Record:
    """The record of a folder of `nearkin encode`."""
    entries = list(read_codes(folder)[1].values())
    damaged = []
    for done, entry in enumerate(entries, 1):
        if not is_whole(folder, entry):
            path = folder / entry["file"]
            how = f"has other bytes than {MANIFEST} lists" if path.is_file() else "is missing"
            damaged.append(f"{path} {how}; run `nearkin encode` again")
        callback(done, {"total": len(entries)})
    return _record(folder, "codes", 1, [entry["bytes"] for entry in entries], damaged)


def _record(folder: Path, kind: str | None, version: int | None, sizes: list[int], damaged: list[str]) -> Record:
    return {
        "folder": str(folder), "kind": kind, "format_version": version, "files": len(sizes), "bytes": sum(sizes),
        "verified": True, "damaged": damaged, "others": [],
    }  # fmt: skip
