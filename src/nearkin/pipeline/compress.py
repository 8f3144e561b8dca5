"""A file of vectors to an index of codes, a chunk at a time.

Beside the codes (and ids) memory holds the training sample, a few times over while the quantizer learns, and then a few
chunks of 8 MB: nothing else grows with the length of the file. Exact vectors, where kept, go from file to file.
"""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

import nearkin as nk
from nearkin import metrics
from nearkin._storage import check_target
from nearkin.data import VectorFile
from nearkin.index.identifiers import check_ids, joined
from nearkin.index.rescoring import normalised
from nearkin.pipeline.folder import save_index
from nearkin.pipeline.steps import Steps

TRAIN_ROWS = 65_536  # 256 rows for each of 256 centroids, FAISS's own limit
_ROWS_PER_CELL = 64  # coarse cells need rows too: FAISS warns below 39
JUDGED_ROWS = 10_000


def compress_file(
    file: VectorFile,
    quantizer: Any,
    out: str | os.PathLike,
    *,
    train: VectorFile | None = None,
    train_rows: int | None = None,
    metric: str = "l2",
    ids: np.ndarray | None = None,
    keep_vectors: bool = False,
    random_state: Any = None,
    steps: Steps | None = None,
    about: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Fit `quantizer` on a sample of `train` (default: of `file`), encode all rows of `file`, save the index to `out`.

    Returns the record that is saved beside it as run.json: sizes, distortion (on up to 10,000 random rows of `file`),
    history of the training, seconds of every step, and `about`. `train_rows` is by default 65,536, and at least 64 for
    each coarse cell. Raises ValueError before any work if widths differ, `ids` has another length or repeats itself,
    a row holds NaN or infinity, or `out` is no place for an index.
    """
    steps = steps or Steps()
    check_target(out)
    source = file if train is None else train
    if source.shape[1] != file.shape[1]:
        raise ValueError(
            f"{source.name} has {source.shape[1]} columns and {file.name} {file.shape[1]}; they must agree"
        )
    if ids is not None:
        ids = joined(np.empty(0, np.int64), check_ids(ids, len(file)))
    with steps.step("check") as callback:
        file.check_finite(callback)
        if train is not None:
            train.check_finite(callback)
    rows = train_rows or max(TRAIN_ROWS, _ROWS_PER_CELL * (getattr(quantizer, "coarse", 0) or 0))
    with steps.step("sample"):
        sample = source.sample(rows, random_state)
        sample = normalised(sample) if metric == "cosine" else sample
    with steps.step("train") as callback:
        quantizer.fit(sample, callback=callback)
    index = nk.Index.empty(file.shape[1], quantizer, metric)
    with steps.step("encode") as callback:
        for chunk in file.chunks():
            index.add(chunk)
            callback(len(index), {"total": len(file)})
    index.ids = ids
    distortion = None
    if hasattr(quantizer, "distortion"):  # bits have no reconstruction
        with steps.step("judge"):
            judged = file.sample(JUDGED_ROWS, random_state)
            distortion = quantizer.distortion(normalised(judged) if metric == "cosine" else judged)
    record = {
        "data": file.name,
        "vectors": len(file),
        "dimensions": file.shape[1],
        "metric": metric,
        "trained_on": len(sample),
        "bytes_per_vector": index.bytes_per_vector,
        "compression": metrics.compression_ratio(file.shape[1], index.bytes_per_vector),
        "distortion": distortion,
        **(about or {}),
    }
    with steps.step("save") as callback:
        run = record | {"seconds": steps.seconds, "history": getattr(quantizer, "history_", [])}
        save_index(index, out, run, file if keep_vectors else None, callback)
    return record | {"seconds": steps.seconds}
