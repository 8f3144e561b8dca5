"""The interface of formats: the rows of one 2-D array, in blocks, and by number if the file can be mapped."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from nearkin._fields import counted
from nearkin.linalg.signs import unpack_bits

MAX_WIDTH = 1_000_000  # columns; a wider table is one that was written on its side, or is damaged
BFLOAT16 = np.dtype("V2")  # as ml_dtypes writes it in .npy files
_BLOCK = 2**21  # numbers that are read at a time where a pass finds the rows
_TAKE = 1024  # rows fetched through one memory map: bounds the pages that random access keeps resident


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
    streamed: bool = False  # rows are read from the beginning of the file, whichever are wanted


def check_dtype(name: str, dtype: np.dtype) -> None:
    """ValueError if an array of `dtype` is neither numbers nor text."""
    if dtype.hasobject:
        raise ValueError(
            f"{name} holds Python objects (dtype object), which are not read because unpickling runs foreign code; "
            "save numbers: np.save(file, np.asarray(X, dtype=np.float32))"
        )
    if dtype.kind not in "fiubcUSMm" or not dtype.itemsize:
        raise ValueError(f"{name} has dtype {dtype}; it must hold numbers or text")


def check_layout(name: str, shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, int]:
    """Return (n, d) if the array can hold vectors; ValueError for another number of axes or a bad dtype."""
    if dtype != BFLOAT16:
        check_dtype(name, dtype)
    if dtype.kind == "c":
        raise ValueError(f"{name} has the complex dtype {dtype}; it must be real")
    if len(shape) != 2:
        raise ValueError(f"{name} has shape {shape}; it must be 2-D (n, d), one row a vector")
    if shape[1] == 0:
        raise ValueError(f"{name} has shape {shape}; it needs at least one column")
    if shape[1] > MAX_WIDTH:
        raise ValueError(
            f"{name} has {counted(shape[1], 'column')}; vectors have at most {MAX_WIDTH}. Is a row one vector?"
        )
    return int(shape[0]), int(shape[1])


def mapped_rows(
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype,
    open_map: Callable[[], np.ndarray],
    decode: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda block, numbers: block,
) -> FileRows:
    """Rows of a file that can be memory-mapped; ValueError unless its `shape` and `dtype` are those of vectors.

    `open_map()` maps the whole file as rows, afresh for every block, so that pages already read do not count as ours;
    `decode(block, numbers)` turns mapped rows into vectors and may raise ValueError for the rows of those numbers.
    """

    def blocks(rows: int, first: int, stop: int) -> Iterator[np.ndarray]:
        for start in range(first, stop, rows):
            end = min(start + rows, stop)
            yield np.array(decode(open_map()[start:end], np.arange(start, end)))

    def take(numbers: np.ndarray) -> np.ndarray:
        parts = [numbers[i : i + _TAKE] for i in range(0, len(numbers), _TAKE)]
        return np.concatenate([np.array(decode(open_map()[part], part)) for part in parts])

    return FileRows(check_layout(name, shape, dtype), dtype, blocks, take)


def unpacked_rows(rows: FileRows, name: object, kind: str, order: str) -> FileRows:
    """Rows of packed bits as -1 and 1, a column for each bit; ValueError unless the bytes are of that kind."""
    if rows.dtype != kind:
        raise ValueError(
            f"{name} has dtype {rows.dtype}, and the name asks for packed bits of {kind}; end it with @ubinary for "
            "uint8 (@ubinary-little if the lowest bit is first), with @binary for int8, or with neither for numbers"
        )

    def signs(block: np.ndarray) -> np.ndarray:
        return unpack_bits(np.ascontiguousarray(block), order=order).view(np.int8) * np.int8(2) - np.int8(1)

    def blocks(size: int, first: int, stop: int) -> Iterator[np.ndarray]:
        return map(signs, rows.blocks(size, first, stop))

    def take(numbers: np.ndarray) -> np.ndarray:
        return signs(rows.take(numbers))

    return replace(rows, shape=(rows.shape[0], 8 * rows.shape[1]), dtype=np.dtype(np.int8), blocks=blocks, take=take)


def array_rows(X: np.ndarray, name: str = "X") -> FileRows:
    """The rows of an array in memory."""
    return mapped_rows(name, X.shape, X.dtype, lambda: X)


def streamed_rows(shape: tuple[int, int], dtype: np.dtype, blocks: Callable[[int], Iterator[np.ndarray]]) -> FileRows:
    """Rows of a file that is read from its beginning, whichever of its rows are wanted."""

    def some(rows: int, first: int, stop: int) -> Iterator[np.ndarray]:
        start = 0
        for block in blocks(rows) if first < stop else ():
            part = block[max(first - start, 0) : stop - start]
            if len(part):
                yield part
            start += len(block)
            if start >= stop:
                return

    def take(numbers: np.ndarray) -> np.ndarray:
        X, start = np.empty((len(numbers), shape[1]), dtype), 0
        for block in some(max(1, _BLOCK // shape[1]), 0, int(numbers[-1]) + 1):
            low, high = np.searchsorted(numbers, [start, start + len(block)])
            X[low:high] = block[numbers[low:high] - start]
            start += len(block)
        return X

    return FileRows(shape, dtype, some, take, streamed=True)


def joined_rows(names: list[str], parts: list[FileRows]) -> FileRows:
    """Several files as one array, in this order; ValueError that names both files if they differ in width or type."""
    first = next((i for i, part in enumerate(parts) if part.shape[0]), 0)  # an empty table may not know its width
    for name, part in zip(names, parts, strict=True):
        if part.shape[0] and (part.shape[1], part.dtype) != (parts[first].shape[1], parts[first].dtype):
            raise ValueError(
                f"{name} has {counted(part.shape[1], 'column')} of {part.dtype}, {names[first]} has "
                f"{counted(parts[first].shape[1], 'column')} of {parts[first].dtype}; all files of one array must agree"
            )
    starts = np.concatenate([[0], np.cumsum([part.shape[0] for part in parts])])

    def blocks(rows: int, low: int, stop: int) -> Iterator[np.ndarray]:
        for part, start in zip(parts, starts, strict=False):
            inside = max(low - start, 0), min(stop - start, part.shape[0])
            if inside[0] < inside[1]:
                yield from part.blocks(rows, int(inside[0]), int(inside[1]))

    def take(numbers: np.ndarray) -> np.ndarray:
        cuts = np.searchsorted(numbers, starts)
        wanted = zip(parts, starts, cuts, cuts[1:], strict=False)
        return np.concatenate([part.take(numbers[a:b] - start) for part, start, a, b in wanted if a < b])

    shape = (int(starts[-1]), parts[first].shape[1])
    streamed = any(part.streamed for part in parts)
    about = parts[first].about
    if about and len(parts) > 1:
        about = f"{counted(len(parts), 'file')} of {counted(shape[0], 'row')}, the first is {about}"
    return FileRows(shape, parts[first].dtype, blocks, take, about, _joined_ids(parts), streamed)


def _joined_ids(parts: list[FileRows]) -> Callable[[], np.ndarray] | None:
    """The ids of several files in order, None unless every one with rows has some."""
    makers = [part.ids for part in parts if part.shape[0]]
    if not makers or None in makers:
        return None

    def ids() -> np.ndarray:
        found = [make() for make in makers if make is not None]
        if len({part.dtype.kind for part in found}) > 1:  # numbers in one file and text in another
            found = [np.array([str(name) for name in part.tolist()], dtype=object) for part in found]
        return np.concatenate(found)

    return ids
