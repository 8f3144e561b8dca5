"""The unused places of FAISS's blocks of 4-bit codes, which FAISS does not keep clean."""

import faiss
import numpy as np

from nearkin._faiss import FaissIndex, innermost


def clear_padding(index: FaissIndex) -> None:
    """Set the unused places of 4-bit codes behind the last row of the index, or of each of its lists, to zero.

    FAISS (1.15.1) keeps these codes in blocks of 32 rows. Its `remove_ids` leaves the codes of removed rows in the last
    block, and its `merge_from` memory that nobody wrote; its `add` joins the new codes to what lies there by a bitwise
    or, so that rows added afterwards get wrong codes. Other indexes have no such places.
    """
    index = innermost(index)
    if isinstance(index, faiss.IndexFastScan):
        blocks = [(index.codes.get(), index.ntotal)]
    elif isinstance(index, faiss.IndexIVFFastScan):
        lists = index.invlists
        blocks = [(lists.get_codes(i), lists.list_size(i)) for i in range(lists.nlist)]
    else:
        return
    packer = index.get_CodePacker()
    used = _used_bits(packer)
    for codes, n_rows in blocks:
        if rest := n_rows % packer.nvec:
            block = faiss.rev_swig_ptr(codes, (n_rows - rest + packer.nvec) // packer.nvec * packer.block_size)
            block[-packer.block_size :] &= used[rest]


def _used_bits(packer: faiss.CodePacker) -> np.ndarray:
    """The bits of a block that its first 0, 1, 2, ... rows use, (rows of a block, bytes of a block)."""
    used = np.zeros((packer.nvec, packer.block_size), np.uint8)
    ones = np.full(packer.code_size, 255, np.uint8)
    for rows in range(1, packer.nvec):
        used[rows] = used[rows - 1]
        packer.pack_1(ones, rows - 1, used[rows : rows + 1])
    return used
