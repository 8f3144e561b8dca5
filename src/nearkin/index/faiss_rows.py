"""Rows of a FAISS index by position: added, cut off, taken out, moved to another index.

Positions count rows in the order in which they were added. Where FAISS itself writes them down, in inverted lists, they
are counted anew after a removal.
"""

from typing import cast

import faiss
import numpy as np

from nearkin import _faiss_blocks
from nearkin._faiss import FaissIndex, innermost
from nearkin._faiss_padding import clear_padding
from nearkin.index.faiss_file import inverted_file


def add_codes(index: FaissIndex, codes: np.ndarray) -> None:
    """Add rows by their codes (n, bytes) in FAISS's own layout, in one step."""
    inner = innermost(index)
    if isinstance(inner, faiss.IndexBinary):
        inner.add(codes)
    elif isinstance(inner, faiss.IndexFastScan | faiss.IndexIVFFastScan):
        _faiss_blocks.add_codes(inner, codes)
    else:
        inner.add_sa_codes(codes)
    index.ntotal = inner.ntotal


def flat_codes(index: FaissIndex) -> np.ndarray:
    """Codes (n, bytes) of an index of bits: FAISS's own memory, not a copy."""
    width = index.d // 8
    return faiss.rev_swig_ptr(cast(faiss.IndexBinaryFlat, index).xb.data(), index.ntotal * width).reshape(-1, width)


def cut(index: FaissIndex, n_rows: int) -> None:
    """Leave the first `n_rows` rows."""
    if innermost(index).ntotal > n_rows:
        _remove(index, faiss.IDSelectorRange(n_rows, np.iinfo(np.int64).max))


def remove(index: FaissIndex, positions: np.ndarray) -> None:
    """Take out the rows at sorted `positions` (m,); those behind them move up."""
    bitmap = np.zeros(-(-index.ntotal // 8), np.uint8)
    np.bitwise_or.at(bitmap, positions >> 3, np.left_shift(1, positions & 7).astype(np.uint8))
    _remove(index, faiss.IDSelectorBitmap(index.ntotal, faiss.swig_ptr(bitmap)))
    lists = inverted_file(index)
    if lists is None:
        return
    for i in range(lists.nlist):
        size = lists.invlists.list_size(i)
        if size:
            numbers = faiss.rev_swig_ptr(lists.invlists.get_ids(i), size)
            numbers -= np.searchsorted(positions, numbers)


def _remove(index: FaissIndex, selector: faiss.IDSelector) -> None:
    lists = inverted_file(index)
    if lists is not None:
        lists.set_direct_map_type(faiss.DirectMap.NoMap)  # it is made again when needed
    index.remove_ids(selector)
    clear_padding(index)
    index.ntotal = innermost(index).ntotal


def move(source: FaissIndex, target: FaissIndex) -> None:
    """Move all rows of `source`, an index of the same kind and quantizer, behind those of `target`."""
    if isinstance(target, faiss.IndexBinary):  # which FAISS cannot merge
        target.add(flat_codes(source).copy())
        source.reset()
        return
    shift = 0 if inverted_file(target) is None else target.ntotal  # only inverted lists write rows' numbers down
    inner, its_inner = innermost(target), innermost(source)
    for lists in filter(None, map(inverted_file, (target, source))):
        lists.set_direct_map_type(faiss.DirectMap.NoMap)  # FAISS merges only what has none
    if isinstance(inner, faiss.IndexIVFFastScan) and isinstance(its_inner, faiss.IndexIVFFastScan):
        _faiss_blocks.move_to_full_blocks(its_inner, inner, shift)
    target.merge_from(cast(faiss.Index, source), shift)
    clear_padding(target)
    source.reset()  # `merge_from` leaves the count of rows in front of a rotation
    if isinstance(its_inner, faiss.IndexFastScan):
        its_inner.ntotal2 = 0  # the rows of its blocks, which FAISS (1.15.1) does not reset
