"""Answers to a file: one row per query and place (.csv, .tsv, .parquet), or arrays (.npz), a block at a time."""

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nearkin._storage import replacing
from nearkin.data.formats.parquet import import_pyarrow
from nearkin.pipeline.outputs import MARK

ENDINGS = (".parquet", ".csv", ".tsv", ".npz")
COLUMNS = ("query", "rank", "id", "score")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Write = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


def check_hits_path(path: str | os.PathLike) -> Path:
    """Return the path if hits can be written there; ValueError for another ending or a folder."""
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{path} has an unknown ending; give one of {', '.join(ENDINGS)}")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    if path.suffix.lower() == ".parquet":
        import_pyarrow()
    return path


def write_hits(
    path: str | os.PathLike,
    scores: np.ndarray,
    ids: np.ndarray,
    queries: Sequence[object] | None = None,
    *,
    formulas_as_text: bool = False,
) -> None:
    """Write scores and ids, both (n, k), best first, by the path's ending; whole or not at all.

    Tables have the columns query (its id, or its row number), rank (from 1), id and score, without the empty places of
    queries that found fewer than k. An .npz has the arrays `ids` and `scores` as they are. A spreadsheet that opens a
    .csv or .tsv computes cells such as "=1+1": with `formulas_as_text`, text that begins as a formula gets a "'" there.
    """
    with writing_hits(path, formulas_as_text=formulas_as_text) as write:
        write(np.arange(len(ids)) if queries is None else np.asarray(queries), scores, ids)


@contextmanager
def writing_hits(
    path: str | os.PathLike, columns: Sequence[str] = COLUMNS, *, formulas_as_text: bool = False
) -> Iterator[Write]:
    """Yield write(queries (b,), scores (b, k), ids (b, k)) for block after block of `write_hits`'s file."""
    path = check_hits_path(path)
    harmless = _as_text if formulas_as_text and path.suffix.lower() in (".csv", ".tsv") else np.asarray
    with replacing(path) as fresh:
        opened = _WRITERS[path.suffix.lower()](fresh, columns)
        with opened as write:
            yield lambda queries, scores, ids: write(harmless(queries), scores, harmless(ids))


@contextmanager
def _arrays(path: Path, columns: Sequence[str]) -> Iterator[Write]:
    parts: list[tuple[np.ndarray, ...]] = []
    yield lambda *block: parts.append(block)
    queries, scores, ids = (np.concatenate(part) for part in zip(*parts, strict=True))
    with path.open("wb") as file:
        np.savez(file, ids=ids, scores=scores, queries=queries)


@contextmanager
def _parquet(path: Path, columns: Sequence[str]) -> Iterator[Write]:
    pa, parquet = import_pyarrow()
    opened: list[Any] = []

    def write(*block: np.ndarray) -> None:
        table = pa.table(_long_form(columns, *block), metadata={MARK: b"hits"})
        if not opened:
            opened.append(parquet.ParquetWriter(path, table.schema))
        opened[0].write_table(table)

    try:
        yield write
    finally:
        for writer in opened:
            writer.close()


def _delimited(delimiter: str) -> Callable[[Path, Sequence[str]], Any]:
    @contextmanager
    def opening(path: Path, columns: Sequence[str]) -> Iterator[Write]:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerow(columns)

            def write(*block: np.ndarray) -> None:
                long = _long_form(columns, *block).values()
                writer.writerows(zip(*(column.tolist() for column in long), strict=True))

            yield write

    return opening


def _as_text(names: np.ndarray) -> np.ndarray:
    """Ids that a spreadsheet shows and does not compute (OWASP, CSV injection)."""
    if names.dtype.kind in "iuf":
        return names
    safe = [f"'{name}" if str(name).startswith(_FORMULA) else name for name in names.ravel().tolist()]
    return np.array(safe, dtype=object).reshape(names.shape)


_WRITERS = {".npz": _arrays, ".parquet": _parquet, ".csv": _delimited(","), ".tsv": _delimited("\t")}


def _long_form(names: Sequence[str], queries: np.ndarray, scores: np.ndarray, ids: np.ndarray) -> dict[str, np.ndarray]:
    n, k = ids.shape
    found = np.isfinite(scores).ravel()
    columns = (np.repeat(queries, k), np.tile(np.arange(1, k + 1), n), ids.ravel(), scores.ravel())
    return {name: column[found] for name, column in zip(names, columns, strict=True)}
