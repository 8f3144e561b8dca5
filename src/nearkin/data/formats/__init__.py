"""File formats of vectors: one file each, looked up by the name's ending."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from nearkin._lazy import lazily
from nearkin.data.files import FRAMES, PACKED, TEXT, Locator, reading, unknown_ending
from nearkin.data.formats.binary import open_counted, open_hdf5, open_npy, open_npz, open_safetensors, open_vecs
from nearkin.data.formats.columns import open_frame, open_parquet, open_text
from nearkin.data.formats.file_rows import FileRows as FileRows
from nearkin.data.formats.file_rows import unpacked_rows
from nearkin.data.text import TextOptions

FORMATS: dict[str, Callable[[Locator], FileRows]] = {
    ".npy": open_npy,
    ".npz": open_npz,
    **dict.fromkeys((".fvecs", ".bvecs", ".ivecs"), open_vecs),
    **dict.fromkeys((".fbin", ".ibin", ".u8bin", ".i8bin"), open_counted),
    ".h5": open_hdf5,
    ".hdf5": open_hdf5,
    ".safetensors": open_safetensors,
    **dict.fromkeys(FRAMES, open_frame),
    ".parquet": open_parquet,
}


def open_rows(where: Locator, text: TextOptions) -> FileRows:
    """Open the (n, d) array at `where` by its ending; whatever is wrong with the file is a ValueError, also later."""
    if where.suffix not in (*FORMATS, *TEXT):
        raise unknown_ending(where, (*FORMATS, *TEXT))
    with reading(where):
        rows = open_text(where, text) if where.suffix in TEXT else FORMATS[where.suffix](where)
        if where.packed is not None:
            rows = unpacked_rows(rows, where, *PACKED[where.packed])

    def blocks(size: int, first: int, stop: int) -> Iterator[np.ndarray]:
        count = 0
        with reading(where):
            for block in rows.blocks(size, first, stop):
                count += len(block)
                yield block
            if count != stop - first:
                raise ValueError(f"rows: {count} where {stop - first} were announced")

    ids = None if rows.ids is None else reading(where)(rows.ids)
    return replace(rows, blocks=blocks, take=reading(where)(rows.take), ids=ids)


lazily(__name__, __file__, "FORMATS", "open_rows")
