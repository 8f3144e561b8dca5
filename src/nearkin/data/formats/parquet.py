"""Parquet, Feather, Arrow and JSON lines: a column of lists, or of numbers for each axis."""

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import compute, json, parquet

from nearkin._fields import Extra
from nearkin.data.column import Column, arrow_cells, arrow_kind, frame_columns
from nearkin.data.files import Locator
from nearkin.data.formats.file_rows import FileRows, check_layout, streamed_rows
from nearkin.data.names import choose_columns, understood

_MAX_ROWS_A_BYTE = 10_000  # runs and dictionaries hold many equal rows in a byte; a damaged header promises more


def write_columns(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write arrays (n,) as a table, .parquet or else .csv."""
    if path.suffix.lower() == ".parquet":
        parquet.write_table(pa.table(columns), path)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def open_file(path: Path) -> parquet.ParquetFile:
    """A `pyarrow.parquet.ParquetFile` whose sizes are possible: what it announces is compared with the file's length.

    ValueError for a damaged file, for sizes beyond the file's, and for two columns of one name. Checksums of pages are
    verified by their writer.
    """
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


def _fault(file: parquet.ParquetFile, size: int) -> str | None:
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


def read_frame(where: Locator, columns: list[str] | None = None) -> pa.Table:
    """The Arrow table of a .parquet (some `columns` or all), .feather, .arrow (file or stream) or .jsonl file."""
    if where.suffix == ".parquet":
        with open_file(where.path) as file:
            table = file.read(columns=columns)
    elif where.suffix in (".jsonl", ".ndjson"):
        with where.open() as lines:
            try:
                table = json.read_json(lines)
            except pa.ArrowInvalid as error:
                raise ValueError(
                    f"{where} cannot be read as JSON lines ({error}): every line must be one object, "
                    '{"id": "a", "vector": [0.5, 1]}, with values of one type under each name'
                ) from error
    else:
        with pa.OSFile(str(where.path)) as file:
            try:
                table = pa.ipc.open_file(file).read_all()
            except pa.ArrowInvalid:
                file.seek(0)
                table = pa.ipc.open_stream(file).read_all()
    table.validate(full=True)  # offsets of a damaged file may point anywhere, and its bytes may be no text
    return table


def frame_rows(source: Extra, name: str) -> FileRows:
    """The vectors of a DataFrame or an Arrow table called `name`."""
    columns = frame_columns(source, name)
    n = len(next(iter(columns.values())))

    def batches(names: list[str], rows: int) -> Iterator[list[pa.Array]]:
        for start in range(0, n, rows):
            yield [columns[name].cells[start : start + rows] for name in names]

    return _rows(name, None, {name: column.kind for name, column in columns.items()}, n, batches)


def open_parquet(where: Locator) -> FileRows:
    """Rows of a .parquet file: its list column (`file.parquet:column` if it has several), or its numeric columns.

    Their ids are a column with a usual name of ids, or the only column of text. ValueError if the file is damaged, has
    several list columns and none is named, a column that is no number, nulls, or lists of different lengths.
    """
    with open_file(where.path) as file:
        n = file.metadata.num_rows
        kinds = {field.name: arrow_kind(field.type).replace("binary", "string") for field in file.schema_arrow}

    def batches(names: list[str], rows: int) -> Iterator[list[pa.Array]]:
        with open_file(where.path) as file:
            for batch in file.iter_batches(rows, columns=names):
                yield [batch.column(name) for name in names]

    return _rows(str(where.path), where.key, kinds, n, batches)


def _rows(
    source: str, key: str | None, kinds: dict[str, str], n: int,
    batches: Callable[[list[str], int], Iterator[list[pa.Array]]],
) -> FileRows:  # fmt: skip
    """The n rows of vectors of a table with columns of these `kinds`, read by `batches(names, rows)`."""
    names, ids, rivals = choose_columns(kinds, source, key)
    first = next(batches(names, 1), None)
    block = np.empty((0, 1)) if first is None else stacked(first, names, source)
    shape = check_layout(source, (n, block.shape[1]), block.dtype)

    def blocks(rows: int) -> Iterator[np.ndarray]:
        return (stacked(batch, names, source, shape[1]) for batch in batches(names, rows))

    def named() -> np.ndarray:
        if ids is None:
            raise ValueError(
                f"{source} has {len(rivals)} columns that may name its rows ({', '.join(rivals)}); type --ids "
                f"{source}:{rivals[0]} (for queries --query-ids), or call the right one id"
            )
        cells = pa.concat_arrays([batch[0] for batch in batches([ids], max(1, n))])
        return Column(ids, arrow_cells(cells), source).ids()

    about = understood(source, n, shape[1], ids, [name for name in kinds if name not in (*names, ids)])
    return replace(streamed_rows(shape, block.dtype, blocks), about=about, ids=named if ids or rivals else None)


def stacked(columns: list[pa.Array], names: list[str], source: str, d: int | None = None) -> np.ndarray:
    """Vectors (n, d) in Arrow columns, one of lists or d of numbers; ValueError for nulls or lists of other lengths."""
    for name, column in zip(names, columns, strict=True):
        if isinstance(column, np.ndarray):
            raise ValueError(f"{source}: column {name!r} has values of several types; vectors are numbers only")
        if column.null_count:
            raise ValueError(
                f"{source}: column {name!r} has nulls; every row needs a vector, so leave the rows without one out"
            )
    if arrow_kind(columns[0].type) != "list":
        return np.stack([_numbers(column) for column in columns], axis=1)
    values, lists = columns[0].flatten(), f"{source}: the lists of {names[0]!r}"
    if arrow_kind(values.type) not in ("integer", "float"):
        raise ValueError(f"{lists} hold {values.type}; they must hold numbers")
    lengths = np.unique([*([] if d is None else [d]), *compute.list_value_length(columns[0]).to_numpy()])
    if len(lengths) != 1:
        raise ValueError(f"{lists} have lengths {lengths}; every row needs the same")
    if values.null_count:
        raise ValueError(f"{lists} hold nulls; give numbers only")
    return _numbers(values).reshape(len(columns[0]), int(lengths[0]))


def _numbers(column: pa.Array) -> np.ndarray:
    """An Arrow array of integers, floats or decimals, or a dictionary of them."""
    if pa.types.is_dictionary(column.type):
        return _numbers(column.dictionary_decode())
    return (column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column).to_numpy(zero_copy_only=False)
