"""Arrays in files: .npy, .npz, .fvecs, .fbin and their kin, HDF5 (extra `hdf5`), safetensors; mapped but for .npz."""

import math
import os
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from nearkin._fields import Extra, StrPath, counted
from nearkin._json import parsed_json
from nearkin._pairs import real_matrix
from nearkin._storage import is_of_system
from nearkin.data.files import Locator, extra, locate, reading
from nearkin.data.formats.file_rows import (
    BFLOAT16,
    MAX_WIDTH,
    FileRows,
    array_rows,
    check_dtype,
    check_layout,
    mapped_rows,
    streamed_rows,
)

Header = tuple[tuple[int, ...], bool, np.dtype]


def read_header(file: IO[bytes], name: str) -> Header:
    """Return (shape, whether in Fortran order, dtype) of the .npy stream `file`, left at the array's first byte."""
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except Exception as error:  # the header is Python source: SyntaxError, TypeError, tokenize errors
        if is_of_system(error):
            raise
        raise ValueError(f"{name} is no NumPy file ({error}); write it with np.save") from error
    if any(isinstance(n, bool) or n < 0 for n in shape):
        raise ValueError(f"{name} is no NumPy file (shape {shape} in its header); write it with np.save")
    if dtype != BFLOAT16:  # only vectors may be of this type
        check_dtype(name, dtype)
    return shape, fortran, dtype


def check_size(name: str, header: Header, offset: int, found: int) -> None:
    """ValueError if a stream of `found` bytes is not what its header, `offset` bytes long, announces."""
    shape, _, dtype = header
    needed = offset + math.prod(shape) * dtype.itemsize
    if found != needed:
        fault, remedy = ("truncated", "copy") if found < needed else ("damaged", "write")
        raise ValueError(f"{name} is {fault}: it has {found} bytes, its header announces {needed}; {remedy} it again")


_DEFLATED = 1_032  # bytes that one byte of deflate holds at most; other compressions of arrays hold fewer


def check_packed(name: str, announced: int, stored: int, *, packed: bool) -> None:
    """ValueError if `announced` bytes cannot be in the `stored` bytes, compressed or not."""
    if announced > stored * (_DEFLATED if packed else 1):
        raise ValueError(
            f"{name} announces {announced:,} bytes, and its file stores {stored:,} of them; write it again, with all "
            "its values"
        )


def _open_header(where: Locator) -> tuple[Header, int]:
    with where.path.open("rb") as file:
        header = read_header(file, str(where))
        offset = file.tell()
    check_size(str(where), header, offset, where.path.stat().st_size)
    return header, offset


def open_npy(where: Locator) -> FileRows:
    """Rows of an .npy file; ValueError if it is damaged, truncated, or holds no 2-D array of numbers."""
    (shape, fortran, dtype), offset = _open_header(where)
    order = "F" if fortran else "C"
    return mapped_rows(str(where), shape, dtype, lambda: np.memmap(where.path, dtype, "r", offset, shape, order))


def read_array(where: Locator) -> np.ndarray:
    """The array of an .npy file, or the one that is named of an .npz archive: of any shape, numbers or text."""
    if where.suffix == ".npz":
        return read_npz(where, choose_name(where, archive_keys(where)))
    (shape, fortran, dtype), offset = _open_header(where)
    check_dtype(str(where), dtype)
    return np.fromfile(where.path, dtype, math.prod(shape), offset=offset).reshape(shape, order="F" if fortran else "C")


def open_array(path: StrPath) -> np.ndarray:
    """The array of any shape in an .npy file, memory-mapped, or in an archive, `file.npz:key`; ValueError if it cannot
    be read."""
    where = locate(path)
    with reading(where):
        return read_array(where) if where.suffix == ".npz" else np.load(where.path, mmap_mode="r")


