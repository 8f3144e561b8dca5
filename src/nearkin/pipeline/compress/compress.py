"""A file of vectors to an index of codes, a chunk at a time, by one process or by several.

Beside the codes (and ids) memory holds the training sample, a few times over while the quantizer learns, and then a few
chunks of 8 MB: nothing else grows with the length of the file. Exact vectors, where kept, go from file to file. Inside
`join_processes` every process reads, learns from and encodes its own rows, and rank 0 writes the index.
"""

import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

import nearkin as nk
from nearkin import metrics
from nearkin._check import check_queries
from nearkin._distributed import Group, current
from nearkin._shards import shared_generator
from nearkin._storage import check_apart, check_inputs, check_space, check_target
from nearkin._types import Fields, Record, Seed
from nearkin._words import counted
from nearkin.cell_sums import block_rows
from nearkin.contracts import CentroidCodes, Fittable, Quantizer, Reconstructing, Remembering
from nearkin.data import VectorFile
from nearkin.index.identifiers import check_ids, join_ids
from nearkin.index.rescoring import normalised
from nearkin.pipeline.compress.work_folder import WorkFolder, remove_work
from nearkin.pipeline.evaluate.neighbours import judge_codes, rows_as_queries
from nearkin.pipeline.folder import bytes_on_disk, save_index
from nearkin.pipeline.steps import Steps
from nearkin.quantization.best import BestCode

TRAIN_ROWS = 65_536  # 256 rows for each of 256 centroids, FAISS's own limit
_ROWS_PER_CELL = 64  # coarse cells need rows too: FAISS warns below 39
JUDGED_ROWS = 10_000
_FEWEST_QUERIES = 20


def compress_file(
    file: VectorFile,
    quantizer: Fittable,
    out: str | os.PathLike,
    *,
    train: VectorFile | None = None,
    queries: np.ndarray | None = None,
    judged_by: np.ndarray | None = None,
    train_rows: int | None = None,
    metric: str = "l2",
    ids: np.ndarray | None = None,
    keep_vectors: bool = False,
    random_state: Seed = None,
    steps: Steps | None = None,
    about: Fields | None = None,
    checkpoint: str | os.PathLike | None = None,
) -> Record:
    """Fit `quantizer` on a sample of `train` (default: of `file`), encode all rows of `file`, save the index to `out`.

    Returns the record that is saved in it as run.json: sizes, distortion and share of the variance kept (on up to
    10,000 rows of `file`), share of ten exact neighbours kept, history of the training, seconds of every step, and
    `about`. Rows that were not learned from judge, if there are any. `queries` (q, d) choose between rotations, and
    between codes in a race, where rows will be searched by others than themselves. They also judge the neighbours, or
    `judged_by` (q, d) do; else rows of the file, none its own neighbour. `train_rows` is by default 65,536, and at
    least 64 for each coarse cell. `checkpoint` is a folder from which an interrupted run goes on, with the quantizer
    that it had learned and the blocks of rows that it had encoded, if all vectors and settings are the same (a digest
    of the vectors takes one more pass over the file); what was written there is removed at the end. Raises ValueError
    before any work if widths differ, `ids` has another length or repeats itself, a row holds NaN or infinity, `out` is
    no place for an index, `checkpoint` and `out` are not apart, `queries` have nothing to choose from, or processes
    were given different vectors.
    """
    n_centroids, n_lists = _learned_centroids(quantizer)
    steps, group = steps or Steps(), current()
    least = len(file) * (4 * file.shape[1] if keep_vectors else 1)  # bytes on the disk: a code has one or more
    check_target(out)
    check_space(out, least)
    source = file if train is None else train
    check_inputs(out, [*file.files, *source.files])
    if checkpoint is not None:
        check_apart(checkpoint, out)
    if source.shape[1] != file.shape[1]:
        raise ValueError(
            f"{source.name} has {source.shape[1]} columns and {file.name} {file.shape[1]}; they must agree"
        )
    if queries is not None:
        queries = _usable_queries(queries, quantizer, file.shape[1], metric)
    if ids is not None:
        ids = join_ids(np.empty(0, np.int64), check_ids(ids, len(file)))
    if isinstance(quantizer, BestCode):  # whose race asks how many of the index's rows are learned from
        n_rows = len(file) if source is file else sys.maxsize
        quantizer = replace(quantizer, n_rows=n_rows, metric=metric)
    rows = train_rows or max(TRAIN_ROWS, _ROWS_PER_CELL * n_lists)
    job = {
        "vectors": file.describe(),
        "train": source.describe(),
        "quantizer": " ".join(repr(quantizer).split()),
        "metric": metric,
        "train_rows": rows,
        "queries": None if queries is None else zlib.crc32(queries.tobytes()),
    }
    for what, value in job.items():
        group.agree(value, what)
    if random_state is None:
        random_state = shared_generator(None, group)
    with steps.step("check") as callback:
        for vectors in dict.fromkeys((file, source)):
            vectors.part(*group.share(len(vectors))).check_finite(callback, metric=metric)
        group.barrier()
    _check_enough(source, n_centroids)
    if checkpoint is not None:
        contents = [vectors.digest() for vectors in dict.fromkeys((file, source))] if group.rank == 0 else None
        job["contents"] = contents
    with _work_folder(checkpoint, out, job, len(file), group) as work:
        fitted = None if work is None else work.load_quantizer()
        if fitted is None:
            fitted = _train(quantizer, source, queries, rows, metric, random_state, steps, group)
            if work is not None:
                work.save_quantizer(fitted)
        index = _encode(file, fitted, metric, work, steps, group)
        record: Record = {}
        if group.rank == 0:
            index.ids = ids
            other = None if source is file else source.name
            learned = {"trained_on": min(rows, len(source)), "seed": random_state, "train": other, **(about or {})}
            record = _record(file, index, fitted, learned, queries if judged_by is None else judged_by, steps)
            with steps.step("save") as callback:
                history = fitted.history_ if isinstance(fitted, Remembering) else []
                run = record | {"seconds": steps.seconds, "history": history}
                save_index(index, out, run, file if keep_vectors else None, callback)
            record["bytes_on_disk"] = bytes_on_disk(out)
        return group.exchange(record | {"seconds": steps.seconds})[0]


