"""Vectors from files: whole with `read_vectors`, or in chunks with `open_vectors` where they exceed memory.

In a table they are one column of lists, or the numbered columns of one prefix, or the columns typed.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np
import pyarrow as pa
from pyarrow import compute

from nearkin._check import check_finite, check_integer, each_once, numpy_generator, zero_rows
from nearkin._fields import Extra, StrPath, counted
from nearkin._storage import digest, reading
from nearkin._types import Seed
from nearkin.contracts import Callback, ignore
from nearkin.data import tables
from nearkin.data.files import TABLES, Locator, TextWords, brief, locate_all, numbered
from nearkin.data.formats.binary import open_counted, open_hdf5, open_numpy, open_safetensors, open_vecs
from nearkin.data.formats.file_rows import FileRows
from nearkin.data.formats.parquet import open_file, plain_cells
from nearkin.data.tables import NAMES, NUMERIC, Column, Table, is_frame, listed, matches, plain

CHUNK_BYTES = 8 * 2**20  # float32 bytes of a default chunk: long enough for full speed, short enough for progress
_TAKE = 1024  # rows fetched through one memory map: bounds the pages that random access keeps resident

Paths = StrPath | Iterable[StrPath]


class VectorFile:
    """The vectors of one file or of several, read as float32 a chunk at a time; `open_vectors` makes it.

    `shape` is (n, d) and `dtype` the type on disk. Integers are converted, never scaled. Nothing is kept in memory
    between calls, whatever the file's length. `about` describes in one line how a table was read ("" for arrays).
    """

    def __init__(self, name: str, parts: Sequence[FileRows]) -> None:
        self.name = name
        self.files = [str(part.where) for part in parts]
        self.first = 0  # the number of its first row in the files
        self._parts = [part for part in parts if part.shape[0]] or parts[:1]  # an empty table may not know its width
        self._starts = np.cumsum([0, *(part.shape[0] for part in self._parts)])
        one = self._parts[0]
        self.shape: tuple[int, int] = int(self._starts[-1]), one.shape[1]
        self.dtype: np.dtype = one.dtype
        for part in self._parts:
            if (part.shape[1], part.dtype) != (one.shape[1], one.dtype):
                sizes = (f"{at.where} has {counted(at.shape[1], 'column')} of {at.dtype}" for at in (part, one))
                raise ValueError(f"{', '.join(sizes)}; all files of one array must agree")
        several = f"{counted(len(parts), 'file')} of {counted(len(self), 'row')}, the first is " * (len(parts) > 1)
        self.about: str = one.about and several + one.about
        self.chunk_rows: int = max(1, CHUNK_BYTES // (4 * one.shape[1]))

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"VectorFile({self.name!r}, shape={self.shape}, dtype={self.dtype})"

    def chunks(self, rows: int | None = None, callback: Callback = ignore) -> Iterator[np.ndarray]:
        """Yield the vectors in order as (at most `rows`, d) float32; by default about 8 MB each.

        `callback(rows_done, {"total": n})` is called after each chunk.
        """
        rows, done = self.chunk_rows if rows is None else check_integer(rows, "rows", low=1), 0
        for part, start in zip(self._parts, self._starts.tolist(), strict=False):
            low, stop = max(self.first - start, 0), min(self.first + len(self) - start, part.shape[0])
            for block in part.read(slice(at, min(at + rows, stop)) for at in range(low, stop, rows)):
                yield _to_float32(block)
                done += len(block)
                callback(done, {"total": len(self)})

    def part(self, first: int, stop: int) -> "VectorFile":
        """The rows first, ..., stop - 1 alone; there may be none."""
        part = copy(self)
        part.first += first
        part.shape = (stop - first, self.shape[1])
        return part

    def read(self) -> np.ndarray:
        """Return all vectors, (n, d) float32."""
        X = np.empty(self.shape, np.float32)
        start = 0
        for chunk in self.chunks():
            X[start : start + len(chunk)] = chunk
            start += len(chunk)
        return X

    def sample(self, n: int, random_state: Seed = None) -> np.ndarray:
        """Return `n` different rows drawn at random, in the file's order, (min(n, len), d) float32.

        Mapped formats fetch only those rows; of Parquet each file is read once.
        """
        n = check_integer(n, "n", low=1)
        return self.take(self.draw(n, random_state))

    def draw(self, n: int, random_state: Seed = None) -> np.ndarray:
        """Numbers (min(n, len),) of different rows drawn at random, increasing."""
        if n >= len(self):
            return np.arange(len(self))
        return np.sort(numpy_generator(random_state).choice(len(self), n, replace=False, shuffle=False))

    def take(self, numbers: np.ndarray) -> np.ndarray:
        """The rows of increasing `numbers`, (len(numbers), d) float32."""
        return self.read() if len(numbers) == len(self) else _to_float32(self.rows(numbers))

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """The rows of increasing numbers, in the files' own type."""
        blocks = [np.empty((0, self.shape[1]), self.dtype)]
        cuts = np.searchsorted(numbers + self.first, self._starts)
        for part, start, low, stop in zip(self._parts, self._starts, cuts, cuts[1:], strict=False):
            places = numbers[low:stop] + self.first - start
            blocks += part.read(places[at : at + _TAKE] for at in range(0, len(places), _TAKE))
        return np.concatenate(blocks)

    def check_finite(self, callback: Callback = ignore, *, metric: str = "l2") -> None:
        """Raise ValueError if any row holds NaN or infinity, with their count and the first one's place.

        For the metric "cosine" rows of zeros are refused too. Integers are finite: without that metric such files are
        not read. `callback` is that of `chunks`.
        """
        cosine = metric == "cosine"
        if self.dtype.kind in "iub" and not cosine:
            return
        bad, zeros, done = list[int](), list[int](), self.first
        for chunk in self.chunks(callback=callback):
            bad += (np.flatnonzero(~np.isfinite(chunk).all(axis=1)) + done).tolist()
            zeros += (np.flatnonzero(~chunk.any(axis=1)) + done).tolist() if cosine else []
            done += len(chunk)
        if bad:
            what = f"{self.name} contains NaN or infinity (as float32) in {len(bad):,} of {counted(len(self), 'row')}"
            raise ValueError(f"{what}, the first is row {bad[0]}; fill them, or take X[np.isfinite(X).all(axis=1)]")
        if zeros:
            raise ValueError(zero_rows(self.name, len(zeros), len(self), zeros[0]))

    def ids(self) -> np.ndarray | None:
        """Row names (n,), integers or strings, by a table's column, or None; ValueError for empty or repeated ones."""
        makers = [part.ids for part in self._parts if part.ids is not None]
        if len(makers) < len(self._parts):
            return None
        ids = np.concatenate([make() for make in makers])
        return each_once(ids[self.first : self.first + len(self)], f"ids of {self.name}")

    def describe(self) -> str:
        """Files, shape, type, and a digest of names, sizes and some rows: equal where two processes see the same."""
        few = np.unique(np.linspace(0, len(self) - 1, 16).astype(np.int64))
        made = digest(*map(os.path.basename, self.files), self.rows(few))
        count = f"{len(self.files)} files, " if len(self.files) > 1 else ""
        return f"{self.name}: {count}{self.shape[0]} x {self.shape[1]} {self.dtype}, digest {made}"


