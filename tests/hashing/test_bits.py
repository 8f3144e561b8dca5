"""Bit order and polarity: the same as NumPy's little-endian packing and FAISS's IndexLSH."""

import faiss
import numpy as np
import pytest

import nearkin as nk
from nearkin.hashing import pack_signs, unpack_bits, unpack_signs
from nearkin.hashing.bits import n_bytes


def test_bit_one_is_a_value_of_at_least_zero_and_the_first_is_the_lowest():
    values = np.array([[0.5, -1, 0.0, -0.0, -2, -3, -4, -5, 7]])
    np.testing.assert_array_equal(pack_signs(values), [[0b1101, 1]])


@pytest.mark.parametrize("n_bits", [1, 7, 8, 12, 64])
def test_round_trip(rng, n_bits):
    values = rng.standard_normal((20, n_bits))
    codes = pack_signs(values)
    assert codes.shape == (20, -(-n_bits // 8))
    np.testing.assert_array_equal(unpack_signs(codes, n_bits), np.sign(values))
    np.testing.assert_array_equal(unpack_bits(codes, n_bits), values > 0)
    padding = np.unpackbits(codes, axis=1, bitorder="little")[:, n_bits:]
    assert not padding.any()


def test_faiss_packs_the_same_bytes(rng):
    values = rng.standard_normal((30, 24)).astype(np.float32)
    index = faiss.IndexLSH(24, 24, False)
    np.testing.assert_array_equal(index.sa_encode(values), pack_signs(values))


@pytest.mark.parametrize("n_bits", [1, 7, 8, 9, 16, 17])
def test_bytes_of_a_code(n_bits):
    assert n_bytes(n_bits) == pack_signs(np.zeros((1, n_bits))).shape[1] == -(-n_bits // 8)


@pytest.mark.parametrize("n_bits", [1, 7, 24, 64])
def test_real_queries_are_ranked_by_products_with_signs(rng, n_bits):
    values, queries = rng.standard_normal((30, n_bits)), rng.standard_normal((4, n_bits))
    scores, ids = nk.Signs(n_bits).fit(values).search(queries, pack_signs(values), 30, asymmetric=True)
    products = queries @ np.where(values >= 0, 1, -1).T
    np.testing.assert_allclose(scores, -np.sort(-products, axis=1), atol=1e-4)
    np.testing.assert_allclose(np.take_along_axis(products, ids, axis=1), scores, atol=1e-4)
