"""Named arrays in a .safetensors file, and ids as such arrays."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import cast

import numpy as np
import scipy.sparse as sp
from safetensors.numpy import load, save

from nearkin._check import as_array
from nearkin._fields import StrPath
from nearkin._storage.folders import one_version, read_config
from nearkin._storage.manifest import (
    BLOCK,
    MANIFEST,
    Manifest,
    is_of_system,
    is_verifying,
    open_file,
    read_manifest,
    regular_file,
)
from nearkin._types import Record


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays to a .safetensors file."""
    # not `save_file`, which makes files that only their owner can read
    path.write_bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def write_rows(path: Path, chunks: Iterable[np.ndarray], shape: tuple[int, int], dtype: np.dtype) -> None:
    """Write an .npy file of rows as a stream: a full disk is an OSError there, and the process's end in a memory map,
    whose pages would count as our memory until they are on disk."""
    little = dtype.newbyteorder("<")
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": little.str, "fortran_order": False, "shape": shape})
        for chunk in chunks:
            file.write(np.ascontiguousarray(chunk, little).data)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the named arrays of a .safetensors file; ValueError if it is missing or damaged."""
    with open_file(path) as file:
        content = file.read()
    try:
        return load(content)
    except Exception as error:  # safetensors has its own error type for every kind of damage
        raise ValueError(f"{path} cannot be read ({error}); the file is damaged") from error


def pack_ids(name: str, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Ids (n,) as named arrays for a .safetensors file, which has no strings: text as UTF-8 bytes and their ends."""
    if ids.dtype.kind in "iuf":
        return {f"{name}_ids": ids}
    if ids.dtype.kind in "bM":
        return {f"{name}_ids": ids.astype(np.int64)}
    encoded = [str(value).encode() for value in ids]
    ends = np.cumsum([len(value) for value in encoded], dtype=np.int64)
    return {f"{name}_ids_text": np.frombuffer(b"".join(encoded), dtype=np.uint8), f"{name}_ids_ends": ends}


def unpack_ids(name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The ids that `pack_ids` packed under `name`."""
    if f"{name}_ids" in arrays:
        return arrays[f"{name}_ids"]
    text, ends = arrays[f"{name}_ids_text"].tobytes(), arrays[f"{name}_ids_ends"]
    starts = np.concatenate([[0], ends])[:-1]
    return as_array([text[a:b].decode() for a, b in zip(starts, ends, strict=True)], f"{name}_ids").astype(str)


def digest(*parts: object) -> str:
    """16 hex digits for arrays, sparse matrices, text, bytes, and iterators of these: equal for equal contents."""
    made = blake2b(digest_size=8)
    for part in parts:
        if isinstance(part, Iterator):
            for one in part:
                made.update(digest(one).encode())
        elif sp.issparse(part):
            made.update(digest(*(getattr(part, name) for name in ("indptr", "indices", "data"))).encode())
        elif isinstance(part, bytes | str | None):
            made.update(part if isinstance(part, bytes) else f"{part};".encode())
        else:
            array = np.ascontiguousarray(part)  # pyright: ignore[reportArgumentType, reportCallIssue]
            is_text = array.dtype.kind in "OU"  # of any length
            made.update(f"{'' if is_text else array.dtype}{array.shape}".encode())
            made.update(repr(array.tolist()).encode() if is_text else array.tobytes())
    return made.hexdigest()


_HEADER = 10_000  # bytes of the header of an .npy file, at most, in NumPy too


@dataclass(frozen=True)
class SavedArrays:
    """The path of a folder, its config.json, and its arrays."""

    path: Path
    config: Record
    arrays: dict[str, np.ndarray]


def read_saved(source: StrPath | SavedArrays, kind: str | None = None) -> SavedArrays:
    """Read a folder whole, of one version; what was read already is given back. ValueError for another kind."""
    found = source if isinstance(source, SavedArrays) else one_version(source, _read)
    if kind is not None and found.config["kind"] != kind:
        raise ValueError(f"{found.path} holds the kind {found.config['kind']!r}; {kind!r} is needed")
    return found


def _read(path: Path) -> SavedArrays:
    return SavedArrays(path, read_config(path), read_arrays(path / "arrays.safetensors"))


class MappedRows:
    """Rows (n, d) in a file, taken by slices or by arrays of row numbers.

    A block of the file is compared with its checksum in the folder's manifest when its first row is taken; ValueError
    if it is damaged. Without a manifest, or under `verification(False)`, nothing is compared.
    """

    def __init__(self, path: Path) -> None:
        try:
            with regular_file(path).open("rb") as file:
                if b"L" in file.readline(_HEADER):  # of a number as in Python 2, of which NumPy would warn
                    raise ValueError("its header is of Python 2")
            self._rows = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # the header is Python source, and may raise what its parser raises
            if is_of_system(error):
                raise
            raise ValueError(f"{path} cannot be read ({error}); the file is damaged") from error
        self._path, self.shape, self.dtype = path, self._rows.shape, self._rows.dtype
        self._manifest = read_manifest(path.parent) if is_verifying() else None
        self._bytes, self._unread = np.empty(0, np.uint8), np.empty(0, bool)
        if self._manifest is not None:
            if path.name not in self._manifest.files:
                raise ValueError(f"{path} is not in {MANIFEST}; it is of another folder, remove it")
            self._bytes = np.memmap(path, np.uint8, "r")
            self._unread = np.ones(len(self._manifest.files[path.name].checksums), bool)
            self._header = len(self._bytes) - self._rows.nbytes
            self._verify(np.zeros(1, np.int64))

    def __len__(self) -> int:
        return len(self._rows)

    def __reduce__(self) -> tuple[Callable[[np.ndarray], np.ndarray], tuple[np.ndarray]]:
        return np.asarray, (np.array(self[:]),)  # a pickle holds the rows, and no file

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        if self._unread.any():
            numbers = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
            width = self._rows.nbytes // max(1, len(self))
            first = (self._header + numbers * width) // BLOCK
            last = (self._header + (numbers + 1) * width - 1) // BLOCK
            longest = int((last - first).max(initial=0)) + 1
            self._verify(np.unique(np.minimum(first[:, None] + np.arange(longest), last[:, None])))
        return self._rows[rows]

    def cut(self, n: int) -> np.ndarray:
        """Leave the first n rows, and give back the others."""
        others = self[n:]
        self._rows = self._rows[:n]
        self.shape = self._rows.shape
        return others

    def _verify(self, blocks: np.ndarray) -> None:
        for block in blocks[self._unread[blocks]].tolist():
            found = zlib.crc32(self._bytes[block * BLOCK : (block + 1) * BLOCK].data)
            cast(Manifest, self._manifest).check_block(self._path.name, block, found)
            self._unread[block] = False
