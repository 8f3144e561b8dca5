"""A saved index and what lies beside it: run.json, how it was made, and evaluation.json, how it was judged."""

import json
import os
from pathlib import Path

import numpy as np

from nearkin._storage import changing, read_config, read_manifest, replacing, replacing_folder
from nearkin._types import Fields, Record
from nearkin._words import counted
from nearkin.contracts import Callback, ignore
from nearkin.data import VectorFile
from nearkin.index.index import Index

RUN, EVALUATION, KEPT = "run.json", "evaluation.json", "vectors.npy"  # KEPT: the name that Index.load looks for


def save_index(
    index: Index,
    out: str | os.PathLike,
    run: Fields,
    vectors: VectorFile | None = None,
    callback: Callback = ignore,
) -> None:
    """Save an index together with the record of its making, whole or not at all.

    `vectors` are the exact rows to keep for rescoring; they are copied a chunk at a time, never all in memory.
    """
    with replacing_folder(out) as fresh:
        index.save(fresh)
        write_record(fresh / RUN, run)
        if vectors is not None:
            _copy_vectors(vectors, fresh / KEPT, callback)


def _copy_vectors(vectors: VectorFile, path: Path, callback: Callback) -> None:
    """Write an .npy file as a stream: a map of it would count as our memory until it is on disk."""
    header = {"descr": "<f4", "fortran_order": False, "shape": vectors.shape}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        done = 0
        for chunk in vectors.chunks():
            file.write(chunk.astype("<f4", copy=False).data)
            done += len(chunk)
            callback(done, {"total": len(vectors)})


def bytes_on_disk(folder: str | os.PathLike) -> int:
    """Bytes of what was saved in a folder: codes, codebooks, ids, kept vectors; without reports added later."""
    manifest = read_manifest(Path(folder))
    if manifest is not None:
        return sum(entry.bytes for entry in manifest.files.values())
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def size_in_words(run: Fields, on_disk: int) -> dict[str, str]:
    """What a code and the whole folder take, each with the ratio to the same vectors as float32."""
    code, raw = run["bytes_per_vector"], 4 * run["dimensions"]
    whole = raw * run["vectors"]
    return {
        "code": f"{counted(code, 'byte')} a vector, {raw / code:.3g} times fewer than its {raw:,} as float32",
        "on disk": f"{megabytes(on_disk)} in all, {times(whole / on_disk)} than the {megabytes(whole)} of all vectors",
    }


def megabytes(count: float) -> str:
    """Bytes as people read them: 12.3 kB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def times(ratio: float) -> str:
    """A ratio of sizes as people read it."""
    return f"{ratio:.3g} times smaller" if ratio >= 1 else f"{1 / ratio:.3g} times larger"


def rows_in(folder: str | os.PathLike) -> int:
    """How many rows a saved index has, by its config.json."""
    return int(read_config(folder, "index")["n_rows"])


def read_record(folder: str | os.PathLike, name: str) -> Record | None:
    """Read run.json or evaluation.json of a saved index; None if there is none, ValueError if it is damaged."""
    read_config(folder)
    file = Path(folder) / name
    try:
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    except FileNotFoundError:  # gone in between
        return None
    except ValueError as error:
        raise ValueError(f"{file} is damaged ({error}); delete it or make the index again") from error


def version_of(folder: str | os.PathLike) -> tuple[int, int]:
    """What differs between a saved index and the one that takes its place."""
    found = (Path(folder) / "config.json").stat()
    return found.st_ino, found.st_mtime_ns


def save_evaluation(folder: str | os.PathLike, record: Fields, judged: tuple[int, int]) -> None:
    """Keep an evaluation beside the index that it judged, for the report; `judged` is that index's `version_of`.

    ValueError if the folder holds another index by now.
    """
    with changing(folder):
        if version_of(folder) != judged:
            raise ValueError(f"{folder} was changed while it was judged; evaluate it again")
        with replacing(Path(folder) / EVALUATION) as fresh:
            write_record(fresh, record)


def write_record(path: Path, record: Fields) -> None:
    """A record as JSON."""
    text = json.dumps(
        record, indent=2, allow_nan=False, default=lambda v: v.tolist() if hasattr(v, "tolist") else str(v)
    )
    path.write_text(text + "\n", encoding="utf-8")
