"""Typed tables: Parquet, Feather, Arrow and JSON lines, read by pyarrow; Parquet's announced sizes are checked."""

import csv
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import json, parquet

from nearkin._fields import counted
from nearkin._json import check_depth
from nearkin.data.files import JSON, Locator

_MAX_ROWS_A_BYTE = 10_000  # runs and dictionaries hold many equal rows in a byte; a damaged header promises more


def write_table(path: Path, blocks: Iterable[Mapping[str, "np.ndarray | pa.Array"]], ending: str) -> None:
    """Write blocks of columns (n,), at least one block, as one table: .parquet, .csv or .tsv."""
    first, *_ = few = list(islice(blocks := iter(blocks), 1))
    if ending == ".parquet":
        with parquet.ParquetWriter(path, pa.table(first).schema) as writer:
            for block in chain(few, blocks):
                writer.write_table(pa.table(block))
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, delimiter="\t" if ending == ".tsv" else ",")
        rows.writerow(first)
        for block in chain(few, blocks):
            rows.writerows(zip(*(column.tolist() for column in block.values()), strict=True))


def open_file(path: Path) -> parquet.ParquetFile:
    """A `pyarrow.parquet.ParquetFile` whose sizes are possible: what it announces is compared with the file's length.

    ValueError for sizes beyond the file's, and for two columns of one name. Checksums of pages are verified by their
    writer.
    """
    size = path.stat().st_size
    file = parquet.ParquetFile(
        path, page_checksum_verification=True, thrift_string_size_limit=size, thrift_container_size_limit=size
    )
    rows = file.metadata.num_rows
    parts = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
    # pyarrow would end the process at a part of a negative number of rows, or at a look at a damaged column
    if min(parts, default=0) < 0 or not sum(parts) == rows <= _MAX_ROWS_A_BYTE * size:
        raise ValueError(f"{path} is damaged: its header announces {counted(rows, 'row')}, its parts {parts[:4]}")
    names = file.schema_arrow.names
    if not names or len(set(names)) < len(names):
        raise ValueError(f"{path} has the columns {names[:20]}; it needs some, of different names")
    return file


def read_frame(where: Locator) -> pa.Table:
    """The Arrow table of a .parquet, .feather, .arrow (file, stream) or .jsonl file."""
    if where.suffix == ".parquet":
        with open_file(where.path) as file:
            table = file.read()
    elif where.suffix in JSON:
        with pa.input_stream(str(where.path), compression="detect") as stream:
            data = stream.read()
        try:
            check_depth(data)
            table = json.read_json(pa.BufferReader(data))
        except (pa.ArrowInvalid, ValueError) as error:
            way = 'every line must be an object, {"id": "a", "vector": [0.5, 1]}, values of one type under each name'
            raise ValueError(f"{where.path} cannot be read as JSON lines ({str(error)[:200]}): {way}") from error
    else:
        with pa.OSFile(str(where.path)) as stream:
            is_file = stream.read(6) == b"ARROW1"  # else a stream
            stream.seek(0)
            table = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(stream).read_all()
    table.validate(full=True)  # offsets of a damaged file may point anywhere, and its bytes may be no text
    return table


_KINDS = {
    "text": ("is_string", "is_large_string", "is_string_view", "is_null"),
    "binary": ("is_binary", "is_large_binary", "is_binary_view", "is_fixed_size_binary"),
    "list": ("is_list", "is_large_list", "is_fixed_size_list"),
    "time": ("is_timestamp", "is_date"),
    "float": ("is_floating",),
    "integer": ("is_integer",),
    "decimal": ("is_decimal",),
}


def kind_of(kind: pa.DataType) -> str:
    """An Arrow type as `Column.kind` calls it."""
    if isinstance(kind, pa.BaseExtensionType):
        return "text" if kind.extension_name == "arrow.uuid" else kind_of(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return kind_of(kind.value_type)
    ours = (name for name, tests in _KINDS.items() if any(getattr(pa.types, test)(kind) for test in tests))
    return next(ours, str(kind).partition("<")[0])


def plain_cells(values: "pa.Array | pa.ChunkedArray") -> pa.Array:
    """Cells in the form of tables: one array, without dictionaries and extension types, UUIDs and bytes that are text
    as text, text that is null as ""."""
    cells = values
    if isinstance(values, pa.ChunkedArray):
        cells = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()  # which copies
    if isinstance(cells, pa.ExtensionArray):
        uuid = cells.type.extension_name == "arrow.uuid"
        cells = pa.array([None if cell is None else str(cell) for cell in cells.to_pylist()]) if uuid else cells.storage
    if pa.types.is_dictionary(cells.type):
        # Arrow cannot decode dictionaries of views, which polars writes
        cells = pa.DictionaryArray.from_arrays(cells.indices, plain_cells(cells.dictionary)).dictionary_decode()
    if kind_of(cells.type) in ("text", "binary") and not (pa.types.is_string(cells.type) and not cells.null_count):
        with suppress(pa.ArrowInvalid):
            return cells.cast(pa.string()).fill_null("")
    return cells
