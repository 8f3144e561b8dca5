"""`nearkin encode`: many files of vectors to as many files of codes, by a pool of processes, resumable at any point.

Memory holds a chunk of 8 MB per process. Finished files wait in a work folder until all are there.
"""

import multiprocessing
import os
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from multiprocessing.context import BaseContext
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from threadpoolctl import threadpool_limits

from nearkin._check import check_integer
from nearkin._distributed import current
from nearkin._fields import Record, StrPath, counted
from nearkin._storage import MANIFEST, check_target, digest, saving_folder, write_rows
from nearkin.contracts import Callback, ignore
from nearkin.data import VectorFile, open_vectors
from nearkin.data.files import locate_all
from nearkin.export.batch_encoder import BatchEncoder, binary_column
from nearkin.jobs.work import work_place, working

SUFFIXES = (".npy", ".parquet")
KIND = "codes"


def encode_shards(
    shards: list[str],
    model: StrPath,
    out: StrPath,
    *,
    workers: int = 1,
    overwrite: bool = False,
    callback: Callback = ignore,
) -> Record:
    """Encode every file of `shards` (.npy or .parquet, names or patterns) to a file of its name in the folder `out`.

    .npy gives .npy (n, width); .parquet gives .parquet with its other columns unchanged and the binary column "codes"
    in place of the vectors. `out` appears when all are done. `callback(rows, {"total": n})` is called after each shard.

    Before any work: FileNotFoundError for a missing shard; ValueError for shards of another width than the model, of
    different types or of the same name, for an `out` that exists, without `overwrite`, and for finished shards that
    another model made. ChildProcessError if a worker is killed: the finished shards stay, and the same call resumes.
    """
    encoder = BatchEncoder(model)
    check_integer(workers, "workers", low=0)
    sources = _checked_sources(sorted({where.path for where in locate_all(shards)}), encoder)
    out = check_target(out, overwrite, sources)
    about = {source.name: _identity(source) for source in sources}
    some = np.random.default_rng(0).normal(size=(256, encoder.n_features)).astype(np.float32)
    job, total = {"model": digest(encoder.encode(some))}, sum(sources.values())
    with working(work_place(out), job, current(), {}, overwrite=overwrite) as work:
        missing = work.missing(about, about)
        todo = [source for source in sources if source.name in missing]
        done = total - sum(sources[source] for source in todo)
        callback(done, {"total": total})
        for source in _encoded(todo, encoder, work.path, workers):
            done += sources[source]
            callback(done, {"total": total})
        with saving_folder(out, KIND, job | {"shards": about}, overwrite) as folder:
            for name in about:
                _link(work.path / name / name, folder / name)
    return {
        "out": str(out),
        "shards": len(sources),
        "skipped": len(sources) - len(todo),
        "rows": total,
        "dimensions": encoder.n_features,
        "bytes_per_vector": encoder.n_bytes,
        "manifest": str(out / MANIFEST),
    }


def _identity(source: Path) -> Record:
    stat = source.stat()
    return {"source": str(source.resolve()), "source_bytes": stat.st_size, "source_mtime_ns": stat.st_mtime_ns}


def _link(file: Path, target: Path) -> None:
    """Give a finished file its second name; a kill before the end leaves it the first."""
    try:
        os.link(file, target)
    except OSError:  # a file system without links
        shutil.copyfile(file, target)


def _checked_sources(paths: list[Path], encoder: BatchEncoder) -> dict[Path, int]:
    """Number of rows of every shard, from its header."""
    rows, types, names = {}, {}, {}
    for path in paths:
        if path.suffix.lower() not in SUFFIXES:
            raise ValueError(f"{path} has the ending {path.suffix!r}; shards must be {' or '.join(SUFFIXES)}")
        file = open_vectors(path)
        if file.shape[1] != encoder.n_features:
            raise ValueError(
                f"{path} has {counted(file.shape[1], 'column')}; {encoder.model} takes {encoder.n_features}"
            )
        rows[path] = len(file)
        types.setdefault((path.suffix.lower(), str(file.dtype)), path)
        if (other := names.setdefault(path.name, path)) != path:
            raise ValueError(f"{other} and {path} have the same name; their codes would too, rename one")
    if len(types) > 1:
        shown = ", ".join(f"{path} is {dtype} in {suffix}" for (suffix, dtype), path in types.items())
        raise ValueError(f"shards are of different types ({shown}); give one type at a time, each its own folder")
    return rows


def _encoded(todo: list[Path], encoder: BatchEncoder, folder: Path, workers: int) -> Iterator[Path]:
    """Yield each source when its part is in the work folder."""
    if not workers or len(todo) < 2:
        for source in todo:
            encode_file(source, encoder, folder)
            yield source
        return
    with ProcessPoolExecutor(min(workers, len(todo)), mp_context=_context(), initializer=_start_worker) as pool:
        jobs = {pool.submit(encode_file, source, encoder, folder): source for source in todo}
        try:
            for job in as_completed(jobs):
                job.result()
                yield jobs[job]
        except BrokenProcessPool as error:
            raise ChildProcessError(
                "a worker was killed (by hand, or for memory: try fewer workers); finished shards are kept, run the "
                "same command again to resume"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _context() -> BaseContext:
    """Workers fork from a server that has only imported: a fork of a process with OpenMP threads would hang."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nearkin.jobs.encode"])
    return context


def _start_worker() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["OMP_NUM_THREADS"] = "1"  # of libraries that are loaded later
    threadpool_limits(1)


def _end_with_parent() -> None:
    """End this worker when its parent ends: otherwise it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def encode_file(source: Path, encoder: BatchEncoder, folder: Path) -> None:
    """Encode one shard to a part of the work folder, whole or not at all. OSError names the shard."""
    about, file = _identity(source), open_vectors(source)
    with saving_folder(folder / source.name, KIND, about, overwrite=True) as part:
        if source.suffix.lower() == ".parquet":
            _encode_parquet(file, source, encoder, part / source.name)
        else:
            shape = (len(file), encoder.n_bytes // encoder.dtype.itemsize)
            write_rows(part / source.name, map(encoder.encode, file.chunks()), shape, encoder.dtype)


def _encode_parquet(file: VectorFile, source: Path, encoder: BatchEncoder, fresh: Path) -> None:
    """Vectors in a list column: the other columns are kept. Vectors in numeric columns: only the codes are written."""
    with parquet.ParquetFile(source) as opened:
        lists = [field.name for field in opened.schema_arrow if pa.types.is_nested(field.type)]
        if lists:
            batches = encoder.arrow_batches(opened.iter_batches(file.chunk_rows), lists[0])
        else:
            columns = (binary_column(encoder.encode(chunk)) for chunk in file.chunks())
            batches = (pa.record_batch([column], names=[encoder.codes]) for column in columns)
        first = next(batches)
        with parquet.ParquetWriter(fresh, first.schema) as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch)
