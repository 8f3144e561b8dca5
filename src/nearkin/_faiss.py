"""Helpers for FAISS's indexes of floats and of bits."""

import ctypes
import os
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TypeAlias, cast, overload

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


if _release is not None and hasattr(os, "register_at_fork"):
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


def linear_transform(A: np.ndarray, origin: np.ndarray | None = None) -> faiss.LinearTransform:
    """x -> x A - origin (d',) for FAISS, A (d, d'); FAISS stores A^T and computes A^T x + b."""
    transform = faiss.LinearTransform(A.shape[0], A.shape[1], origin is not None)
    faiss.copy_array_to_vector(np.ascontiguousarray(A.T, np.float32).ravel(), transform.A)
    if origin is not None:
        faiss.copy_array_to_vector(np.ascontiguousarray(-origin, np.float32), transform.b)
    transform.is_trained = True
    return transform


def bias(index: faiss.Index) -> np.ndarray:
    """The bias that the transform in front of an index adds to rows, (d',), or (1,) if there is none."""
    if isinstance(index, faiss.IndexPreTransform):
        transform = faiss.downcast_VectorTransform(index.chain.at(0))
        if isinstance(transform, faiss.LinearTransform) and transform.have_bias:
            return faiss.vector_to_array(transform.b)
    return np.zeros(1, np.float32)


def answered(scores: np.ndarray) -> np.ndarray:
    """Mask (q, k) of places with an answer; others have an infinite score, or for bits the largest int32."""
    return scores < np.iinfo(np.int32).max if scores.dtype.kind == "i" else np.isfinite(scores)


