"""Rows of a long .npy file, mapped instead of read, and verified where they are looked at."""

import warnings
import zlib
from pathlib import Path
from tokenize import TokenError

import numpy as np

from nearkin._storage.files import regular_file
from nearkin._storage.manifest import BLOCK, MANIFEST, is_verifying, read_manifest

_UNREADABLE = (ValueError, OSError, EOFError, TypeError, ArithmeticError, RuntimeError, TokenError)


class MappedRows:
    """Rows (n, d) in a file, taken by slices or by arrays of row numbers.

    A block of the file is compared with its checksum in the folder's manifest when its first row is taken; ValueError
    if it is damaged. Without a manifest, or under `verification(False)`, nothing is compared.
    """

    def __init__(self, path: Path) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)  # a header as of Python 2: no file of ours
                self._rows = np.load(regular_file(path), mmap_mode="r", allow_pickle=False)
        except (*_UNREADABLE, UserWarning) as error:
            raise ValueError(f"{path} cannot be read ({error}); the file is damaged") from error
        self._path, self.shape, self.dtype = path, self._rows.shape, self._rows.dtype
        manifest = read_manifest(path.parent) if is_verifying() else None
        self._bytes, self._checksums, self._unread = np.empty(0, np.uint8), list[int](), np.empty(0, bool)
        if manifest is not None:
            if path.name not in manifest.files:
                raise ValueError(f"{path} is not in {MANIFEST}; it is of another folder, remove it")
            self._bytes = np.memmap(path, np.uint8, "r")
            self._checksums = manifest.files[path.name].checksums
            self._unread = np.ones(len(self._checksums), bool)
            self._header = len(self._bytes) - self._rows.nbytes
            self._verify(np.zeros(1, np.int64))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        return self.verified(rows)[rows]

    def verified(self, rows: slice | np.ndarray) -> np.ndarray:
        """All rows (n, d) as the file has them, those of a slice or of row numbers, of any shape, verified."""
        if self._unread.any():
            numbers = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else np.asarray(rows).ravel()
            width = self._rows.nbytes // max(1, len(self))
            first = (self._header + numbers * width) // BLOCK
            last = (self._header + (numbers + 1) * width - 1) // BLOCK
            longest = int((last - first).max(initial=0)) + 1
            self._verify(np.unique(np.minimum(first[:, None] + np.arange(longest), last[:, None])))
        return self._rows

    def _verify(self, blocks: np.ndarray) -> None:
        for block in blocks[self._unread[blocks]].tolist():
            if zlib.crc32(self._bytes[block * BLOCK : (block + 1) * BLOCK].data) != self._checksums[block]:
                raise ValueError(
                    f"{self._path} has other bytes than {MANIFEST} says, from {block * BLOCK:,} on; it is damaged"
                )
            self._unread[block] = False