def _learned_centroids(quantizer: Fittable) -> tuple[int, int]:
    """How many centroids a quantizer learns in a subspace, and how many coarse ones; 0 for none."""
    return (quantizer.n_centroids, quantizer.n_lists) if isinstance(quantizer, CentroidCodes) else (0, 0)


def _check_enough(source: VectorFile, n_centroids: int) -> None:
    if len(source) < n_centroids:
        fewer = "--centroids 16, or " if len(source) >= 16 else ""
        raise ValueError(
            f"{source.name} has {counted(len(source), 'row')}, and {n_centroids} centroids are learned from at least "
            f"as many; type {fewer}--method int8, which learns no centroids"
        )


def _usable_queries(queries: np.ndarray, quantizer: Fittable, d: int, metric: str) -> np.ndarray:
    """The queries (q, d) as rows are compared with them; ValueError where there is nothing that they could choose."""
    rotated = isinstance(quantizer, nk.ProductQuantizer) and quantizer.rotation is not None and not quantizer.n_lists
    if not rotated and not isinstance(quantizer, BestCode):
        raise ValueError(
            "--queries choose between the starts of a rotation (--method procrustes, cayley, givens-..., without "
            "--coarse) or between codes (--method best), and this method learns in one way; leave --queries out"
        )
    if rotated and metric == "ip":
        raise ValueError(
            "--queries choose a rotation by distance, and --metric ip ranks by inner product; leave --queries out, or "
            "take --method best, which judges codes by inner product"
        )
    queries = check_queries(queries, d, min_rows=_FEWEST_QUERIES, metric=metric)
    return normalised(queries) if metric == "cosine" else queries


def _train(
    quantizer: Fittable,
    source: VectorFile,
    queries: np.ndarray | None,
    n_rows: int,
    metric: str,
    random_state: Seed,
    steps: Steps,
    group: Group,
) -> Quantizer:
    """The quantizer fitted on a sample, of which each process reads a share.

    Shares end where the blocks of `nearkin.cell_sums` end, so that all sums are those of one process to the last bit.
    """
    with steps.step("sample"):
        numbers = source.draw(n_rows, random_state)
        first, stop = group.share(len(numbers), block_rows(_learned_centroids(quantizer)[0]))
        sample = source.take(numbers[first:stop])
        sample = normalised(sample) if metric == "cosine" else sample
    with steps.step("train") as callback:
        if queries is not None and isinstance(quantizer, nk.ProductQuantizer | BestCode):
            return quantizer.fit(sample, queries=queries, callback=callback)
        return quantizer.fit(sample, callback=callback)


def _encode(
    file: VectorFile, quantizer: Quantizer, metric: str, work: WorkFolder | None, steps: Steps, group: Group
) -> nk.Index:
    """The index of all rows; on ranks other than 0 it stays empty."""

    def empty() -> nk.Index:
        return nk.Index.empty(file.shape[1], quantizer, metric)

    index = empty()
    with steps.step("encode") as callback:
        if work is not None:
            work.encode(file, empty, callback)
            return work.join(index, callback) if group.rank == 0 else index
        for chunk in file.chunks():
            index.add(chunk)
            callback(len(index), {"total": len(file)})
    return index


def _record(
    file: VectorFile, index: nk.Index, fitted: object, run: Fields, queries: np.ndarray | None, steps: Steps
) -> Record:
    """What was made, for people and for run.json."""
    record: Record = {
        "data": file.name,
        "vectors": len(file),
        "dimensions": file.shape[1],
        "metric": index.metric,
        "code": " ".join(repr(fitted).split()),
        "bytes_per_vector": index.bytes_per_vector,
        "compression": metrics.compression_ratio(file.shape[1], index.bytes_per_vector),
        "distortion": None,
        "variance_kept": None,
    }
    with steps.step("judge") as callback:
        if isinstance(fitted, Reconstructing):
            X = file.take(rows_as_queries(file, run, JUDGED_ROWS))
            X = normalised(X) if index.metric == "cosine" else X
            record["distortion"] = fitted.distortion(X)
            variance = float(X.var(axis=0, dtype=np.float64).sum())
            record["variance_kept"] = 1.0 - record["distortion"] / variance if variance else None
        record |= judge_codes(index, file, run, queries, callback=callback)
    seeds = {} if isinstance(run["seed"], int) else {"seed": None}
    return record | {"trained_on": run["trained_on"], **run, **seeds}


@contextmanager
def _work_folder(
    checkpoint: str | os.PathLike | None, out: str | os.PathLike, job: Record, n_rows: int, group: Group
) -> Iterator[WorkFolder | None]:
    """The folder named by `checkpoint`, kept if the block fails; one beside `out` for several processes; else none."""
    if checkpoint is None and group.size == 1:
        yield None
        return
    target = Path(out).absolute()
    path = Path(checkpoint) if checkpoint is not None else target.with_name(f".{target.name}.parts")
    if checkpoint is None and group.rank == 0:  # left by a run that was killed
        remove_work(path)
    group.barrier()
    done = False
    try:
        yield WorkFolder(path, job, n_rows, group)
        done = True
    finally:
        if group.rank == 0 and (done or checkpoint is None):
            remove_work(path)
