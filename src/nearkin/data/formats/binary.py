"""Arrays in files: .npy, .npz, .fvecs, .fbin and their kin, HDF5 (extra `hdf5`), safetensors; mapped but for .npz.

Errors of libraries for damaged files are left to `_storage.reading`, which every caller is in.
"""

import math
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from safetensors import safe_open

from nearkin._fields import Extra, StrPath, counted
from nearkin._pairs import real_matrix
from nearkin._storage import reading
from nearkin.data.files import MAX_WIDTH, Locator, brief, extra, locate
from nearkin.data.formats.file_rows import FileRows

_DEFLATED = 1_032  # bytes that one byte of deflate holds at most; other compressions of arrays hold fewer


def check_size(name: str, announced: int, stored: int, *, packed: bool = False) -> None:
    """ValueError unless a file or stream stores what its header announces: these bytes, or `packed` ones for them."""
    if announced > stored * _DEFLATED if packed else announced != stored:
        what = f"its header announces {announced:,} bytes, and its file stores {stored:,} of them"
        raise ValueError(f"{name} is truncated or damaged: {what}; write it again, with all its values")


Header = tuple[tuple[int, ...], str, np.dtype]


def _read_header(file: IO[bytes], name: str, size: int) -> Header:
    """Return (shape, order "C" or "F", dtype) of an .npy stream of `size` bytes, left at the array's first byte."""
    read = npy.read_array_header_1_0 if npy.read_magic(file) == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.kind not in "fiubcUSMm" or not dtype.itemsize:
        way = "np.save(file, np.array(X.tolist(), np.float32)); unpickling objects would run foreign code"
        raise ValueError(f"{name} has dtype {dtype}; it must hold numbers or text: {way}")
    check_size(name, file.tell() + math.prod(shape) * dtype.itemsize, size)
    return shape, "F" if fortran else "C", dtype


def read_array(where: Locator) -> np.ndarray:
    """The array of an .npy file, mapped, or the one that is named of an .npz archive: of any shape, numbers or text."""
    if where.suffix == ".npz":
        return read_npz(where, choose_name(where, archive_keys(where)))
    with where.path.open("rb") as file:
        shape, order, dtype = _read_header(file, str(where), where.size)
        return np.memmap(where.path, dtype, "r", file.tell(), shape, order)  # pyright: ignore[reportCallIssue, reportArgumentType]


@brief()
def open_array(path: StrPath) -> np.ndarray:
    """The array of any shape in an .npy file, memory-mapped, or in an archive, `file.npz:key`; ValueError if it cannot
    be read."""
    where = locate(path)
    with reading(where.path):
        return read_array(where)


def _opened(where: Locator, open_array: Callable[[], Extra]) -> FileRows:
    X = open_array()
    return FileRows(where, X.shape, X.dtype, open_array)


def open_numpy(where: Locator) -> FileRows:
    """Rows of an .npy file, or of an array of an archive, which is read whole."""
    X = read_array(where)
    return _opened(where, lambda: X if where.suffix == ".npz" else read_array(where))


def archive_keys(where: Locator) -> list[str]:
    """Names of the arrays in an .npz; ValueError if it holds others, or two of one name."""
    with where.path.open("rb") as file, zipfile.ZipFile(file) as archive:
        members = archive.namelist()
        file.seek(-12 - len(archive.comment), os.SEEK_END)
        # modulo 2^16; zipfile does not compare it with what it finds
        announced = int.from_bytes(file.read(2), "little")
    names = [name.removesuffix(".npy") for name in members if name.endswith(".npy")]
    if len(members) % 2**16 != announced or len(set(names)) < len(members):
        raise ValueError(f"{where.path} is a damaged .npz archive, or no archive of arrays; write it with np.savez")
    return names


_MOST_EMPTY = 1_000_000  # rows, or columns, of a sparse matrix for each of its entries


def is_sparse(names: Iterable[str]) -> bool:
    """Whether an archive's arrays are those of a sparse matrix, as scipy.sparse.save_npz writes it."""
    return {"data", "shape", "format"} <= set(names)


def read_sparse(where: Locator) -> sp.coo_matrix:
    """The sparse matrix (m, n) of an .npz archive."""
    for name in archive_keys(where):  # SciPy would take the memory that an array announces
        with _member(where, name):
            pass
    matrix = sp.load_npz(where.path)
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    if max(matrix.shape) > _MOST_EMPTY * (matrix.nnz + 1):  # pyright: ignore[reportArgumentType]
        entries = counted(matrix.nnz, "entry", "entries")
        raise ValueError(f"{where.path} has the shape {matrix.shape} and {entries}; leave empty rows and columns out")
    return real_matrix(matrix, str(where))


def choose_name(where: Locator, names: list[str]) -> str:
    """The one of an archive's `names` that is asked for, or the only one; ValueError that lists them otherwise."""
    if where.key is None and is_sparse(names):
        pairs = "If these are pairs, a row for each user, call read_interactions"
        dense = f"write them dense: np.save('X.npy', scipy.sparse.load_npz({str(where.path)!r}).toarray())"
        raise ValueError(f"{where.path} holds a sparse matrix. {pairs}; if they are vectors or other values, {dense}")
    key = names[0] if where.key is None and len(names) == 1 else where.key
    if key is None or key not in names:
        listed = ", ".join(f"{where.path}:{name}" for name in names)
        raise ValueError(f"{where} is no array; the file holds {counted(len(names), 'array')}; name one of {listed}")
    return key


