"""`nearkin encode`: many files of vectors to as many files of codes, by a pool of processes, resumable at any point.

Memory holds a chunk of 8 MB per process. A finished file is renamed into place and then entered in manifest.json with
its checksum. Files that are not entered there, or have another checksum, are encoded again.
"""

import hashlib
import json
import multiprocessing
import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from multiprocessing.context import BaseContext
from pathlib import Path

import numpy as np
import pyarrow as pa
from filelock import FileLock, Timeout
from pyarrow import parquet
from threadpoolctl import threadpool_limits

from nearkin._check import check_integer
from nearkin._fields import Record, StrPath
from nearkin._storage import check_inputs, is_workspace, recover, replacing, sweep, write_rows
from nearkin.contracts import Callback, ignore
from nearkin.data import VectorFile, open_vectors
from nearkin.data.files import locate_all
from nearkin.export.batch_encoder import BatchEncoder, binary_column

SUFFIXES = (".npy", ".parquet")
MANIFEST = "manifest.json"
_VERSION = 1
_LOCK = ".lock"


def encode_shards(
    shards: list[str],
    model: StrPath,
    out: StrPath,
    *,
    workers: int = 1,
    replace: bool = False,
    callback: Callback = ignore,
) -> Record:
    """Encode every file of `shards` (.npy or .parquet, names or patterns) to a file of its name in the folder `out`.

    .npy gives .npy (n, width); .parquet gives .parquet with its other columns unchanged and the binary column "codes"
    in place of the vectors. `replace` encodes all shards again, in a folder next to `out`, which keeps its codes until
    the new ones are complete. `callback(rows, {"total": n})` is called after each shard.

    Before any work: FileNotFoundError for a missing shard; ValueError for shards of another width than the model, of
    different types or of the same name, and for an `out` that another model made or that holds other files.
    ChildProcessError if a worker is killed: the finished shards stay, and the same call resumes.
    """
    out, encoder = Path(out), BatchEncoder(model)
    check_integer(workers, "workers", low=0)
    sources = _checked_sources(sorted({where.path for where in locate_all(shards)}), encoder)
    recover(out)
    _check_folder(out, sources, replace)
    check_inputs(out, sources)
    out.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(out / _LOCK).acquire(timeout=0)
    except Timeout as error:
        raise ValueError(f"{out} is being written by another process; wait for it or give another --out") from error
    with lock:
        sweep(out)
        _check_folder(out, sources, replace)  # again: now no other process writes there
        fill = _replace if replace and (out / MANIFEST).is_file() else _fill
        skipped = fill(out, sources, encoder, workers, callback)
    return {
        "out": str(out),
        "shards": len(sources),
        "skipped": skipped,
        "rows": sum(sources.values()),
        "dimensions": encoder.n_features,
        "bytes_per_vector": encoder.n_bytes,
        "manifest": str(out / MANIFEST),
    }


