"""What every format offers: the rows of one 2-D array, in blocks, and by number where the file can be mapped."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

_TAKE = 1024  # rows fetched through one memory map: bounds the pages that random access keeps resident


@dataclass(frozen=True)
class Rows:
    """One (n, d) array on disk. Blocks are copies in the file's own dtype: nothing stays mapped between them."""

    shape: tuple[int, int]  # (n, d)
    dtype: np.dtype
    blocks: Callable[[int], Iterator[np.ndarray]]  # blocks(rows) yields (<= rows, d) in the order of the file
    take: Callable[[np.ndarray], np.ndarray] | None = None  # rows by increasing number; None: only a pass finds them


def check_layout(name: str, shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, int]:
    """Return (n, d) if the array can hold vectors; ValueError for another number of axes, no rows, or a bad dtype."""
    if dtype.hasobject:
        raise ValueError(
            f"{name} holds Python objects (dtype object), which are not read because unpickling runs foreign code; "
            "save numbers: np.save(file, np.asarray(X, dtype=np.float32))"
        )
    if dtype.kind == "c":
        raise ValueError(f"{name} has the complex dtype {dtype}; it must be real")
    if len(shape) != 2:
        raise ValueError(f"{name} has shape {shape}; it must be 2-D (n, d), one row a vector")
    if shape[0] == 0 or shape[1] == 0:
        raise ValueError(f"{name} has shape {shape}; it needs at least one row and one column")
    return int(shape[0]), int(shape[1])


def mapped_rows(
    shape: tuple[int, int],
    dtype: np.dtype,
    open_map: Callable[[], np.ndarray],
    decode: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda block, numbers: block,
) -> Rows:
    """Rows of a file that can be memory-mapped.

    `open_map()` maps the whole file as rows, afresh for every block, so that pages already read do not count as ours;
    `decode(block, numbers)` turns mapped rows into vectors and may complain about the rows of those numbers.
    """
    n = shape[0]

    def blocks(rows: int) -> Iterator[np.ndarray]:
        for start in range(0, n, rows):
            stop = min(start + rows, n)
            yield np.array(decode(open_map()[start:stop], np.arange(start, stop)))

    def take(numbers: np.ndarray) -> np.ndarray:
        parts = [numbers[i : i + _TAKE] for i in range(0, len(numbers), _TAKE)]
        return np.concatenate([np.array(decode(open_map()[part], part)) for part in parts])

    return Rows(shape, dtype, blocks, take)
