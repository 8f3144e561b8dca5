"""`nearkin ids` and `nearkin bridge`: ids for generative retrieval, and a map between encoders, from files."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from nearkin._storage import check_inputs, check_target, replacing_folder
from nearkin._types import Record, Seed
from nearkin.data import VectorFile
from nearkin.index.identifiers import check_ids, join_ids
from nearkin.pipeline.outputs import write_vectors
from nearkin.pipeline.run import Steps

IDS = "ids.jsonl"  # next to the arrays: a line for each item
_MOST_LINES = 65_536  # turned to text at once


def make_ids(
    file: VectorFile,
    out: str | os.PathLike[str],
    items: np.ndarray | None = None,
    *,
    levels: int = 3,
    codes: int = 256,
    balance: float = 0.0,
    random_state: Seed = None,
    steps: Steps | None = None,
) -> Record:
    """Give each row of a file its semantic id and save them in the folder `out`, with ids.jsonl; returns the record.

    `items` (n,) are the rows' names, row numbers by default. ValueError before any work for names that repeat and for a
    folder that cannot be replaced.
    """
    steps = steps or Steps()
    names = np.arange(len(file)) if items is None else join_ids(np.empty(0, np.int64), check_ids(items, len(file)))
    check_target(out)
    check_inputs(out, [file.name])
    with steps.step("read"):
        X = file.read()
    with steps.step("learn"):
        made = nk.SemanticIds(levels, codes, balance, random_state).fit(X)
    with steps.step("write"), replacing_folder(out) as fresh:
        made.save(fresh)
        with (fresh / IDS).open("w", encoding="utf-8") as stream:
            stream.writelines(_lines(made, names))
    before, after = made.distortion_.tolist()
    return {
        "data": file.name, "out": str(out), "items": len(names), "levels": levels, "codes": codes, "balance": balance,
        "shared_before": made.shared_, "used": [len(np.unique(column)) for column in made.ids_.T],
        "distortion_added": after / before - 1 if before else 0.0, "seconds": steps.seconds,
    }  # fmt: skip


def _lines(made: nk.SemanticIds, names: np.ndarray) -> Iterator[str]:
    for start in range(0, len(names), _MOST_LINES):
        ids = made.ids_[start : start + _MOST_LINES]
        for name, row, tokens in zip(names[start:].tolist(), ids.tolist(), made.tokens(ids), strict=False):
            yield json.dumps({"item": name, "ids": row, "tokens": tokens}, ensure_ascii=False) + "\n"


def make_bridge(
    old: VectorFile,
    new: VectorFile,
    out: str | os.PathLike[str],
    *,
    metric: str = "cosine",
    random_state: int | None = None,
    steps: Steps | None = None,
) -> Record:
    """Learn the map from `new` to `old`, whose rows embed the same things, and save it in the folder `out`."""
    steps = steps or Steps()
    check_target(out)
    check_inputs(out, [old.name, new.name])
    with steps.step("read"):
        pairs = old.read(), new.read()
    with steps.step("learn"):
        made = nk.Bridge(metric=metric, random_state=random_state).fit(*pairs)
    made.save(out)
    return {
        "old": old.name, "new": new.name, "out": str(out), "pairs": len(old), "metric": metric, "chosen": made.kind_,
        "kept": made.scores_, "seconds": steps.seconds,
    }  # fmt: skip


def map_vectors(
    file: VectorFile, folder: str | os.PathLike[str], out: str | os.PathLike[str], *, steps: Steps | None = None
) -> Record:
    """Map the rows of a file by a saved bridge and write them to `out` (.npy); returns the record."""
    steps, bridge = steps or Steps(), nk.Bridge.load(folder)
    if Path(out).suffix.lower() != ".npy":
        raise ValueError(f"--out is {str(out)!r}; mapped vectors are written as .npy: give a name with that ending")
    file.check_finite()
    shape = len(file), len(bridge.offset_)
    with steps.step("map") as callback:
        write_vectors(out, map(bridge.transform, file.chunks()), shape, "bridge", callback)
    record: dict[str, Any] = {"data": file.name, "out": str(out), "bridge": str(folder), "vectors": len(file)}
    return record | {"dimensions": shape[1], "seconds": steps.seconds}
