"""Vectors in the columns of a table: one column of lists, or the numbered columns of one prefix, or those typed."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import compute

from nearkin._fields import Extra, counted
from nearkin._pairs import Coded
from nearkin.data.column import Column, kind_of, plain_cells
from nearkin.data.files import Locator
from nearkin.data.formats.file_rows import FileRows, check_layout, streamed_rows
from nearkin.data.formats.parquet import open_file, read_frame
from nearkin.data.names import NAMES, listed, plain
from nearkin.data.text import Text, TextOptions, read_text, unparted

Batches: TypeAlias = Callable[[list[str], int], Iterator[list[pa.Array]]]
"""(names, rows) to the columns of these names, at most `rows` at a time."""

_NUMBERED = re.compile(r"(.*?)(\d{1,9})", re.DOTALL)
_NUMERIC = ("integer", "float", "bool")


class Chosen(NamedTuple):
    """The columns of the vectors, and that of the rows' ids, or None."""

    names: list[str]
    ids: str | None


def choose(kinds: dict[str, str], source: str, typed: Sequence[str] | None = None) -> Chosen:
    """The columns of vectors and of ids, by the names of columns and their types alone (`Column.kind`).

    ValueError that names what to type: for several columns of lists, for none and no numbered columns of one prefix.
    """
    named = [name for role in ("id", "left", "right") for name in kinds if plain(name) in NAMES[role]]
    first = [name for name in named if plain(name) in NAMES["id"]]
    ids = first[0] if len(first) == 1 else named[0] if len(named) == 1 else None
    if typed is not None:
        if lost := [name for name in typed if name not in kinds]:
            raise ValueError(f"{source} has no column {lost[0]!r}; its columns are {listed(kinds)}")
        return Chosen(list(typed), None if ids in typed else ids)
    lists = [name for name in kinds if kinds[name] == "list"]
    if len(lists) == 1:
        return Chosen(lists, ids)
    numeric = [name for name in kinds if kinds[name] in _NUMERIC and name != ids]
    numbered = sorted((int(found[2]), found[1], name) for name in numeric if (found := _NUMBERED.fullmatch(name)))
    numbers, prefixes = [number for number, *_ in numbered], {prefix for _, prefix, _ in numbered}
    if lists or len(prefixes) != 1 or numbers != [*range(numbers[0], numbers[0] + len(numbers))]:
        raise _no_vectors(kinds, source, lists or numeric)
    return Chosen([name for *_, name in numbered], ids)


def _no_vectors(kinds: dict[str, str], source: str, numeric: list[str]) -> ValueError:
    """The error for columns of which the names do not tell the vectors."""
    what = f"{source} has not one column of lists, nor columns of numbers called f0, f1, ... without a gap"
    if numeric:
        return ValueError(f"{what}: {listed(kinds)}. Type which hold the vectors: columns={numeric[:8]}")
    name = list(kinds)[-1][:40]
    return ValueError(
        f"{what}: {listed(kinds)} hold text. Lists in text are read by "
        f"frame[{name!r}].map(ast.literal_eval), decimal commas by pandas.read_csv(path, decimal=',')"
    )


def open_parquet(where: Locator) -> FileRows:
    """Rows of a .parquet file, read a batch at a time."""
    with open_file(where.path) as file:
        n = file.metadata.num_rows
        kinds = {field.name: kind_of(field.type) for field in file.schema_arrow}

    def batches(names: list[str], rows: int) -> Iterator[list[pa.Array]]:
        with open_file(where.path) as file:
            for batch in file.iter_batches(rows, columns=names):
                yield [plain_cells(batch.column(name)) for name in names]

    return table_rows(str(where.path), kinds, choose(kinds, str(where.path), where.columns), n, batches)


def open_frame(where: Locator) -> FileRows:
    """Rows of a typed table that is read whole."""
    return arrow_rows(read_frame(where), str(where.path), where.columns)


def arrow_rows(table: "pa.Table | dict[str, Extra]", source: str, typed: Sequence[str] | None = None) -> FileRows:
    """Rows of an Arrow table, or of columns by name."""
    cells = table if isinstance(table, dict) else {name: table.column(name) for name in table.column_names}
    columns = {
        name: column.cells if isinstance(column, Column) else plain_cells(column) for name, column in cells.items()
    }
    kinds = {name: kind_of(column.type) for name, column in columns.items()}
    return _held(columns, kinds, source, choose(kinds, source, typed))


def open_text(where: Locator, options: TextOptions) -> FileRows:
    """Rows of a text table. The first row decides which columns are numbers; without a header its text names rows."""
    text = read_text(where, options)
    head = replace(text, data=b"".join(text.data.splitlines(keepends=True)[: 1 + text.header])).table()
    if not head.num_rows:
        raise ValueError(f"{where} has a header and no rows; at least one row is needed")
    seen = {name: head.column(name)[0].as_py() for name in text.names}
    kinds = {name: "float" if Column(name, pa.array([cell])).is_numeric else "text" for name, cell in seen.items()}
    if text.delimiter is None and "text" in kinds.values():
        raise _one_cell(where, text.names[0] if text.header else str(seen["0"]))
    chosen = choose(kinds, str(where.path), where.columns)
    if not text.header and kinds.get("0") == "text":
        chosen = Chosen(chosen.names, "0")
    types = dict.fromkeys(chosen.names, pa.float64())
    table = _numbers_of(text, types if chosen.ids is None else {chosen.ids: pa.string(), **types})
    columns = {name: plain_cells(table.column(name)) for name in table.column_names}
    return _held(columns, kinds, str(where.path), chosen)


