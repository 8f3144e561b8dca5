"""Answers to a file: one row per query and place (.csv, .tsv, .parquet), or two arrays (.npz)."""

import csv
import os
from pathlib import Path

import numpy as np

from nearkin._storage import replacing
from nearkin.data.formats.parquet import import_pyarrow

ENDINGS = (".parquet", ".csv", ".tsv", ".npz")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


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


def write_hits(path: str | os.PathLike, scores: np.ndarray, ids: np.ndarray, *, formulas_as_text: bool = False) -> None:
    """Write scores and ids, both (n, k), best first, by the path's ending; whole or not at all.

    Tables have the columns query (row number), rank (from 1), id and score, without the empty places of queries that
    found fewer than k. An .npz has the arrays `ids` and `scores` as they are. A spreadsheet that opens a .csv or .tsv
    computes cells such as "=1+1": with `formulas_as_text`, text ids that begin as formulas get a "'" before them there.
    """
    path = check_hits_path(path)
    suffix = path.suffix.lower()
    with replacing(path) as fresh:
        if suffix == ".npz":
            with fresh.open("wb") as file:
                np.savez(file, ids=ids, scores=scores)
            return
        columns = _long_form(scores, ids)
        if suffix == ".parquet":
            pa, parquet = import_pyarrow()
            parquet.write_table(pa.table(columns), fresh)
            return
        with fresh.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="," if suffix == ".csv" else "\t")
            writer.writerow(columns)
            if formulas_as_text and columns["id"].dtype.kind not in "iu":
                columns["id"] = np.array([_as_text(str(name)) for name in columns["id"]], dtype=object)
            writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def _long_form(scores: np.ndarray, ids: np.ndarray) -> dict[str, np.ndarray]:
    n, k = ids.shape
    found = np.isfinite(scores).ravel()
    columns = {
        "query": np.repeat(np.arange(n), k),
        "rank": np.tile(np.arange(1, k + 1), n),
        "id": ids.ravel(),
        "score": scores.ravel(),
    }
    return {name: column[found] for name, column in columns.items()}


def _as_text(name: str) -> str:
    """An id that a spreadsheet shows and does not compute (OWASP, CSV injection)."""
    return f"'{name}" if name.startswith(_FORMULA) else name
