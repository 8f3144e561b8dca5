"""`nearkin compress`: a file of vectors to an index of codes, by one process or by several, and resumable.

Memory holds the codes and ids, the training sample a few times over while the quantizer trains, and then a few chunks
of 8 MB. Kept vectors are copied from file to file. Inside `nk.join_processes` each process reads, trains on and
encodes its own vectors, and rank 0 writes the index.

Several processes, and one with a checkpoint, have a work folder: the trained index without vectors, and a saved index
per block of vectors."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

import nearkin as nk
from nearkin import _storage
from nearkin._check import check_choice, check_queries
from nearkin._distributed import Group, current
from nearkin._fields import StrPath, command
from nearkin._types import Fields, Record, Seed
from nearkin.contracts import Callback, Quantizer, VectorCodes
from nearkin.data import VectorFile
from nearkin.index import Index
from nearkin.index.identifiers import given_ids
from nearkin.index.kept_vectors import KeptVectors
from nearkin.index.searching import normalised
from nearkin.jobs.arguments import File, Folder
from nearkin.jobs.evaluate import judge_codes, rows_as_queries
from nearkin.jobs.inputs import FEWEST_QUERIES, open_given, open_queries
from nearkin.jobs.run import RUN, Steps, bytes_on_disk, threads_used, write_record
from nearkin.jobs.work import WorkFolder, work_place, working
from nearkin.metrics.trial import Difference
from nearkin.quantization.best import TRAINED, Best, best, fitted_codec
from nearkin.quantization.codecs import ALIASES, CODECS, SCALARS, Size
from nearkin.statistics import block_rows, shared_generator

JUDGED_ROWS = 10_000
_OFFSETS_FROM = 4_096  # vectors that decide the offsets of those that are kept
_ROWS_PER_CELL = 64  # coarse cells are learned too: FAISS warns below 39
_TRAINED = "trained"  # the part of a work folder that is made first: the index without rows
_FEWEST, _MOST = 4096, 2**20  # rows of a block
_BLOCKS_PER_RANK = 8
BEST = "best"  # the method that compares codecs
_BYTES = 16  # of a code, by default


@dataclass(frozen=True)
class Choice:
    """What is trained: the codec named `method`, or the `best` of them in predicted `seconds`, of a size."""

    method: str
    size: Size
    seconds: float | None = None


def compress(
    vectors: File,
    *,
    out: Folder,
    n_bytes: int | None = None,
    method: str | None = None,
    metric: str | None = None,
    ids: File | None = None,
    queries: File | None = None,
    keep_vectors: bool | str = False,
    n_lists: int | None = None,
    n_centroids: int = 256,
    minutes: float | None = None,
    checkpoint: Folder | None = None,
    seed: int = 0,
    overwrite: bool = False,
) -> Record:
    """Compress vectors into a small, searchable index.

    Trains a quantizer on a sample of the vectors, encodes all of them a chunk at a time (the file may exceed memory;
    under torchrun several processes share the work) and writes a folder that `nearkin search`, `nk.Index.load` and, for
    its index.faiss, plain FAISS can open. The printed recall is that of `nearkin evaluate`.

    Without a method, codecs are compared at the bytes asked for, and a table shows the recall of each. The same seed
    gives the same codes, however busy the machine.

    Examples:

    - nearkin compress X.npy --bytes 16 --out idx
    - nearkin compress X.npy --queries Q.npy --bytes 12 --minutes 5 --out idx
    - nearkin compress X.fvecs --metric ip --lists 1024 --keep-vectors --out idx
    - torchrun --nproc-per-node 2 -m nearkin compress "parts/*.npy" --checkpoint work --out idx

    Parameters
    ----------
    vectors: The vectors: .npy, .npz (file.npz:key), .hdf5:name, .fvecs, .fbin, or a table (.parquet, .csv, ...). They
        may exceed memory, and lie in several files: "parts/*.npy", in quotes. Or a folder of `nearkin embed`: its
        vectors and ids, of pairs those of the right side; emb:left are those of the left side.
    out: Folder to write.
    n_bytes: Bytes of a code, at most; eight bits each for hashing methods. [default: 16]
    method: pq (or none), opq (or product), rq or lsq (or residual: sums of centroids), product-residual,
        product-residual-long, axes, all but pq also with -norms (the norm in a byte), sq8 (or int8), int4, int6,
        float16; best (compares these by recall; with inverted lists product and product-norms); other rotations:
        givens-random, givens-greedy, givens-steepest, cayley; bits by hashing: lsh, itq, one, ... [default: best;
        product with other centroids or torchrun]
    metric: The metric of the index: l2, ip (inner product) or cosine; bits use hamming. [default: l2; ip for pairs]
    ids: Ids, one a line: those of the vectors (.npy, .txt, .csv, .parquet; file.csv:column). [default: the ids that
        the vectors have, else row numbers]
    queries: Queries, if they are unlike the vectors: the codec, or of method product the rotation, is chosen by their
        recall. Without them, vectors are held out as queries; for pairs of `nearkin embed` the users are.
    keep_vectors: Keep the vectors next to the codes, for rescoring; a type after = takes fewer bytes than float32:
        float16 half, int8 a quarter. [default type: float16 for files of float16 or of 8-bit integers, which it holds
        exactly, else float32]
    n_lists: Inverted lists, of which a search reads a few. About 4 times the square root of the number of vectors is
        usual: 1,000 for 60,000 vectors, 4,000 for a million; below 20,000 leave it out.
    n_centroids: Centroids in each subspace: 256 (a byte each) or 16 (half a byte, fastest search).
    minutes: Predicted time of two cores, of method best, to train and to encode. [default: 1, or three times that of
        product codes if that is more]
    checkpoint: Folder from which an interrupted run resumes; removed at the end.
    seed: Seed of everything random: the same seed gives the same result.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    """
    given = open_given(vectors, ids=ids)
    name = find_method(method or ("product" if current().size > 1 or n_centroids != 256 else BEST))
    if name in SCALARS and n_bytes is not None:
        raise ValueError(f"n_bytes of method {name} follow from the columns; leave them out")
    if name != BEST and minutes is not None:
        raise ValueError(f"minutes are for method best, which compares codecs; leave them out with {name}")
    if metric is None and given.metric in metrics_of(name):
        metric = given.metric
    ranking, width = choose_metric(name, metric), given.file.shape[1]
    if n_bytes is None:
        n_bytes = -(-width // 8) if name == "signs" else min(_BYTES, width)
    size = Size(n_bytes, n_centroids, n_lists or 0, ranking, seed)
    quantizer = Choice(name, size, None if minutes is None else 60 * minutes)
    Q = None if queries is None else open_queries(queries).vectors
    left = given.queries(metric)
    if Q is None and name == BEST and left is not None:
        Q, queries = left, f"the users of {vectors}"
    made = compress_file(
        given.file, quantizer, out, queries=Q, judged_by=left, metric=ranking, ids=given.ids,
        keep_vectors=keep_vectors, random_state=seed, checkpoint=checkpoint, overwrite=overwrite,
        about={"method": name, "seed": seed, "threads": threads_used(), "queries": queries},
    )  # fmt: skip
    names = [out, *([vectors] if left is not None else [queries] if queries else [])]
    other = "queries of another kind than the vectors have another recall; give some as queries=FILE"
    return made | {
        "understood": given.about,
        "notes": [other] if Q is None and left is None else [],
        "next": [command("evaluate", *names, base=vectors, k=10), command("search", out, "QUERIES", k=10)],
    }


def find_method(name: str) -> str:
    """A method by its name or one of `ALIASES`; ValueError that lists all for an unknown one."""
    return ALIASES.get(name) or check_choice(name, "method", (BEST, *ALIASES, *CODECS))


def metrics_of(method: str) -> tuple[str, ...]:
    """The metrics that codes of a method can be searched by, the default first."""
    return ("l2", "ip", "cosine") if method == BEST else CODECS[method].metrics


def choose_metric(method: str, metric: str | None) -> str:
    """The metric given, or the method's default; ValueError for one that its codes cannot be searched by."""
    return check_choice(metric or metrics_of(method)[0], f"metric for {method}", metrics_of(method))


