"""NumPy's .npz: several named arrays. An archive cannot be mapped, so its rows are streamed as they are unpacked."""

import zipfile
import zlib
from collections.abc import Iterator

import numpy as np

from nearkin.data.formats.npy import read_header
from nearkin.data.formats.rows import Rows, check_layout, streamed_rows
from nearkin.data.locator import Locator


def archive_keys(where: Locator) -> list[str]:
    """Names of the arrays in an .npz; ValueError if it is no archive or holds none."""
    try:
        with zipfile.ZipFile(where.path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    except zipfile.BadZipFile as error:
        raise ValueError(f"{where.path} is no .npz archive ({error}); write it with np.savez") from error
    if not names:
        raise ValueError(f"{where.path} holds no arrays; write it with np.savez(file, X=X)")
    return names


def choose_key(where: Locator) -> str:
    """The named array, or the only one; ValueError that lists what there is otherwise."""
    names = archive_keys(where)
    if where.key is None and len(names) > 1:
        listed = ", ".join(f"{where.path}:{name}" for name in names)
        raise ValueError(f"{where.path} holds {len(names)} arrays; name one of {listed}")
    if where.key is not None and where.key not in names:
        raise ValueError(f"{where.path} has no array {where.key!r}; it holds {', '.join(names)}")
    return names[0] if where.key is None else where.key


def open_npz(where: Locator) -> Rows:
    """Rows of one array of an .npz file, unpacked block by block (a Fortran-ordered array is unpacked whole)."""
    key = choose_key(where)
    name = f"{where.path}:{key}"
    with zipfile.ZipFile(where.path) as archive, archive.open(key + ".npy") as file:
        layout, fortran, dtype = read_header(file, name)
    n, d = check_layout(name, layout, dtype)

    def blocks(rows: int) -> Iterator[np.ndarray]:
        if fortran:
            with np.load(where.path, allow_pickle=False) as archive:
                X = archive[key]
            yield from (X[start : start + rows].copy() for start in range(0, n, rows))
            return
        with zipfile.ZipFile(where.path) as archive, archive.open(key + ".npy") as file:
            read_header(file, name)
            for start in range(0, n, rows):
                count = min(rows, n - start)
                data = _read_exactly(file, count * d * dtype.itemsize, name)
                yield np.frombuffer(data, dtype).reshape(count, d)

    return streamed_rows((n, d), dtype, blocks)


def _read_exactly(file, size: int, name: str) -> bytes:
    try:
        data = file.read(size)
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{name} is damaged ({error}); copy the file again") from error
    if len(data) != size:
        raise ValueError(f"{name} is truncated; copy the file again")
    return data
