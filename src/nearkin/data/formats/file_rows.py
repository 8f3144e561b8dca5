"""The interface of formats: the rows of one 2-D array, in blocks and by number."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from nearkin._fields import Extra, counted
from nearkin.data.files import Locator, reading

MAX_WIDTH = 1_000_000  # columns; a wider table is one that was written on its side, or is damaged
BFLOAT16 = np.dtype("V2")  # as ml_dtypes writes it in .npy files
_TAKE = 1024  # rows fetched through one memory map: bounds the pages that random access keeps resident


Part: TypeAlias = slice | np.ndarray
"""Rows of a file: a slice, or increasing numbers."""


@dataclass(frozen=True)
class FileRows:
    """One (n, d) array on disk, n = 0 allowed. Blocks are copies in the file's own dtype: nothing stays mapped.

    A table describes in `about` what it was taken for, and gives in `ids()` (n,) what its rows are called, if they are.
    """

    shape: tuple[int, int]  # (n, d)
    dtype: np.dtype
    blocks: Callable[[int, int, int], Iterator[np.ndarray]]  # blocks(rows, first, stop): (<= rows, d) each, in order
    take: Callable[[np.ndarray], np.ndarray]  # rows by increasing number, at least one
    about: str = ""
    ids: Callable[[], np.ndarray] | None = None


def check_dtype(name: str, dtype: np.dtype) -> None:
    """ValueError if an array of `dtype` is neither numbers nor text."""
    if dtype.hasobject:
        raise ValueError(
            f"{name} holds Python objects (dtype object), which are not read because unpickling runs foreign code; "
            "save numbers: np.save(file, np.asarray(X, dtype=np.float32))"
        )
    if dtype.kind not in "fiubcUSMm" or not dtype.itemsize:
        raise ValueError(f"{name} has dtype {dtype}; it must hold numbers or text")


def opened_rows(
    where: Locator,
    shape: tuple[int, ...],
    dtype: np.dtype,
    open_array: Callable[[], Extra],
    decode: Callable[[np.ndarray, Part], np.ndarray] = lambda block, part: block,
    *,
    mapped: bool = True,
    about: str = "",
    ids: Callable[[], np.ndarray] | None = None,
) -> FileRows:
    """Rows of a file; ValueError unless its `shape` and `dtype` are those of vectors, and for what fails later.

    `open_array()` gives the whole file as rows: mapped ones afresh for every block, so that pages already read do not
    count as ours, others once a pass. `decode(block, part)` turns the rows of this part into vectors.
    """
    if len(shape) != 2 or not 0 < shape[1] <= MAX_WIDTH:
        raise ValueError(
            f"{where} has shape {shape}; it must be 2-D (n, d), one row a vector, with 1 to {MAX_WIDTH:,} columns"
        )
    if dtype != BFLOAT16:
        check_dtype(str(where), dtype)
        if dtype.kind not in "fiub":
            raise ValueError(f"{where} has dtype {dtype}; vectors must hold real numbers")

    def parts(wanted: Iterable[Part]) -> Iterator[np.ndarray]:
        X = None
        with reading(where):
            for part in wanted:
                X = open_array() if X is None or mapped else X
                yield np.array(decode(X[part], part))

    def blocks(rows: int, first: int, stop: int) -> Iterator[np.ndarray]:
        return parts(slice(start, min(start + rows, stop)) for start in range(first, stop, rows))

    def take(numbers: np.ndarray) -> np.ndarray:
        return np.concatenate([*parts(numbers[start : start + _TAKE] for start in range(0, len(numbers), _TAKE))])

    return FileRows((int(shape[0]), int(shape[1])), dtype, blocks, take, about, ids)


def array_rows(X: np.ndarray, name: str = "X") -> FileRows:
    """The rows of an array in memory."""
    return opened_rows(Locator(Path(name)), X.shape, X.dtype, lambda: X)


def joined_rows(names: list[str], parts: list[FileRows]) -> FileRows:
    """Several files as one array, in this order; ValueError that names both files if they differ in width or type."""
    first = next((i for i, part in enumerate(parts) if part.shape[0]), 0)  # an empty table may not know its width
    for name, part in zip(names, parts, strict=True):
        if part.shape[0] and (part.shape[1], part.dtype) != (parts[first].shape[1], parts[first].dtype):
            raise ValueError(
                f"{name} has {counted(part.shape[1], 'column')} of {part.dtype}, {names[first]} has "
                f"{counted(parts[first].shape[1], 'column')} of {parts[first].dtype}; all files of one array must agree"
            )
    starts = np.cumsum([0, *(part.shape[0] for part in parts)])

    def blocks(rows: int, low: int, stop: int) -> Iterator[np.ndarray]:
        for part, start in zip(parts, starts.tolist(), strict=False):
            yield from part.blocks(rows, max(low - start, 0), min(stop - start, part.shape[0]))

    def take(numbers: np.ndarray) -> np.ndarray:
        cuts = np.searchsorted(numbers, starts)
        wanted = zip(parts, starts, cuts, cuts[1:], strict=False)
        return np.concatenate([part.take(numbers[a:b] - start) for part, start, a, b in wanted if a < b])

    shape, about = (int(starts[-1]), parts[first].shape[1]), parts[first].about
    if about and len(parts) > 1:
        about = f"{counted(len(parts), 'file')} of {counted(shape[0], 'row')}, the first is {about}"
    makers = [part.ids for part in parts if part.shape[0] and part.ids is not None]
    whole = len(makers) == sum(part.shape[0] > 0 for part in parts) > 0
    ids = (lambda: np.concatenate([make() for make in makers])) if whole else None
    return FileRows(shape, parts[first].dtype, blocks, take, about, ids)
