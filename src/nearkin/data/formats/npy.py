"""NumPy's .npy: one array, memory-mapped."""

from typing import Any

import numpy as np
from numpy.lib import format as npy

from nearkin.data.formats.rows import Rows, check_layout, mapped_rows
from nearkin.data.locator import Locator


def read_header(file: Any, name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return (shape, whether in Fortran order, dtype) of the .npy stream `file`, left at the array's first byte."""
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        return read(file)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{name} is no NumPy file ({error}); write it with np.save") from error


def open_npy(where: Locator) -> Rows:
    """Rows of an .npy file; ValueError if it is damaged, truncated, or holds no 2-D array of numbers."""
    with where.path.open("rb") as file:
        layout, fortran, dtype = read_header(file, str(where))
        offset = file.tell()
    shape = check_layout(str(where), layout, dtype)
    needed, found = offset + shape[0] * shape[1] * dtype.itemsize, where.path.stat().st_size
    if found < needed:
        raise ValueError(f"{where} is truncated: it has {found} bytes, its header announces {needed}; copy it again")
    order = "F" if fortran else "C"
    return mapped_rows(shape, dtype, lambda: np.memmap(where.path, dtype, "r", offset, shape, order))