def archive_keys(where: Locator) -> list[str]:
    """Names of the arrays in an .npz; ValueError if it is no archive or holds two of one name."""
    try:
        with zipfile.ZipFile(where.path) as archive:
            members = archive.namelist()
    except Exception as error:  # zipfile raises half a dozen types for a damaged directory
        if is_of_system(error):
            raise
        raise ValueError(f"{where.path} is no .npz archive ({error}); write it with np.savez") from error
    if len(members) % 2**16 != _announced(where) or not all(name.endswith(".npy") for name in members):
        raise ValueError(f"{where.path} is a damaged .npz archive, or no archive of arrays; write it with np.savez")
    names = [name.removesuffix(".npy") for name in members]
    if len(set(names)) < len(names):
        raise ValueError(f"{where.path} holds two arrays of one name; rename one")
    return names


_SPARSE = ({"indices", "indptr"}, {"row", "col"}, {"offsets"}, {"coords"})  # with data and shape, by format
_MOST_EMPTY = 1_000_000  # rows, or columns, of a sparse matrix for each of its entries
DENSE = 0.5  # share of entries stored from which the rows of a sparse matrix are read as vectors


def is_sparse(names: Iterable[str]) -> bool:
    """Whether an archive's arrays are those of a sparse matrix, as scipy.sparse.save_npz writes it."""
    return {"data", "shape"} <= set(names) and any(marks <= set(names) for marks in _SPARSE)


def read_sparse(where: Locator) -> sp.coo_matrix:
    """The sparse matrix (m, n) of an .npz archive; ValueError if it does not say whether it holds rows or columns."""
    names = archive_keys(where)
    for name in names:  # SciPy would take the memory that an array announces
        with _member(where, name):
            pass
    if "format" in names:
        found = sp.load_npz(where.path)
    elif {"row", "col"} <= set(names):
        row, col, data, shape = (read_npz(where, name) for name in ("row", "col", "data", "shape"))
        found = sp.coo_array((data, (row, col)), shape=tuple(shape.tolist()))
    else:
        indptr, shape = read_npz(where, "indptr"), read_npz(where, "shape")
        if (shape + 1 == len(indptr)).sum() != 1:
            raise ValueError(f"{where.path} may hold rows or columns; write it with scipy.sparse.save_npz")
        kind = sp.csr_array if shape[0] + 1 == len(indptr) else sp.csc_array
        found = kind((read_npz(where, "data"), read_npz(where, "indices"), indptr), shape=tuple(shape.tolist()))
    if hasattr(found, "check_format"):
        found.check_format(full_check=True)
    if max(found.shape) > _MOST_EMPTY * (found.nnz + 1):  # pyright: ignore[reportArgumentType]
        entries = counted(found.nnz, "entry", "entries")
        raise ValueError(f"{where.path} has the shape {found.shape} and {entries}; leave empty rows and columns out")
    return real_matrix(found, str(where))


def _sparse_rows(where: Locator) -> FileRows:
    """The rows of a sparse matrix that is dense enough, as vectors; ValueError for another."""
    found = read_sparse(where)
    m, n = found.get_shape()
    share = found.count_nonzero() / max(1, m * n)
    if share < DENSE:
        raise ValueError(_not_dense(where, f" of {m} x {n}, {100 * share:.2g} % of it stored"))
    about = f"{where}: {counted(m, 'row')} of a sparse matrix, read as vectors"
    return replace(array_rows(found.toarray(), str(where)), about=about)


def _not_dense(where: Locator, about: str = "") -> str:
    return (
        f"{where.path} holds a sparse matrix{about}. If these are pairs, a row for each user, call read_interactions "
        "(nearkin embed); if they are vectors or other values, write them dense: "
        f"np.save('X.npy', scipy.sparse.load_npz({str(where.path)!r}).toarray())"
    )


def _announced(where: Locator) -> int:
    """The number of members, modulo 2^16, by the end of the archive: zipfile does not compare it with what it finds."""
    with where.path.open("rb") as file:
        file.seek(-min(where.path.stat().st_size, 2**16 + 22), os.SEEK_END)
        tail = file.read()
    place = tail.rfind(b"PK\5\6")
    return int.from_bytes(tail[place + 10 : place + 12], "little")


