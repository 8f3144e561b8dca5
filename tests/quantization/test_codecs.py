"""Engines' codes by name: what each is known to keep, beside the plain formula of its paper."""

import faiss
import numpy as np
import pytest

from nearkin.quantization.codecs import NAMED, _gaussian_values, find_codec

HOLDING = [name for name in NAMED if name.startswith(("rabitq", "eden"))]


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    return (rng.normal(size=(400, 24)) * np.geomspace(2, 0.5, 24) + 1).astype(np.float32)


@pytest.mark.parametrize("name", HOLDING)
def test_a_row_keeps_its_inner_product_with_itself(name: str, X: np.ndarray) -> None:
    """Estimates by such codes have no bias along the row: <x - m, y - m> = |x - m|^2."""
    Y, mean = find_codec(name, 24)(X)(X), X.mean(axis=0)
    products = ((X - mean) * (Y - mean)).sum(axis=1)
    np.testing.assert_allclose(products, np.square(X - mean).sum(axis=1), rtol=1e-4)


@pytest.mark.parametrize("family", ["rabitq", "eden", "int"])
def test_more_bits_keep_more(family: str, X: np.ndarray) -> None:
    names = sorted((name for name in NAMED if name.startswith(family) and "-" not in name), key=_bits)
    errors = [float(np.square(find_codec(name, 24)(X)(X) - X).mean()) for name in names]
    assert len(names) > 1
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.2 * errors[0]


def _bits(name: str) -> int:
    return int("".join(filter(str.isdigit, name)) or 1)


def test_one_bit_is_the_same_in_both_papers(X: np.ndarray) -> None:
    """RaBitQ's and EDEN's estimates from signs: signs times |x|^2 / |x|_1, and FAISS's decoder agrees."""
    ours = find_codec("rabitq", 24)(X)(X)
    np.testing.assert_allclose(find_codec("eden1", 24)(X)(X), ours, rtol=1e-5, atol=1e-5)
    index = faiss.IndexRaBitQ(24)
    index.train(X)
    np.testing.assert_allclose(index.sa_decode(index.sa_encode(X)), ours, rtol=1e-3, atol=1e-3)


def test_values_of_a_gaussian_are_those_of_max() -> None:
    """Max 1960, table I: two and four levels."""
    np.testing.assert_allclose(_gaussian_values(2), [-0.7979, 0.7979], atol=1e-4)
    np.testing.assert_allclose(_gaussian_values(4), [-1.5104, -0.4528, 0.4528, 1.5104], atol=1e-4)


def test_each_row_of_rabitq_takes_its_best_grid(X: np.ndarray) -> None:
    """Beside all scales tried one by one, the cosine of a row and its grid is near the largest."""
    Y, mean = find_codec("rabitq2", 24)(X)(X), X.mean(axis=0)
    for x, y in zip(X[:40] - mean, Y[:40] - mean, strict=True):
        scales = np.linspace(0.8, 3, 200)[:, None] * 2 / np.abs(x).max()
        grids = np.clip(np.floor(x * scales), -2, 1) + 0.5
        cosines = grids @ x / np.linalg.norm(grids, axis=1) / np.linalg.norm(x)
        assert x @ y / np.linalg.norm(x) / np.linalg.norm(y) > cosines.max() - 0.03


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
