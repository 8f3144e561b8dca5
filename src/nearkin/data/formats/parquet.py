"""Parquet, Feather, Arrow and JSON lines: a column of lists, or of numbers for each axis."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import compute, json, parquet

from nearkin._fields import Extra, counted
from nearkin._json import check_depth, parsed_json
from nearkin._storage import is_of_system
from nearkin.data.column import Column, arrow_cells, arrow_kind, frame_columns
from nearkin.data.coordinates import Chosen, check_whole, choose_columns, pick_columns, rival_ids, text_kind, understood
from nearkin.data.files import JSON, Locator
from nearkin.data.formats.file_rows import FileRows, check_layout, streamed_rows
from nearkin.data.lists import LIST_CELL, list_cells

Batches: TypeAlias = Callable[[list[str], int], Iterator[list[pa.Array]]]
_ROWS = 65_536  # of one column that are read at a time
_LOOK = 50  # rows that show what columns of text hold
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
        if is_of_system(error):
            raise
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
        return f"is damaged: its header announces {counted(metadata.num_rows, 'row')}, its parts {parts[:4]}"
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        return f"has two columns called {next(name for name in names if names.count(name) > 1)!r}; rename one"
    return None if names else "has no columns; it must hold a table"


def read_frame(where: Locator) -> pa.Table:
    """The Arrow table, or its columns that are named, of a .parquet, .feather, .arrow (file, stream) or .jsonl file."""
    if where.key is not None and where.suffix != ".parquet":
        table = read_frame(replace(where, key=None))
        return table.select(pick_columns(table.column_names, where.key, str(where.path)))
    if where.suffix == ".parquet":
        with open_file(where.path) as file:
            names = file.schema_arrow.names
            table = file.read(names if where.key is None else pick_columns(names, where.key, str(where.path)))
    elif where.suffix in JSON:
        with where.open() as file:
            data = file.read()
        try:
            if data[:1] == b"[":
                table = pa.Table.from_pylist(parsed_json(data))
            else:
                check_depth(data)
                table = json.read_json(pa.BufferReader(data))
        except (pa.ArrowInvalid, ValueError, AttributeError) as error:
            raise ValueError(
                f"{where} cannot be read as JSON lines ({str(error)[:200]}): every line must be one object, "
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


def frame_rows(source: Extra, name: str, key: str | None = None) -> FileRows:
    """The vectors of a DataFrame or an Arrow table called `name`, in the columns that `key` names."""
    return column_rows(frame_columns(source, name), name, key)


def column_rows(columns: dict[str, Column], name: str, key: str | None = None) -> FileRows:
    """The vectors in columns, also in text such as "[0.1, 0.2]"."""
    columns = listed(columns)
    text = {other: text_kind(other, column.values.tolist()) for other, column in columns.items() if column.is_text}
    n = len(next(iter(columns.values())))

    def batches(names: list[str], rows: int) -> Iterator[list[pa.Array]]:
        for start in range(0, n, rows):
            yield [columns[name].cells[start : start + rows] for name in names]

    kinds = {other: column.kind for other, column in columns.items()} | text
    if kinds.get("0") == "integer" and "list" in kinds.values() and len(columns["0"].distinct) == n:
        kinds["0"] = "string"  # without a name, next to lists: it names the rows
    return _chosen_rows(name, kinds, key, n, batches)


def listed(columns: dict[str, Column]) -> dict[str, Column]:
    """Text of lists of numbers as lists; text without brackets only where no other column has lists or fractions."""
    found = dict(columns)
    others = any(c.kind in ("list", "float") or (c.is_text and c.maybe_numbers is not None) for c in columns.values())
    for name, column in columns.items():
        lists = list_cells(column) if column.is_text else None
        bare = others and lists and next(cell for cell in column.values.tolist() if cell).strip()[0] not in "[({at"
        if lists and not bare and any(type(value) in (int, float) for cell in lists for value in cell[:1]):
            found[name] = replace(column, cells=arrow_cells(lists))
    return found


def open_parquet(where: Locator) -> FileRows:
    """Rows of a .parquet file: its list column (`file.parquet:column` if it has several), or its numeric columns.

    Their ids are a column with a usual name of ids, or the only column of text.
    """
    with open_file(where.path) as file:
        n = file.metadata.num_rows
        kinds = {field.name: arrow_kind(field.type).replace("binary", "string") for field in file.schema_arrow}
        text = [name for name, kind in kinds.items() if kind == "string"] if "list" not in kinds.values() else []
        cells = next(file.iter_batches(_LOOK, columns=text)).to_pydict() if text and n else {}
        if any(LIST_CELL.match(str(cell)) for column in cells.values() for cell in column):
            return frame_rows(file.read(), str(where.path), where.key)
    kinds |= {name: text_kind(name, column) for name, column in cells.items()}

    def batches(names: list[str], rows: int) -> Iterator[list[pa.Array]]:
        with open_file(where.path) as file:
            for batch in file.iter_batches(rows, columns=names):
                yield [batch.column(name) for name in names]

    return _chosen_rows(str(where.path), kinds, where.key, n, batches)


def _chosen_rows(source: str, kinds: dict[str, str], key: str | None, n: int, batches: Batches) -> FileRows:
    """The rows of the columns that `key` names, or that `choose_columns` finds."""
    chosen = choose_columns(kinds, source, key)

    def blocks(name: str) -> Iterator[np.ndarray]:
        return (column.to_numpy(zero_copy_only=False) for (column,) in batches([name], _ROWS))

    if key is None:
        check_whole(source, chosen, list(kinds), [kinds[name] == "integer" for name in chosen.names], blocks)
    return table_rows(source, kinds, chosen, n, batches)


def table_rows(
    source: str, kinds: dict[str, str], chosen: Chosen, n: int,
    batches: Batches, *,
    text: bool = False, written: str = "", notes: Sequence[str] = (),
) -> FileRows:  # fmt: skip
    """The n rows of vectors in the `chosen` columns of a table with columns of these `kinds`.

    `batches(names, rows)` reads columns, at most `rows` at a time, of `text` as float64 and ids as strings;
    `written` and `notes` are those of `understood`.
    """
    names, ids, rivals = chosen.names, chosen.ids, chosen.rivals
    first = None if text else next(batches(names, 1), None)
    block = np.empty((0, len(names) if text else 1)) if first is None else stacked(first, names, source)
    shape = check_layout(source, (n, block.shape[1]), block.dtype)

    def blocks(rows: int) -> Iterator[np.ndarray]:
        held = np.empty((0, shape[1]), block.dtype)
        for batch in batches(names, rows):  # may end early, at the end of a piece
            held = np.concatenate([held, stacked(batch, names, source, shape[1])])
            if len(held) >= rows:
                yield held[:rows]
                held = held[rows:]
        if len(held):
            yield held

    def named() -> np.ndarray:
        if ids is None:
            raise rival_ids(source, rivals)
        cells = pa.concat_arrays([batch[0] for batch in batches([ids], max(1, n))])
        return Column(ids, cells if text else arrow_cells(cells), source).as_ids().ids()

    about = understood(source, shape, list(kinds), chosen, written=written, notes=notes)
    has_ids = ids is not None or len(rivals) > 0
    return replace(streamed_rows(shape, block.dtype, blocks), about=about, ids=named if has_ids else None)


def stacked(columns: list[pa.Array], names: list[str], source: str, d: int | None = None) -> np.ndarray:
    """Vectors (n, d) in Arrow columns, one of lists or d of numbers; ValueError for nulls or lists of other lengths."""
    columns = [column.storage if isinstance(column, pa.ExtensionArray) else column for column in columns]
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
    if 0 in lengths:
        raise ValueError(f"{lists} are empty in some rows; leave these rows out")
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
