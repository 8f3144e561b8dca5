"""The TEXMEX formats of the nearest-neighbour benchmarks: every row is its own width (int32), then its values.

.fvecs holds float32, .ivecs int32 (neighbour lists), .bvecs uint8. All are memory-mapped.
"""

import numpy as np

from nearkin.data.files import Locator
from nearkin.data.formats.file_rows import MAX_WIDTH, FileRows, check_layout, mapped_rows

_DTYPE = {".fvecs": np.dtype("<f4"), ".ivecs": np.dtype("<i4"), ".bvecs": np.dtype("u1")}


def open_vecs(where: Locator) -> FileRows:
    """Rows of a .fvecs, .ivecs or .bvecs file; ValueError if it is truncated or its rows differ in width."""
    dtype = _DTYPE[where.suffix]
    size = where.path.stat().st_size
    head = np.fromfile(where.path, "<i4", 1)
    d = int(head[0]) if len(head) else 0
    if not 0 < d <= MAX_WIDTH:
        raise ValueError(f"{where} starts with the width {d}; it is no {where.suffix} file (int32 width, then values)")
    record = 4 + d * dtype.itemsize
    if size % record:
        raise ValueError(
            f"{where} is truncated or its rows differ in width: {size} bytes are {size // record} rows of {record} "
            f"bytes (width {d}) and {size % record} bytes over; copy it again"
        )
    shape = check_layout(str(where), (size // record, d), dtype)

    def decode(block: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        widths = np.ascontiguousarray(block[:, :4]).view("<i4")[:, 0]
        if (widths != d).any():
            bad = int((widths != d).argmax())
            raise ValueError(f"{where}: row {numbers[bad]} has the width {widths[bad]}, row 0 has {d}; rows must agree")
        return np.ascontiguousarray(block[:, 4:]).view(dtype)

    return mapped_rows(shape, dtype, lambda: np.memmap(where.path, np.uint8, "r", 0, (shape[0], record)), decode)
