"""Vectors from files: whole with `read_vectors`, or in chunks with `open_vectors` where they exceed memory.

In a table they are one column of lists, or the numbered columns of one prefix, or the columns typed.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np
import pyarrow as pa
from pyarrow import compute

from nearkin._check import check_integer, numpy_generator, repeated, zero_rows
from nearkin._fields import Extra, StrPath, counted
from nearkin._storage import digest
from nearkin._types import Seed
from nearkin.contracts import Callback, ignore
from nearkin.data.files import TABLES, Locator, TextWords, brief, locate_all, numbered, reading, unknown_ending
from nearkin.data.formats.binary import open_counted, open_hdf5, open_numpy, open_safetensors, open_vecs
from nearkin.data.formats.file_rows import BFLOAT16, FileRows, joined_rows, opened_rows
from nearkin.data.formats.parquet import open_file
from nearkin.data.tables import (
    NAMES,
    Column,
    Table,
    frame_columns,
    is_frame,
    kind_of,
    listed,
    plain,
    plain_cells,
    read_located,
    with_rows,
)  # fmt: skip

CHUNK_BYTES = 8 * 2**20  # float32 bytes of a default chunk: long enough for full speed, short enough for progress

Paths = StrPath | Iterable[StrPath]


class VectorFile:
    """The vectors of one file or of several, read as float32 a chunk at a time; `open_vectors` makes it.

    `shape` is (n, d) and `dtype` the type on disk. Integers are converted, never scaled. Nothing is kept in memory
    between calls, whatever the file's length. `about` describes in one line how a table was read ("" for arrays).
    """

    def __init__(self, name: str, rows: FileRows, files: list[str] | None = None, first: int = 0) -> None:
        self.name = name
        self.shape: tuple[int, int] = rows.shape
        self.dtype: np.dtype = rows.dtype
        self.files: list[str] = [name] if files is None else files
        self.first = first  # the number of its first row in the files
        self.about: str = rows.about
        self._rows = rows
        self.chunk_rows: int = max(1, CHUNK_BYTES // (4 * rows.shape[1]))

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"VectorFile({self.name!r}, shape={self.shape}, dtype={self.dtype})"

    def chunks(self, rows: int | None = None, callback: Callback = ignore) -> Iterator[np.ndarray]:
        """Yield the vectors in order as (at most `rows`, d) float32; by default about 8 MB each.

        `callback(rows_done, {"total": n})` is called after each chunk.
        """
        rows, done = self.chunk_rows if rows is None else check_integer(rows, "rows", low=1), 0
        for block in self._rows.blocks(rows, self.first, self.first + len(self)):
            yield _to_float32(block)
            done += len(block)
            callback(done, {"total": len(self)})

    def part(self, first: int, stop: int) -> "VectorFile":
        """The rows first, ..., stop - 1 alone; there may be none."""
        part = VectorFile(self.name, self._rows, self.files, self.first + first)
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
        if len(numbers) == len(self):
            return self.read()
        if not len(numbers):
            return np.empty((0, self.shape[1]), np.float32)
        return _to_float32(self._rows.take(self.first + numbers))

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
            raise ValueError(
                f"{self.name} contains NaN or infinity (as float32) in {len(bad):,} of {counted(len(self), 'row')}, "
                f"the first is row {bad[0]}; remove these rows, for example X[np.isfinite(X).all(axis=1)], or fill them"
            )
        if zeros:
            raise ValueError(zero_rows(self.name, len(zeros), len(self), zeros[0]))

    def ids(self) -> np.ndarray | None:
        """Row names (n,), integers or strings, by a table's column, or None; ValueError for empty or repeated ones."""
        if self._rows.ids is None:
            return None
        names = self._rows.ids()[self.first : self.first + len(self)]
        if len(twice := repeated(names)):
            raise ValueError(
                f"{self.name} has {counted(len(twice), 'id')} used for several rows, the first is {twice[0].item()!r}; "
                "make them unique, delete the column of ids, or give others"
            )
        return names

    def describe(self) -> str:
        """Files, shape, type, and a digest of names, sizes and some rows: equal where two processes see the same."""
        few = np.unique(np.linspace(0, self._rows.shape[0] - 1, 16).astype(np.int64))
        made = digest(*map(os.path.basename, self.files), self._rows.take(few))
        count = f"{len(self.files)} files, " if len(self.files) > 1 else ""
        return f"{self.name}: {count}{self.shape[0]} x {self.shape[1]} {self.dtype}, digest {made}"


def _to_float32(block: np.ndarray) -> np.ndarray:
    if block.dtype == BFLOAT16:
        return (np.ascontiguousarray(block).view("<u2").astype(np.uint32) << 16).view(np.float32)
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
        where = Locator(Path("the table"))
        files, parts = [str(where)], [table_rows(where, Table(str(where), frame_columns(path, str(where))), typed)]
    else:
        places = [where if typed is None else replace(where, key=",".join(typed)) for where in locate_all(path)]
        files, parts = list(map(str, places)), [open_rows(where, text) for where in places]
    rows, name = joined_rows(files, parts), files[0]
    if len(files) > 1:
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else f"{name} and {len(files) - 1} more"
    if not rows.shape[0]:
        raise ValueError(f"{name} has shape {rows.shape}; it needs at least one row")
    return VectorFile(name, rows, files)


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
    if not lists and (names := numbered(numeric)):
        prefix = names[0].rstrip("0123456789")
        rest = [name for name in kinds if name not in (*names, ids) and name.rstrip("0123456789") == prefix]
        if rest and prefix:
            raise ValueError(f"{source}: column {rest[0]!r} has no number in its first row, as {names[0]!r} has")
        return names, ids
    what = f"{source} has not one column of lists, nor columns of numbers called f0, f1, ... without a gap"
    way = f"type which hold the vectors: columns=[{listed(map(repr, lists or numeric))}], or of a file, its name:x,y"
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
    return Column(lists.name, values, f"the values in lists of {lists.source}"), int(lengths.max(initial=1))


_ARRAYS: dict[str, Callable[[Locator], FileRows]] = {
    **dict.fromkeys((".npy", ".npz"), open_numpy),
    **dict.fromkeys((".fvecs", ".bvecs", ".ivecs"), open_vecs),
    **dict.fromkeys((".fbin", ".ibin", ".u8bin", ".i8bin"), open_counted),
    **dict.fromkeys((".h5", ".hdf5"), open_hdf5),
    ".safetensors": open_safetensors,
    ".parquet": open_parquet,
}


def open_rows(where: Locator, text: TextWords) -> FileRows:
    """Open the (n, d) array at `where` by its ending; whatever is wrong with the file is a ValueError, also later."""
    if where.suffix not in (*_ARRAYS, *TABLES):
        raise unknown_ending(where, (*_ARRAYS, *TABLES))
    with reading(where):
        if where.suffix in _ARRAYS:
            return _ARRAYS[where.suffix](where)
        return table_rows(where, with_rows(read_located(replace(where, key=None), text)), where.columns)


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
    X = file.read()
    if not np.isfinite(X).all():
        file.check_finite()  # counts the rows
    return X
