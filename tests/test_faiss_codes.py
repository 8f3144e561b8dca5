"""Codes put into blocks lie there as FAISS itself would have put them."""

from itertools import product

import faiss
import numpy as np

from nearkin._faiss import add_codes
from nearkin.index.faiss_index import move

X = np.random.default_rng(0).normal(size=(700, 28)).astype(np.float32)


def test_blocks_are_those_of_faiss():
    for M, n_lists in product((1, 7, 14), (0, 5)):
        coarse = faiss.IndexFlatL2(28)
        peer = faiss.IndexIVFPQFastScan(coarse, 28, n_lists, M, 4) if n_lists else faiss.IndexPQFastScan(28, M, 4)
        peer.train(X)
        copy = faiss.clone_index(peer)
        ours = faiss.downcast_index(copy)
        codes = peer.sa_encode(X) if n_lists else peer.pq.compute_codes(X)
        for first, last in ((0, 45), (45, 45), (45, 700)):
            peer.add(X[first:last])
            add_codes(ours, codes[first:last])
        contents = map(faiss.serialize_index, (ours, peer))
        np.testing.assert_array_equal(*contents, f"{M} codes, {n_lists} lists")


def test_lists_that_end_with_a_block_are_merged():
    """FAISS itself writes beyond its memory where a list holds a multiple of a block's bytes (224 here)."""
    empty = faiss.IndexIVFPQFastScan(faiss.IndexFlatL2(28), 28, 1, 14, 4)
    empty.train(X)
    for rows in (32, 224, 448, 650):
        copies = [faiss.clone_index(empty) for _ in range(3)]
        target, source, whole = map(faiss.downcast_index, copies)
        whole.add(X)
        target.add(X[:rows])
        source.add(X[rows:])
        move(source, target)
        assert source.ntotal == 0
        np.testing.assert_array_equal(*map(faiss.serialize_index, (target, whole)), f"{rows} rows")
