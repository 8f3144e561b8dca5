"""A file of vectors turned for an engine, a chunk at a time, and the rotation kept beside it for the queries."""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import nearkin as nk
from nearkin._check import check_choice
from nearkin._storage import check_target, replacing, replacing_folder
from nearkin._types import Record, Seed
from nearkin.contracts import Callback
from nearkin.data import VectorFile
from nearkin.data.formats.parquet import import_pyarrow
from nearkin.pipeline.folder import read_record, write_record
from nearkin.pipeline.outputs import MARK, array_header
from nearkin.pipeline.rotate.engines import codec_for
from nearkin.pipeline.steps import Steps

SAMPLE = 20_000  # rows from which the rotation is learned and judged: more than it uses
PRODUCT_ROWS = 1024  # half of the sample are learned from, and 256 centroids need as many rows
ENDINGS = (".npy", ".parquet")
TURNED = "turned.json"  # in the rotation's folder: which file it turned
_BEGINNING = 2**16  # bytes of that file under the checksum


def rotate_file(
    file: VectorFile,
    engine: str,
    out: str | os.PathLike,
    *,
    queries: np.ndarray | None = None,
    center: bool = False,
    random_state: Seed = None,
    steps: Steps | None = None,
) -> Record:
    """Learn the rotation for an engine's codes and write the turned vectors to `out` (.npy, .parquet).

    `queries` (q, d), at least 20, choose it where rows will be searched by others than themselves. It is saved in the
    folder `out` with the ending .rotation, for `rotate_with`. Distances stay as they are as long as queries are turned
    too, and without `center`, which takes the rows' mean off first, so do inner products. Returns the record to print.
    ValueError before any work for an engine in which a rotation gains nothing.
    """
    steps, folder = steps or Steps(), rotation_folder(out)
    codec = codec_for(engine, file.shape[1])
    check_out(out)
    check_target(folder)
    file.check_finite()
    if isinstance(codec, str) and codec.startswith("pq") and len(file) < PRODUCT_ROWS:
        raise ValueError(
            f"--for {engine} needs at least {PRODUCT_ROWS} rows to learn product codes; there are {len(file)}"
        )
    with steps.step("learn"):
        rotation = nk.Rotation(codec, center=center, random_state=random_state)
        rotation.fit(file.sample(SAMPLE, random_state), queries=queries)
    with steps.step("turn") as callback:
        write_turned(file, rotation, out, callback)
        with replacing_folder(folder) as fresh:
            rotation.save(fresh)
            write_record(fresh / TURNED, _mark(Path(out)))
    return {
        "data": file.name, "engine": engine, "out": str(out), "rotation": str(folder), "vectors": len(file),
        "dimensions": file.shape[1], "chosen": rotation.chosen_, "recall": rotation.recall_, "gain": rotation.gain_,
        "seconds": steps.seconds,
    }  # fmt: skip


def rotate_with(
    file: VectorFile, folder: str | os.PathLike, out: str | os.PathLike, *, steps: Steps | None = None
) -> Record:
    """Turn other vectors, such as queries, by a rotation that `rotate_file` kept.

    ValueError for another width, and where the vectors beside the folder were not turned by it: a `rotate_file` that
    was killed between its two outputs leaves them so.
    """
    steps, rotation = steps or Steps(), nk.Rotation.load(folder)
    check_pair(Path(folder))
    check_out(out)
    file.check_finite()
    with steps.step("turn") as callback:
        write_turned(file, rotation, out, callback)
    return {
        "data": file.name, "out": str(out), "rotation": str(folder), "vectors": len(file),
        "dimensions": file.shape[1], "seconds": steps.seconds,
    }  # fmt: skip


def rotation_folder(out: str | os.PathLike) -> Path:
    """The folder of the rotation beside the turned vectors."""
    return Path(out).with_suffix(".rotation")


def _mark(file: Path) -> Record:
    """What tells turned vectors from those of another rotation: the file's length, and a checksum of its beginning."""
    with file.open("rb") as stream:
        return {
            "file": file.name,
            "bytes": file.stat().st_size,
            "crc32": zlib.crc32(stream.read(_BEGINNING)),
        }


def check_pair(folder: Path) -> None:
    """ValueError if the turned vectors beside a rotation's folder are not those that were written together with it."""
    mark = read_record(folder, TURNED)
    if mark is None:  # of a folder that `Rotation.save` wrote
        return
    file = folder.parent / str(mark.get("file"))
    if file.is_file() and _mark(file) != mark:
        raise ValueError(
            f"{file} is not the file that was written together with {folder}; turn the vectors again by nearkin rotate "
            "--for, or give the file another name if you changed it since"
        )


def check_out(out: str | os.PathLike) -> None:
    """ValueError for an ending that turned vectors are not written to."""
    check_choice(Path(out).suffix.lower(), "the ending of --out", ENDINGS)
    if Path(out).suffix.lower() == ".parquet":
        import_pyarrow()


def write_turned(file: VectorFile, rotation: "nk.Rotation", out: str | os.PathLike, callback: Callback) -> None:
    """Write all rows of a file, turned: an array (n, d), or a column "vector" of lists."""

    def turned() -> Iterator[np.ndarray]:
        done = 0
        for chunk in file.chunks():
            yield np.ascontiguousarray(rotation.transform(chunk), np.float32)
            done += len(chunk)
            callback(done, {"total": len(file)})

    with replacing(out) as fresh:
        if Path(out).suffix.lower() == ".npy":
            with fresh.open("wb") as stream:
                stream.write(array_header(file.shape))
                for chunk in turned():
                    stream.write(chunk.astype("<f4", copy=False).data)
            return
        pa, parquet = import_pyarrow()
        schema = pa.schema([("vector", pa.list_(pa.float32(), file.shape[1]))], metadata={MARK: b"rotate"})
        with parquet.ParquetWriter(fresh, schema) as writer:
            for chunk in turned():
                lists = pa.FixedSizeListArray.from_arrays(pa.array(chunk.ravel()), file.shape[1])
                writer.write_table(pa.table({"vector": lists}, schema=schema))
