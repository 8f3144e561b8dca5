"""What FAISS's indexes of floats and of bits have in common, which FAISS itself gives no name."""

import ctypes
import os
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias, overload

import faiss
import numpy as np

FaissIndex: TypeAlias = faiss.Index | faiss.IndexBinary
"""An index of floats or of bits."""

_HARD_PAUSE = 2  # OpenMP's omp_pause_hard


def _thread_release() -> Callable[[int], int] | None:
    """`omp_pause_resource_all` of the OpenMP library that FAISS loaded, or None."""
    try:
        library = next(module for name, module in sys.modules.items() if name.startswith("faiss._swigfaiss"))
        return ctypes.CDLL(library.__file__).omp_pause_resource_all
    except (StopIteration, OSError, AttributeError):
        return None


_release = _thread_release()


if hasattr(os, "register_at_fork") and _release is not None:
    # GNU's OpenMP keeps its threads; a forked process does not have them, and its first parallel loop would wait for
    # them without end. Without threads, parent and child start new ones.
    os.register_at_fork(before=partial(_release, _HARD_PAUSE))


METRIC_TYPES = {"l2": faiss.METRIC_L2, "ip": faiss.METRIC_INNER_PRODUCT}


@overload
def innermost(index: faiss.Index) -> faiss.Index: ...
@overload
def innermost(index: FaissIndex) -> FaissIndex: ...
def innermost(index: FaissIndex) -> FaissIndex:
    """The FAISS index behind the rotation."""
    if isinstance(index, faiss.IndexBinary):
        return faiss.downcast_IndexBinary(index)
    index = faiss.downcast_index(index)
    return faiss.downcast_index(index.index) if isinstance(index, faiss.IndexPreTransform) else index


def nearest_rows(rows: np.ndarray, queries: np.ndarray, k: int, metric: str = "l2") -> np.ndarray:
    """Numbers (q, min(k, n)) of the rows (n, d) nearest to each query (q, d), exactly in float32, by "l2" or "ip"."""
    exact = faiss.IndexFlat(rows.shape[1], METRIC_TYPES[metric])
    exact.add(np.ascontiguousarray(rows, np.float32))
    return exact.search(np.ascontiguousarray(queries, np.float32), min(k, len(rows)))[1]


def bias(index: faiss.Index) -> np.ndarray:
    """What the transform in front of an index adds to rows, (d',) or (1,) for nothing."""
    if isinstance(index, faiss.IndexPreTransform):
        transform = faiss.downcast_VectorTransform(index.chain.at(0))
        if isinstance(transform, faiss.LinearTransform) and transform.have_bias:
            return faiss.vector_to_array(transform.b)
    return np.zeros(1, np.float32)


def at_length(rows: np.ndarray, length: float) -> np.ndarray:
    """Rows (n, d) at that length; rows of zeros stay."""
    lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    lengths[lengths == 0] = length
    return rows * (np.float32(length) / lengths)[:, None]


def nearest_codes(
    index: faiss.Index, queries: np.ndarray, k: int, metric: str = "l2", length: float | None = None
) -> np.ndarray:
    """Numbers (q, k) of the rows that a flat `index` of codes finds by `metric` ("l2", "ip") for queries (q, d). Rows
    are decoded once, not for every query as FAISS does without tables; with a `length` they are compared at that
    length."""
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexPreTransform):
        for i in range(index.chain.size()):
            queries = index.chain.at(i).apply(np.ascontiguousarray(queries, np.float32))
    inner = innermost(index)
    rows = inner.reconstruct_n(0, inner.ntotal)
    if length is not None:
        queries = queries - bias(index)
        rows = at_length((rows - bias(index)) * queries.any(axis=0), length)  # not the columns that no query has
    return nearest_rows(rows, queries, k, metric)


