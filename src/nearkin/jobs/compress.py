"""`nearkin compress`: a file of vectors to an index of codes, by one process or by several, and resumable.

Memory holds the codes and ids, the training sample a few times over while the quantizer trains, and then a few chunks
of 8 MB. Kept vectors are copied from file to file. Inside `nk.join_processes` each process reads, trains on and
encodes its own vectors, and rank 0 writes the index.

Several processes, and one with a checkpoint, have a work folder: the trained index without vectors, and a saved index
per block of vectors."""

import copy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

import nearkin as nk
from nearkin import _storage
from nearkin._check import check_queries
from nearkin._distributed import Group, current
from nearkin._fields import StrPath, with_interval
from nearkin._types import Fields, Record, Seed
from nearkin.contracts import Callback, CentroidCodes, Fittable, Remembering, VectorCodes
from nearkin.data import VectorFile
from nearkin.index import Index
from nearkin.index.identifiers import given_ids
from nearkin.index.kept_vectors import KeptVectors
from nearkin.index.searching import normalised
from nearkin.jobs.evaluate import judge_codes, rows_as_queries
from nearkin.jobs.inputs import FEWEST_QUERIES
from nearkin.jobs.methods import BEST
from nearkin.jobs.run import RUN, Steps, bytes_on_disk, write_record
from nearkin.jobs.work import WorkFolder, work_place, working
from nearkin.metrics.trial import Difference
from nearkin.quantization.best import TRAINED, Best, best, fitted_codec
from nearkin.quantization.codecs import CODECS, Size
from nearkin.statistics import block_rows, shared_generator

JUDGED_ROWS = 10_000
_OFFSETS_FROM = 4_096  # vectors that decide the offsets of those that are kept
_ROWS_PER_CELL = 64  # coarse cells are learned too: FAISS warns below 39
_TRAINED = "trained"  # the part of a work folder that is made first: the index without rows
_FEWEST, _MOST = 4096, 2**20  # rows of a block
_BLOCKS_PER_RANK = 8


@dataclass(frozen=True)
class Choice:
    """What is trained: the codec named `method`, or the `best` of them in predicted `seconds`, of a size."""

    method: str
    size: Size
    seconds: float | None = None


