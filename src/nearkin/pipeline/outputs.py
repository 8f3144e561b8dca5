"""Files that commands write: the check of their place, and the tables of answers.

No output replaces an input or a file that nearkin did not write. A file of ours is recognised by its content: a report
by its footer, answers by their columns, rotated vectors by the length of their header. The same rule for folders is
`nearkin._storage.check_target`, which reads their manifest.
"""

import csv
import glob
import os
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from nearkin._check import check_choice
from nearkin._fields import StrPath
from nearkin._storage import regular_file, replacing
from nearkin._types import ArrayLike, Record
from nearkin.index.hits import found, long_form

ANSWER_ENDINGS = (".parquet", ".csv", ".tsv", ".npz")
COLUMNS = ("query", "rank", "id", "score")
MARK = b"nearkin"  # key in the metadata of our .parquet files
HEADER = 256  # bytes of the header that marks our .npy files: NumPy's own have 128
_NPY = b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little")
_PAGES = (b"<footer>nearkin ", b'<meta name="generator" content="nearkin')
_ARRAYS = {"ids.npy", "scores.npy", "queries.npy"}
_SCORES = ("score", "cosine", "distance")

Answers: TypeAlias = tuple[Sequence[str] | np.ndarray, np.ndarray, np.ndarray]
"""Names of the queries (b,), scores (b, k), ids (b, k)."""


def check_output(out: StrPath, inputs: Iterable[StrPath] = (), *, foreign: bool = False) -> Path:
    """Return `out` as a path; ValueError if writing there would replace one of `inputs` (FILE, FILE:KEY or a pattern)
    or a file that nearkin did not write, unless it is empty. `foreign`: the command checks this itself."""
    out = Path(out)
    if not out.is_file():
        return out
    for name in [os.fspath(given) for given in inputs]:
        matched = glob.glob(name, recursive=True) if glob.has_magic(name) else []
        files = (name, name.rpartition(":")[0] or name, *matched)
        if any(os.path.exists(file) and os.path.samefile(file, out) for file in files):
            raise ValueError(f"{out} is an input of this command and would be replaced; give another --out")
    if not foreign and out.stat().st_size and not written_by_nearkin(out):
        raise ValueError(f"{out} was not written by nearkin and would be replaced; give another --out, or remove it")
    return out


def check_input(given: str) -> None:
    """FileNotFoundError if nothing has the name (FILE, FILE:KEY, FILE@BITS or a pattern), before a model is loaded."""
    names = (given, given.rpartition(":")[0], given.rpartition("@")[0])
    if not any(name and (os.path.exists(name) or glob.has_magic(name)) for name in names):
        regular_file(given)


def written_by_nearkin(file: Path) -> bool:
    """Whether a file has the content that a command writes under a name with this ending."""
    ending = file.suffix.lower()
    try:
        if ending in (".html", ".htm"):
            return any(mark in file.read_bytes() for mark in _PAGES)
        if ending in (".csv", ".tsv"):
            with file.open(encoding="utf-8", newline="") as lines:
                columns = next(csv.reader(lines, delimiter=_delimiter(file)), [])
            return len(columns) == 4 and columns[1] == "rank" and columns[3] in _SCORES
        if ending == ".npz":
            with zipfile.ZipFile(file) as archive:
                return set(archive.namelist()) == _ARRAYS
        if ending == ".npy":
            with file.open("rb") as stream:
                return stream.read(len(_NPY)) == _NPY
        return ending == ".parquet" and MARK in (parquet.read_schema(file).metadata or {})
    except (OSError, ValueError, csv.Error, zipfile.BadZipFile):
        return False


def _delimiter(table: Path) -> str:
    return "\t" if table.suffix.lower() == ".tsv" else ","


def write_vectors(out: StrPath, chunks: Iterable[np.ndarray], shape: tuple[int, int], command: str) -> None:
    """Write rows of `shape` (n, d) that come in chunks, whole or not at all.

    .npy: an array float32; .parquet: a column "vector" of lists, marked by the command that made it.
    """
    made = (np.ascontiguousarray(chunk, "<f4") for chunk in chunks)
    with replacing(out) as fresh:
        if Path(out).suffix.lower() == ".npy":
            text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
            with fresh.open("wb") as stream:
                stream.write(_NPY + text.encode().ljust(HEADER - len(_NPY) - 1) + b"\n")
                for chunk in made:
                    stream.write(chunk.data)
            return
        schema = pa.schema([("vector", pa.list_(pa.float32(), shape[1]))], metadata={MARK: command.encode()})
        with parquet.ParquetWriter(fresh, schema) as writer:
            for chunk in made:
                lists = pa.FixedSizeListArray.from_arrays(pa.array(chunk.ravel()), shape[1])
                writer.write_table(pa.table({"vector": lists}, schema=schema))


def check_ending(path: StrPath, endings: Sequence[str] = ANSWER_ENDINGS) -> Path:
    """Return the path of a file to write; ValueError for another ending or a folder."""
    path = Path(path)
    check_choice(path.suffix.lower(), f"the ending of {path}", endings)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    return path


def write_answers(
    path: StrPath, blocks: Iterable[tuple[ArrayLike, np.ndarray, np.ndarray]], columns: Sequence[str] = COLUMNS
) -> None:
    """Write blocks of queries (b,), scores (b, k) and ids (b, k) to a file by its ending, whole or not at all.

    Tables (.csv, .tsv, .parquet) have a row per query and place: query, rank (from 1), id and score, best first. Empty
    places of queries that found fewer than k are left out. An .npz holds the arrays `ids`, `scores` and `queries`.
    """
    path = check_ending(path)
    ending = path.suffix.lower()
    with replacing(path) as fresh, ExitStack() as files:
        if ending == ".npz":
            queries, scores, ids = (np.concatenate(part) for part in zip(*blocks, strict=True))
            np.savez(files.enter_context(fresh.open("wb")), ids=ids, scores=scores, queries=queries)
        elif ending == ".parquet":
            writer = None
            for block in blocks:
                table = pa.table(dict(zip(columns, long_form(*block), strict=True)), metadata={MARK: b"answers"})
                if writer is None:  # the first block gives the types of the columns
                    writer = files.enter_context(parquet.ParquetWriter(fresh, table.schema))
                writer.write_table(table)
        else:
            file = files.enter_context(fresh.open("w", newline="", encoding="utf-8"))
            writer = csv.writer(file, delimiter=_delimiter(path))
            writer.writerow(columns)
            for block in blocks:
                writer.writerows(zip(*(column.tolist() for column in long_form(*block)), strict=True))


def as_records(answers: Answers, columns: Sequence[str]) -> list[Record]:
    """Answers for JSON: one entry per query, without empty places."""
    entries = []
    for name, scores, ids in zip(*answers, strict=True):
        there = found(scores)
        entries.append({columns[0]: name, "ids": ids[there].tolist(), "scores": scores[there].tolist()})
    return entries