def _to_float32(block: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):  # beyond float32's range becomes inf, which check_finite reports
        return np.ascontiguousarray(block, dtype=np.float32)


@brief()
def open_vectors(
    path: Paths | Extra, *, columns: str | Sequence[str] | None = None, **text: Unpack[TextWords]
) -> VectorFile:
    """Open a file of vectors, or several as if they were one, without reading them; or a DataFrame.

    Formats: .npy, .safetensors, .h5 (extra `hdf5`), .fvecs, .bvecs, .ivecs, .fbin, .ibin, .u8bin, .i8bin (all
    memory-mapped), .parquet (a file at a time), and, read whole, .npz, .csv, .tsv, .txt, .vec (word2vec's text), .xlsx,
    .feather, .arrow, .jsonl.
    Of a table the vectors are one column of lists, or the numbered columns of one prefix (f0, f1, ...); `ids()` gives
    the column called id, word, user or item, and `about` describes what was read. Pickled objects are never loaded.

    Parameters
    ----------
    path: a file, a folder of parts, a list of files, or a pattern ("parts/*.npy": its files in the order of the numbers
        in their names), of equal width and type; of several arrays in a file one is named, `file.npz:key`.
    columns: names of the columns of a table that hold the vectors; also `file.csv:x,y`.
    text: header, delimiter and encoding, as in `read_table`.

    Returns
    -------
    file: `VectorFile` with shape (n, d), dtype, `read()`, `chunks()`, `take(numbers)`, `ids()` and `about`.

    Examples
    --------
    >>> np.save("X.npy", np.eye(3, dtype=np.float16))
    >>> file = nk.data.open_vectors("X.npy")
    >>> file.shape, file.take(np.array([2])).tolist()
    ((3, 3), [[0.0, 0.0, 1.0]])
    """
    typed = [columns] if isinstance(columns, str) else columns
    if is_frame(path):
        parts = [table_rows(tables.read_table(path, **text), typed)]
    else:
        parts = [open_rows(where, text, typed) for where in locate_all(path, ROWS, text)]
    name = str(parts[0].where)
    if len(parts) > 1:
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else f"{name} and {len(parts) - 1} more"
    file = VectorFile(name, parts)
    if not len(file):
        raise ValueError(f"{name} has shape {file.shape}; it needs at least one row")
    return file


