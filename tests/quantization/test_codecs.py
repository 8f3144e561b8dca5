"""Engines' codes by name: what each is known to keep, beside the plain formula of its paper."""

import faiss
import numpy as np
import pytest

from nearkin.quantization.engine_rotation import NAMED, find_codec


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    return (rng.normal(size=(400, 24)) * np.geomspace(2, 0.5, 24) + 1).astype(np.float32)


def test_a_row_keeps_its_inner_product_with_itself(X: np.ndarray) -> None:
    """Estimates by such codes have no bias along the row: <x - m, y - m> = |x - m|^2."""
    Y, mean = find_codec("rabitq", 24)(X)(X), X.mean(axis=0)
    products = ((X - mean) * (Y - mean)).sum(axis=1)
    np.testing.assert_allclose(products, np.square(X - mean).sum(axis=1), rtol=1e-4)


def test_more_bits_keep_more(X: np.ndarray) -> None:
    few, many = (float(np.square(find_codec(name, 24)(X)(X) - X).mean()) for name in ("int4", "int8"))
    assert many < 0.2 * few


def test_rabitq_is_faisss(X: np.ndarray) -> None:
    """Its estimate from signs: signs times |x|^2 / |x|_1."""
    ours = find_codec("rabitq", 24)(X)(X)
    index = faiss.IndexRaBitQ(24)
    index.train(X)
    np.testing.assert_allclose(index.sa_decode(index.sa_encode(X)), ours, rtol=1e-3, atol=1e-3)


def test_quantiles_err_less_than_the_whole_range_where_values_lie_far_out(rng: np.random.Generator) -> None:
    X = rng.standard_t(3, size=(2000, 8)).astype(np.float32)
    whole, clipped = (find_codec(name, 8)(X)(X) for name in ("int4", "int4-quantile"))
    assert np.square(clipped - X).mean() < 0.7 * np.square(whole - X).mean()


@pytest.mark.parametrize("name", sorted(NAMED))
def test_equal_rows_and_zeros_are_coded(name: str) -> None:
    X = np.concatenate([np.ones((20, 6)), np.zeros((20, 6))]).astype(np.float32)
    Y = find_codec(name, 6)(X)(X)
    assert Y.shape == X.shape
    assert np.isfinite(Y).all()
