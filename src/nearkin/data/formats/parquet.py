"""Parquet, Feather, Arrow and JSON lines: a column of lists, or of numbers for each axis."""

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from nearkin._fields import Extra
from nearkin.data.column import Column, frame_columns
from nearkin.data.files import Locator
from nearkin.data.formats.file_rows import FileRows, array_rows, check_layout, streamed_rows
from nearkin.data.names import choose_columns, understood

if TYPE_CHECKING:
    from pyarrow import Array, Table
    from pyarrow.parquet import ParquetFile

_MAX_ROWS_A_BYTE = 10_000  # runs and dictionaries hold many equal rows in a byte; a damaged header promises more


def import_pyarrow() -> tuple[ModuleType, ModuleType]:
    """Return the modules (pyarrow, pyarrow.parquet), which are slow to import."""
    import pyarrow
    import pyarrow.parquet

    return pyarrow, pyarrow.parquet


def write_columns(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write arrays (n,) as a table, .parquet or else .csv."""
    if path.suffix.lower() == ".parquet":
        pa, parquet = import_pyarrow()
        parquet.write_table(pa.table(columns), path)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def open_file(path: Path) -> "ParquetFile":
    """A `pyarrow.parquet.ParquetFile` whose sizes are possible: what it announces is compared with the file's length.

    ValueError for a damaged file, for sizes beyond the file's, and for two columns of one name. Checksums of pages are
    verified by their writer.
    """
    pa, parquet = import_pyarrow()
    size = path.stat().st_size
    try:
        file = parquet.ParquetFile(
            path, page_checksum_verification=True, thrift_string_size_limit=size, thrift_container_size_limit=size
        )
        fault = _fault(file, size)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise ValueError(f"{path} is no Parquet file ({error}); write it again") from error
    if fault is not None:
        file.close()
        raise ValueError(f"{path} {fault}")
    return file


def _fault(file: "ParquetFile", size: int) -> str | None:
    """What makes a file of `size` bytes impossible: pyarrow would end the process at a part of a negative number of
    rows, or at a look at a damaged column."""
    metadata = file.metadata
    parts = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    if min(parts, default=0) < 0 or sum(parts) != metadata.num_rows or metadata.num_rows > _MAX_ROWS_A_BYTE * size:
        return f"is damaged: its header announces {metadata.num_rows} rows, its parts {parts[:4]}"
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        return f"has two columns called {next(name for name in names if names.count(name) > 1)!r}; rename one"
    return None if names else "has no columns; it must hold a table"


def read_frame(where: Locator, columns: list[str] | None = None) -> "Table":
    """The Arrow table of a .parquet (some `columns` or all), .feather, .arrow (file or stream) or .jsonl file."""
    pa, _ = import_pyarrow()
    if where.suffix == ".parquet":
        with open_file(where.path) as file:
            return file.read(columns=columns)
    if where.suffix in (".jsonl", ".ndjson"):
        import pyarrow.json  # with pyarrow

        with where.open() as lines:
            try:
                return pyarrow.json.read_json(lines)
            except pa.ArrowInvalid as error:
                raise ValueError(
                    f"{where} cannot be read as JSON lines ({error}): every line must be one object, "
                    '{"id": "a", "vector": [0.5, 1]}, with values of one type under each name'
                ) from error
    with pa.OSFile(str(where.path)) as file:
        try:
            table = pa.ipc.open_file(file).read_all()
        except pa.ArrowInvalid:
            file.seek(0)
            table = pa.ipc.open_stream(file).read_all()
    table.validate(full=True)  # offsets of a damaged file may point anywhere
    return table


def frame_rows(source: Extra, name: str) -> FileRows:
    """The vectors of a DataFrame or an Arrow table called `name`."""
    columns = frame_columns(source, name)
    names, ids, rivals = choose_columns({name: column.kind for name, column in columns.items()}, name)
    used = [columns[name] for name in names]
    for column in used:
        if column.kind == "float" and np.isnan(column.values).any():
            raise ValueError(f"column {column.name!r} of {name} has nulls or no numbers; vectors are numbers only")
    if not used or not len(used[0]):
        raise ValueError(f"{name} has no rows of numbers; it needs at least one")
    X = _stacked(used[0]) if used[0].kind == "list" else np.stack([column.values for column in used], axis=1)
    rows = array_rows(X, name)
    aside = [other for other in columns if other not in names and other != ids]
    about = understood(name, len(X), X.shape[1], ids, aside)
    return replace(rows, about=about, ids=_ids_of(name, rivals, None if ids is None else columns[ids].ids))


def _stacked(column: Column) -> np.ndarray:
    """A column of lists as (n, d)."""
    rows = column.values.tolist()
    widths = sorted(set(map(len, rows)))
    if len(widths) == 2 and not widths[0]:
        row = list(map(len, rows)).index(0)
        raise ValueError(f"row {row} of {column.name!r} has no vector (a null, or an empty list); leave such rows out")
    if len(widths) > 1:
        raise ValueError(f"the lists of {column.name!r} have lengths {widths[:5]}; every row needs the same")
    kinds = {type(value).__name__ for row in rows for value in row}
    if kinds <= {"int", "float", "Decimal"}:
        return np.array(rows, np.float64 if "Decimal" in kinds else None)
    odd = ", ".join(sorted("null" if kind == "NoneType" else kind for kind in kinds - {"int", "float", "Decimal"}))
    raise ValueError(f"the lists of {column.name!r} hold values of type {odd}; they must hold numbers only")


def _ids_of(source: str, rivals: list[str], read: Callable[[], np.ndarray] | None) -> Callable[[], np.ndarray] | None:
    """The function that reads the ids of a table, or asks which of the `rivals` has them; None if there are none."""

    def ask() -> np.ndarray:
        raise ValueError(
            f"{source} has {len(rivals)} columns that may name its rows ({', '.join(rivals)}); type --ids "
            f"{source}:{rivals[0]} (for queries --query-ids), or call the right one id"
        )

    return read or (ask if rivals else None)


def open_parquet(where: Locator) -> FileRows:
    """Rows of a .parquet file: its list column (`file.parquet:column` if it has several), or its numeric columns.

    Their ids are a column with a usual name of ids, or the only column of text. ValueError if the file is damaged, has
    several list columns and none is named, a column that is no number, nulls, or lists of different lengths.
    """
    pa, _ = import_pyarrow()
    with open_file(where.path) as file:
        schema = file.schema_arrow
        kinds = {field.name: _kind(pa, field.type) for field in schema}
        names, ids, rivals = choose_columns(kinds, str(where.path), where.key)
        n = file.metadata.num_rows
        first = next(file.iter_batches(1, columns=names), None)
        block = np.empty((0, 1)) if first is None else batch_rows(pa, first, names, None, where)
    shape = check_layout(str(where), (n, block.shape[1]), block.dtype)

    def blocks(rows: int) -> Iterator[np.ndarray]:
        with open_file(where.path) as opened:
            for batch in opened.iter_batches(rows, columns=names):
                yield batch_rows(pa, batch, names, shape[1], where)

    aside = [name for name in schema.names if name not in names and name != ids]
    about = understood(str(where), n, shape[1], ids, aside)
    rows = streamed_rows(shape, block.dtype, blocks)

    def names_of_rows() -> np.ndarray:
        with open_file(where.path) as file:
            (column,) = frame_columns(file.read(columns=[ids]), str(where.path)).values()
        return column.ids()

    rivals = rivals if kinds[names[0]] == "list" else []
    return replace(rows, about=about, ids=_ids_of(str(where.path), rivals, None if ids is None else names_of_rows))


def _kind(pa: ModuleType, kind: Extra) -> str:
    """An Arrow type as `choose_columns` takes it."""
    types = pa.types
    if types.is_dictionary(kind):
        return _kind(pa, kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "list"
    if any(same(kind) for same in (types.is_string, types.is_large_string, types.is_string_view, types.is_binary)):
        return "string"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "float"
    return "integer" if types.is_integer(kind) else str(kind).partition("<")[0]


def batch_rows(pa: ModuleType, batch: Extra, names: list[str], d: int | None, where: Locator) -> np.ndarray:
    """Vectors (n, d) in the columns `names` of a record batch; ValueError for nulls or lists of unequal lengths."""
    columns = [batch.column(name) for name in names]
    for name, column in zip(names, columns, strict=True):
        if column.null_count:
            raise ValueError(
                f"{where.path}: column {name!r} has nulls; every row needs a vector, so leave the rows without one out"
            )
    if _kind(pa, columns[0].type) != "list":
        return np.stack([_numbers(pa, column) for column in columns], axis=1)
    values = columns[0].flatten()
    if _kind(pa, values.type) not in ("integer", "float"):
        raise ValueError(f"{where.path}: the lists of {names[0]!r} hold {values.type}; they must hold numbers")
    lengths = np.unique([len(columns[0][0].values), *columns[0].value_lengths().to_numpy(zero_copy_only=False)])
    if len(lengths) != 1 or (d is not None and lengths[0] != d):
        raise ValueError(f"{where.path}: the lists of {names[0]!r} have lengths {lengths}; every row needs the same")
    if values.null_count:
        raise ValueError(f"{where.path}: the lists of {names[0]!r} hold nulls; give numbers only")
    return _numbers(pa, values).reshape(len(columns[0]), int(lengths[0]))


def _numbers(pa: ModuleType, column: "Array") -> np.ndarray:
    """An Arrow array of integers, floats or decimals, or a dictionary of them."""
    if pa.types.is_dictionary(column.type):
        return _numbers(pa, column.dictionary_decode())
    return (column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column).to_numpy(zero_copy_only=False)
