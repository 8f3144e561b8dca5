"""File formats of vectors: one file each, looked up by the name's ending."""

from collections.abc import Callable

from nearkin.data.files import PACKED, Locator, reading, unpack_first
from nearkin.data.formats.binary import open_npy, open_npz, open_vecs
from nearkin.data.formats.file_rows import FileRows as FileRows
from nearkin.data.formats.file_rows import guarded_rows
from nearkin.data.formats.parquet import open_parquet
from nearkin.data.formats.text import open_text

FORMATS: dict[str, Callable[[Locator], FileRows]] = {
    ".npy": open_npy,
    ".npz": open_npz,
    ".fvecs": open_vecs,
    ".bvecs": open_vecs,
    ".ivecs": open_vecs,
    ".parquet": open_parquet,
    ".csv": open_text,
    ".tsv": open_text,
    ".txt": open_text,
}


def open_rows(where: Locator) -> FileRows:
    """Open the (n, d) array at `where` in the format that its ending names; ValueError for an unknown ending.

    Whatever is wrong with the file is a ValueError, here and while its rows are read.
    """
    if where.suffix not in FORMATS:
        if where.suffix in PACKED:
            raise ValueError(unpack_first(where.path))
        ending = f"ends in {where.suffix!r}" if where.suffix else "has no ending"
        raise ValueError(f"{where.path} {ending}; the formats read are {', '.join(FORMATS)}")
    with reading(where):
        rows = FORMATS[where.suffix](where)
    return guarded_rows(rows, lambda: reading(where))