def compared(index: faiss.Index, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The decoded rows (n, d') of a flat `index` of codes, and the queries (q, d') behind its rotation. Rows are
    decoded once, not for every query as FAISS does without tables."""
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexPreTransform):
        for i in range(index.chain.size()):
            queries = index.chain.at(i).apply(np.ascontiguousarray(queries, np.float32))
    inner = innermost(index)
    return inner.reconstruct_n(0, inner.ntotal), queries


def clear_padding(index: FaissIndex) -> None:
    """Set the unused places of 4-bit codes behind the last row of the index, or of each of its lists, to zero. FAISS
    (1.15.1) joins new codes to what lies there by a bitwise or, and its `remove_ids` and `merge_from` leave other bits
    there."""
    index = innermost(index)
    if isinstance(index, faiss.IndexFastScan):
        parts = [(index.ntotal, _blocks(index))]
    elif isinstance(index, faiss.IndexIVFFastScan):
        parts = [(len(ids), blocks) for ids, blocks in (_list(index, number) for number in range(index.nlist))]
    else:
        return
    for n_rows, blocks in parts:
        if n_rows % index.bbs:
            _write(index, blocks, n_rows, np.empty((0, _packer(index.M, index.bbs).code_size), np.uint8))


BlockIndex: TypeAlias = faiss.IndexFastScan | faiss.IndexIVFFastScan
"""An index of 4-bit codes in blocks, inverted or not."""


def add_codes(index: FaissIndex, codes: np.ndarray) -> None:
    """Add rows by their codes (n, bytes) uint8; in an inverted file each begins with the number of its list. An exact
    index takes rows (n, d) float32."""
    inner = innermost(index)
    if isinstance(inner, faiss.IndexBinary | faiss.IndexFlat):
        inner.add(codes)
    elif isinstance(inner, faiss.IndexFastScan | faiss.IndexIVFFastScan):
        _add_to_blocks(inner, codes)
    else:
        inner.add_sa_codes(codes)
    index.ntotal = inner.ntotal


def _add_to_blocks(index: BlockIndex, codes: np.ndarray) -> None:
    """`index.ntotal` counts the rows from the start, so that what broke off can be removed again."""
    before = index.ntotal
    index.ntotal = before + len(codes)
    if isinstance(index, faiss.IndexFastScan):
        n_blocks = -(-index.ntotal // index.bbs)
        index.codes.resize(n_blocks * _packer(index.M, index.bbs).block_size)
        index.ntotal2 = n_blocks * index.bbs
        _write(index, _blocks(index), before, codes)
        return
    width = index.coarse_code_size()  # bytes of a list's number
    lists = faiss.unpack_bitstrings(np.ascontiguousarray(codes[:, :width]), 1, 8 * width)[:, 0]
    order = np.argsort(lists, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(lists[order])) + 1) if len(order) else []:
        number = int(lists[rows[0]])
        size = index.invlists.list_size(number)
        index.invlists.resize(number, size + len(rows))
        ids, blocks = _list(index, number)
        ids[size:] = before + rows
        _write(index, blocks, size, codes[rows, width:])


def list_codes(
    index: faiss.IndexIVFFastScan, number: int, places: np.ndarray | slice = slice(None)
) -> tuple[np.ndarray, np.ndarray]:
    """Codes (n, bytes) of the rows at some places of a list, without the list's number, and the rows' numbers (n,)."""
    ids, blocks = _list(index, number)
    return _read(index, blocks, np.arange(len(ids))[places]), ids[places]


def byte_codes(index: faiss.Index) -> np.ndarray:
    """FAISS's own memory of the codes (n, bytes) of an index without lists, not a copy."""
    flat = cast(faiss.IndexPQ, index)  # or another one of flat codes
    return faiss.rev_swig_ptr(flat.codes.data(), flat.ntotal * flat.code_size).reshape(flat.ntotal, flat.code_size)


def block_codes(index: faiss.IndexFastScan, positions: np.ndarray) -> np.ndarray:
    """Codes (n, bytes) of the rows at these positions (n,)."""
    return _read(index, _blocks(index), positions)


def _blocks(index: faiss.IndexFastScan) -> np.ndarray:
    """FAISS's own memory of an index's blocks, (blocks, bytes)."""
    flat = faiss.rev_swig_ptr(index.codes.get(), index.codes.size())
    return flat.reshape(-1, _packer(index.M, index.bbs).block_size)


def _list(index: faiss.IndexIVFFastScan, number: int) -> tuple[np.ndarray, np.ndarray]:
    """FAISS's own memory of a list: the numbers of its rows (n,), and its blocks (blocks, bytes)."""
    lists, size = index.invlists, _packer(index.M, index.bbs).block_size
    n_rows = lists.list_size(number)
    blocks = faiss.rev_swig_ptr(lists.get_codes(number), -(-n_rows // index.bbs) * size)
    return faiss.rev_swig_ptr(lists.get_ids(number), n_rows), blocks.reshape(-1, size)


@lru_cache(maxsize=64)
def _packer(M: int, rows: int) -> faiss.CodePacker:
    """Packs and unpacks blocks of rows with M numbers each."""
    return faiss.IndexPQFastScan(M, M, 4, faiss.METRIC_L2, rows).get_CodePacker()


def _write(index: BlockIndex, blocks: np.ndarray, first: int, codes: np.ndarray) -> None:
    """Put codes (n, bytes) into blocks as rows `first`, `first` + 1, ...; the places behind the last become zero."""
    packer = _packer(index.M, index.bbs)
    number, before = divmod(first, packer.nvec)
    rows = np.concatenate([_read(index, blocks, np.arange(first - before, first)), codes])
    rows = np.pad(rows, ((0, -len(rows) % packer.nvec), (0, 0))).reshape(-1, packer.nvec, packer.code_size)
    for block, some in zip(blocks[number:], rows, strict=True):
        block[:] = 0
        packer.pack_all(faiss.swig_ptr(some), faiss.swig_ptr(block))


def _read(index: BlockIndex, blocks: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Codes (n, bytes) of the rows (n,)."""
    number, place = np.divmod(rows, index.bbs)
    byte, shift = _places(index.M, index.bbs)
    found = blocks.reshape(-1)[number[:, None] * blocks.shape[1] + byte[place]] >> shift[place] & 15
    return faiss.pack_bitstrings(found.astype(np.int32), 4)


@lru_cache(maxsize=64)
def _places(M: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows, M): the byte of a block that holds number m of its row r, and the bits below it there, 0 or 4."""
    packer, names = _packer(M, rows), np.arange(1, rows * M + 1).reshape(rows, M)
    found = np.zeros((packer.block_size, 2), np.int64)
    for shift in range(0, 24, 4):  # `unpack_all` would take a call a block: 40 times as long for scattered rows
        codes, block = faiss.pack_bitstrings((names >> shift & 15).astype(np.int32), 4), np.zeros(len(found), np.uint8)
        packer.pack_all(faiss.swig_ptr(codes), faiss.swig_ptr(block))
        found |= np.stack([block & 15, block >> 4], axis=1).astype(np.int64) << shift
    byte, upper = np.divmod(found.ravel().argsort()[-names.size :].reshape(rows, M), 2)
    return byte, (4 * upper).astype(np.uint8)
