"""A saved index into an engine, from folder to engine."""

import os

import numpy as np

import nearkin as nk
from nearkin._types import Record
from nearkin.export.target import Target
from nearkin.pipeline.steps import Steps


def export_folder(
    folder: str | os.PathLike,
    target: Target,
    *,
    queries: np.ndarray | None = None,
    k: int = 10,
    recall_target: float | None = None,
    steps: Steps | None = None,
) -> Record:
    """Load the index in `folder` and write it to `target` (see `nk.export.make_target`); returns the record.

    Raises `nk.export.RecallTooLowError`, with nothing published, where the engine answers otherwise than the index.
    """
    steps = steps or Steps()
    with steps.step("load"):
        index = nk.Index.load(folder)
    with steps.step("export") as callback:
        record = nk.export.export_index(
            index, target, queries=queries, k=k, recall_target=recall_target, callback=callback
        )
    return {"index": str(folder), **record, "seconds": steps.seconds}
