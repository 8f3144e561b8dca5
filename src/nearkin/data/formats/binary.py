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
from nearkin.data.formats.file_rows import BFLOAT16, MAX_WIDTH, FileRows, Part, check_dtype, opened_rows

Header = tuple[tuple[int, ...], bool, np.dtype]


def read_header(file: IO[bytes], name: str) -> Header:
    """Return (shape, whether in Fortran order, dtype) of the .npy stream `file`, left at the array's first byte."""
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
        wrong = "a negative size" if any(isinstance(n, bool) or n < 0 for n in shape) else None
    except Exception as error:  # the header is Python source: SyntaxError, TypeError, tokenize errors
        if is_of_system(error):
            raise
        wrong = str(error)
    if wrong is not None:
        raise ValueError(f"{name} is no NumPy file ({wrong}); write it with np.save")
    if dtype != BFLOAT16:  # only vectors may be of this type
        check_dtype(name, dtype)
    return shape, fortran, dtype


def check_size(name: str, announced: int, found: int) -> None:
    """ValueError if a file or stream of `found` bytes is not as long as its header announces."""
    if found != announced:
        fault = "truncated" if found < announced else "damaged"
        raise ValueError(f"{name} is {fault}: it has {found} bytes, its header announces {announced}; write it again")


_DEFLATED = 1_032  # bytes that one byte of deflate holds at most; other compressions of arrays hold fewer


def check_packed(name: str, announced: int, stored: int, *, packed: bool) -> None:
    """ValueError if `announced` bytes cannot be in the `stored` bytes, compressed or not."""
    if announced > stored * (_DEFLATED if packed else 1):
        raise ValueError(
            f"{name} announces {announced:,} bytes, and its file stores {stored:,} of them; write it again, with all "
            "its values"
        )


def read_array(where: Locator) -> np.ndarray:
    """The array of an .npy file, mapped, or the one that is named of an .npz archive: of any shape, numbers or text."""
    if where.suffix == ".npz":
        return read_npz(where, choose_name(where, archive_keys(where)))
    with where.path.open("rb") as file:
        shape, fortran, dtype = read_header(file, str(where))
        offset = file.tell()
    check_size(str(where), offset + math.prod(shape) * dtype.itemsize, where.path.stat().st_size)
    return np.memmap(where.path, dtype, "r", offset, shape, "F" if fortran else "C")


def open_array(path: StrPath) -> np.ndarray:
    """The array of any shape in an .npy file, memory-mapped, or in an archive, `file.npz:key`; ValueError if it cannot
    be read."""
    where = locate(path)
    with reading(where):
        return read_array(where)


def open_numpy(where: Locator) -> FileRows:
    """Rows of an .npy file, or of an array of an archive, which is read whole."""
    X = read_array(where)
    if where.suffix == ".npz":
        return opened_rows(where, X.shape, X.dtype, lambda: X)
    return opened_rows(where, X.shape, X.dtype, lambda: read_array(where))


def archive_keys(where: Locator) -> list[str]:
    """Names of the arrays in an .npz; ValueError if it is no archive or holds two of one name."""
    try:
        with zipfile.ZipFile(where.path) as archive:
            members = archive.namelist()
    except Exception as error:  # zipfile raises half a dozen types for a damaged directory
        if is_of_system(error):
            raise
        raise ValueError(f"{where.path} is no .npz archive ({error}); write it with np.savez") from error
    names = [name.removesuffix(".npy") for name in members if name.endswith(".npy")]
    if len(members) % 2**16 != _announced(where) or len(set(names)) < len(members):
        raise ValueError(f"{where.path} is a damaged .npz archive, or no archive of arrays; write it with np.savez")
    return names


def _announced(where: Locator) -> int:
    """The number of members, modulo 2^16, by the end of the archive: zipfile does not compare it with what it finds."""
    with where.path.open("rb") as file:
        file.seek(-min(where.path.stat().st_size, 2**16 + 22), os.SEEK_END)
        tail = file.read()
    place = tail.rfind(b"PK\5\6")
    return int.from_bytes(tail[place + 10 : place + 12], "little")


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
        raise ValueError(
            f"{where.path} holds a sparse matrix. If these are pairs, a row for each user, call read_interactions; if "
            "they are vectors or other values, write them dense: "
            f"np.save('X.npy', scipy.sparse.load_npz({str(where.path)!r}).toarray())"
        )
    if where.key is None and len(names) != 1:
        listed = ", ".join(f"{where.path}:{name}" for name in names)
        raise ValueError(f"{where.path} holds {counted(len(names), 'array')}; name one of {listed}")
    if where.key is not None and where.key not in names:
        raise ValueError(f"{where.path} has no array {where.key!r}; it holds {', '.join(names)}")
    return names[0] if where.key is None else where.key


def read_npz(where: Locator, key: str) -> np.ndarray:
    """One array of an archive, of any shape, numbers or text."""
    with _member(where, key) as (file, (shape, fortran, dtype)):
        data = file.read(math.prod(shape) * dtype.itemsize)  # zipfile compares the checksum with the last byte
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