def compress_file(
    file: VectorFile,
    quantizer: Quantizer | Choice,
    out: StrPath,
    *,
    queries: np.ndarray | None = None,
    judged_by: np.ndarray | None = None,
    metric: str = "l2",
    ids: np.ndarray | None = None,
    keep_vectors: bool | str = False,
    random_state: Seed = None,
    about: Fields | None = None,
    checkpoint: StrPath | None = None,
    overwrite: bool = False,
) -> Record:
    """Fit a quantizer on a sample, encode all vectors of a file, save the index in the folder `out`.

    `queries` (q, d) are given to `fit` to choose the start; recall is measured by `judged_by` (q, d), else by them,
    else by vectors of the file. `ids` (n,) and `keep_vectors` are as in `Index.build`. `about` are entries added to the
    record. From the folder `checkpoint` a killed job continues.

    Returns what is saved as run.json; its figures are of vectors that were not trained on, if there are any.
    """
    steps, group = Steps(), current()
    _storage.check_target(out, overwrite, file.files)
    kept = KeptVectors.wanted(keep_vectors, file.shape[1], file.dtype)
    if checkpoint is not None:
        _storage.check_apart(checkpoint, out)
    if queries is not None:
        queries = _usable_queries(queries, quantizer, file.shape[1], metric)
    if ids is not None:
        ids = given_ids(ids, len(file))
    if isinstance(quantizer, Choice) and quantizer.method == BEST and group.size > 1:
        raise ValueError("method is 'best', which is for one process; leave torchrun out, or type method='product'")
    rows = max(TRAINED, _ROWS_PER_CELL * _learned_centroids(quantizer)[1])
    job = _agreed_job(file, quantizer, metric, rows, queries)
    if random_state is None:
        random_state = shared_generator(None, group)
    if checkpoint is not None:
        job["contents"] = _storage.digest(file.chunks()) if group.rank == 0 else None
    with steps.step("check") as callback:
        file.part(*group.share(len(file))).check_finite(callback, metric=metric)
        kept = None if kept is None else kept.about(file.sample(_OFFSETS_FROM, 0))
        if kept is not None and not np.can_cast(file.dtype, kept.dtype):
            for chunk in file.part(*group.share(len(file))).chunks():
                kept.check(chunk)
        group.barrier()
    with _work_folder(checkpoint, out, job, len(file), group, overwrite) as work:
        if work is None or work.missing([_TRAINED]):
            sample = _sample(quantizer, file, rows, metric, random_state, steps, group)
            with steps.step("train") as callback:
                made = _trained(quantizer, sample, queries, len(file), random_state, callback)
            empty = Index.empty(file.shape[1], made.quantizer, metric, norms=made.norms)
            trials = made.trials
            if work is not None and group.rank == 0:
                empty.save(work.path / _TRAINED, overwrite=True)
        else:
            empty, trials = Index.load(work.path / _TRAINED), list[Record]()
        index, fitted = _encode(file, empty, work, steps, group), empty.quantizer
        record: Record = {}
        if group.rank == 0:
            index.ids = ids
            seed = random_state if isinstance(random_state, int) else None
            run: Record = {"trained_on": min(rows, len(file)), "seed": seed, "train": None, **(about or {})}
            if isinstance(quantizer, Choice) and trials:  # none after an interruption
                leads = [Difference(*trial["lead"])._asdict() for trial in trials]
                named = [{**row, "lead": lead} for row, lead in zip(trials, leads, strict=True)]
                run["comparison"] = {"seconds": quantizer.seconds, "trials": named}
            run["kept_vectors"] = None if kept is None else {"type": kept.dtype.name, "bytes": kept.row_bytes}
            record = _record(file, index, fitted, run, queries if judged_by is None else judged_by, steps)
            history = vars(fitted).get("history_", [])
            with steps.step("save") as callback, _storage.replacing_folder(out, overwrite) as fresh:
                index.save(fresh)
                write_record(fresh / RUN, record | {"seconds": steps.seconds, "history": history})
                if kept is not None:  # copied chunk by chunk, to the file that Index.load looks for
                    kept.write(fresh / "vectors.npy", map(kept.stored, file.chunks(callback=callback)), len(file))
            record["bytes_on_disk"] = bytes_on_disk(out)
        return group.exchange(record | {"seconds": steps.seconds})[0]


