"""NumPy's .npy: one array, memory-mapped."""

import math
from typing import IO

import numpy as np
from numpy.lib import format as npy

from nearkin.data.formats.file_rows import FileRows, check_dtype, check_layout, mapped_rows
from nearkin.data.locator import Locator

Header = tuple[tuple[int, ...], bool, np.dtype]


def read_header(file: IO[bytes], name: str) -> Header:
    """Return (shape, whether in Fortran order, dtype) of the .npy stream `file`, left at the array's first byte."""
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except Exception as error:  # the header is Python source: SyntaxError, TypeError, RecursionError, tokenize errors
        raise ValueError(f"{name} is no NumPy file ({error}); write it with np.save") from error
    if any(isinstance(n, bool) or n < 0 for n in shape):
        raise ValueError(f"{name} is no NumPy file (its header says shape {shape}); write it with np.save")
    check_dtype(name, dtype)
    return shape, fortran, dtype


def check_size(name: str, header: Header, offset: int, found: int) -> None:
    """ValueError if a stream of `found` bytes is not what its header, `offset` bytes long, announces."""
    shape, _, dtype = header
    needed = offset + math.prod(shape) * dtype.itemsize
    if found < needed:
        raise ValueError(f"{name} is truncated: it has {found} bytes, its header announces {needed}; copy it again")
    if found > needed:
        raise ValueError(
            f"{name} is damaged: it has {found} bytes, its header announces {needed}; write it again with np.save"
        )


def _open_header(where: Locator) -> tuple[Header, int]:
    with where.path.open("rb") as file:
        header = read_header(file, str(where))
        offset = file.tell()
    check_size(str(where), header, offset, where.path.stat().st_size)
    return header, offset


def open_npy(where: Locator) -> FileRows:
    """Rows of an .npy file; ValueError if it is damaged, truncated, or holds no 2-D array of numbers."""
    (layout, fortran, dtype), offset = _open_header(where)
    shape = check_layout(str(where), layout, dtype)
    order = "F" if fortran else "C"
    return mapped_rows(shape, dtype, lambda: np.memmap(where.path, dtype, "r", offset, shape, order))


def read_npy(where: Locator) -> np.ndarray:
    """The array of an .npy file, of any shape, numbers or text."""
    (shape, fortran, dtype), offset = _open_header(where)
    return np.fromfile(where.path, dtype, math.prod(shape), offset=offset).reshape(shape, order="F" if fortran else "C")
