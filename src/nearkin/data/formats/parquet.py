"""Typed tables: Parquet, Feather, Arrow and JSON lines, read by pyarrow; Parquet's announced sizes are checked."""

import csv
from collections.abc import Iterable, Mapping
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
