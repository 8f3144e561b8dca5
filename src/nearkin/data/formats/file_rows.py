"""The interface of formats: the rows of one 2-D array, in parts."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from nearkin._fields import Extra, StrPath
from nearkin._storage import reading
from nearkin.data.files import MAX_WIDTH, Locator

Part: TypeAlias = slice | np.ndarray
"""Rows of a file: a slice, or increasing numbers."""


@dataclass(frozen=True)
class FileRows:
    """The rows of an (n, d) array at `where`, n = 0 allowed; ValueError unless they are vectors.

    `open_array()` gives all of them: mapped ones afresh for every part, so that pages already read do not count as
    ours, others once a pass. A table describes in `about` what it was taken for, and gives in `ids()` (n,) what its
    rows are called, if they are.
    """

    where: Locator
    shape: tuple[int, ...]
    dtype: np.dtype
    open_array: Callable[[], Extra]
    decode: Callable[[Extra], np.ndarray] = np.array  # the vectors of a part, a copy
    mapped: bool = True
    about: str = ""
    ids: Callable[[], np.ndarray] | None = None

    def __post_init__(self) -> None:
        if len(self.shape) != 2 or not 0 < self.shape[1] <= MAX_WIDTH:
            raise ValueError(f"{self.where} has shape {self.shape}; it must be 2-D (n, d), d from 1 to {MAX_WIDTH:,}")
        if self.dtype.kind not in "fiub":
            raise ValueError(f"{self.where} has dtype {self.dtype}; vectors must hold real numbers")

    def read(self, parts: Iterable[Part] = (slice(None),)) -> Iterator[np.ndarray]:
        """Yield parts of the rows, by default all as one, in the file's own dtype; nothing stays mapped."""
        X = None
        with reading(self.where.path):
            for part in parts:
                X = self.open_array() if X is None or self.mapped else X
                yield self.decode(X[part])


def array_rows(X: np.ndarray, where: StrPath = "X") -> list[FileRows]:
    """The rows of an array in memory, as the only part of a `VectorFile`."""
    return [FileRows(Locator(Path(where)), X.shape, X.dtype, lambda: X)]
