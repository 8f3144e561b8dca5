"""`nearkin compress`: a file of vectors to an index of codes, by one process or by several, and resumable.

Memory holds the codes and ids, the training sample a few times over while the quantizer trains, and then a few chunks
of 8 MB. Kept vectors are copied from file to file. Inside `nk.join_processes` each process reads, trains on and
encodes its own vectors, and rank 0 writes the index.

Several processes, and one with a checkpoint, have a work folder: the trained index without vectors, and a saved index
per block of vectors. Any process writes a part, each with its own manifest; one that is missing or damaged is made
again. The folder's added.json lists the parts."""

import copy
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

import nearkin as nk
from nearkin import _storage
from nearkin._check import check_choice, check_not_vanishing, check_queries
from nearkin._distributed import Group, current
from nearkin._fields import StrPath, command
from nearkin._types import Fields, Record
from nearkin.contracts import Callback, VectorCodes
from nearkin.data import VectorFile
from nearkin.index import Index
from nearkin.index.identifiers import given_ids
from nearkin.index.kept_vectors import KeptVectors
from nearkin.index.searching import normalised
from nearkin.jobs.arguments import File, Folder
from nearkin.jobs.evaluate import judge_codes, rows_as_queries
from nearkin.jobs.inputs import FEWEST_QUERIES, open_given, open_queries
from nearkin.jobs.run import RUN, Steps, bytes_on_disk, threads_used, write_record
from nearkin.metrics.trial import Difference
from nearkin.quantization.best import ALIASES, CODECS, SCALARS, TRAINED, Best, Size, best, fitted_codec
from nearkin.statistics import block_rows

JUDGED_ROWS = 10_000
_OFFSETS_FROM = 4_096  # vectors that decide the offsets of those that are kept
_ROWS_PER_CELL = 64  # coarse cells are learned too: FAISS warns below 39
KIND = "unfinished job"  # of a work folder
_TRAINED = "trained"  # the part of a work folder that is made first: the index without rows
_FEWEST, _MOST, _BLOCKS = 4096, 2**20, 64  # rows of a block, and blocks of a file between these
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
    minutes: Method best leaves out codecs that would take longer, by a prediction for two cores. [default: 1, or three
        times the minutes of product codes if that is more]
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
    size = Size(min(_BYTES, width) if n_bytes is None else n_bytes, n_centroids, n_lists or 0, ranking, seed)
    if n_bytes is None and name != BEST:
        size = replace(size, n_bytes=CODECS[name].nearest(size, width))
    choice = Choice(name, size, None if minutes is None else 60 * minutes)
    Q = None if queries is None else open_queries(queries).vectors
    left = given.queries(metric)
    if Q is None and name == BEST and left is not None:
        Q, queries = left, f"the users of {vectors}"
    made = compress_file(
        given.file, choice, out, queries=Q, judged_by=left, ids=given.ids, keep_vectors=keep_vectors,
        checkpoint=checkpoint, overwrite=overwrite, about={"threads": threads_used(), "queries": queries},
    )  # fmt: skip
    names = [out, *([vectors] if left is not None else [queries] if queries else [])]
    other = "queries of another kind than the vectors have another recall; give some as queries=FILE"
    notes = [other] if Q is None and left is None else []
    if made["bytes_on_disk"] > 4 * len(given.file) * width and not keep_vectors:
        notes.append("with its codebooks the index takes more than so few vectors: nk.Index.build(X) searches exactly")
    return made | {
        "understood": given.about,
        "notes": notes,
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
    choice: Choice,
    out: StrPath,
    *,
    queries: np.ndarray | None = None,
    judged_by: np.ndarray | None = None,
    ids: np.ndarray | None = None,
    keep_vectors: bool | str = False,
    about: Fields | None = None,
    checkpoint: StrPath | None = None,
    overwrite: bool = False,
) -> Record:
    """Train what is chosen on a sample, encode all vectors of a file, save the index in the folder `out`.

    `queries` (q, d) choose codec or rotation; recall is measured by `judged_by` (q, d), else by them, else by vectors
    of the file. `ids` (n,) and `keep_vectors` are as in `Index.build`. `about` are entries added to the record. From
    the folder `checkpoint` a killed job continues.

    Returns what is saved as run.json; its figures are of vectors that were not trained on, if there are any.
    """
    _storage.check_target(out, overwrite, file.files)
    kept = KeptVectors.wanted(keep_vectors, file.shape[1], file.dtype)
    if checkpoint is not None:
        _storage.check_apart(checkpoint, out)
    if queries is not None:
        queries = _usable_queries(queries, choice, file.shape[1])
    if ids is not None:
        ids = given_ids(ids, len(file))
    job = _Job(file, choice, queries, Steps(), current())
    identity, steps, group = job.agreed(), job.steps, job.group
    if checkpoint is not None:
        identity["contents"] = _storage.digest(file.chunks()) if group.rank == 0 else None
    kept = job.checked(kept)
    with _work_folder(checkpoint, out, identity, group, overwrite) as work:
        empty, trials = job.trained(work)
        index, fitted = job.encoded(empty, work), empty.quantizer
        record: Record = {}
        if group.rank == 0:
            index.ids = ids
            run: Record = {"trained_on": min(job.n_trained, len(file)), "seed": choice.size.random_state, "train": None}
            run |= {"method": choice.method, **(about or {})}
            if trials:  # none after an interruption
                named = [{**row, "lead": None if row["won"] else Difference(*row["lead"])._asdict()} for row in trials]
                run["comparison"] = {"seconds": choice.seconds, "trials": named}
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