def compress_file(
    file: VectorFile,
    quantizer: Fittable | Choice,
    out: StrPath,
    *,
    train: VectorFile | None = None,
    queries: np.ndarray | None = None,
    judged_by: np.ndarray | None = None,
    metric: str = "l2",
    ids: np.ndarray | None = None,
    keep_vectors: bool | str = False,
    random_state: Seed = None,
    steps: Steps | None = None,
    about: Fields | None = None,
    checkpoint: StrPath | None = None,
    overwrite: bool = False,
) -> Record:
    """Fit a quantizer on a sample, encode all vectors of a file, save the index in the folder `out`: `nearkin
    compress`.

    Trains on vectors of `train`, else on a sample of `file`. `queries` (q, d) are given to `fit` to choose the start;
    recall is measured by `judged_by` (q, d), else by them, else by vectors of the file. `ids` (n,) and `keep_vectors`
    are as in `Index.build`. `about` are entries added to the record. From the folder `checkpoint` a killed job
    continues.

    Returns what is saved as run.json; its figures are of vectors that were not trained on, if there are any.
    """
    steps, group, source = steps or Steps(), current(), file if train is None else train
    _storage.check_target(out, overwrite, [*file.files, *source.files])
    kept = KeptVectors.wanted(keep_vectors, file.shape[1], file.dtype)
    if checkpoint is not None:
        _storage.check_apart(checkpoint, out)
    if source.shape[1] != file.shape[1]:
        raise ValueError(f"{source.name} has width {source.shape[1]}, {file.name} {file.shape[1]}; they must agree")
    if queries is not None:
        queries = _usable_queries(queries, quantizer, file.shape[1], metric)
    if ids is not None:
        ids = given_ids(ids, len(file))
    if isinstance(quantizer, Choice) and quantizer.method == BEST and group.size > 1:
        raise ValueError("method is 'best', which is for one process; leave torchrun out, or take method 'product'")
    rows = max(TRAINED, _ROWS_PER_CELL * _learned_centroids(quantizer)[1])
    job = _agreed_job(file, source, quantizer, metric, rows, queries)
    if random_state is None:
        random_state = shared_generator(None, group)
    files = dict.fromkeys((file, source))  # one, unless the code is learned from another file
    if checkpoint is not None:
        job["contents"] = [_storage.digest(vectors.chunks()) for vectors in files] if group.rank == 0 else None
    with steps.step("check") as callback:
        for vectors in files:
            vectors.part(*group.share(len(vectors))).check_finite(callback, metric=metric)
        kept = None if kept is None else kept.about(file.sample(_OFFSETS_FROM, 0))
        if kept is not None and not np.can_cast(file.dtype, kept.dtype):
            for chunk in file.part(*group.share(len(file))).chunks():
                kept.check(chunk)
        group.barrier()
    with _work_folder(checkpoint, out, job, len(file), group, overwrite) as work:
        if work is None or work.missing([_TRAINED]):
            sample = _sample(quantizer, source, rows, metric, random_state, steps, group)
            with steps.step("train") as callback:
                made = _trained(quantizer, sample, queries, file, source, random_state, callback)
            empty = Index.empty(source.shape[1], made.quantizer, metric, norms=made.norms)
            trials = made.trials
            if work is not None and group.rank == 0:
                empty.save(work.path / _TRAINED, overwrite=True)
        else:
            empty, trials = Index.load(work.path / _TRAINED), list[Record]()
        index, fitted = _encode(file, empty, work, steps, group), empty.quantizer
        record: Record = {}
        if group.rank == 0:
            index.ids = ids
            other = None if source is file else source.name
            seed = random_state if isinstance(random_state, int) else None
            run: Record = {"trained_on": min(rows, len(source)), "seed": seed, "train": other, **(about or {})}
            if isinstance(quantizer, Choice) and trials:  # none after an interruption
                run["comparison"] = {"seconds": quantizer.seconds, "trials": trials}
            run["kept_vectors"] = None if kept is None else {"type": kept.dtype.name, "bytes": kept.row_bytes}
            record = _record(file, index, fitted, run, queries if judged_by is None else judged_by, steps)
            history = fitted.history_ if isinstance(fitted, Remembering) else []
            with steps.step("save") as callback, _storage.replacing_folder(out, overwrite) as fresh:
                index.save(fresh)
                write_record(fresh / RUN, record | {"seconds": steps.seconds, "history": history})
                if kept is not None:  # copied chunk by chunk, to the file that Index.load looks for
                    kept.write(fresh / "vectors.npy", map(kept.stored, file.chunks(callback=callback)), len(file))
            record["bytes_on_disk"] = bytes_on_disk(out)
        return group.exchange(record | {"seconds": steps.seconds})[0]


def won_line(trials: Sequence[Fields]) -> str:
    """The winner, its recall with a 95 % interval, and its lead over product codes if these were tried; ties are called
    so."""
    first, *others = trials
    recall = with_interval(first["value"], first["interval"], word="95 % interval ")
    text = f"won: {first['candidate']}, recall@10 {recall}"
    if not others:
        return f"{text}, the only codec compared"
    best = max(others, key=lambda row: row["value"])
    if best["value"] > first["value"]:
        return f"{text}; the fastest of those level with {best['candidate']}: {Difference(*best['lead'])}"
    other = next((row for row in others if row["candidate"] == "product"), best)
    return f"{text}; over {other['candidate']}: {Difference(*other['lead'])}"