def read_codes(folder: Path) -> tuple[str, dict[str, Record]]:
    """The model in manifest.json and the finished shards' entries by source; ValueError for another program's file."""
    file = folder / MANIFEST
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        kind, version, model = record["kind"], int(record["format_version"]), str(record["model"])
        entries = {str(name): {**entry, "file": str(entry["file"])} for name, entry in record["shards"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{file} is damaged or of another program ({error!r}); give another --out") from error
    if kind != "codes":
        raise ValueError(f"{file} is of the kind {kind!r}, not nearkin's codes; give another --out")
    if version > _VERSION:
        raise ValueError(f"{file} has format version {version}, this nearkin reads up to {_VERSION}")
    return model, entries


def _write_codes(folder: Path, model: str, entries: dict[str, Record]) -> None:
    record = {"kind": "codes", "format_version": _VERSION, "model": model, "shards": entries}
    with replacing(folder / MANIFEST) as fresh:
        fresh.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def is_whole(folder: Path, entry: Record) -> bool:
    file = folder / entry["file"]
    return file.is_file() and file.stat().st_size == entry["bytes"] and _sha256(file) == entry["sha256"]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checked_sources(paths: list[Path], encoder: BatchEncoder) -> dict[Path, int]:
    """Number of rows of every shard, from its header."""
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
        raise ValueError(f"shards are of different types ({shown}); give one type at a time, each its own folder")
    return rows


def _check_folder(out: Path, sources: Iterable[Path], replace: bool) -> None:
    """ValueError if `out` holds no codes of ours; with `replace` also if it holds a file that is not of this job."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; give the name of a folder")
    names = {entry.name for entry in out.iterdir() if not is_workspace(entry)} if out.is_dir() else set()
    if not names - {_LOCK}:
        return
    if MANIFEST not in names:
        raise ValueError(f"{out} is a folder with other content; give a new name or an empty folder")
    entries = read_codes(out)[1].values()
    ours = {_LOCK, MANIFEST} | {entry["file"] for entry in entries} | {source.name for source in sources}
    if replace and names - ours:
        raise ValueError(
            f"{out} holds {min(names - ours)}, which is not of its codes and which --replace would remove; move it away"
        )


def _replace(out: Path, sources: dict[Path, int], encoder: BatchEncoder, workers: int, callback: Callback) -> int:
    """Encode all shards in a second folder, then exchange the two; returns how many were finished by an earlier try."""
    fresh_codes = out.with_name(f".{out.name}.fresh")  # written only by whoever has locked `out`
    _check_folder(fresh_codes, sources, True)
    if (fresh_codes / MANIFEST).is_file() and read_codes(fresh_codes)[0] != model_fingerprint(encoder):
        shutil.rmtree(fresh_codes)  # a try with a third model, which holds nothing but its codes
    fresh_codes.mkdir(exist_ok=True)
    sweep(fresh_codes)
    skipped = _fill(fresh_codes, sources, encoder, workers, callback)
    with replacing(out) as fresh:
        _check_folder(out, sources, True)  # again: the work may have taken hours
        fresh_codes.rename(fresh)
    return skipped


def _fill(folder: Path, sources: dict[Path, int], encoder: BatchEncoder, workers: int, callback: Callback) -> int:
    """Encode the shards that are not finished in `folder`; returns how many were."""
    model, entries = model_fingerprint(encoder), {}
    if (folder / MANIFEST).is_file():
        earlier, entries = read_codes(folder)
        if earlier != model:
            raise ValueError(f"{folder} holds codes of another model; give another --out, or --replace to start again")
    _write_codes(folder, model, entries)
    todo = []
    for source in sources:
        entry, stat = entries.get(str(source.resolve())), source.stat()
        known = None if entry is None else (entry["source_bytes"], entry["source_mtime_ns"])
        if entry is None or known != (stat.st_size, stat.st_mtime_ns) or not is_whole(folder, entry):
            todo.append(source)
    total = sum(sources.values())
    done = total - sum(sources[source] for source in todo)
    callback(done, {"total": total})
    for source, entry in _encoded(todo, encoder, folder, workers):
        entries[str(source.resolve())] = entry
        _write_codes(folder, model, entries)
        done += entry["rows"]
        callback(done, {"total": total})
    return len(sources) - len(todo)


def model_fingerprint(encoder: BatchEncoder) -> str:
    """A digest of the codes that a model gives to 256 random rows."""
    rows = np.random.default_rng(0).normal(size=(256, encoder.n_features)).astype(np.float32)
    return hashlib.sha256(encoder.encode(rows).tobytes()).hexdigest()[:16]


def _encoded(todo: list[Path], encoder: BatchEncoder, out: Path, workers: int) -> Iterator[tuple[Path, Record]]:
    """Yield each source with its entry for the manifest, as they finish."""
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
                "same command again to resume"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _context() -> BaseContext:
    """Workers fork from a server that has only imported: a fork of a process with OpenMP threads would hang."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nearkin.pipeline.encode"])
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


def encode_file(source: Path, encoder: BatchEncoder, out: Path) -> Record:
    """Encode one shard, whole or not at all; returns its entry in the manifest. OSError names the shard."""
    target, stat, file = out / source.name, source.stat(), open_vectors(source)
    with replacing(target) as fresh:
        if source.suffix.lower() == ".parquet":
            _encode_parquet(file, source, encoder, fresh)
        else:
            shape = (len(file), encoder.n_bytes // encoder.dtype.itemsize)
            write_rows(fresh, map(encoder.encode, file.chunks()), shape, encoder.dtype)
        checksum, size = _sha256(fresh), fresh.stat().st_size
    return {
        "file": target.name,
        "rows": len(file),
        "bytes": size,
        "sha256": checksum,
        "source_bytes": stat.st_size,
        "source_mtime_ns": stat.st_mtime_ns,
    }


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
