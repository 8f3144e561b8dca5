"""A file of vectors to an index of codes, a chunk at a time.

Beside the codes (and, where kept, the exact vectors' file) memory holds the training sample, a few times over while the
quantizer learns, and two chunks of 32 MB: nothing grows with the length of the file.
"""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

import nearkin as nk
from nearkin import metrics
from nearkin.data import VectorFile
from nearkin.pipeline.folder import check_target, save_index
from nearkin.pipeline.steps import Steps

TRAIN_ROWS = 65_536  # 256 rows for each of 256 centroids: more rows improved no code that we measured
JUDGED_ROWS = 10_000


def compress_file(
    file: VectorFile,
    quantizer: Any,
    out: str | os.PathLike,
    *,
    train: VectorFile | None = None,
    train_rows: int = TRAIN_ROWS,
    metric: str = "l2",
    ids: np.ndarray | None = None,
    keep_vectors: bool = False,
    random_state: Any = None,
    steps: Steps | None = None,
    about: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Fit `quantizer` on a sample of `train` (default: of `file`), encode all rows of `file`, save the index to `out`.

    Returns the record that is saved beside it as run.json: sizes, distortion (on up to 10,000 random rows of `file`),
    history of the training, seconds of every step, and `about`. Raises ValueError before any work if the files' widths
    differ, `ids` has another length, a row holds NaN or infinity, or `out` is no place for an index.
    """
    steps = steps or Steps()
    check_target(out)
    source = file if train is None else train
    if source.shape[1] != file.shape[1]:
        raise ValueError(
            f"{source.name} has {source.shape[1]} columns and {file.name} {file.shape[1]}; they must agree"
        )
    if ids is not None and len(ids) != len(file):
        raise ValueError(f"ids has {len(ids)} values and {file.name} {len(file)} rows; give one id a row")
    with steps.step("check") as callback:
        file.check_finite(callback)
        if train is not None:
            train.check_finite(callback)
    with steps.step("sample"):
        sample = _normalized(source.sample(train_rows, random_state), metric)
    with steps.step("train") as callback:
        quantizer.fit(sample, callback=callback)
    index = _encode(file, quantizer, ids, metric, keep_vectors, steps)
    with steps.step("judge"):
        judged = _normalized(file.sample(JUDGED_ROWS, random_state), metric)
        distortion = metrics.distortion(judged, quantizer.decode(quantizer.encode(judged)))
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
    with steps.step("save"):
        save_index(index, out, record | {"seconds": steps.seconds, "history": getattr(quantizer, "history_", [])})
    return record | {"seconds": steps.seconds}


def _encode(file: VectorFile, quantizer: Any, ids: Any, metric: str, keep_vectors: bool, steps: Steps) -> Any:
    index, done = None, 0
    with steps.step("encode") as callback:
        for chunk in file.chunks():
            part = None if ids is None else ids[done : done + len(chunk)]
            if index is None:
                index = nk.Index.build(chunk, quantizer=quantizer, ids=part, metric=metric)
            else:
                index.add(chunk, ids=part)
            done += len(chunk)
            callback(done, {"total": len(file)})
    return index


def _normalized(X: np.ndarray, metric: str) -> np.ndarray:
    if metric != "cosine":
        return X
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)