def trial_rows(trials: Sequence[Fields]) -> tuple[list[str], list[list[object]]]:
    """Columns and rows of the table of candidates, the winner first."""
    return ["codec", "recall@10 (95 %)", "winner's lead", "bytes"], [
        [
            row["candidate"], with_interval(row["value"], row["interval"]),
            "won" if row["won"] else str(Difference(*row["lead"])), row["bytes"],
        ]
        for row in trials
    ]  # fmt: skip


def _agreed_job(
    file: VectorFile,
    source: VectorFile,
    quantizer: Fittable | Choice,
    metric: str,
    rows: int,
    queries: np.ndarray | None,
) -> Record:
    """The identity of a compression job; ValueError if processes have different ones."""
    job: Record = {
        "vectors": file.describe(),
        "train": source.describe(),
        "metric": metric,
        "train_rows": rows,
        "queries": None if queries is None else _storage.digest(queries),
    } | {f"quantizer's {name}": value for name, value in _settings(quantizer).items()}
    for what, value in job.items():
        current().agree(value, what)
    return job


def _settings(quantizer: object) -> Record:
    """The class of a quantizer and those of its parameters that JSON holds; a generator of random numbers has none."""
    if isinstance(quantizer, Choice):
        return {"method": quantizer.method, "seconds": quantizer.seconds, **asdict(quantizer.size)}
    given = quantizer.get_params() if isinstance(quantizer, BaseEstimator) else {}
    plain = {name: value for name, value in given.items() if value is None or isinstance(value, str | int | float)}
    return {"class": type(quantizer).__name__, **plain}


def _learned_centroids(quantizer: Fittable | Choice) -> tuple[int, int]:
    """Number of centroids that a quantizer learns in a subspace, and of coarse ones; 0 for none."""
    if isinstance(quantizer, Choice):
        return quantizer.size.n_centroids, quantizer.size.n_lists
    return (quantizer.n_centroids, quantizer.n_lists) if isinstance(quantizer, CentroidCodes) else (0, 0)


def _usable_queries(queries: np.ndarray, quantizer: Fittable | Choice, d: int, metric: str) -> np.ndarray:
    """The queries (q, d), normalised for cosine; ValueError if the method has nothing to choose by queries."""
    if not isinstance(quantizer, Choice) or quantizer.method != BEST:
        made = CODECS[quantizer.method].unfitted(quantizer.size) if isinstance(quantizer, Choice) else quantizer
        if not isinstance(made, nk.ProductQuantizer) or made.n_lists or made.rotation is None or metric == "ip":
            raise ValueError(
                "queries choose between codecs (method 'best') or, by distance, between the starts of a rotation (of "
                "'product', 'cayley', 'givens-...', without lists); this method trains in one way: leave queries out"
            )
    queries = check_queries(queries, d, min_rows=FEWEST_QUERIES, metric=metric)
    return normalised(queries) if metric == "cosine" else queries


def _sample(
    quantizer: Fittable | Choice, source: VectorFile, n_rows: int, metric: str, random_state: Seed, steps: Steps,
    group: Group,
) -> np.ndarray:  # fmt: skip
    """The vectors to train on, read in shares that end with `CellSums`'s blocks: sums keep their bits."""
    with steps.step("sample"):
        numbers = source.draw(n_rows, random_state)
        first, stop = group.share(len(numbers), block_rows(_learned_centroids(quantizer)[0]))
        sample = source.take(numbers[first:stop])
        return normalised(sample) if metric == "cosine" and not isinstance(quantizer, Choice) else sample


def _trained(
    quantizer: Fittable | Choice, sample: np.ndarray, queries: np.ndarray | None, file: VectorFile, source: VectorFile,
    random_state: Seed, callback: Callback,
) -> Best:  # fmt: skip
    """What is chosen and trained; `queries` are those that `_usable_queries` lets pass."""
    if not isinstance(quantizer, Choice):
        options = {} if queries is None else {"queries": queries}
        return Best(quantizer.fit(sample, **options, callback=callback), None, [])
    size = quantizer.size
    if quantizer.method != BEST:
        sample = normalised(sample) if size.metric == "cosine" else sample
        return Best(*fitted_codec(CODECS[quantizer.method], size, sample, queries, callback), [])
    return best(
        sample, size.n_bytes, queries, quantizer.seconds,
        # codes depend on the share of the index's vectors that they are trained on
        n_vectors=len(file) if source is file else sys.maxsize, n_encoded=len(file), metric=size.metric,
        n_lists=size.n_lists, methods=("product", "product-norms") if size.n_lists else None,
        random_state=random_state, callback=callback,
    )  # fmt: skip


