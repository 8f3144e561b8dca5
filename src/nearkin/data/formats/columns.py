"""Vectors in the columns of a table: one column of lists, or the numbered columns of one prefix, or those typed."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyarrow import compute

from nearkin._fields import counted
from nearkin.data.column import Column, kind_of, plain_cells
from nearkin.data.files import Locator
from nearkin.data.formats.file_rows import FileRows, opened_rows
from nearkin.data.formats.parquet import open_file
from nearkin.data.tables import NAMES, Table, frame_columns, listed, plain

_NUMBERED = re.compile(r"(.*?)(\d{1,9})", re.DOTALL)
_NUMERIC = ("integer", "float", "bool", "decimal")


def choose(kinds: dict[str, str], source: str, typed: Sequence[str] | None = None) -> tuple[list[str], str | None]:
    """The columns of vectors, and that of ids or None, by the names of columns and their types (`Column.kind`).

    ValueError that names what to type: for several columns of lists, for none and no numbered columns of one prefix.
    """
    every = [name for role in ("id", "left", "right") for name in kinds if plain(name) in NAMES[role]]
    first = [name for name in every if plain(name) in NAMES["id"]]
    ids = next((names[0] for names in (first, every) if len(names) == 1), None)
    if typed is not None:
        if lost := [name for name in typed if name not in kinds]:
            raise ValueError(f"{source} has no column {lost[0]!r}; its columns are {listed(kinds)}")
        return list(typed), None if ids in typed else ids
    lists = [name for name in kinds if kinds[name] == "list"]
    if len(lists) == 1:
        return lists, ids
    numeric = [name for name in kinds if kinds[name] in _NUMERIC and name != ids]
    numbered = sorted((int(found[2]), found[1], name) for name in numeric if (found := _NUMBERED.fullmatch(name)))
    numbers, prefixes = [number for number, *_ in numbered], {prefix for _, prefix, _ in numbered}
    if not lists and len(prefixes) == 1 and numbers == [*range(numbers[0], numbers[0] + len(numbers))]:
        return [name for *_, name in numbered], ids
    what = f"{source} has not one column of lists, nor columns of numbers called f0, f1, ... without a gap"
    way = f"type which hold the vectors: columns={(lists or numeric)[:8]}"
    if not lists and not numeric:
        name = list(kinds)[-1][:40]
        way = (
            f"lists in text are read by frame[{name!r}].map(ast.literal_eval), decimal commas by "
            "pandas.read_csv(path, decimal=',')"
        )
    raise ValueError(f"{what}, of {listed(kinds)}; {way}")


def table_rows(where: Locator, table: Table, typed: Sequence[str] | None = None) -> FileRows:
    """Rows of vectors of a table in memory. The first row decides which columns of text are numbers; without a header
    its text names rows."""
    kinds = {
        name: "float" if replace(column, cells=column.cells[:1]).is_numeric else column.kind
        for name, column in table.columns.items()
    }
    if [*kinds.values()] == ["text"] and table.header is not None:
        raise table.lacks("id")
    names, ids = choose(kinds, str(where.path), typed)
    ids = "0" if table.header is False and kinds.get("0") == "text" else ids
    X = stacked([table.columns[name] for name in names])
    about = _about(str(where.path), kinds, names, ids, X.shape)
    named = None if ids is None else table.columns[ids].plain_ids
    return opened_rows(where, X.shape, X.dtype, lambda: X, about=about, ids=named)


def open_parquet(where: Locator) -> FileRows:
    """Rows of a .parquet file, of which every pass reads the columns in use."""
    source = str(where.path)
    with open_file(where.path) as file:
        kinds = {field.name: kind_of(field.type) for field in file.schema_arrow}
        names, ids = choose(kinds, source, where.columns)
        n, head = file.metadata.num_rows, next(file.iter_batches(1, columns=names), None)

    def read(columns: list[str]) -> list[Column]:
        with open_file(where.path) as file:
            table = frame_columns(file.read(columns), source)
        return [table[name] for name in columns]

    first = np.empty((0, len(names)))
    if head is not None:
        table = frame_columns(pa.Table.from_batches([head]), source)
        first = stacked([table[name] for name in names])
    shape = n, first.shape[1]
    about = _about(source, kinds, names, ids, shape)
    named = None if ids is None else lambda: read([ids])[0].plain_ids()
    return opened_rows(where, shape, first.dtype, lambda: stacked(read(names)), mapped=False, about=about, ids=named)


def _about(source: str, kinds: dict[str, str], names: list[str], ids: str | None, shape: tuple[int, int]) -> str:
    """What a table was taken for, in one line."""
    used = {*names, ids}  # a table may have 100,000 columns
    aside = [name for name in kinds if name not in used]
    span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    about = f"{source}: {counted(shape[0], 'row')} of {counted(shape[1], 'number')} in {span}"
    about += "" if ids is None else f"; ids in column {ids!r}"
    return about + f"; left aside: {listed(aside)}" * bool(aside)


def stacked(columns: Sequence[Column]) -> np.ndarray:
    """Vectors (n, d) in one column of lists or d of numbers, NaN where one is missing; ValueError for rows without a
    list and lists of several lengths."""
    if columns[0].kind != "list":
        return np.stack([column.numbers(gaps=True) for column in columns], axis=1)
    numbers, d = flattened(columns[0])
    return numbers.numbers(gaps=True).reshape(-1, d)


def flattened(lists: Column) -> tuple[Column, int]:
    """The values in lists, one list after the other, and the length of each; ValueError if they differ."""
    lists.refuse(lists.missing, "lacks lists", "leave these rows out")
    lengths = compute.list_value_length(lists.cells).to_numpy()
    way = "give every row as many values"
    lists.refuse((lengths != lengths[:1]) | (lengths == 0), "has lists of several lengths, or empty ones,", way)
    values = Column(lists.name, plain_cells(lists.cells.flatten()), lists.source)
    return values, int(lengths.max(initial=1))
