"""Codes put into blocks lie there as FAISS itself would have put them."""

import faiss
import numpy as np
import pytest

from nearkin._faiss import add_codes
from nearkin.index.faiss_index import move

X = np.random.default_rng(0).normal(size=(700, 28)).astype(np.float32)


@pytest.mark.parametrize("M", [1, 7, 14])
@pytest.mark.parametrize("n_lists", [0, 5])
def test_blocks_are_those_of_faiss(M, n_lists):
    coarse = faiss.IndexFlatL2(28)
    peer = faiss.IndexIVFPQFastScan(coarse, 28, n_lists, M, 4) if n_lists else faiss.IndexPQFastScan(28, M, 4)
    peer.train(X)
    copy = faiss.clone_index(peer)
    ours = faiss.downcast_index(copy)
    codes = peer.sa_encode(X) if n_lists else peer.pq.compute_codes(X)
    for first, last in ((0, 45), (45, 45), (45, 700)):
        peer.add(X[first:last])
        add_codes(ours, codes[first:last])
    np.testing.assert_array_equal(faiss.serialize_index(ours), faiss.serialize_index(peer))


@pytest.mark.parametrize("rows", [32, 224, 448, 650])
def test_lists_that_end_with_a_block_are_merged(rows):
    """FAISS itself writes beyond its memory where a list holds a multiple of a block's bytes (224 here)."""
    whole = faiss.IndexIVFPQFastScan(faiss.IndexFlatL2(28), 28, 1, 14, 4)
    whole.train(X)
    copies = [faiss.clone_index(whole) for _ in range(2)]
    target, source = map(faiss.downcast_index, copies)
    whole.add(X)
    target.add(X[:rows])
    source.add(X[rows:])
    move(source, target)
    assert source.ntotal == 0
    np.testing.assert_array_equal(faiss.serialize_index(target), faiss.serialize_index(whole))