def read_npz(where: Locator, key: str) -> np.ndarray:
    """One array of an archive, of any shape, numbers or text."""
    with _member(where, key) as (file, (shape, order, dtype)):
        data = file.read()  # zipfile compares the checksum with the last byte
    return np.frombuffer(data, dtype).reshape(shape, order=order)  # pyright: ignore[reportCallIssue, reportArgumentType]


@contextmanager
def _member(where: Locator, key: str) -> Iterator[tuple[IO[bytes], Header]]:
    """The stream of one array, past its header, and the header; its sizes are checked before anything is allocated."""
    name = f"{where.path}:{key}"
    with zipfile.ZipFile(where.path) as archive, archive.open(key + ".npy") as file:
        info = archive.getinfo(key + ".npy")
        header = _read_header(file, name, info.file_size)
        packed = info.compress_type != zipfile.ZIP_STORED
        check_size(name, info.file_size, min(info.compress_size, where.size), packed=packed)
        yield file, header


_VALUES = {".i8bin": "i1"} | dict.fromkeys((".bvecs", ".u8bin"), "u1")
_VALUES |= dict.fromkeys((".fvecs", ".fbin"), "<f4") | dict.fromkeys((".ivecs", ".ibin"), "<i4")


def open_vecs(where: Locator) -> FileRows:
    """Rows of a .fvecs, .ivecs or .bvecs file, each behind its width as int32, which is compared as it is read."""
    d = int(np.fromfile(where.path, "<i4", 1).sum())
    if not 0 < d <= MAX_WIDTH:
        raise ValueError(f"{where} starts with the width {d}; it is no {where.suffix} file (int32 width, then values)")
    record = np.dtype([("width", "<i4"), ("values", _VALUES[where.suffix], (d,))])
    n = -(-where.size // record.itemsize)
    check_size(f"{where}, with rows of the width {d},", n * record.itemsize, where.size)

    def decode(block: np.ndarray) -> np.ndarray:
        others = block["width"][block["width"] != d]
        if len(others):
            raise ValueError(f"{where} has a row of the width {others[0]}, row 0 has {d}; all must agree")
        return np.array(block["values"])

    values = np.dtype(_VALUES[where.suffix])
    return FileRows(where, (n, d), values, lambda: np.memmap(where.path, record, "r"), decode)


def open_counted(where: Locator) -> FileRows:
    """Rows of a file of big-ann-benchmarks: their number and width as uint32, then all values, row after row."""
    dtype, shape = np.dtype(_VALUES[where.suffix]), tuple(np.fromfile(where.path, "<u4", 2).tolist())
    values = math.prod(shape)
    if where.suffix == ".ibin" and values and where.size == 8 + 8 * values:
        way = f"np.save('truth.npy', np.fromfile({str(where.path)!r}, '<i4')[2 : 2 + {values}].reshape{shape})"
        what = f"{where} holds {shape[0]} lists of {shape[1]} neighbours, then their distances"
        raise ValueError(f"{what}; write the lists alone: {way}")
    check_size(str(where), 8 + values * dtype.itemsize, where.size)
    return FileRows(where, shape, dtype, lambda: np.memmap(where.path, dtype, "r", 8, shape))


def open_hdf5(where: Locator) -> FileRows:
    """Rows of a data set of an HDF5 file, `file.h5:name` if it has several, such as ann-benchmarks' train and test."""
    h5py = extra("h5py", "hdf5")
    with h5py.File(where.path, "r") as file:
        names = list[str]()  # links to other files are none of them
        file.visititems(lambda name, found: names.append(name) if isinstance(found, h5py.Dataset) else None)
        key = choose_name(replace(where, key=where.key and where.key.strip("/")), names)
        _check_stored(file[key], f"{where.path}:{key}", where.size)
    return _opened(where, lambda: h5py.File(where.path, "r")[key])


_FILTERS = {1, 2, 3, 4, 32000}  # gzip, shuffle, fletcher32, szip, lzf


def _check_stored(data: Extra, name: str, size: int) -> None:
    """ValueError unless all values of a data set of HDF5 are stored in its file, of `size` bytes: HDF5 reads other
    files, loads plug-ins, and fills what is not stored."""
    made, stored = data.id.get_create_plist(), min(data.id.get_storage_size(), size)
    filters = {made.get_filter(number)[0] for number in range(made.get_nfilters())}
    if data.is_virtual or made.get_external_count() or not filters <= _FILTERS:
        way = "write its values into this one: create_dataset(data=X, compression='gzip')"
        raise ValueError(f"{name} is stored in other files, or needs a plug-in (filters {sorted(filters)}); {way}")
    if data.chunks is not None:
        chunks = math.prod(-(-n // chunk) for n, chunk in zip(data.shape, data.chunks, strict=True))
        stored = stored if data.id.get_num_chunks() == chunks else 0
    check_size(name, data.nbytes, stored, packed=data.chunks is not None)


def open_safetensors(where: Locator) -> FileRows:
    """Rows of a tensor of a .safetensors file, `file.safetensors:name` if it has several, also of bfloat16."""

    def opened() -> Extra:
        with safe_open(where.path, "pt") as file:  # it compares all places in the header with the file's size
            return file.get_tensor(choose_name(where, list(file.keys())))

    X = opened()
    dtype = np.dtype(np.complex64 if X.is_complex() else np.float32)
    return FileRows(where, tuple(X.shape), dtype, opened, lambda block: block.float().numpy().copy())
