"""Parquet, Feather, Arrow and JSON lines: a column of lists, or of numbers for each axis (extra `parquet`)."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from nearkin._fields import Extra
from nearkin.data.column import choose_ids, frame_columns, frame_vectors, understood, which_ids
from nearkin.data.files import Locator
from nearkin.data.formats.file_rows import FileRows, array_rows, check_layout, streamed_rows

if TYPE_CHECKING:
    from pyarrow import Table
    from pyarrow.parquet import ParquetFile

_MAX_ROWS_A_BYTE = 10_000  # runs and dictionaries hold many equal rows in a byte; a damaged header promises more


def import_pyarrow() -> tuple[ModuleType, ModuleType]:
    """Return the modules (pyarrow, pyarrow.parquet); ImportError that names what to install."""
    try:
        import pyarrow  # an optional peer: 170 MB
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "this format needs pyarrow, which is not installed: pip install 'nearkin[parquet]'"
        ) from error
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
    _check_footer(path, size)
    try:
        file = parquet.ParquetFile(
            path, page_checksum_verification=True, thrift_string_size_limit=size, thrift_container_size_limit=size
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{path} is no Parquet file ({error}); write it again") from error
    try:
        # a part of a negative number of rows, or a look at a damaged column, would end the process inside pyarrow
        metadata = file.metadata
        parts = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        if min(parts, default=0) < 0 or sum(parts) != metadata.num_rows or metadata.num_rows > _MAX_ROWS_A_BYTE * size:
            raise ValueError(f"{path} is damaged: its header announces {metadata.num_rows} rows, its parts {parts[:4]}")
        names = file.schema_arrow.names
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        file.close()
        raise error if str(path) in str(error) else ValueError(f"{path} is no Parquet file ({error})") from error
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None or not names:
        file.close()
        fault = "no columns" if twice is None else f"two columns called {twice!r}"
        raise ValueError(f"{path} has {fault}; write it again")
    return file


def read_frame(where: Locator, columns: list[str] | None = None) -> "Table":
    """The Arrow table of a .parquet (some `columns` or all), .feather, .arrow (file or stream) or .jsonl file."""
    pa, _ = import_pyarrow()
    if where.suffix == ".parquet":
        with open_file(where.path) as file:
            return file.read(columns=columns)
    if where.suffix in (".jsonl", ".ndjson"):
        import pyarrow.json  # with pyarrow

        with where.open() as lines:
            return pyarrow.json.read_json(lines)
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
    X, names, rivals, about = frame_vectors(source, name)
    check_layout(name, X.shape, X.dtype)

    def ids() -> np.ndarray:
        if names is None:
            raise which_ids(name, rivals)
        return names

    return replace(array_rows(X), about=about, ids=ids if names is not None or rivals else None)


def open_frame(where: Locator) -> FileRows:
    """Rows of a .feather, .arrow or .jsonl file, which is read whole."""
    return frame_rows(read_frame(where), str(where))


def _check_footer(path: Path, size: int) -> None:
    """A Parquet file begins and ends with PAR1; before the end stands the length of its metadata."""
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(max(0, size - 8))
        tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if size < 12 or head != b"PAR1" or tail[4:] != b"PAR1" or not 0 < length <= size - 12:
        raise ValueError(f"{path} is no Parquet file (its first and last bytes are not those of one); write it again")


def open_parquet(where: Locator) -> FileRows:
    """Rows of a .parquet file: its list column (`file.parquet:column` if it has several), or its numeric columns.

    Their ids are a column with a usual name of ids, or the only column of text. ValueError if the file is damaged, has
    several list columns and none is named, a column that is no number, nulls, or lists of different lengths.
    """
    pa, _ = import_pyarrow()
    with open_file(where.path) as file:
        schema = file.schema_arrow
        names, ids, rivals = _columns(pa, schema, where)
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
        if ids is None:
            raise which_ids(str(where.path), rivals)
        with open_file(where.path) as file:
            (found,) = frame_columns(file.read(columns=[ids]))
        return replace(found, source=str(where.path)).ids()

    return replace(rows, about=about, ids=names_of_rows if ids is not None or rivals else None)


def _is_list(pa: ModuleType, kind: Extra) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _columns(pa: ModuleType, schema: Extra, where: Locator) -> tuple[list[str], str | None, list[str]]:
    """The columns of the vectors, that of the ids or None, and those that might be it."""
    lists = [field.name for field in schema if _is_list(pa, field.type)]
    text = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
    whole = [field.name for field in schema if pa.types.is_integer(field.type)]
    ids, rivals = choose_ids(text, whole)
    if where.key is not None:
        if where.key not in lists:
            raise ValueError(f"{where.path} has no list column {where.key!r}; it has {', '.join(lists) or 'none'}")
        return [where.key], ids, rivals
    if len(lists) > 1:
        listed = ", ".join(f"{where.path}:{name}" for name in lists)
        raise ValueError(f"{where.path} has {len(lists)} list columns; name one of {listed}")
    if lists:
        return lists, ids, rivals
    numeric = [field for field in schema if field.name != ids]
    for field in numeric:
        if not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
            raise ValueError(
                f"{where.path}: column {field.name!r} is of type {field.type}, no number; "
                "keep one column of lists, or numeric columns, and a column of ids"
            )
    return [field.name for field in numeric], ids, []


def batch_rows(pa: ModuleType, batch: Extra, names: list[str], d: int | None, where: Locator) -> np.ndarray:
    """Vectors (n, d) in the columns `names` of a record batch; ValueError for nulls or lists of unequal lengths."""
    columns = [batch.column(name) for name in names]
    for name, column in zip(names, columns, strict=True):
        if column.null_count:
            raise ValueError(f"{where.path}: column {name!r} has nulls; every row needs a vector")
    if not _is_list(pa, columns[0].type):
        return np.stack([column.to_numpy(zero_copy_only=False) for column in columns], axis=1)
    values = columns[0].flatten()
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        raise ValueError(f"{where.path}: the lists of {names[0]!r} hold {values.type}; they must hold numbers")
    lengths = np.unique([len(columns[0][0].values), *columns[0].value_lengths().to_numpy(zero_copy_only=False)])
    if len(lengths) != 1 or (d is not None and lengths[0] != d):
        raise ValueError(f"{where.path}: the lists of {names[0]!r} have lengths {lengths}; every row needs the same")
    if values.null_count:
        raise ValueError(f"{where.path}: the lists of {names[0]!r} hold nulls; give numbers only")
    return values.to_numpy(zero_copy_only=False).reshape(len(columns[0]), int(lengths[0]))
