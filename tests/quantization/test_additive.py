"""FAISS's additive quantizers filled with our codebooks."""

import faiss
import numpy as np
import pytest

from nearkin.quantization.additive import Part, decode, encode, fill, packed, query_moment, steady_numbers


@pytest.mark.parametrize("bits", [3, 4, 8])
def test_numbers_are_packed_as_faiss_packs_them(rng: np.random.Generator, bits: int) -> None:
    X = rng.standard_normal((70, 6)).astype(np.float32)
    codebooks = rng.standard_normal((3, 2**bits, 6)).astype(np.float32)
    quantizer = faiss.ResidualQuantizer(6, 3, bits)
    fill(quantizer, codebooks[None], 4)
    numbers = steady_numbers(quantizer, X)
    np.testing.assert_array_equal(packed(quantizer, numbers), quantizer.compute_codes(X))
    np.testing.assert_allclose(quantizer.decode(packed(quantizer, numbers)), decode(numbers, codebooks), atol=1e-5)
    np.testing.assert_array_equal(numbers, encode(X, codebooks, 4))


def test_rows_coded_in_parts_and_by_buckets_get_the_codes_of_a_whole_search(rng: np.random.Generator) -> None:
    """FAISS's search of all rows at once, which keeps the best of all sums, is the slow twin."""
    X = rng.standard_normal((1100, 12)).astype(np.float32)
    codebooks = rng.standard_normal((4, 64, 12)).astype(np.float32)
    for beam, same in ((2, 1.0), (16, 0.9)):  # buckets lose one of the 16 best now and then
        whole = faiss.ResidualQuantizer(12, 4, 6)
        fill(whole, codebooks[None], beam)
        whole.approx_topk_mode = faiss.EXACT_TOPK
        exact = faiss.unpack_bitstrings(whole.compute_codes(X), 4, 6)
        found = encode(X, codebooks, beam)
        assert (found == exact).all(axis=1).mean() >= same
        errors = [np.square(X - decode(codes, codebooks)).sum() for codes in (found, exact)]
        assert errors[0] < 1.002 * errors[1]


@pytest.mark.parametrize("beam", [8, 24, 25])
def test_buckets_never_leave_a_code_unwritten(rng: np.random.Generator, beam: int) -> None:
    """Whatever the beam, no sum of two centroids is far better than the one that is found."""
    X, codebooks = (rng.standard_normal(shape).astype(np.float32) for shape in ((300, 5), (2, 64, 5)))
    codebooks[1] *= 0.3
    codes = encode(X, codebooks, beam)
    every = (codebooks[0][:, None] + codebooks[1]).reshape(-1, 5)
    best = np.square(X[:, None] - every).sum(axis=2).min(axis=1)
    assert codes.min() >= 0
    assert codes.max() < 64
    assert np.square(X - decode(codes, codebooks)).sum() < 1.05 * best.sum()


def test_the_moment_of_queries_is_a_mean(rng: np.random.Generator) -> None:
    """As many queries again weigh as much: the squares of two queries by hand."""
    Q = np.array([[1, 2], [3, 0]], np.float32)
    for queries in (Q, np.repeat(Q, 5, axis=0)):
        np.testing.assert_allclose(query_moment("ip", rng.normal(size=(9, 2)), queries), [[5, 1], [1, 2]])


def test_rows_that_are_coded_exactly_have_a_column_of_errors_too() -> None:
    """Their errors are zero: whatever the column weighs, it must be there."""
    books = np.array([[[0, 0], [4, 0]], [[0, 0], [0, 2]]], np.float32)
    part = Part(np.eye(2, dtype=np.float32), books, spread=1.0)
    Z = np.array([[0, 0], [4, 0], [0, 2], [4, 2]], np.float32)
    part.add_column(Z)
    assert part.column > 0
    assert part.reach == 2
    np.testing.assert_array_equal(part.code(Z, 4, False)[1], [[0, 0], [1, 0], [0, 1], [1, 1]])
