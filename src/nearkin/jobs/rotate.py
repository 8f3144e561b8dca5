"""`nearkin rotate` and `bridge`: vectors for other engines and encoders, from files."""

from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np

import nearkin as nk
from nearkin._check import check_choice
from nearkin._fields import StrPath, counted
from nearkin._storage import check_target, digest, replacing_folder
from nearkin._types import Record, Seed
from nearkin.data import VectorFile
from nearkin.jobs.outputs import check_ending, write_vectors
from nearkin.jobs.run import Steps, read_record, write_record

SAMPLE = 20_000  # rows to learn and judge the rotation: more than it uses
ENDINGS = (".npy", ".parquet")
ROTATED = "turned.json"  # in the rotation's folder: identifies the file that was rotated with it
FACTORY = "faiss:"  # followed by the string of a FAISS index
_START = 2**16  # bytes of that file in the digest


def _lance(d: int) -> str:
    """Lance cuts vectors into d / 16 parts of 8 bits, or d / 8 if 16 does not divide d."""
    for width in (16, 8):
        if d % width == 0:
            return f"pq{d // width}"
    raise ValueError(f"--for lance-ivf-pq needs a number of columns that 8 divides; the vectors have {d}")


_ITSELF = "it applies a random rotation itself, which undoes one made before"
ENGINES: dict[str, Callable[[int], str] | str] = {  # the codec of `nk.Rotation` for d columns, or why none gains
    "pgvector-bit": lambda d: "sign",
    "pgvector-halfvec": "half floats keep 11 bits of every number in any rotation",
    "qdrant-scalar": lambda d: "int8-all",
    "qdrant-binary": lambda d: "sign",
    "qdrant-turbo": _ITSELF,
    "lance-ivf-pq": _lance,
    "lance-rq": _ITSELF,
    "elasticsearch-bbq": lambda d: "rabitq",  # better binary quantization is RaBitQ without its rotation
    "elasticsearch-precondition": _ITSELF,
    "lucene-int8": lambda d: "int8-all",
    "milvus-rabitq": _ITSELF,
    "zvec-int8": lambda d: "int8-row",
    "zvec-int4": lambda d: "int4-row",
    "weaviate-rq": _ITSELF,
}


def codec_for(engine: str, d: int) -> "str | faiss.Index":
    """The codec of `nk.Rotation` for an engine and d columns; ValueError, with the reason, if it gains nothing."""
    if engine.startswith(FACTORY):
        try:
            return faiss.index_factory(d, engine.removeprefix(FACTORY))
        except RuntimeError as error:
            reason = str(error).rpartition(":")[2].strip()
            raise ValueError(
                f"--for {engine} is no index that FAISS makes for {counted(d, 'column')} ({reason})"
            ) from error
    found = ENGINES[check_choice(engine, "--for", [*ENGINES, f"{FACTORY}FACTORY"])]
    if isinstance(found, str):
        raise ValueError(f"a rotation gains nothing for {engine}: {found}; give it the vectors unchanged")
    return found(d)


def rotate_file(
    file: VectorFile,
    engine: str,
    out: StrPath,
    *,
    queries: np.ndarray | None = None,
    center: bool = False,
    random_state: Seed = None,
    steps: Steps | None = None,
    overwrite: bool = False,
) -> Record:
    """Train the rotation for an engine's codes and write the rotated vectors: `nearkin rotate`.

    The rotation is saved in the folder of the name `out` with the ending .rotation. `queries` (q, d) choose it;
    `center` subtracts the mean first. Returns the record, with the recall of each rotation tried.
    """
    steps, folder = steps or Steps(), Path(out).with_suffix(".rotation")
    codec = codec_for(engine, file.shape[1])
    check_ending(out, ENDINGS)
    check_target(folder, overwrite)
    file.check_finite()
    with steps.step("learn"):
        rotation = nk.Rotation(codec, center=center, random_state=random_state)
        rotation.fit(file.sample(SAMPLE, random_state), queries=queries)
    made = _write(file, rotation.transform, out, file.shape[1], "rotate", steps)
    with replacing_folder(folder, overwrite) as fresh:
        rotation.save(fresh)
        write_record(fresh / ROTATED, _identity(Path(out)))
    recall = {trial["candidate"]: trial["value"] for trial in rotation.trials_}
    learned = {"chosen": rotation.chosen_, "recall": recall, "gain": rotation.gain_}
    learned["gain_interval"] = [*rotation.gain_interval_]
    return made | {"rotation": str(folder), "engine": engine, **learned}


def transform_file(
    file: VectorFile, kind: type[nk.Rotation | nk.Bridge], folder: StrPath, out: StrPath, *, steps: Steps | None = None
) -> Record:
    """Write the rows of a file as the rotation or bridge in a folder gives them to `out` (.npy, .parquet)."""
    steps, saved = steps or Steps(), kind.load(folder)
    check_pair(Path(folder))
    check_ending(out, ENDINGS)
    file.check_finite()
    width = saved.transform(np.zeros((1, file.shape[1]), np.float32)).shape[1]
    step, name = ("rotate", "rotation") if kind is nk.Rotation else ("map", "bridge")
    return _write(file, saved.transform, out, width, step, steps) | {name: str(folder)}


def _write(
    file: VectorFile, transform: Callable[..., np.ndarray], out: StrPath, d: int, step: str, steps: Steps
) -> Record:
    """Write the transformed rows (n, d) of a file to `out`; returns what all records have."""
    with steps.step(step) as callback:
        write_vectors(out, map(transform, file.chunks(callback=callback)), (len(file), d))
    record: Record = {"data": file.name, "out": str(out), "vectors": len(file), "dimensions": d}
    return record | {"seconds": steps.seconds}


def _identity(file: Path) -> Record:
    """Name, length and a digest of the start of a file: they differ for files of different rotations."""
    with file.open("rb") as stream:
        return {"file": file.name, "bytes": file.stat().st_size, "start": digest(stream.read(_START))}


def check_pair(folder: Path) -> None:
    """ValueError if the rotated vectors next to a rotation's folder were not written together with it."""
    written = read_record(folder, ROTATED)
    if written is None:  # a folder of `Rotation.save`
        return
    file = folder.parent / str(written.get("file"))
    if file.is_file() and _identity(file) != written:
        raise ValueError(
            f"{file} is not the file that was written together with {folder}; rotate the vectors again by nearkin "
            "rotate --for, or give the file another name if you changed it since"
        )


def make_bridge(
    new: VectorFile,
    old: VectorFile,
    out: StrPath,
    bridge: nk.Bridge,
    *,
    steps: Steps | None = None,
    overwrite: bool = False,
) -> Record:
    """Train the map from `new` to `old`, whose vectors embed the same things, and save it in the folder `out`."""
    steps = steps or Steps()
    check_target(out, overwrite, [new.name, old.name])
    with steps.step("read"):
        pairs = new.read(), old.read()
    with steps.step("learn"):
        made = bridge.fit(*pairs)
    made.save(out, overwrite=overwrite)
    return {
        "old": old.name, "new": new.name, "out": str(out), "pairs": len(old), "metric": made.metric,
        "chosen": made.kind_, "kept": {trial["candidate"]: trial["value"] for trial in made.trials_},
        "chance": max(trial["chance"] for trial in made.trials_),
        "seconds": steps.seconds,
    }  # fmt: skip
