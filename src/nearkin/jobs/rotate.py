"""`nearkin rotate`: vectors for other engines, from files."""

from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np

import nearkin as nk
from nearkin._check import check_choice
from nearkin._fields import StrPath, command, counted
from nearkin._storage import check_target, digest, replacing_folder
from nearkin._types import Record
from nearkin.data import VectorFile
from nearkin.jobs.arguments import File, Folder
from nearkin.jobs.inputs import open_file, open_queries
from nearkin.jobs.outputs import check_file, write_vectors
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
    raise ValueError(f"lance-ivf-pq needs a number of columns that 8 divides; the vectors have {d}")


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
            raise ValueError(f"{engine} is no index that FAISS makes for {counted(d, 'column')} ({reason})") from error
    found = ENGINES[check_choice(engine, "for_", [*ENGINES, f"{FACTORY}FACTORY"])]
    if isinstance(found, str):
        raise ValueError(f"a rotation gains nothing for {engine}: {found}; give it the vectors unchanged")
    return found(d)


def rotate(
    vectors: File,
    *,
    out: File,
    for_: str | None = None,
    with_: Folder | None = None,
    queries: File | None = None,
    center: bool = False,
    seed: int = 0,
    overwrite: bool = False,
) -> Record:
    """Rotate vectors so that another engine's codes find more of their neighbours.

    The rotation is trained for the engine's codes and measured on held-out vectors. Distances do not change; if no
    rotation is better than none, none is applied. It is saved next to the vectors, in OUT with the ending .rotation:
    queries must be rotated by it too (`with_`). For an engine that rotates vectors itself the command stops with an
    error.

    Examples:

    - nearkin rotate X.npy --for pgvector-bit --out X_rot.parquet
    - nearkin rotate X.npy --for pgvector-bit --center --queries Q.npy --out X_rot.parquet
    - nearkin rotate Q.npy --with X_rot.rotation --out Q_rot.npy
    - nearkin rotate X.npy --for faiss:SQ4 --out X_rot.npy

    Parameters
    ----------
    vectors: The vectors, as `nearkin compress` reads them.
    out: File to write: the rotated vectors, .npy, or .parquet with their ids.
    for_: pgvector-bit, qdrant-scalar, qdrant-binary, lance-ivf-pq, elasticsearch-bbq, lucene-int8, zvec-int4, or
        faiss:FACTORY, such as faiss:SQ4.
    with_: A folder saved before: its rotation rotates the queries VECTORS.
    queries: Queries, if they are unlike the vectors: the rotation is chosen by their recall; at least 20. Without them,
        vectors are held out as queries.
    center: Subtract the mean of the vectors first, from queries too. Distances do not change; inner products and angles
        do. Sign bits gain most by it.
    seed: Seed of everything random: the same seed gives the same result.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    """
    if (for_ is None) == (with_ is None):
        raise ValueError("say what to rotate the vectors for: for_=..., an engine, or with_=..., a folder, for queries")
    check_file(out, overwrite, [vectors, queries, with_], ENDINGS)
    file = open_file(vectors)
    if with_ is not None:
        if queries is not None or center:
            raise ValueError("queries and center train a rotation, and with takes a trained one; leave them out")
        return transform_file(file, nk.Rotation, with_, out)
    steps, folder = Steps(), Path(out).with_suffix(".rotation")
    codec = codec_for(str(for_), file.shape[1])
    check_target(folder, overwrite)
    file.check_finite()
    Q = None if queries is None else open_queries(queries).vectors
    with steps.step("learn"):
        rotation = nk.Rotation(codec, center=center, random_state=seed)
        rotation.fit(file.sample(SAMPLE, seed), queries=Q)
    made = _write(file, rotation.transform, out, file.shape[1], "rotate", steps)
    with replacing_folder(folder, overwrite) as fresh:
        rotation.save(fresh)
        write_record(fresh / ROTATED, _identity(Path(out)))
    recall = {trial["candidate"]: trial["value"] for trial in rotation.trials_}
    return made | {
        "rotation": str(folder), "engine": for_, "queries": queries, "center": center, "chosen": rotation.chosen_,
        "recall": recall, "gain": rotation.gain_, "gain_interval": [*rotation.gain_interval_],
        "next": [command("rotate", "Q.npy", **{"with": folder}, out="Q_rot.npy")],
    }  # fmt: skip


def transform_file(file: VectorFile, kind: type[nk.Rotation | nk.Bridge], folder: StrPath, out: StrPath) -> Record:
    """Write the rows of a file as the rotation or bridge in a folder gives them to `out` (.npy, .parquet)."""
    steps, saved = Steps(), kind.load(folder)
    check_pair(Path(folder))
    if file.shape[1] != saved.n_features_in_:
        given, needed = (counted(width, "column") for width in (file.shape[1], saved.n_features_in_))
        raise ValueError(f"{file.name} has {given}; {folder} was trained on vectors of {needed}")
    file.check_finite()
    width = saved.transform(np.zeros((1, file.shape[1]), np.float32)).shape[1]
    step, name = ("rotate", "rotation") if kind is nk.Rotation else ("map", "bridge")
    return _write(file, saved.transform, out, width, step, steps) | {name: str(folder)}


def _write(
    file: VectorFile, transform: Callable[..., np.ndarray], out: StrPath, d: int, step: str, steps: Steps
) -> Record:
    """Write the transformed rows (n, d) of a file to `out`, with its ids; returns what all records have."""
    with steps.step(step) as callback:
        write_vectors(out, map(transform, file.chunks(callback=callback)), (len(file), d), file.ids())
    return {"data": file.name, "out": str(out), "vectors": len(file), "dimensions": d, "seconds": steps.seconds}


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
            f"{file} is not the file that was written together with {folder}; rotate the vectors again, or give the "
            "file another name if you changed it since"
        )