def choose_name(where: Locator, names: list[str]) -> str:
    """The one of an archive's `names` that is asked for, or the only one; ValueError that lists them otherwise."""
    if not names:
        raise ValueError(f"{where.path} holds no arrays; it must hold at least one")
    if where.key is None and is_sparse(names):
        raise ValueError(_not_dense(where))
    if where.key is None and len(names) > 1:
        listed = ", ".join(f"{where.path}:{name}" for name in names)
        raise ValueError(f"{where.path} holds {len(names)} arrays; name one of {listed}")
    if where.key is not None and where.key not in names:
        raise ValueError(f"{where.path} has no array {where.key!r}; it holds {', '.join(names)}")
    return names[0] if where.key is None else where.key


def open_npz(where: Locator) -> FileRows:
    """Rows of one array of an .npz file, unpacked block by block (a Fortran-ordered array is unpacked whole)."""
    names = archive_keys(where)
    if where.key is None and is_sparse(names):
        return _sparse_rows(where)
    key = choose_name(where, names)
    name = f"{where.path}:{key}"
    with _member(where, key) as (_, (layout, fortran, dtype)):
        n, d = check_layout(name, layout, dtype)

    def blocks(rows: int) -> Iterator[np.ndarray]:
        if fortran:
            X = read_npz(where, key)
            yield from (X[start : start + rows].copy() for start in range(0, n, rows))
            return
        with _member(where, key) as (file, _):
            for start in range(0, n, rows):
                count = min(rows, n - start)
                yield np.frombuffer(file.read(count * d * dtype.itemsize), dtype).reshape(count, d)

    return streamed_rows((n, d), dtype, blocks)


def read_npz(where: Locator, key: str) -> np.ndarray:
    """One array of an archive, of any shape, numbers or text."""
    with _member(where, key) as (file, (shape, fortran, dtype)):
        check_dtype(f"{where.path}:{key}", dtype)
        data = file.read(math.prod(shape) * dtype.itemsize)  # zipfile compares the checksum with the last byte
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


