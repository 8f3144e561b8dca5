"""Places without a row in blocks of 4-bit codes are set to zero, and no others."""

import faiss
import numpy as np
import pytest

from nearkin._faiss import clear_padding


@pytest.mark.parametrize("in_lists", [False, True])
def test_only_the_places_without_a_row_are_cleared(in_lists: bool) -> None:
    for width, n_rows in ((1, 33), (2, 1), (7, 31), (8, 64), (8, 0)):
        _check_places(width, n_rows, in_lists)


def _check_places(width: int, n_rows: int, in_lists: bool) -> None:
    X = np.random.default_rng(0).normal(size=(700, 2 * width)).astype(np.float32)
    centre = faiss.IndexFlatL2(2 * width)
    index = (
        faiss.IndexIVFPQFastScan(centre, 2 * width, 1, width, 4)
        if in_lists
        else faiss.IndexPQFastScan(2 * width, width, 4)
    )
    index.train(X)
    if n_rows:  # FAISS breaks off where an index without rows is given none
        index.add(X[:n_rows])
    clean = faiss.serialize_index(index)
    if n_rows:
        size = -(-n_rows // 32) * index.get_CodePacker().block_size
        codes = index.invlists.get_codes(0) if in_lists else index.codes.get()
        block = faiss.rev_swig_ptr(codes, size)
        block |= ~_bits_of_rows(index.get_CodePacker(), n_rows)
    clear_padding(index)
    np.testing.assert_array_equal(faiss.serialize_index(index), clean)


def _bits_of_rows(packer: faiss.CodePacker, n_rows: int) -> np.ndarray:
    """The bits that FAISS itself sets for rows of ones, found row by row."""
    blocks = np.zeros((-(-n_rows // packer.nvec), packer.block_size), np.uint8)
    for row in range(n_rows):
        packer.pack_1(np.full(packer.code_size, 255, np.uint8), row, blocks)
    return blocks.ravel()
