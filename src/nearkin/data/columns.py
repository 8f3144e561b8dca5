"""What comes beside vectors: neighbour lists (the truth), and one value a row (labels, ids)."""

import os
import zipfile
import zlib

import numpy as np

from nearkin.data.formats import open_rows
from nearkin.data.formats.npz import choose_key
from nearkin.data.formats.parquet import import_pyarrow
from nearkin.data.formats.text import DELIMITER
from nearkin.data.locator import Locator, locate


def read_neighbors(path: str | os.PathLike) -> np.ndarray:
    """Read neighbour lists, nearest first, (n, k) int64 or strings: .npy, .npz, .ivecs, .csv, .tsv, .parquet.

    Numbers must be whole; ValueError otherwise, as for a list that is not 2-D. -1 stands for "no neighbour".
    """
    where = locate(path)
    if where.suffix in (".npy", ".npz"):
        array = _load(where)
        if array.ndim != 2:
            raise ValueError(f"{where} has shape {array.shape}; neighbours must be 2-D (n, k), one row a query")
    else:
        rows = open_rows(where)
        if not rows.shape[0]:
            raise ValueError(f"{where} has shape {rows.shape}; it needs at least one row")
        array = np.concatenate(list(rows.blocks(65536, 0, rows.shape[0])))
    return _whole_or_text(array, where)


def read_column(path: str | os.PathLike) -> np.ndarray:
    """Read one value a row, (n,) int64 or strings: labels or ids from .npy, .npz, .csv, .tsv, .txt or .parquet.

    A text file has one value a line and no header; a Parquet file one column, or `file.parquet:column`. Raises
    ValueError for more than one column and for numbers that are not whole.
    """
    where = locate(path)
    if where.suffix in (".npy", ".npz"):
        array = _load(where)
    elif where.suffix in (".csv", ".tsv", ".txt"):
        array = _read_lines(where)
    elif where.suffix == ".parquet":
        array = _read_parquet_column(where)
    else:
        raise ValueError(f"{where} has an unknown ending; give .npy, .npz, .csv, .tsv, .txt or .parquet")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{where} has shape {array.shape}; it must be (n,), one value a row")
    return _whole_or_text(array, where)


def _load(where: Locator) -> np.ndarray:
    key = choose_key(where) if where.suffix == ".npz" else None
    try:
        if key is None:
            return np.load(where.path, allow_pickle=False)
        with np.load(where.path, allow_pickle=False) as archive:
            return archive[key]
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{where} cannot be read ({error}); save numbers or strings with np.save") from error


def _read_lines(where: Locator) -> np.ndarray:
    lines = [line.strip() for line in where.path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    delimiter = DELIMITER.get(where.suffix)
    if delimiter is not None and any(delimiter in line for line in lines):
        raise ValueError(f"{where} has several columns; it must have one value a line")
    array = np.array(lines)
    try:
        return array.astype(np.int64)
    except ValueError:
        return array


def _read_parquet_column(where: Locator) -> np.ndarray:
    _, parquet = import_pyarrow()
    names = parquet.read_schema(where.path).names
    if (where.key is None and len(names) != 1) or (where.key is not None and where.key not in names):
        raise ValueError(f"{where} has the columns {', '.join(names)}; name one: {where.path}:{names[0]}")
    column = parquet.read_table(where.path, columns=[where.key or names[0]]).column(0)
    if column.null_count:
        raise ValueError(f"{where} has {column.null_count} nulls; every row needs a value")
    array = column.to_numpy()
    return array.astype(str) if array.dtype == object else array


def _whole_or_text(array: np.ndarray, where: Locator) -> np.ndarray:
    if array.dtype.kind in "US":
        return array.astype(str)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{where} has dtype {array.dtype}; it must hold whole numbers or strings")
    if array.dtype.kind == "f" and not np.array_equal(array, np.floor(array)):
        raise ValueError(
            f"{where} has dtype {array.dtype} with fractions or NaN; it must hold whole numbers or strings"
        )
    return array.astype(np.int64)
