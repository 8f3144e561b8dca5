"""Codes put into FAISS's blocks of 4-bit codes and read out of them, where FAISS itself would only take rows or go
beyond its memory.

FAISS adds rows to a fast scan by codes of its own choice. Codes that were chosen elsewhere go in here, byte for byte as
FAISS would have packed them.
"""

from functools import lru_cache
from typing import NamedTuple, TypeAlias

import faiss
import numpy as np

BlockIndex: TypeAlias = faiss.IndexFastScan | faiss.IndexIVFFastScan
"""An index of 4-bit codes in blocks, inverted or not."""

_CHUNK = 65_536  # rows put in place at a time


class _Layout(NamedTuple):
    """Where a block keeps number m of its row r: in byte `byte[r, m]`, `shift[r, m]` bits up."""

    byte: np.ndarray
    shift: np.ndarray
    size: int


def add_codes(index: BlockIndex, codes: np.ndarray, number: int | None = None) -> None:
    """Add rows by their codes (n, bytes) uint8; in an inverted file each begins with the number of its list.

    `number`: that of the first row in the lists; None for as many as are there. `index.ntotal` counts rows from the
    start, so that what broke off can be removed again.
    """
    before, layout = index.ntotal, _layout(index.M, index.bbs)
    index.ntotal = before + len(codes)
    width, number = _list_bytes(index), before if number is None else number
    if isinstance(index, faiss.IndexFastScan):
        _resize(index, before)
    for first in range(0, len(codes), _CHUNK):
        some = codes[first : first + _CHUNK]
        numbers = faiss.unpack_bitstrings(np.ascontiguousarray(some[:, width:]), index.M, 4).astype(np.uint8)
        if isinstance(index, faiss.IndexIVFFastScan):
            lists = faiss.unpack_bitstrings(np.ascontiguousarray(some[:, :width]), 1, 8 * width)[:, 0]
            _add_to_lists(index, lists, numbers, number + first)
        else:
            _put(_blocks(index), numbers, before + first, layout)


def read_codes(index: BlockIndex, first: int, last: int) -> np.ndarray:
    """Codes (n, bytes) of the rows numbered first..last, as `add_codes` takes them."""
    layout, numbers = _layout(index.M, index.bbs), np.empty((last - first, index.M), np.int32)
    if isinstance(index, faiss.IndexFastScan):
        numbers[:] = _got(_blocks(index), np.arange(first, last), layout)
        return faiss.pack_bitstrings(numbers, 4)
    lists = np.empty((last - first, 1), np.int32)
    for number in range(index.nlist):
        ids, blocks = _list(index, number, index.invlists.list_size(number))
        places = np.flatnonzero((ids >= first) & (ids < last))
        numbers[ids[places] - first] = _got(blocks, places, layout)
        lists[ids[places] - first] = number
    return np.hstack([faiss.pack_bitstrings(lists, 8 * _list_bytes(index)), faiss.pack_bitstrings(numbers, 4)])


