"""Bit order and polarity: as in NumPy's little-endian packing and FAISS's IndexLSH; search: refusals, cut k, re-
ranking."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.hashing.bits import binary_index, pack_signs, unpack_bits, unpack_signs
from tests.covering import each


def test_bit_one_is_a_value_of_at_least_zero_and_the_first_is_the_lowest():
    values = np.array([[0.5, -1, 0.0, -0.0, -2, -3, -4, -5, 7]])
    np.testing.assert_array_equal(pack_signs(values), [[0b1101, 1]])


@each("n_bits", [1, 7, 8, 12, 64])
def test_round_trip(rng, n_bits):
    values = rng.standard_normal((20, n_bits))
    codes = pack_signs(values)
    assert codes.shape == (20, -(-n_bits // 8))
    np.testing.assert_array_equal(unpack_signs(codes, n_bits), np.sign(values))
    np.testing.assert_array_equal(unpack_bits(codes, n_bits), values > 0)
    padding = np.unpackbits(codes, axis=1, bitorder="little")[:, n_bits:]
    assert not padding.any()


@each("n_bits", [1, 7, 24, 64])
def test_real_queries_are_ranked_by_products_with_signs_and_k_is_cut(rng, n_bits):
    values, queries = rng.standard_normal((30, n_bits)), rng.standard_normal((4, n_bits))
    scores, ids = nk.Signs(n_bits).fit(values).search(queries, pack_signs(values), 50, asymmetric=True)
    products = queries @ np.where(values >= 0, 1, -1).T
    np.testing.assert_allclose(scores, -np.sort(-products, axis=1), atol=1e-4)
    np.testing.assert_allclose(np.take_along_axis(products, ids, axis=1), scores, atol=1e-4)


@each(
    ("codes", "error", "message"),
    [
        (np.zeros((3, 2)), TypeError, "codes has dtype float64; it must be uint8"),
        (np.zeros((3, 4), np.uint8), ValueError, r"codes has shape \(3, 4\); it must be uint8 \(n, 2\)"),
        (np.zeros((0, 2), np.uint8), ValueError, "n >= 1"),
    ],
)
@each("asymmetric", [False, True])
def test_bad_codes_are_named(codes, error, message, asymmetric):
    with pytest.raises(error, match=message):
        nk.Signs(16).fit(np.ones((1, 16))).search(np.ones((1, 16)), codes, 1, asymmetric=asymmetric)


def test_inverted_lists_need_codes_to_train_on_and_few_are_no_warning_of_faiss(rng, capfd):
    binary_index(4, 8, rng.integers(0, 256, (40, 4), dtype=np.uint8))
    assert "WARNING" not in "".join(capfd.readouterr())
    with pytest.raises(ValueError, match="pass codes=encode"):
        binary_index(2, n_lists=4)
    with pytest.raises(ValueError, match="n_lists is 9"):
        binary_index(2, n_lists=9, codes=np.zeros((3, 2), np.uint8))
