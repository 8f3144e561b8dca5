"""Vectors from files: whole with `read_vectors`, or in chunks with `open_vectors` where they exceed memory."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np

from nearkin._check import bad_values, check_integer, not_finite, numpy_generator, repeated, zero_rows
from nearkin._fields import Extra, StrPath, counted
from nearkin._storage import digest
from nearkin._types import Seed
from nearkin.contracts import Callback, ignore
from nearkin.data.files import TABLES, Locator, brief, locate_all, reading, unknown_ending
from nearkin.data.formats.binary import open_counted, open_hdf5, open_numpy, open_safetensors, open_vecs
from nearkin.data.formats.columns import open_parquet, table_rows
from nearkin.data.formats.file_rows import BFLOAT16, FileRows, joined_rows
from nearkin.data.tables import Table, frame_columns, is_frame, read_located
from nearkin.data.text import TextWords

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
        bad, zeros, kinds, done = list[int](), list[int](), set[str](), self.first
        for chunk in self.chunks(callback=callback):
            wrong = np.flatnonzero(~np.isfinite(chunk).all(axis=1))
            kinds |= not_finite(chunk[wrong])
            if len(wrong) and not bad:
                first = ~np.isfinite(chunk[wrong[0]])
            bad += (wrong + done).tolist()
            if cosine:
                zeros += (np.flatnonzero(~chunk.any(axis=1)) + done).tolist()
            done += len(chunk)
        if bad:
            raise ValueError(bad_values(self.name, kinds, np.array(bad), first, len(self), " (as float32)"))
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

    def digest(self) -> str:
        """A digest of all values, which takes a pass over the file: equal where the vectors are."""
        return digest(self.chunks())

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

    Raises
    ------
    FileNotFoundError: no such file.
    ValueError: an empty or damaged file, one that is not 2-D or holds no numbers, files that differ, a table whose
        columns do not tell which hold the vectors.

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
        return table_rows(where, read_located(replace(where, key=None), text), where.columns)


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

    Raises
    ------
    ValueError, FileNotFoundError: as `open_vectors`; NaN or infinity.

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