# lists of numbers in text; "1,5" is one number
_LISTS = r"^(array|tensor)?\(?[\[({]+\s*(np\.\w+\()?[-+.\d][^:]*$|^[-+\d.e]+([\s,;]+[-+\d.e]+){2,}$"
_WAYS = {  # of cells that hold vectors in another form
    "text": r"of lists in text, type {0} = {0}.str.findall(r'-?\b\d[\d.e+-]*').map(lambda row: [*map(float, row)])",
    "binary": "of bytes, type {0} = [np.frombuffer(cell, '<f4') for cell in {0}]",
    "struct": "of structs, type frame = pandas.json_normalize(frame.to_dict('records'))",
}


def choose(table: Table, typed: Sequence[str] | None = None) -> tuple[list[str], str | None]:
    """The columns of vectors, and that of ids or None, by their names and types.

    Without a header, words in column "0" name rows. ValueError that names what to type: for several columns of lists,
    for none and no numbered columns of one prefix.
    """
    heads = {name: replace(column, cells=column.cells[:1]) for name, column in table.columns.items()}
    numeric = [name for name, head in heads.items() if head.kind in NUMERIC or head.is_numeric]
    if [column.kind for column in table.columns.values()] == ["text"] and not numeric and table.header is not None:
        raise table.lacks("id")
    every = [name for role in ("id", "left", "right") for name in table.columns if plain(name) in NAMES[role]]
    first = [name for name in every if plain(name) in NAMES["id"]]
    ids = next((names[0] for names in (first, every) if len(names) == 1), None)
    if table.header is False and "0" in heads and ("0" not in numeric or not table.columns["0"].is_numeric):
        ids = "0"
    if typed is not None:
        return [table.column(name, "columns").name for name in typed], None if ids in typed else ids
    lists = [name for name, column in table.columns.items() if column.kind == "list"]
    names = lists or numbered(name for name in table.columns if name != ids)
    if len(lists) == 1 or (names and not lists):
        return names, ids
    what = f"{table.name} has not one column of lists, nor columns of numbers called f0, f1, ... without a gap"
    way = f"type which hold the vectors: columns=[{listed(repr(name) for name in lists or numeric if name != ids)}]"
    for name, head in () if lists else heads.items():
        is_list = head.kind == "text" and len(head) and matches(head.cells, _LISTS).all()
        if name != ids and (is_list or head.kind in _WAYS.keys() - {"text"}):
            way = head.before + _WAYS[head.kind].format(f"frame[{name!r}]")
    raise ValueError(f"{what}, of {listed(table.columns)}; {way}{table.if_data}")


def table_rows(table: Table, typed: Sequence[str] | None = None, where: Locator | None = None) -> FileRows:
    """Rows of vectors of a table in memory, which was read from `where`."""
    names, ids = choose(table, typed)
    X = stacked([table.columns[name] for name in names])
    named = None if ids is None else table.columns[ids].of_rows
    about = _about(table, names, ids, X.shape)
    return FileRows(where or Locator(Path(table.name)), X.shape, X.dtype, lambda: X, about=about, ids=named)


def open_parquet(where: Locator, typed: Sequence[str] | None = None) -> FileRows:
    """Rows of a .parquet file, of which every pass reads the columns in use."""

    def columns(frame: pa.Table | pa.RecordBatch, names: list[str]) -> list[Column]:
        return [Column(name, plain_cells(frame.column(name)), str(where.path)) for name in names]

    def read(names: list[str]) -> list[Column]:
        with reading(where.path), open_file(where.path) as file:
            return columns(file.read(names), names)

    with open_file(where.path) as file:
        empty = {field.name: Column(field.name, plain_cells(pa.nulls(0, field.type))) for field in file.schema_arrow}
        table = Table(str(where.path), empty)
        try:
            names, ids = choose(table, typed)
        except ValueError:  # whose words depend on cells, which may be long
            for row in file.iter_batches(1):
                choose(replace(table, columns={column.name: column for column in columns(row, list(empty))}), typed)
            raise
        n, first = file.metadata.num_rows, next(file.iter_batches(1, columns=names), None)
        X = np.empty((0, len(names))) if first is None else stacked(columns(first, names))
    shape, named = (n, X.shape[1]), None if ids is None else lambda: read([ids])[0].of_rows()
    about = _about(table, names, ids, shape)
    return FileRows(where, shape, X.dtype, lambda: stacked(read(names)), mapped=False, about=about, ids=named)


