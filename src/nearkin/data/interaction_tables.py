"""Tables as named columns: .csv, .tsv, .parquet and .npz, with the types that their values have."""

import csv
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from nearkin.data.formats.parquet import import_pyarrow

Table = Mapping[str, np.ndarray]


def read_table(path: str | PathLike) -> dict[str, np.ndarray]:
    """Read the columns of a table by name, each (rows,); text columns become integers or floats where all values are.

    A text file whose first line holds a number has no header: its columns are named "0", "1", ... Raises
    FileNotFoundError, and ValueError for an unknown ending, an empty file or rows of unequal length.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; give a .csv, .tsv, .parquet or .npz file")
    readers = {".csv": _read_text, ".tsv": _read_text, ".txt": _read_text, ".parquet": _read_parquet, ".npz": _read_npz}
    if path.suffix not in readers:
        raise ValueError(f"{path} ends in {path.suffix!r}; it must be one of {', '.join(readers)}")
    return readers[path.suffix](path)


def _read_text(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        start = file.readline()
        if not start:
            raise ValueError(f"{path} is empty; it must hold a table")
        delimiter = "\t" if "\t" in start else "," if path.suffix == ".csv" else " "
        file.seek(0)
        rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        bad = next(number for number, row in enumerate(rows, 1) if len(row) != width)
        raise ValueError(f"{path}: row {bad} has {len(rows[bad - 1])} values, the first row has {width}; mend that row")
    headed = not any(_is_number(value) for value in rows[0])
    names = rows.pop(0) if headed else [str(column) for column in range(width)]
    return {name.strip(): typed(np.array([row[i] for row in rows], dtype=str)) for i, name in enumerate(names)}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def typed(values: np.ndarray) -> np.ndarray:
    """The strings (rows,) as int64 if every one is an integer written plainly, as float64 if a number, else as is.

    An id such as "007" stays a string: as a number it would lose its zeros.
    """
    try:
        integers = values.astype(np.int64)
        if (integers.astype(values.dtype) == values).all():
            return integers
        padded = np.char.startswith(values, "0") & ~np.char.startswith(values, "0.") & (values != "0")
        return values if padded.any() else values.astype(np.float64)
    except (ValueError, OverflowError):
        pass
    try:
        return values.astype(np.float64)
    except ValueError:
        return values


def _read_parquet(path: Path) -> dict[str, np.ndarray]:
    table = import_pyarrow()[1].read_table(path)
    columns = {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
    return {name: _plain(column) for name, column in columns.items()}


def _plain(column: np.ndarray) -> np.ndarray:
    """An object column of strings only as a string column; anything else as it is."""
    return column.astype(str) if column.dtype.kind == "O" and all(isinstance(v, str) for v in column) else column


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files if archive[name].ndim == 1}
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read without pickle ({error}); save plain arrays of numbers or strings"
        ) from error