def _agreed_job(
    file: VectorFile, quantizer: Quantizer | Choice, metric: str, rows: int, queries: np.ndarray | None
) -> Record:
    """The identity of a compression job; ValueError if processes have different ones."""
    job: Record = {
        "vectors": file.describe(),
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


def _learned_centroids(quantizer: Quantizer | Choice) -> tuple[int, int]:
    """Number of centroids that a quantizer learns in a subspace, and of coarse ones; 0 for none."""
    if isinstance(quantizer, Choice):
        return quantizer.size.n_centroids, quantizer.size.n_lists
    return vars(quantizer).get("n_centroids", 0), vars(quantizer).get("n_lists", 0)


def _usable_queries(queries: np.ndarray, quantizer: Quantizer | Choice, d: int, metric: str) -> np.ndarray:
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
    quantizer: Quantizer | Choice, source: VectorFile, n_rows: int, metric: str, random_state: Seed, steps: Steps,
    group: Group,
) -> np.ndarray:  # fmt: skip
    """The vectors to train on, read in shares that end with `CellSums`'s blocks: sums keep their bits."""
    with steps.step("sample"):
        numbers = source.draw(n_rows, random_state)
        first, stop = group.share(len(numbers), block_rows(_learned_centroids(quantizer)[0]))
        sample = source.take(numbers[first:stop])
        return normalised(sample) if metric == "cosine" and not isinstance(quantizer, Choice) else sample


def _trained(
    quantizer: Quantizer | Choice, sample: np.ndarray, queries: np.ndarray | None, n_vectors: int, random_state: Seed,
    callback: Callback,
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
        n_vectors=n_vectors, metric=size.metric,
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
