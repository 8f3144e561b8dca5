"""FAISS's additive quantizers filled with our codebooks."""

import faiss
import numpy as np
import pytest

from nearkin.quantization.additive import decode, encode, fill, packed, steady_numbers


@pytest.mark.parametrize("bits", [3, 4, 8])
def test_numbers_are_packed_as_faiss_packs_them(rng: np.random.Generator, bits: int) -> None:
    X = rng.standard_normal((70, 6)).astype(np.float32)
    codebooks = rng.standard_normal((3, 2**bits, 6)).astype(np.float32)
    quantizer = faiss.ResidualQuantizer(6, 3, bits)
    fill(quantizer, codebooks, 4)
    numbers = steady_numbers(quantizer, X)
    np.testing.assert_array_equal(packed(quantizer, numbers), quantizer.compute_codes(X))
    np.testing.assert_allclose(quantizer.decode(packed(quantizer, numbers)), decode(numbers, codebooks), atol=1e-5)
    np.testing.assert_array_equal(numbers, encode(X, codebooks, 4))