def _about(table: Table, names: list[str], ids: str | None, shape: tuple[int, ...]) -> str:
    """What a table was taken for, in one line."""
    used = {*names, ids}  # a table may have 100,000 columns
    aside = [name for name in table.columns if name not in used]
    span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    about = f"{table.name}: {counted(shape[0], 'row')} of {counted(shape[1], 'number')} in {span}"
    about += "" if ids is None else f"; ids in column {ids!r}"
    return about + f"; left aside: {listed(aside)}" * bool(aside)


def stacked(columns: Sequence[Column]) -> np.ndarray:
    """Vectors (n, d) in one column of lists or d of numbers, of their own type; ValueError for missing ones, and for
    lists of several lengths."""
    if columns[0].kind != "list":
        return np.stack(list(map(_numbers, columns)), axis=1)
    values, d = flattened(columns[0])
    return _numbers(values).reshape(-1, d)


def _numbers(column: Column) -> np.ndarray:
    """Numbers (n,), also NaN as a float."""
    if column.kind == "float" and not column.cells.null_count:
        return column.cells.to_numpy()
    column.refuse(column.missing, "has missing numbers", "leave these rows out")
    return column.numbers()


def flattened(lists: Column) -> tuple[Column, int]:
    """The values in lists, one list after the other, and the length of each; ValueError if they differ."""
    lists.refuse(lists.missing, "lacks lists", "leave these rows out")
    lengths = compute.list_value_length(lists.cells).to_numpy()
    way = "give every row as many values"
    lists.refuse((lengths != lengths[:1]) | (lengths == 0), "has lists of several lengths, or empty ones,", way)
    values = plain_cells(lists.cells.flatten())
    gaps = np.any(np.asarray(values.is_null()).reshape(len(lists), -1), axis=1)
    lists.refuse(gaps, "has missing numbers in its lists", "leave these rows out")
    return Column(lists.name, values, f"the values in lists of {lists.source}"), int(lengths.max(initial=1))


_ARRAYS = dict.fromkeys((".npy", ".npz"), open_numpy) | {".safetensors": open_safetensors}
_ARRAYS |= dict.fromkeys((".fvecs", ".bvecs", ".ivecs"), open_vecs) | dict.fromkeys((".h5", ".hdf5"), open_hdf5)
_ARRAYS |= dict.fromkeys((".fbin", ".ibin", ".u8bin", ".i8bin"), open_counted)
ROWS = tuple(dict.fromkeys((*_ARRAYS, *TABLES)))  # endings, each once


def open_rows(where: Locator, text: TextWords, columns: Sequence[str] | None = None) -> FileRows:
    """Open the (n, d) array at `where` by its ending; whatever is wrong with the file is a ValueError, also later."""
    if where.suffix in _ARRAYS and columns is not None:
        raise ValueError(f"columns is {columns!r}; {where} is an array, which has no names: leave columns out")
    columns = where.columns if columns is None else columns
    with reading(where.path):
        if where.suffix in _ARRAYS:
            return _ARRAYS[where.suffix](where)
        if where.suffix == ".parquet":
            return open_parquet(where, columns)
        return table_rows(tables.read_table(where.path, **text), columns, where)


@brief()
def read_vectors(
    path: Paths | Extra, *, columns: str | Sequence[str] | None = None, **text: Unpack[TextWords]
) -> np.ndarray:
    """Read all vectors of a file or several, or of a DataFrame.

    Parameters
    ----------
    path, columns, text: as in `open_vectors`.

    Returns
    -------
    X: (n, d) float32.

    Examples
    --------
    >>> np.savez("X.npz", base=np.eye(3, dtype=np.uint8), query=np.ones((1, 3)))
    >>> nk.read_vectors("X.npz:base")
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    file = open_vectors(path, columns=columns, **text)
    return check_finite(file.read(), file.name)