@contextmanager
def _member(where: Locator, key: str) -> Iterator[tuple[IO[bytes], Header]]:
    """The stream of one array, past its header, and the header; its sizes are checked before anything is allocated."""
    name = f"{where.path}:{key}"
    with zipfile.ZipFile(where.path) as archive:
        info = archive.getinfo(key + ".npy")
        with archive.open(info) as file:
            header = read_header(file, name)
            check_size(name, header, file.tell(), info.file_size)
            size = min(info.compress_size, where.path.stat().st_size)
            check_packed(name, info.file_size, size, packed=info.compress_type != zipfile.ZIP_STORED)
            yield file, header


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
            f"{where} is truncated or its rows differ in width: {size} bytes are {size // record} times {record} "
            f"bytes (width {d}) and {size % record} bytes over; copy it again"
        )
    n = size // record

    def decode(block: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        widths = np.ascontiguousarray(block[:, :4]).view("<i4")[:, 0]
        if (widths != d).any():
            bad = int((widths != d).argmax())
            raise ValueError(f"{where}: row {numbers[bad]} has the width {widths[bad]}, row 0 has {d}; rows must agree")
        return np.ascontiguousarray(block[:, 4:]).view(dtype)

    return mapped_rows(str(where), (n, d), dtype, lambda: np.memmap(where.path, np.uint8, "r", 0, (n, record)), decode)


_COUNTED = {".fbin": "<f4", ".ibin": "<i4", ".u8bin": "u1", ".i8bin": "i1"}


def open_counted(where: Locator) -> FileRows:
    """Rows of a file of big-ann-benchmarks: their number and width as uint32, then all values, row after row."""
    dtype, size = np.dtype(_COUNTED[where.suffix]), where.path.stat().st_size
    shape = tuple(np.fromfile(where.path, "<u4", 2).tolist())
    if len(shape) < 2:
        raise ValueError(f"{where} is truncated: it has {size} bytes, its header alone 8; copy it again")
    values = 4 * math.prod(shape)
    if where.suffix == ".ibin" and values and size == 8 + 2 * values:
        raise ValueError(
            f"{where} holds {shape[0]} lists of {shape[1]} neighbours, then their distances; write the lists alone: "
            f"np.save('truth.npy', np.fromfile({str(where.path)!r}, '<i4')[2 : 2 + {values // 4}].reshape{shape})"
        )
    check_size(str(where), (shape, False, dtype), 8, size)
    return mapped_rows(str(where), shape, dtype, lambda: np.memmap(where.path, dtype, "r", 8, shape))


_TENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": BFLOAT16, "I32": "<i4", "I8": "i1", "U8": "u1"}


_DISTANCES = {"angular": "cosine", "euclidean": "l2", "hamming": "hamming"}  # of ann-benchmarks -> our metric


def open_hdf5(where: Locator) -> FileRows:
    """Rows of a data set of an HDF5 file, `file.h5:name` if it has several, such as ann-benchmarks' train and test."""
    h5py = extra("h5py", "hdf5")
    with h5py.File(where.path, "r") as file:
        names = list[str]()  # links to other files are none of them
        file.visititems(lambda name, found: names.append(name) if isinstance(found, h5py.Dataset) else None)
        key = choose_name(replace(where, key=where.key and where.key.strip("/")), names)
        _check_stored(file[key], f"{where.path}:{key}", where.path.stat().st_size)
        shape, dtype, distance = file[key].shape, file[key].dtype, str(file.attrs.get("distance", ""))
    rows = mapped_rows(str(where), shape, dtype, lambda: h5py.File(where.path, "r")[key])
    if distance not in _DISTANCES:
        return rows
    about = f"{where}: {counted(shape[0], 'row')} of {counted(shape[1], 'number')} for the distance {distance!r}"
    return replace(rows, about=f"{about}, here metric {_DISTANCES[distance]!r}")


def _check_stored(data: Extra, name: str, size: int) -> None:
    """ValueError unless all values of a data set of HDF5 are stored in its file, of `size` bytes: HDF5 reads other
    files, loads plug-ins, and fills what is not stored."""
    made, kept = data.id.get_create_plist(), data.id.get_storage_size()
    filters = {made.get_filter(number)[0] for number in range(made.get_nfilters())}
    if data.is_virtual or made.get_external_count():
        raise ValueError(f"{name} is stored in other files; write its values into this one: create_dataset(data=X)")
    if not filters <= _FILTERS.keys():
        raise ValueError(f"{name} is compressed by filter {max(filters)}; write it by one of {', '.join(_COMPRESSED)}")
    whole = data.chunks is None or data.id.get_num_chunks() == math.prod(
        -(-n // chunk) for n, chunk in zip(data.shape, data.chunks, strict=True)
    )
    check_packed(name, data.size * data.dtype.itemsize, min(kept, size) if whole else 0, packed=len(filters) > 0)


_COMPRESSED = ("gzip", "lzf", "szip")
_FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 4: "szip", 32000: "lzf"}


def open_safetensors(where: Locator) -> FileRows:
    """Rows of a tensor of a .safetensors file, `file.safetensors:name` if it has several."""
    size = where.path.stat().st_size
    with where.path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > size - 8:
            raise ValueError(f"{where} is truncated: it has {size} bytes, its header alone {length}; copy it again")
        tensors = parsed_json(file.read(length))
    tensors.pop("__metadata__", None)
    tensor = tensors[choose_name(where, list(tensors))]
    if tensor["dtype"] not in _TENSORS:
        raise ValueError(f"{where} has the type {tensor['dtype']}; it must be one of {', '.join(_TENSORS)}")
    dtype = np.dtype(_TENSORS[tensor["dtype"]])
    shape = tuple(tensor["shape"])
    first, stop = tensor["data_offsets"]
    if first < 0 or stop - first != math.prod(shape) * dtype.itemsize or 8 + length + stop > size:
        raise ValueError(f"{where} is damaged: bytes {first} to {stop} cannot hold {shape} of {dtype}; write it again")
    return mapped_rows(str(where), shape, dtype, lambda: np.memmap(where.path, dtype, "r", 8 + length + first, shape))
