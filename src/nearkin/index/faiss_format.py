"""What an `index.faiss` may hold, read from its bytes before FAISS sees them.

FAISS opens whatever a file names: "ilod", lists on disk, names any path, which a later `add` writes to. So the types
that nearkin itself writes are listed here, with their fields as FAISS's `index_write.cpp` writes them, and all else is
refused. Lengths are compared with the file and with each other too, since FAISS allocates and indexes by them.
"""

import os
import struct
from collections.abc import Callable
from typing import BinaryIO

import numpy as np

_BLOCK = 1 << 20  # ids read at a time


class _Fields:
    """The fields of one file, in their order; ValueError where they end too early."""

    def __init__(self, file: BinaryIO, first_row: int) -> None:
        self.file, self.first_row = file, first_row
        self.end = file.seek(0, os.SEEK_END)
        file.seek(0)

    def read(self, layout: str) -> tuple[int, ...]:
        """Numbers of that `struct` layout, little-endian and without gaps."""
        size = struct.calcsize(f"<{layout}")
        return struct.unpack(f"<{layout}", self.file.read(self._there(size)))

    def name(self, *known: str) -> str:
        """The next type, four letters, which must be one of `known`."""
        found = self.file.read(self._there(4)).decode("latin-1")
        if found not in known:
            need(False, f"it holds the type {found!r} where nearkin writes {' or '.join(known)}")
        return found

    def vector(self, itemsize: int, count: int, what: str) -> None:
        """Skip an array that must have `count` items."""
        (found,) = self.read("Q")
        need(found == count, f"{what} has {found} items, not {count}")
        self.skip(count * itemsize)

    def skip(self, size: int) -> None:
        self.file.seek(self._there(size), os.SEEK_CUR)

    def ids(self, count: int, seen: np.ndarray) -> None:
        """Count in `seen` the rows that the next ids name, `first_row` being number 0."""
        self._there(8 * count)
        for first in range(0, count, _BLOCK):
            some = np.frombuffer(self.file.read(8 * min(_BLOCK, count - first)), "<i8") - self.first_row
            need(not len(some) or (some.min() >= 0 and some.max() < len(seen)), "a list names a row that is not there")
            seen[some] += 1

    def _there(self, size: int) -> int:
        left = self.end - self.file.tell()
        need(0 <= size <= left, f"{size} bytes are announced and {left} are left")
        return size


def check_format(file: BinaryIO, *, binary: bool = False, first_row: int = 0) -> int:
    """The number of rows in an open file of FAISS; ValueError for types, sizes or rows that nearkin does not write.

    `binary` is for packed bits. The lists of an inverted file must name rows `first_row`, `first_row` + 1, ... once
    each. The file is left at its beginning.
    """
    fields = _Fields(file, first_row)
    (kinds, maps) = (_BINARY, ("IBMp", "IBM2")) if binary else (_FLOAT, ("IxMp", "IxM2"))
    kind = fields.name(*kinds, *maps)
    if kind in maps:
        rows = _header(fields, binary)[1]
        inner = kinds[kind := fields.name(*kinds)](fields)[1]
        need(inner == rows, f"{inner} rows under {rows} ids")
        fields.vector(8, rows, "the map of ids")
    else:
        rows = kinds[kind](fields)[1]
    need(file.tell() == fields.end, f"{fields.end - file.tell()} bytes follow the index")
    file.seek(0)
    return rows


def need(good: bool, what: str) -> None:
    """ValueError that says what is wrong unless `good`."""
    if not good:
        raise ValueError(what)


def _header(fields: _Fields, binary: bool = False) -> tuple[int, int]:
    """(d, rows) of any index."""
    if binary:
        d, width, rows, trained, _ = fields.read("iiqBi")
        need(0 < d == 8 * width, f"{d} bits in codes of {width} bytes")
    else:
        d, rows, _, _, trained, metric = fields.read("iqqqBi")
        need(metric in (0, 1), f"the metric is number {metric}, neither inner products nor L2")
    need(
        d > 0 and 0 <= rows <= fields.end and trained == 1,
        f"a header of {d} columns, {rows} rows, trained {trained}",
    )
    return d, rows


def _flat(fields: _Fields) -> tuple[int, int]:
    d, rows = _header(fields)
    fields.vector(4, d * rows, "the table of vectors")
    return d, rows