def _encode(file: VectorFile, empty: Index, work: WorkFolder | None, steps: Steps, group: Group) -> Index:
    """The index of all rows, like the trained one; it stays empty on ranks other than 0."""
    index = copy.deepcopy(empty)
    with steps.step("encode") as callback:
        if work is None:
            for chunk in file.chunks(callback=callback):
                index.add(chunk)
            return index
        blocks = _encode_blocks(file, empty, work, callback)
        for block in blocks if group.rank == 0 else ():
            index.merge(Index.load(block))
            callback(len(index), {"total": len(file)})
    return index


def _encode_blocks(file: VectorFile, empty: Index, work: WorkFolder, callback: Callback) -> list[Path]:
    """Encode the missing blocks of rows, each rank its share; returns the saved indexes of all, in order."""
    size, group = int(work.config["block_rows"]), work.group
    starts = {f"rows-{first:013d}": first for first in range(0, len(file), size)}
    missing = work.missing(starts)
    mine = missing[slice(*group.share(len(missing)))]
    parts = {name: file.part(starts[name], min(starts[name] + size, len(file))) for name in mine}
    total, done = sum(map(len, parts.values())), 0
    for name, part in parts.items():
        index = copy.deepcopy(empty)
        for chunk in part.chunks():
            index.add(chunk)
            done += len(chunk)
            callback(done, {"total": total})
        index.save(work.path / name, overwrite=True)
    group.barrier()
    return [work.path / name for name in starts]


def _record(
    file: VectorFile, index: Index, fitted: object, run: Record, queries: np.ndarray | None, steps: Steps
) -> Record:
    """Sizes of the index and the recall of its codes."""
    record: Record = {
        "data": file.name,
        "vectors": len(file),
        "dimensions": file.shape[1],
        "metric": index.metric,
        "code": _settings(fitted),
        "bytes_per_vector": index.bytes_per_vector,
        "compression": 4 * file.shape[1] / index.bytes_per_vector,
        "lengths": None,
        "distortion": None,
        "variance_kept": None,
    }
    if index.norms is not None:
        common = f"{index.norms.levels[0]:.4g} of every vector, without a byte"
        record["lengths"] = "in a byte of each vector" if index.norms.n_bytes else common
    with steps.step("evaluate") as callback:
        if isinstance(fitted, VectorCodes):
            X = file.take(rows_as_queries(file, run, JUDGED_ROWS)[0])
            X = normalised(X) if index.metric == "cosine" else X
            record["distortion"] = fitted.distortion(X)
            variance = float(X.var(axis=0, dtype=np.float64).sum())
            record["variance_kept"] = 1.0 - record["distortion"] / variance if variance else None
        record |= judge_codes(index, file, run, queries, callback=callback)
    return record | run


@contextmanager
def _work_folder(
    checkpoint: StrPath | None, out: StrPath, job: Record, n_rows: int, group: Group, overwrite: bool
) -> Iterator[WorkFolder | None]:
    """The work folder `checkpoint`, kept if the block fails; several processes have one near `out`; else None."""
    if checkpoint is None and group.size == 1:
        yield None
        return
    rows = min(_MOST, max(_FEWEST, -(-n_rows // (_BLOCKS_PER_RANK * group.size))))
    path, keep = work_place(out) if checkpoint is None else checkpoint, checkpoint is not None
    with working(path, job, group, {"block_rows": rows}, overwrite=overwrite or not keep, keep=keep) as work:
        yield work