def clear_padding(index: FaissIndex) -> None:
    """Set the unused places of 4-bit codes behind the last row of the index, or of each of its lists, to zero. FAISS
    (1.15.1) joins new codes to what lies there by a bitwise or, and its `remove_ids` and `merge_from` leave other bits
    there."""
    index = innermost(index)
    if isinstance(index, faiss.IndexFastScan):
        blocks = [(index.codes.get(), index.ntotal)]
    elif isinstance(index, faiss.IndexIVFFastScan):
        lists = index.invlists
        blocks = [(lists.get_codes(i), lists.list_size(i)) for i in range(lists.nlist)]
    else:
        return
    packer = index.get_CodePacker()
    used = np.zeros((packer.nvec, packer.block_size), np.uint8)  # the bits of a block that its first rows use
    for rows in range(1, packer.nvec):
        used[rows] = used[rows - 1]
        packer.pack_1(np.full(packer.code_size, 255, np.uint8), rows - 1, used[rows : rows + 1])
    for codes, n_rows in blocks:
        if rest := n_rows % packer.nvec:
            block = faiss.rev_swig_ptr(codes, (n_rows - rest + packer.nvec) // packer.nvec * packer.block_size)
            block[-packer.block_size :] &= used[rest]


BlockIndex: TypeAlias = faiss.IndexFastScan | faiss.IndexIVFFastScan
"""An index of 4-bit codes in blocks, inverted or not."""

_CHUNK = 65_536  # rows put in place at a time


class _Layout(NamedTuple):
    """Where a block keeps number m of its row r: in byte `byte[r, m]`, `shift[r, m]` bits up."""

    byte: np.ndarray
    shift: np.ndarray
    size: int


def add_codes(index: FaissIndex, codes: np.ndarray) -> None:
    """Add rows by their codes (n, bytes) uint8; in an inverted file each begins with the number of its list."""
    inner = innermost(index)
    if isinstance(inner, faiss.IndexBinary):
        inner.add(codes)
    elif isinstance(inner, faiss.IndexFastScan | faiss.IndexIVFFastScan):
        clear_padding(inner)
        _add_to_blocks(inner, codes)
    else:
        inner.add_sa_codes(codes)
    index.ntotal = inner.ntotal


def _add_to_blocks(index: BlockIndex, codes: np.ndarray) -> None:
    """`index.ntotal` counts the rows from the start, so that what broke off can be removed again."""
    before, layout = index.ntotal, _layout(index.M, index.bbs)
    index.ntotal = before + len(codes)
    width = index.coarse_code_size() if isinstance(index, faiss.IndexIVFFastScan) else 0  # bytes of a list's number
    if isinstance(index, faiss.IndexFastScan):
        old, new = (-(-rows // index.bbs) * layout.size for rows in (before, index.ntotal))
        index.codes.resize(new)
        index.ntotal2 = new // layout.size * index.bbs
        _blocks(index)[old:] = 0
    for first in range(0, len(codes), _CHUNK):
        some = codes[first : first + _CHUNK]
        numbers = faiss.unpack_bitstrings(np.ascontiguousarray(some[:, width:]), index.M, 4).astype(np.uint8)
        if isinstance(index, faiss.IndexIVFFastScan):
            lists = faiss.unpack_bitstrings(np.ascontiguousarray(some[:, :width]), 1, 8 * width)[:, 0]
            _add_to_lists(index, lists, numbers, before + first)
        else:
            _put(_blocks(index), numbers, before + first, layout)


def list_codes(
    index: faiss.IndexIVFFastScan, number: int, places: np.ndarray | slice = slice(None)
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (n,) of the rows at some places of a list, and their codes (n, bytes) without the list's number."""
    size = index.invlists.list_size(number)
    ids, blocks = _list(index, number, size)
    codes = _got(blocks, np.arange(size)[places], _layout(index.M, index.bbs))
    return ids[places], faiss.pack_bitstrings(codes.astype(np.int32), 4)


def block_codes(index: faiss.IndexFastScan, positions: np.ndarray) -> np.ndarray:
    """Codes (n, bytes) of the rows at these positions (n,)."""
    return faiss.pack_bitstrings(_got(_blocks(index), positions, _layout(index.M, index.bbs)).astype(np.int32), 4)


def move_to_full_blocks(source: faiss.IndexIVFFastScan, target: faiss.IndexIVFFastScan, shift: int) -> None:
    """Move lists of `source` behind those of `target` that end with a block; `shift` is added to rows' numbers. There
    `merge_from`, which must follow, would write beyond the end of its memory: FAISS (1.15.1) compares rows with bytes
    in `BlockInvertedLists::add_entries`."""
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
    """FAISS's own memory of a list of `rows` rows: their numbers (rows,), and its blocks one after the other."""
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
    """Of blocks of rows with M numbers each, found by packing one number at a time."""
    packer = faiss.IndexPQFastScan(M, M, 4, faiss.METRIC_L2, rows).get_CodePacker()
    byte, shift = np.empty((rows, M), np.int64), np.empty((rows, M), np.uint8)
    for r, m in np.ndindex(rows, M):
        block, code = np.zeros(packer.block_size, np.uint8), np.zeros(packer.code_size, np.uint8)
        code[m // 2] = 15 << 4 * (m % 2)
        packer.pack_1(code, r, block[None])
        byte[r, m] = block.argmax()
        shift[r, m] = 4 if block.max() > 15 else 0
    return _Layout(byte, shift, int(packer.block_size))