@contextmanager
def _member(where: Locator, key: str) -> Iterator[tuple[IO[bytes], Header]]:
    """The stream of one array, past its header, and the header; its sizes are checked before anything is allocated."""
    name = f"{where.path}:{key}"
    with zipfile.ZipFile(where.path) as archive:
        info = archive.getinfo(key + ".npy")
        with archive.open(info) as file:
            shape, fortran, dtype = read_header(file, name)
            check_size(name, file.tell() + math.prod(shape) * dtype.itemsize, info.file_size)
            size = min(info.compress_size, where.path.stat().st_size)
            check_packed(name, info.file_size, size, packed=info.compress_type != zipfile.ZIP_STORED)
            yield file, (shape, fortran, dtype)


_VECS = {".fvecs": "<f4", ".ivecs": "<i4", ".bvecs": "u1"}


def open_vecs(where: Locator) -> FileRows:
    """Rows of a .fvecs, .ivecs or .bvecs file; ValueError if it is truncated or its rows differ in width."""
    size, d = where.path.stat().st_size, int(np.fromfile(where.path, "<i4", 1).sum())
    if not 0 < d <= MAX_WIDTH:
        raise ValueError(f"{where} starts with the width {d}; it is no {where.suffix} file (int32 width, then values)")
    record = np.dtype([("width", "<i4"), ("values", _VECS[where.suffix], (d,))])
    n, over = divmod(size, record.itemsize)
    if over:
        raise ValueError(
            f"{where} is truncated or its rows differ in width: {size} bytes are {n} times {record.itemsize} bytes "
            f"(width {d}) and {over} bytes over; copy it again"
        )

    def decode(block: np.ndarray, part: Part) -> np.ndarray:
        if (wrong := block["width"] != d).any():
            row, width = np.arange(n)[part][wrong][0], block["width"][wrong][0]
            raise ValueError(f"{where}: row {row} has the width {width}, row 0 has {d}; rows must agree")
        return block["values"]

    dtype = np.dtype(_VECS[where.suffix])
    return opened_rows(where, (n, d), dtype, lambda: np.memmap(where.path, record, "r"), decode)


_COUNTED = {".fbin": "<f4", ".ibin": "<i4", ".u8bin": "u1", ".i8bin": "i1"}


def open_counted(where: Locator) -> FileRows:
    """Rows of a file of big-ann-benchmarks: their number and width as uint32, then all values, row after row."""
    dtype, size = np.dtype(_COUNTED[where.suffix]), where.path.stat().st_size
    shape = tuple(np.fromfile(where.path, "<u4", 2).tolist())
    values = math.prod(shape)
    if where.suffix == ".ibin" and values and size == 8 + 8 * values:
        raise ValueError(
            f"{where} holds {shape[0]} lists of {shape[1]} neighbours, then their distances; write the lists alone: "
            f"np.save('truth.npy', np.fromfile({str(where.path)!r}, '<i4')[2 : 2 + {values}].reshape{shape})"
        )
    check_size(str(where), 8 + values * dtype.itemsize * (len(shape) == 2), size)
    return opened_rows(where, shape, dtype, lambda: np.memmap(where.path, dtype, "r", 8, shape))


def open_hdf5(where: Locator) -> FileRows:
    """Rows of a data set of an HDF5 file, `file.h5:name` if it has several, such as ann-benchmarks' train and test."""
    h5py = extra("h5py", "hdf5")
    with h5py.File(where.path, "r") as file:
        names = list[str]()  # links to other files are none of them
        file.visititems(lambda name, found: names.append(name) if isinstance(found, h5py.Dataset) else None)
        key = choose_name(replace(where, key=where.key and where.key.strip("/")), names)
        _check_stored(file[key], f"{where.path}:{key}", where.path.stat().st_size)
        shape, dtype = file[key].shape, file[key].dtype
    return opened_rows(where, shape, dtype, lambda: h5py.File(where.path, "r")[key])


_FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 4: "szip", 32000: "lzf"}


def _check_stored(data: Extra, name: str, size: int) -> None:
    """ValueError unless all values of a data set of HDF5 are stored in its file, of `size` bytes: HDF5 reads other
    files, loads plug-ins, and fills what is not stored."""
    made, kept = data.id.get_create_plist(), data.id.get_storage_size()
    filters = {made.get_filter(number)[0] for number in range(made.get_nfilters())}
    if data.is_virtual or made.get_external_count():
        raise ValueError(f"{name} is stored in other files; write its values into this one: create_dataset(data=X)")
    if not filters <= _FILTERS.keys():
        raise ValueError(f"{name} is compressed by filter {max(filters)}; write it by one of gzip, lzf, szip")
    whole = data.chunks is None or data.id.get_num_chunks() == math.prod(
        -(-n // chunk) for n, chunk in zip(data.shape, data.chunks, strict=True)
    )
    check_packed(name, data.size * data.dtype.itemsize, min(kept, size) if whole else 0, packed=len(filters) > 0)


_TENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": BFLOAT16, "I32": "<i4", "I8": "i1", "U8": "u1"}


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
    dtype, shape = np.dtype(_TENSORS[tensor["dtype"]]), tuple(tensor["shape"])
    first, stop = tensor["data_offsets"]
    if first < 0 or stop - first != math.prod(shape) * dtype.itemsize or 8 + length + stop > size:
        raise ValueError(f"{where} is damaged: bytes {first} to {stop} cannot hold {shape} of {dtype}; write it again")
    return opened_rows(where, shape, dtype, lambda: np.memmap(where.path, dtype, "r", 8 + length + first, shape))