@dataclass(frozen=True)
class _Job:
    """One compression: the vectors, what is trained, the queries that choose it, and the processes that share it."""

    file: VectorFile
    choice: Choice
    queries: np.ndarray | None
    steps: Steps
    group: Group

    @property
    def n_trained(self) -> int:
        """The most vectors that are trained on."""
        return max(TRAINED, _ROWS_PER_CELL * self.choice.size.n_lists)

    def agreed(self) -> Record:
        """What identifies the job; ValueError if processes have different ones."""
        if self.choice.method == BEST and self.group.size > 1:
            raise ValueError("method is 'best', which is for one process; leave torchrun out, or type method='product'")
        queries = None if self.queries is None else _storage.digest(self.queries)
        identity = {
            "vectors": self.file.describe(), "train_rows": self.n_trained, "queries": queries,
            "method": self.choice.method, "seconds": self.choice.seconds, **asdict(self.choice.size),
        }  # fmt: skip
        for what, value in identity.items():
            self.group.agree(value, what)
        return identity

    def checked(self, kept: KeptVectors | None) -> KeptVectors | None:
        """Kept vectors with their offsets; ValueError for vectors that cannot be encoded, or kept in that type."""
        with self.steps.step("check") as callback:
            mine = self.file.part(*self.group.share(len(self.file)))
            mine.check_finite(callback, metric=self.choice.size.metric)
            check_not_vanishing(self.file.rows(self.file.draw(_OFFSETS_FROM, 0)), self.choice.size.metric)
            kept = None if kept is None else kept.about(self.file.sample(_OFFSETS_FROM, 0))
            if kept is not None and not np.can_cast(self.file.dtype, kept.dtype):
                for chunk in mine.chunks():
                    kept.check(chunk)
            self.group.barrier()
        return kept

    def trained(self, work: Path | None) -> tuple[Index, list[Record]]:
        """The index without rows, and the comparison that chose its codec; that of the work folder, if it is there."""
        if work is not None and not _missing(work, [_TRAINED], self.group):
            return Index.load(work / _TRAINED), []
        made = self._fitted(self._sample())
        size = self.choice.size
        empty = Index.empty(self.file.shape[1], made.quantizer, size.metric, norms=made.norms)
        if work is not None and self.group.rank == 0:
            empty.save(work / _TRAINED, overwrite=True)
        return empty, made.trials

    def _sample(self) -> np.ndarray:
        """The vectors to train on, read in shares that end with `CellSums`'s blocks: sums keep their bits."""
        with self.steps.step("sample"):
            numbers = self.file.draw(self.n_trained, self.choice.size.random_state)
            first, stop = self.group.share(len(numbers), block_rows(self.choice.size.n_centroids))
            return self.file.take(numbers[first:stop])

    def _fitted(self, sample: np.ndarray) -> Best:
        size, method = self.choice.size, self.choice.method
        with self.steps.step("train") as callback:
            if method != BEST:
                if size.metric == "cosine":
                    sample = normalised(sample)
                    # of norm 1, as the queries are: distances rank alike, and only these choose a rotation
                    size = size if self.queries is None else replace(size, metric="l2")
                return Best(*fitted_codec(CODECS[method], size, sample, self.queries, callback), [])
            return best(
                sample, size.n_bytes, self.queries, self.choice.seconds,
                n_vectors=len(self.file), metric=size.metric,
                n_lists=size.n_lists, random_state=size.random_state, callback=callback,
            )  # fmt: skip

    def encoded(self, empty: Index, work: Path | None) -> Index:
        """The index of all rows, like the trained one; it stays empty on ranks other than 0."""
        index = copy.deepcopy(empty)
        with self.steps.step("encode") as callback:
            if work is None:
                for chunk in self.file.chunks(callback=callback):
                    index.add(chunk)
            blocks = [] if work is None else self._encoded_blocks(empty, work, callback)
            for block in blocks if self.group.rank == 0 else ():
                index.merge(Index.load(block))
                callback(len(index), {"total": len(self.file)})
        index.errors = index.errors[::-1]  # of the vectors that the index is built from
        return index

    def _encoded_blocks(self, empty: Index, work: Path, callback: Callback) -> list[Path]:
        """Encode the missing blocks of rows, each rank its share; returns the saved indexes of all, in order."""
        n = len(self.file)
        size = min(_MOST, max(_FEWEST, -(-n // _BLOCKS)))
        starts = {f"rows-{first:013d}": first for first in range(0, n, size)}
        missing = _missing(work, starts, self.group)
        mine = missing[slice(*self.group.share(len(missing)))]
        parts = {name: self.file.part(starts[name], min(starts[name] + size, n)) for name in mine}
        total, done = sum(map(len, parts.values())), 0
        for name, part in parts.items():
            index = copy.deepcopy(empty)
            for chunk in part.chunks():
                index.add(chunk)
                done += len(chunk)
                callback(done, {"total": total})
            index.save(work / name, overwrite=True)
        self.group.barrier()
        return [work / name for name in starts]


def _usable_queries(queries: np.ndarray, choice: Choice, d: int) -> np.ndarray:
    """The queries (q, d), normalised for cosine; ValueError if the method has nothing to choose by queries."""
    metric = choice.size.metric
    if choice.method != BEST:
        made = CODECS[choice.method].unfitted(choice.size)
        if not isinstance(made, nk.ProductQuantizer) or made.n_lists or made.rotation is None or metric == "ip":
            raise ValueError(
                "queries choose between codecs (method 'best') or, by distance, between the starts of a rotation (of "
                "'product', 'cayley', 'givens-...', without lists); this method trains in one way: leave queries out"
            )
    queries = check_queries(queries, d, min_rows=FEWEST_QUERIES, metric=metric)
    return normalised(queries) if metric == "cosine" else queries


def _settings(quantizer: object) -> Record:
    """The class of a quantizer and those of its parameters that JSON holds; a generator of random numbers has none."""
    given = quantizer.get_params() if isinstance(quantizer, BaseEstimator) else {}
    plain = {name: value for name, value in given.items() if value is None or isinstance(value, str | int | float)}
    return {"class": type(quantizer).__name__, **plain}


def _record(
    file: VectorFile, index: Index, fitted: object, run: Record, queries: np.ndarray | None, steps: Steps
) -> Record:
    """Sizes of the index and the recall of its codes."""
    record: Record = {
        "data": file.name, "vectors": len(file), "dimensions": file.shape[1], "metric": index.metric,
        "code": _settings(fitted), "bytes_per_vector": index.bytes_per_vector,
        "compression": 4 * file.shape[1] / index.bytes_per_vector,
        "lengths": None, "distortion": None, "variance_kept": None,
    }  # fmt: skip
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
    checkpoint: StrPath | None, out: StrPath, identity: Record, group: Group, overwrite: bool
) -> Iterator[Path | None]:
    """The work folder `checkpoint`, kept if the block fails; several processes have one near `out`; else None.

    Rank 0 makes and removes it, so it must lie on a file system that all ranks share.
    """
    if checkpoint is None and group.size == 1:
        yield None
        return
    place, keep, done = Path(out).absolute(), checkpoint is not None, False
    path = place.with_name(f".{place.name}.parts") if checkpoint is None else Path(checkpoint)
    with ExitStack() as locks:
        if group.rank == 0:
            _open_work(path, identity, locks, resume=keep, overwrite=overwrite or not keep)
        group.barrier()
        if not path.exists():
            raise ValueError(
                f"rank {group.rank} does not see {path}, which rank 0 has made; it must lie on a file system that all "
                "ranks share"
            )
        try:
            yield path
            done = True
        finally:
            if group.rank == 0 and (done or not keep) and not _storage.strangers(path):
                _storage.discard(path)


def _open_work(path: Path, identity: Record, locks: ExitStack, *, resume: bool, overwrite: bool) -> None:
    """Make the work folder, or check that it is of this job, and lock it; ValueError if another process has it."""
    _storage.recover(path)
    if path.is_dir() and any(path.iterdir()):
        locks.enter_context(_storage.changing(path, wait=False))
        begun = _storage.read_config(path, KIND)["job"]
        if begun == identity and resume:
            _storage.sweep(path)
            return
        if not overwrite:
            key = next(key for key in identity if begun.get(key) != identity[key])
            raise ValueError(
                f"{path} is of another run ({key} was {begun.get(key)}, is {identity[key]}); give another folder, or "
                "overwrite=True to start again"
            )
    with _storage.saving_folder(path, KIND, {"job": identity}, overwrite):
        pass
    locks.close()
    locks.enter_context(_storage.changing(path, wait=False))


def _missing(work: Path, names: Iterable[str], group: Group) -> list[str]:
    """Those of the parts of a work folder that are still to make, in every process the same."""
    missing = list[str]()
    if group.rank == 0:
        _storage.list_added(work, *names)
        missing = [name for name in names if not _is_whole(work / name)]
    return group.exchange(missing)[0]


def _is_whole(part: Path) -> bool:
    try:
        Index.load(part)
    except (FileNotFoundError, ValueError):
        return False
    return True