def _flat_bits(fields: _Fields) -> tuple[int, int]:
    d, rows = _header(fields, binary=True)
    fields.vector(1, d // 8 * rows, "the table of codes")
    return d, rows


def _codec(fields: _Fields, d: int) -> tuple[int, int]:
    """(M, bits) of a product quantizer for d columns."""
    width, M, bits = fields.read("QQQ")
    need(width == d and M > 0 and d % M == 0, f"{M} subspaces of {width} columns in an index of {d}")
    need(0 < bits <= 16, f"codes of {bits} bits")
    fields.vector(4, d << bits, "the table of centroids")
    return M, bits


def _product(fields: _Fields) -> tuple[int, int]:
    d, rows = _header(fields)
    M, bits = _codec(fields, d)
    fields.vector(1, rows * _bytes(M, bits), "the table of codes")
    search, signs, _ = fields.read("iBi")
    need((search, signs) == (0, 0), "a search other than FAISS's usual one")
    return d, rows


def _scalar(fields: _Fields) -> tuple[int, int]:
    d, rows = _header(fields)
    kind, _, _, width, size = fields.read("iifQQ")
    bits = {0: 8, 1: 4, 4: 16, 6: 6}.get(int(kind), 0)  # FAISS's QT_8bit, QT_4bit, QT_fp16, QT_6bit
    need(width == d and bits > 0 and size == _bytes(d, bits), f"codes of {size} bytes for {width} columns, type {kind}")
    fields.vector(4, 0 if bits == 16 else 2 * d, "the table of ranges")
    fields.vector(1, rows * size, "the table of codes")
    return d, rows


_NORM_BITS = {0: 0, 1: 0, 3: 32, 4: 8, 5: 4, 6: 8, 7: 4}  # of FAISS's ST_decompress, LUT_nonorm, norm_float, ...
_VALUES = (6, 7)  # ST_norm_cqint8, ST_norm_cqint4: a table of norms
_TABLED = 9  # ST_norm_rq2x4: two tables of 16 norms, and all of their sums
_NO_TABLES = 2048  # Skip_codebook_tables; without it FAISS makes a table of all pairs of centroids when it reads
_MOST_CODEBOOKS = 4096


def _sums(fields: _Fields) -> tuple[int, int, int, int]:
    """(d, centroids in all, bytes of a code, numbers in the codebooks) of an additive quantizer."""
    d, M, count = fields.read("QQQ")
    need(0 < M == count <= _MOST_CODEBOOKS, f"{M} codebooks with {count} sizes")
    bits = fields.read(f"{M}Q")
    need(all(0 < b <= 16 for b in bits), f"codes of {max(bits)} bits")
    (trained, numbers) = fields.read("BQ")
    fields.skip(4 * numbers)
    search, _, _ = fields.read("iff")
    need(trained == 1 and (search in _NORM_BITS or search == _TABLED), f"a search of type {search}")
    if search in _VALUES:
        fields.vector(4, 2 ** _NORM_BITS[search], "the table of norms")
    if search == _TABLED:
        fields.vector(4, 256, "the table of norms")
        fields.vector(4, 32, "the two tables of norms")
    return d, sum(1 << b for b in bits), (sum(bits) + _NORM_BITS.get(search, 8) + 7) // 8, numbers


def _residual_codec(fields: _Fields, d: int) -> int:
    """Bytes of a code."""
    width, centroids, size, numbers = _sums(fields)
    need(width == d and numbers == d * centroids, f"{numbers} numbers in {centroids} centroids of {width} columns")
    kind, beam = fields.read("ii")
    need(kind & _NO_TABLES != 0 and beam > 0, f"a residual quantizer of type {kind} and beam {beam}")
    return size


def _product_residual_codec(fields: _Fields, d: int) -> int:
    """Bytes of a code."""
    width, centroids, size, numbers = _sums(fields)
    (splits,) = fields.read("Q")
    need(width == d and 0 < splits <= d and d % splits == 0, f"{splits} parts of {width} columns in an index of {d}")
    need(numbers * splits == d * centroids, f"{numbers} numbers in {centroids} centroids")
    for _ in range(splits):
        _residual_codec(fields, d // splits)
    return size


def _flat_sums(codec: Callable[[_Fields, int], int]) -> "Reader":
    def read(fields: _Fields) -> tuple[int, int]:
        d, rows = _header(fields)
        size = codec(fields, d)
        need(fields.read("Q") == (size,), f"codes of another size than {size} bytes")
        fields.vector(1, rows * size, "the table of codes")
        return d, rows

    return read


def _inverted_sums(codec: Callable[[_Fields, int], int]) -> "Reader":
    def read(fields: _Fields) -> tuple[int, int]:
        d, rows, lists = _lists_header(fields)
        (width,) = fields.read("Q")
        size = codec(fields, d)
        residual, _ = fields.read("Bi")
        need(residual == 1 and width == size, f"codes of {width} bytes, not {size}, or of rows and not of residuals")
        _array_lists(fields, lists, size, rows)
        return d, rows

    return read


def _scanned_sums(codec: Callable[[_Fields, int], int]) -> "Reader":
    def read(fields: _Fields) -> tuple[int, int]:
        d, rows = _header(fields)
        size = codec(fields, d)
        _, block, _, M, bits, K, width, padded, even, _, _, _ = fields.read("iiiQQQQQQBiQ")
        need((bits, K, width) == (4, 16, size), f"codes of {bits} bits in {width} bytes, not {size}")
        _blocks(fields, rows, M, block, padded, even)
        need(even == 2 * size, f"rows of {even} numbers in codes of {size} bytes")
        return d, rows

    return read


def _scanned_lists(codec: Callable[[_Fields, int], int]) -> "Reader":
    def read(fields: _Fields) -> tuple[int, int]:
        d, rows, lists = _lists_header(fields)
        size = codec(fields, d)
        residual, _, block, _, M, bits, K, width, _, even, _, _, _ = fields.read("BiiiQQQQQQBiQ")
        need(residual == 1, "codes of rows and not of residuals")
        need((bits, K, width) == (4, 16, size), f"codes of {bits} bits in {width} bytes, not {size}")
        need(even == M + M % 2 == 2 * size, f"rows of {even} numbers in codes of {size} bytes")
        _block_lists(fields, lists, block, even, rows)
        return d, rows

    return read


def _fast_scan(fields: _Fields) -> tuple[int, int]:
    d, rows = _header(fields)
    M, bits = _codec(fields, d)
    _, block, _, padded, even = fields.read("iiiQQ")
    need(bits == 4, f"fast-scan codes of {bits} bits")
    _blocks(fields, rows, M, block, padded, even)
    return d, rows


def _blocks(fields: _Fields, rows: int, M: int, block: int, padded: int, even: int) -> None:
    """The codes of rows of M numbers, `even` with the one that fills up a byte, in blocks of `block` rows."""
    need(even == M + M % 2, f"4-bit codes of {M} subspaces in rows of {even}")
    need(block > 0 and block % 32 == 0 and padded == -(-rows // block) * block, f"{rows} rows in blocks of {block}")
    fields.vector(1, padded * even // 2, "the table of codes")


def _rotated(fields: _Fields) -> tuple[int, int]:
    d, rows = _header(fields)
    (count,) = fields.read("i")
    need(count == 1, f"{count} transforms")
    fields.name("LTra")
    (bias,) = fields.read("B")
    need(bias in (0, 1), "a transform with a bias that is neither there nor not")
    (count,) = fields.read("Q")
    wide = count // d  # columns behind it: as many, or more where they are filled up
    need(wide >= d and count == wide * d, f"a rotation of {count} entries for {d} columns")
    fields.skip(4 * count)
    fields.vector(4, bias * wide, "the bias")
    need(fields.read("iiB") == (d, wide, 1), f"a transform that is no rotation of {d} columns")
    kind = fields.name(*_COMPRESSED)
    need(not bias or kind in _CENTRED, "a transform with a bias")
    inner = _COMPRESSED[kind](fields)
    need(inner == (wide, rows), f"an index of {inner} (columns, rows) behind a rotation to {(wide, rows)}")
    return d, rows


def _lists_header(fields: _Fields) -> tuple[int, int, int]:
    """(d, rows, lists)."""
    d, rows = _header(fields)
    lists, probes = fields.read("QQ")
    need(probes > 0, "no lists are visited")
    fields.name("IxF2", "IxFI")
    coarse = _flat(fields)
    need(coarse == (d, lists), f"{lists} lists and a table {coarse[::-1]} of their centres in an index of {d} columns")
    (kind,) = fields.read("B")
    need(kind in (0, 1), "a map of rows that is no array")
    fields.vector(8, rows if kind else 0, "the map of rows")
    return d, rows, lists


def _inverted_product(fields: _Fields) -> tuple[int, int]:
    d, rows, lists = _lists_header(fields)
    residual, width = fields.read("BQ")
    need(residual == 1, "codes of rows and not of residuals")
    M, bits = _codec(fields, d)
    need(width == _bytes(M, bits), f"codes of {width} bytes for {M} times {bits} bits")
    _array_lists(fields, lists, width, rows)
    return d, rows


def _array_lists(fields: _Fields, lists: int, width: int, rows: int) -> None:
    """Lists of codes of `width` bytes that together name every row once."""
    fields.name("ilar")
    need(fields.read("QQ") == (lists, width), "lists of another index")
    sparse = fields.name("full", "sprs") == "sprs"
    (count,) = fields.read("Q")
    need(count % 2 == 0 and count <= 2 * lists if sparse else count == lists, f"sizes of {count} lists, not {lists}")
    sizes = np.array(fields.read(f"{count}Q"), dtype=np.uint64)
    if sparse:
        numbers, sizes = sizes[::2], sizes[1::2]
        need(bool((numbers < lists).all()) and len(np.unique(numbers)) == len(numbers), "lists that are not there")
    need(sum(sizes.tolist()) == rows, "lists that together have not as many rows as the index")
    seen = np.zeros(rows, np.uint8)
    for size in sizes.tolist():
        fields.skip(size * width)
        fields.ids(size, seen)
    need(bool((seen == 1).all()), "rows that stand in two lists")


def _inverted_fast_scan(fields: _Fields) -> tuple[int, int]:
    d, rows, lists = _lists_header(fields)
    _, width, block, even, _, _ = fields.read("BQiQiQ")  # older folders hold codes of rows and not of residuals
    M, bits = _codec(fields, d)
    need(bits == 4 and even == M + M % 2 and width == _bytes(M, bits), f"4-bit codes of {M} subspaces in {width} bytes")
    _block_lists(fields, lists, block, even, rows)
    return d, rows


def _block_lists(fields: _Fields, lists: int, block: int, even: int, rows: int) -> None:
    """Lists of codes in blocks that together name every row once."""
    need(block > 0 and block % 32 == 0, f"rows in blocks of {block}")
    fields.name("ilbl")
    found, _, per_block, size = fields.read("QQQQ")
    need((found, per_block, size) == (lists, block, block * even // 2), "lists of another index")
    seen = np.zeros(rows, np.uint8)
    for _ in range(lists):
        (count,) = fields.read("Q")
        need(count <= rows, f"a list of {count} rows in an index of {rows}")
        fields.ids(count, seen)
        fields.vector(1, -(-count // block) * size, "a list's codes")
    need(bool((seen == 1).all()), "rows that stand in no list or in two")


def _bytes(M: int, bits: int) -> int:
    return (M * bits + 7) // 8


Reader = Callable[[_Fields], tuple[int, int]]  # reads one index, returns (d, rows)
_COMPRESSED: dict[str, Reader] = {
    "IxPq": _product,
    "IxSQ": _scalar,
    "IPfs": _fast_scan,
    "IwPQ": _inverted_product,
    "IwPf": _inverted_fast_scan,
    "IxRq": _flat_sums(_residual_codec),
    "IxPR": _flat_sums(_product_residual_codec),
    "IwRQ": _inverted_sums(_residual_codec),
    "IwPR": _inverted_sums(_product_residual_codec),
    "IRfs": _scanned_sums(_residual_codec),
    "IPRf": _scanned_sums(_product_residual_codec),
    "IVRf": _scanned_lists(_residual_codec),
    "NPRf": _scanned_lists(_product_residual_codec),
}
_CENTRED = ("IxRq", "IxPR", "IRfs", "IPRf", "IVRf", "NPRf")  # whose rows are turned and then moved to an origin
_FLOAT: dict[str, Reader] = {"IxF2": _flat, "IxFI": _flat, "IxPT": _rotated, **_COMPRESSED}
_BINARY: dict[str, Reader] = {"IBxF": _flat_bits}