def _one_cell(where: Locator, line: str) -> ValueError:
    if re.fullmatch(r"\d+ \d+", line):
        return ValueError(
            f"{where.path} begins with two numbers ({line}); if they are the numbers of rows and columns, as in "
            "word2vec's text format, rename the file: that format has the ending .vec"
        )
    return unparted(where.path, line)


def _numbers_of(text: Text, types: dict[str, pa.DataType]) -> pa.Table:
    try:
        return text.read(types)
    except pa.ArrowInvalid as error:
        column = re.search(r"CSV column #(\d+)", str(error))
        if column is None:
            raise text.fault(error) from None
        name = text.names[int(column[1])]
        raise ValueError(
            f"{text.fault(error)} in column {name!r}; vectors are plain numbers: type columns=... without it, or "
            "convert it by pandas.read_csv(path, decimal=',')"
        ) from None


def _held(columns: dict[str, pa.Array], kinds: dict[str, str], source: str, chosen: Chosen) -> FileRows:
    n = len(next(iter(columns.values())))

    def batches(names: list[str], rows: int) -> Iterator[list[pa.Array]]:
        for start in range(0, n, rows):
            yield [columns[name][start : start + rows] for name in names]

    return table_rows(source, kinds, chosen, n, batches)


def table_rows(source: str, kinds: dict[str, str], chosen: Chosen, n: int, batches: Batches) -> FileRows:
    """The n rows of vectors in the `chosen` columns of a table."""
    names, ids = chosen
    first = next(batches(names, 1), None)
    block = np.empty((0, len(names))) if first is None else stacked(first, names, source)
    shape = check_layout(source, (n, block.shape[1]), block.dtype)

    def blocks(rows: int) -> Iterator[np.ndarray]:
        for batch in batches(names, rows):
            yield stacked(batch, names, source, shape[1])

    def named() -> np.ndarray:
        cells = pa.concat_arrays([batch[0] for batch in batches([str(ids)], max(1, n))])
        found = Column(str(ids), cells, source).ids()
        return found.names.to_numpy(zero_copy_only=False)[found.codes] if isinstance(found, Coded) else found

    used = {*names, ids}  # a table may have 100,000 columns
    aside = [name for name in kinds if name not in used]
    span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    about = f"{source}: {counted(n, 'row')} of {counted(shape[1], 'number')} in {span}"
    about += "" if ids is None else f"; ids in column {ids!r}"
    about += f"; left aside: {', '.join(aside[:8])}{', ...' * (len(aside) > 8)}" if aside else ""
    return replace(streamed_rows(shape, block.dtype, blocks), about=about, ids=None if ids is None else named)


def stacked(columns: list[pa.Array], names: list[str], source: str, d: int | None = None) -> np.ndarray:
    """Vectors (n, d) in Arrow columns, one of lists or d of numbers; ValueError for nulls or lists of other lengths."""
    columns = [plain_cells(column) for column in columns]
    for name, column in zip(names, columns, strict=True):
        if column.null_count:
            row = int(compute.index(compute.is_null(column), True).as_py())
            raise ValueError(
                f"{source}: column {name!r} has {counted(column.null_count, 'missing value')}, the first in row {row} "
                "(from 0); leave the rows without a vector out"
            )
    if kind_of(columns[0].type) != "list":
        odd = [name for name, column in zip(names, columns, strict=True) if not _is_numeric(column.type)]
        if odd:
            raise ValueError(f"{source}: column {odd[0]!r} holds no numbers; type columns=... without it")
        return np.stack([_numbers(column) for column in columns], axis=1)
    values, lists = columns[0].flatten(), f"{source}: the lists of {names[0]!r}"
    if not _is_numeric(values.type):
        raise ValueError(f"{lists} hold {values.type}; they must hold numbers")
    lengths = np.unique([*([] if d is None else [d]), *compute.list_value_length(columns[0]).to_numpy()])
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"{lists} have lengths {lengths}; every row needs the same, above 0")
    if values.null_count:
        raise ValueError(f"{lists} hold nulls; give numbers only")
    return _numbers(values).reshape(len(columns[0]), int(lengths[0]))


def _is_numeric(kind: pa.DataType) -> bool:
    return kind_of(kind) in _NUMERIC or pa.types.is_decimal(kind)


def _numbers(column: pa.Array) -> np.ndarray:
    """An Arrow array of integers, floats or decimals."""
    return (column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column).to_numpy(zero_copy_only=False)
