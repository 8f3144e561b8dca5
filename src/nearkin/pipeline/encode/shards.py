"""Many files of vectors to as many files of codes, by a pool of processes, restartable at any point.

Memory holds a chunk of 8 MB for each process, whatever the number of rows. A finished file is renamed into place and
then named in the manifest with its checksum; one that is not named there, or does not match, is made again.
"""

import glob
import hashlib
import multiprocessing
import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain
from multiprocessing.context import BaseContext
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout
from threadpoolctl import threadpool_limits

from nearkin._check import check_integer
from nearkin._storage import check_inputs, is_workspace, recover, replacing, sweep
from nearkin._types import Fields, Record
from nearkin.contracts import Callback, ignore
from nearkin.data import open_vectors
from nearkin.data.formats.parquet import import_pyarrow
from nearkin.pipeline.encode.batch_encoder import BatchEncoder, binary_column
from nearkin.pipeline.encode.manifest import MANIFEST, Manifest, file_sha256

SUFFIXES = (".npy", ".parquet")
_LOCK = ".lock"


def encode_shards(
    shards: list[str],
    model: str | os.PathLike,
    out: str | os.PathLike,
    *,
    workers: int = 1,
    replace: bool = False,
    callback: Callback = ignore,
) -> Record:
    """Encode every file of `shards` (.npy or .parquet, names or patterns) to a file of its name in the folder `out`.

    .npy gives .npy (n, width); .parquet gives .parquet with its other columns as they are and a binary column "codes"
    in the place of the vectors. `workers` processes, one thread each; 0 works in this one. Files that the manifest of
    `out` names as finished are checked and skipped. `callback(rows, {"total": n})` follows.

    Raises, before any work, FileNotFoundError for a missing shard and ValueError for shards of another width than the
    model's, of different types, of the same name, for an `out` that another model made, or that holds anything but
    codes of ours; ChildProcessError if a worker is killed. What is finished stays: run it again to go on. With
    `replace` all shards are encoded anew, beside `out`, whose codes stay until the new ones are whole.
    """
    out, encoder = Path(out), BatchEncoder(model)
    check_integer(workers, "workers", low=0)
    sources = _checked_sources(expand(shards), encoder)
    recover(out)
    check_codes_folder(out, sources, replace)
    check_inputs(out, sources)
    with _locked(out):
        sweep(out)
        check_codes_folder(out, sources, replace)  # again: nobody else writes from here on
        if not (replace and (out / MANIFEST).is_file()):
            skipped = _fill(out, sources, encoder, workers, callback)
        else:
            skipped = _replace(out, sources, encoder, workers, callback)
    return {
        "out": str(out),
        "shards": len(sources),
        "skipped": skipped,
        "rows": sum(sources.values()),
        "dimensions": encoder.n_features,
        "bytes_per_vector": encoder.n_bytes,
        "manifest": str(out / MANIFEST),
    }


def expand(shards: list[str]) -> list[Path]:
    """The files of names and patterns, sorted, each once; FileNotFoundError for a pattern that matches nothing."""
    found: set[Path] = set()
    for shard in map(os.fspath, shards):
        names = glob.glob(shard, recursive=True) if glob.has_magic(shard) and not Path(shard).exists() else [shard]
        if not names:
            raise FileNotFoundError(f"{shard} matches no file; check the pattern (current folder: {Path.cwd()})")
        found.update(map(Path, names))
    return sorted(found)


def _checked_sources(paths: list[Path], encoder: BatchEncoder) -> dict[Path, int]:
    """Rows of every shard; its header is read, no more."""
    rows, types, names = {}, {}, {}
    for path in paths:
        if path.suffix.lower() not in SUFFIXES:
            raise ValueError(f"{path} has the ending {path.suffix!r}; shards must be {' or '.join(SUFFIXES)}")
        file = open_vectors(path)
        if file.shape[1] != encoder.n_features:
            raise ValueError(f"{path} has {file.shape[1]} columns; {encoder.model} takes {encoder.n_features}")
        rows[path] = len(file)
        types.setdefault((path.suffix.lower(), str(file.dtype)), path)
        if (other := names.setdefault(path.name, path)) != path:
            raise ValueError(f"{other} and {path} have the same name; their codes would too, rename one")
    if len(types) > 1:
        shown = ", ".join(f"{path} is {dtype} in {suffix}" for (suffix, dtype), path in types.items())
        raise ValueError(f"shards are of different types ({shown}); give one type at a time, to folders of their own")
    return rows


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make `folder` and keep other processes out of it; ValueError if one is at work there."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / _LOCK, timeout=0):
            yield
    except Timeout as error:
        raise ValueError(f"{folder} is being written by another process; wait for it or give another --out") from error