def list_codes(index: faiss.IndexIVFFastScan, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (n,) of the rows in a list, and their codes (n, bytes) without the list's number."""
    size = index.invlists.list_size(number)
    ids, blocks = _list(index, number, size)
    codes = _got(blocks, np.arange(size), _layout(index.M, index.bbs))
    return ids, faiss.pack_bitstrings(codes.astype(np.int32), 4)


def move_to_full_blocks(source: faiss.IndexIVFFastScan, target: faiss.IndexIVFFastScan, shift: int) -> None:
    """Move lists of `source` behind those of `target` that end with a block; `shift` is added to rows' numbers.

    FAISS (1.15.1) writes beyond the end of its memory where a list of the target holds a multiple of `block_size` rows:
    `BlockInvertedLists::add_entries` compares rows with bytes. Lists moved here are empty in `source` afterwards, so
    that `merge_from`, which must follow, has nothing to do for them.
    """
    for number in range(target.nlist):
        before, count = (lists.list_size(number) for lists in (target.invlists, source.invlists))
        if before % target.bbs or not before or not count:
            continue
        its_ids, its_blocks = _list(source, number, count)
        target.invlists.resize(number, before + count)
        ids, blocks = _list(target, number, before + count)
        ids[before:] = its_ids + shift
        blocks[-len(its_blocks) :] = its_blocks
        source.invlists.resize(number, 0)


def _resize(index: faiss.IndexFastScan, before: int) -> None:
    """Make room for `index.ntotal` rows, `before` of which are there."""
    size = _layout(index.M, index.bbs).size
    old, new = (-(-rows // index.bbs) * size for rows in (before, index.ntotal))
    index.codes.resize(new)
    index.ntotal2 = new // size * index.bbs
    _blocks(index)[old:] = 0


def _list_bytes(index: BlockIndex) -> int:
    """Bytes of a list's number before a code."""
    return index.coarse_code_size() if isinstance(index, faiss.IndexIVFFastScan) else 0


def _blocks(index: faiss.IndexFastScan) -> np.ndarray:
    return faiss.rev_swig_ptr(index.codes.get(), index.codes.size())


def _add_to_lists(index: faiss.IndexIVFFastScan, lists: np.ndarray, numbers: np.ndarray, first: int) -> None:
    """Add codes' numbers (n, M) to the lists (n,) that they name, as rows `first`, `first` + 1, ..."""
    layout, order = _layout(index.M, index.bbs), np.argsort(lists, kind="stable")
    changes = np.flatnonzero(np.diff(lists[order])) + 1
    for rows in np.split(order, changes) if len(order) else []:
        number = int(lists[rows[0]])
        size = index.invlists.list_size(number)
        total = size + len(rows)
        index.invlists.resize(number, total)  # new blocks are zeros
        ids, blocks = _list(index, number, total)
        ids[size:] = first + rows
        _put(blocks, numbers[rows], size, layout)


def _list(index: faiss.IndexIVFFastScan, number: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """FAISS's own memory of a list of so many rows: their numbers (rows,), and its blocks one after the other."""
    length = -(-rows // index.bbs) * _layout(index.M, index.bbs).size
    lists = index.invlists
    return faiss.rev_swig_ptr(lists.get_ids(number), rows), faiss.rev_swig_ptr(lists.get_codes(number), length)


def _put(blocks: np.ndarray, numbers: np.ndarray, first: int, layout: _Layout) -> None:
    """Write numbers (n, M) below 16 into the places of rows `first`, `first` + 1, ..., which hold zeros."""
    at, shift = _where(np.arange(first, first + len(numbers)), layout)
    for bits in (0, 4):  # no byte twice in either
        here = shift == bits
        blocks[at[here]] |= numbers[here] << bits


def _got(blocks: np.ndarray, rows: np.ndarray, layout: _Layout) -> np.ndarray:
    """Numbers (n, M) of the rows (n,)."""
    at, shift = _where(rows, layout)
    return blocks[at] >> shift & 15


def _where(rows: np.ndarray, layout: _Layout) -> tuple[np.ndarray, np.ndarray]:
    """Byte and shift (n, M) of the numbers of rows (n,)."""
    block, place = np.divmod(rows, len(layout.byte))
    return block[:, None] * layout.size + layout.byte[place], layout.shift[place]


@lru_cache(maxsize=64)
def _layout(M: int, rows: int) -> _Layout:
    """Of blocks of so many rows with M numbers each, found by packing one number at a time."""
    packer = faiss.IndexPQFastScan(M, M, 4, faiss.METRIC_L2, rows).get_CodePacker()
    byte, shift = np.empty((rows, M), np.int64), np.empty((rows, M), np.uint8)
    for r, m in np.ndindex(rows, M):
        block, code = np.zeros(packer.block_size, np.uint8), np.zeros(packer.code_size, np.uint8)
        code[m // 2] = 15 << 4 * (m % 2)
        packer.pack_1(code, r, block[None])
        byte[r, m] = block.argmax()
        shift[r, m] = 4 if block.max() > 15 else 0
    return _Layout(byte, shift, int(packer.block_size))
