"""Files that commands write: vectors, and the tables of answers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from nearkin._check import check_choice, check_output
from nearkin._faiss import answered
from nearkin._fields import StrPath
from nearkin._storage import check_target, replacing, write_rows
from nearkin._types import Fields, Record
from nearkin.data.formats.parquet import write_table
from nearkin.jobs.run import Steps

ANSWER_ENDINGS = (".parquet", ".csv", ".tsv", ".npz")
BLOCK = 16_384  # entities answered and written at a time
_QUERIES = 16_384  # whose answers become rows of a table at a time
BECAUSE = "because_of"  # column of explanations
COLUMNS = ("query", "rank", "id", "score")
SCORES = {  # metric of an index -> the column of its scores
    "l2": "squared_distance", "hamming": "hamming_distance", "ip": "similarity", "cosine": "similarity",
}  # fmt: skip

Answers: TypeAlias = tuple[Any, np.ndarray, np.ndarray, *tuple[np.ndarray, ...]]
"""Names of the queries (b,), scores (b, k), ids (b, k), and where they are explained the text "because_of" (b, k)."""


def write_vectors(out: StrPath, chunks: Iterable[np.ndarray], shape: tuple[int, int], ids: np.ndarray | None) -> None:
    """Write vectors of `shape` (n, d) that come in chunks, whole or not at all: .npy of float32, or .parquet with a
    column "vector" of lists and, if there are `ids` (n,), a column "id"."""
    with replacing(out) as fresh:
        if Path(out).suffix.lower() == ".npy":
            write_rows(fresh, chunks, shape, np.dtype(np.float32))
            return
        lists = (pa.FixedSizeListArray.from_arrays(chunk.astype(np.float32).ravel(), shape[1]) for chunk in chunks)
        names = iter(() if ids is None else ids.tolist())
        named = (({} if ids is None else {"id": list(islice(names, len(part)))}) | {"vector": part} for part in lists)
        write_table(fresh, named, ".parquet")


def check_ending(path: StrPath, endings: Sequence[str] = ANSWER_ENDINGS) -> Path:
    """Return the path of a file to write; ValueError for another ending or a folder."""
    path = check_output(path)
    check_choice(path.suffix.lower(), f"the ending of {path}", endings)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    return path


def check_file(
    out: StrPath | None, overwrite: bool, inputs: Iterable[StrPath | None], endings: Sequence[str] = ()
) -> None:
    """ValueError for a file, if there is one to write, that may not be written: see `check_target`, `check_ending`."""
    if out is not None:
        out = check_ending(out, endings) if endings else out
        check_target(out, overwrite, filter(None, inputs), folder=False)


def write_answers(path: StrPath, blocks: Iterable[Answers], columns: Sequence[str] = COLUMNS) -> None:
    """Write blocks of answers to a file by its ending, whole or not at all.

    Tables (.csv, .tsv, .parquet) have a vector per query and place: query, rank (from 1), id and score, best first.
    Empty places of queries that found fewer than k are left out. An .npz holds the arrays `ids`, `scores` and
    `queries`.
    """
    path = check_ending(path)
    ending = path.suffix.lower()
    with replacing(path) as fresh:
        if ending != ".npz":
            parts = (part for block in blocks for part in _long_forms(block))
            write_table(fresh, (dict(zip(columns, part, strict=True)) for part in parts), ending)
            return
        whole = [np.concatenate(part) for part in zip(*blocks, strict=True)]
        with fresh.open("wb") as file:
            np.savez(file, **dict(zip(("queries", "scores", "ids", BECAUSE), whole, strict=False)))


def _long_forms(answers: Answers) -> Iterator[list[np.ndarray]]:
    """Queries, ranks from 1, ids, scores and explanations (rows,) of some queries at a time, without empty places: a
    table of a million queries takes gigabytes before it is written."""
    for first in range(0, max(1, len(answers[0])), _QUERIES):
        names, scores, ids, *more = (part[first : first + _QUERIES] for part in answers)
        rows, places = np.nonzero(answered(scores))
        yield [np.asarray(names)[rows], places + 1, *(part[rows, places] for part in (ids, scores, *more))]


def as_records(answers: Answers, columns: Sequence[str]) -> list[Record]:
    """Answers for JSON: one entry per query, without empty places."""
    entries = []
    for name, scores, ids, *more in zip(*answers, strict=True):
        parts = zip(("ids", "scores", BECAUSE), (ids, scores, *more), strict=False)
        entries.append({columns[0]: name} | {part: cells[answered(scores)].tolist() for part, cells in parts})
    return entries


def answer_in_blocks(
    rows: np.ndarray,
    answer: Callable[[np.ndarray], Answers],
    out: StrPath | None,
    columns: Sequence[str],
    steps: Steps,
    about: Fields,
) -> Record:
    """Call `answer` with block after block of the rows; write the answers to a table, or return all in the record."""
    record: Record = {**about, "out": None if out is None else str(out), "columns": list(columns), "queries": len(rows)}
    with steps.step("answer") as callback:

        def blocks() -> Iterator[Answers]:
            for first in range(0, len(rows), BLOCK):
                yield answer(rows[first : first + BLOCK])
                callback(min(first + BLOCK, len(rows)), {"total": len(rows)})

        if out is not None:
            write_answers(out, blocks(), columns)
        else:
            whole = cast(Answers, tuple(np.concatenate(part) for part in zip(*blocks(), strict=True)))
            record["answers"] = as_records(whole, columns)
    return record | {"seconds": steps.seconds, "per_second": len(rows) / max(steps.seconds["answer"], 1e-9)}