def check_codes_folder(out: Path, sources: Iterable[Path], replace: bool) -> None:
    """ValueError if `out` holds anything but codes of ours; with `replace` also if a file there is not of this job."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; give the name of a folder")
    names = {entry.name for entry in out.iterdir() if not is_workspace(entry)} if out.is_dir() else set()
    if not names - {_LOCK}:
        return
    if MANIFEST not in names:
        raise ValueError(f"{out} is a folder with other content; give a new name or an empty folder")
    ours = {_LOCK, MANIFEST} | Manifest.read(out).files() | {source.name for source in sources}
    if replace and names - ours:
        raise ValueError(
            f"{out} holds {min(names - ours)}, which is not of its codes and which --replace would remove; move it away"
        )


def _replace(out: Path, sources: dict[Path, int], encoder: BatchEncoder, workers: int, callback: Callback) -> int:
    """Encode all of it beside `out`, then exchange the folders; returns how many shards an earlier try had finished."""
    beside = out.with_name(f".{out.name}.fresh")
    check_codes_folder(beside, sources, True)
    with _locked(beside):
        sweep(beside)
        if (beside / MANIFEST).is_file() and Manifest.read(beside).model != model_fingerprint(encoder):
            for name in (*sorted(Manifest.read(beside).files()), MANIFEST):  # of a try with yet another model
                (beside / name).unlink(missing_ok=True)
        skipped = _fill(beside, sources, encoder, workers, callback)
        with replacing(out) as fresh:
            check_codes_folder(out, sources, True)  # the work may have taken hours
            beside.rename(fresh)
    return skipped


def _fill(folder: Path, sources: dict[Path, int], encoder: BatchEncoder, workers: int, callback: Callback) -> int:
    """Encode into `folder` what its manifest does not name as finished; returns how many it did."""
    manifest = Manifest.load(folder, model_fingerprint(encoder))
    manifest.save(folder)
    todo = [source for source in sources if not manifest.has(folder, source)]
    total = sum(sources.values())
    done = total - sum(sources[source] for source in todo)
    callback(done, {"total": total})
    for source, entry in _worked(todo, encoder, folder, workers):
        manifest.add(source, entry)
        manifest.save(folder)
        done += entry["rows"]
        callback(done, {"total": total})
    return len(sources) - len(todo)


def model_fingerprint(encoder: BatchEncoder) -> str:
    """Names a model by what it does: the codes that it gives to 256 random rows."""
    rows = np.random.default_rng(0).normal(size=(256, encoder.n_features)).astype(np.float32)
    return hashlib.sha256(encoder.encode(rows).tobytes()).hexdigest()[:16]


def _worked(todo: list[Path], encoder: BatchEncoder, out: Path, workers: int) -> Iterator[tuple[Path, Fields]]:
    """Each source with its entry for the manifest, as they finish."""
    if not workers or len(todo) < 2:
        for source in todo:
            yield source, encode_file(source, encoder, out)
        return
    with ProcessPoolExecutor(min(workers, len(todo)), mp_context=_context(), initializer=_start_worker) as pool:
        jobs = {pool.submit(encode_file, source, encoder, out): source for source in todo}
        try:
            for job in as_completed(jobs):
                yield jobs[job], job.result()
        except BrokenProcessPool as error:
            raise ChildProcessError(
                "a worker was killed (by hand, or for memory: try fewer workers); finished shards are kept, run the "
                "same command again to go on"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _context() -> BaseContext:
    """Workers forked from a server that has done the imports and no work: copies of OpenMP's threads would hang."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nearkin.pipeline.encode.shards"])
    return context


def _start_worker() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["OMP_NUM_THREADS"] = "1"
    import faiss  # before the limit, which holds what is loaded

    faiss.omp_set_num_threads(1)
    threadpool_limits(1)


def _end_with_parent() -> None:
    """Without its parent, a worker would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def encode_file(source: Path, encoder: BatchEncoder, out: Path) -> Record:
    """Encode one shard, whole or not at all; returns its entry in the manifest. OSError names the shard."""
    target, stat = out / source.name, source.stat()
    try:
        with replacing(target) as fresh:
            rows = (_encode_parquet if source.suffix.lower() == ".parquet" else _encode_npy)(source, encoder, fresh)
            checksum, size = file_sha256(fresh), fresh.stat().st_size
    except OSError as error:
        text = f"{target} could not be written ({error.strerror or error}); finished shards are kept, run it again"
        raise (OSError(text) if error.errno is None else OSError(error.errno, text)) from error
    return {
        "file": target.name,
        "rows": rows,
        "bytes": size,
        "sha256": checksum,
        "source_bytes": stat.st_size,
        "source_mtime_ns": stat.st_mtime_ns,
    }


def _encode_npy(source: Path, encoder: BatchEncoder, fresh: Path) -> int:
    file = open_vectors(source)
    width = encoder.n_bytes // encoder.dtype.itemsize
    header = {"descr": np.lib.format.dtype_to_descr(encoder.dtype), "fortran_order": False, "shape": (len(file), width)}
    with fresh.open("wb") as codes:
        np.lib.format.write_array_header_1_0(codes, header)
        for chunk in file.chunks():
            codes.write(np.ascontiguousarray(encoder.encode(chunk)).data)
    return len(file)


def _encode_parquet(source: Path, encoder: BatchEncoder, fresh: Path) -> int:
    """A table whose vectors lie in one list column keeps its other columns; one of numeric columns becomes codes."""
    pa, parquet = import_pyarrow()
    vectors = open_vectors(source)
    with parquet.ParquetFile(source) as file:
        lists = [field.name for field in file.schema_arrow if pa.types.is_nested(field.type)]
        if lists:
            batches = encoder.arrow_batches(file.iter_batches(vectors.chunk_rows), lists[0])
        else:
            columns = (binary_column(pa, encoder.encode(chunk)) for chunk in vectors.chunks())
            batches = (pa.record_batch([column], names=[encoder.codes]) for column in columns)
        first = next(batches)
        with parquet.ParquetWriter(fresh, first.schema) as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch)
    return len(vectors)
