"""What FAISS's indexes have in common: the index behind a rotation; 4-bit codes in blocks as FAISS puts them there."""

import faiss
import numpy as np

from nearkin._faiss import METRIC_TYPES, add_codes, clear_padding, innermost
from tests.covering import each

X = np.random.default_rng(0).normal(size=(700, 28)).astype(np.float32)


@each("metric", METRIC_TYPES)
def test_innermost_of_floats_is_behind_the_rotation(metric: str) -> None:
    inner = faiss.IndexPQ(8, 2, 4, METRIC_TYPES[metric])
    chain = faiss.IndexPreTransform(faiss.LinearTransform(8, 8), inner)
    assert isinstance(innermost(chain), faiss.IndexPQ)
    assert innermost(chain).metric_type == METRIC_TYPES[metric]
    assert isinstance(innermost(inner), faiss.IndexPQ)
    assert isinstance(innermost(faiss.IndexBinaryFlat(16)), faiss.IndexBinaryFlat)


def scan(M: int, n_lists: int, d: int = 28) -> faiss.Index:
    """A trained, empty fast scan of M codes a row, in lists or not."""
    flat = faiss.IndexPQFastScan(d, M, 4)
    index = faiss.IndexIVFPQFastScan(faiss.IndexFlatL2(d), d, n_lists, M, 4) if n_lists else flat
    index.train(np.ascontiguousarray(X[:, :d]))
    return index


@each("n_lists", [0, 5])
@each("M", [1, 7, 14])
def test_blocks_are_those_of_faiss(M: int, n_lists: int) -> None:
    peer = scan(M, n_lists)
    copy = faiss.clone_index(peer)
    ours = faiss.downcast_index(copy)
    codes = peer.sa_encode(X) if n_lists else peer.pq.compute_codes(X)
    for first, last in ((0, 45), (45, 45), (45, 700)):
        peer.add(X[first:last])
        add_codes(ours, codes[first:last])
    np.testing.assert_array_equal(faiss.serialize_index(ours), faiss.serialize_index(peer))


@each("in_lists", [False, True])
@each(("width", "n_rows"), [(1, 33), (2, 1), (7, 31), (8, 64), (8, 0)])
def test_only_the_places_without_a_row_are_cleared(width: int, n_rows: int, in_lists: bool) -> None:
    index = scan(width, in_lists, 2 * width)
    if n_rows:  # FAISS breaks off where an index without rows is given none
        index.add(np.ascontiguousarray(X[:n_rows, : 2 * width]))
    clean = faiss.serialize_index(index)
    if n_rows:
        packer = index.get_CodePacker()
        codes = index.invlists.get_codes(0) if in_lists else index.codes.get()
        block = faiss.rev_swig_ptr(codes, -(-n_rows // 32) * packer.block_size)
        rows = np.zeros((-(-n_rows // packer.nvec), packer.block_size), np.uint8)  # FAISS's own bits for rows of ones
        for row in range(n_rows):
            packer.pack_1(np.full(packer.code_size, 255, np.uint8), row, rows)
        block |= ~rows.ravel()
    clear_padding(index)
    np.testing.assert_array_equal(faiss.serialize_index(index), clean)
