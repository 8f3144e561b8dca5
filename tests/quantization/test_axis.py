"""Axis codes: bits where the variance is, grids from the rows, and no data too odd."""

import numpy as np
import pytest

from nearkin.quantization import AxisQuantizer, ScalarQuantizer


def unit(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    """Rows on turned axes whose deviations fall from 1 to 1/30, about a mean that is not 0."""
    turn = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    return ((rng.normal(size=(1200, 30)) / np.arange(1, 31)) @ turn + 0.3).astype(np.float32)


def nearest_levels(model: AxisQuantizer, Z: np.ndarray) -> np.ndarray:
    """Codes (n, M) of rotated rows, each grid searched in full (the slow twin)."""
    M, width = model.levels_.shape
    codes = np.zeros((len(Z), M), np.uint8)
    for byte in range(M):
        stride = 1
        for place, count in enumerate(model.levels_[byte]):
            grid = model.codebooks_[byte, np.arange(count) * stride, place]
            level = np.abs(Z[:, byte * width + place, None] - grid).argmin(axis=1)
            codes[:, byte] += (level * stride).astype(np.uint8)
            stride *= count
    return codes


def test_codes_are_the_nearest_values_of_each_grid(X: np.ndarray) -> None:
    model = AxisQuantizer(6).fit(unit(X))
    codes = model.encode(unit(X))
    assert codes.shape == (1200, 6)
    assert codes.dtype == np.uint8
    differs = (codes != nearest_levels(model, unit(X) @ model.rotation_)).mean()
    assert differs < 1e-3, differs  # the last bits of a product


def test_bits_go_where_the_variance_is(X: np.ndarray) -> None:
    model = AxisQuantizer(6).fit(X)
    M, width = model.levels_.shape
    deviations = (X @ model.rotation_).std(axis=0).reshape(M, width)
    counts = model.levels_[np.argsort(-deviations, axis=None) // width, np.argsort(-deviations, axis=None) % width]
    assert counts[0] == counts.max() >= 4 * counts[5]
    assert (counts[20:] == 1).mean() > 0.5
    assert (model.levels_.prod(axis=1) <= 256).all()
    turned = model.rotation_ @ model.rotation_.T
    np.testing.assert_allclose(turned, np.eye(30), atol=1e-5)  # all axes stay, so distances do


def test_a_grid_is_not_worse_than_the_quantiles_that_it_starts_from(rng: np.random.Generator) -> None:
    from nearkin.quantization.axis import learned_grid

    values = np.sort(rng.standard_t(3, size=4000).astype(np.float32))
    for count in (2, 5, 16):
        start = np.quantile(values, (np.arange(count) + 0.5) / count)
        errors = [np.square(values[:, None] - grid).min(axis=1).mean() for grid in (start, learned_grid(values, count))]
        assert errors[1] < errors[0], (count, errors)


def test_more_bytes_are_nearer_and_nearer_than_equal_bits(X: np.ndarray) -> None:
    errors = [AxisQuantizer(n).fit(X).distortion(X) for n in (2, 4, 8, 15, 30)]
    assert errors == sorted(errors, reverse=True)
    assert errors[3] < 0.5 * ScalarQuantizer(4).fit(X).distortion(X)  # of 15 bytes too


def test_bytes_may_have_no_axis(X: np.ndarray) -> None:
    """Two distinct rows vary along one axis; a fit for 4 to 6 bytes of 7 columns ended in an error."""
    rows = X[[0, 1, 1, 0, 1], :7]
    for n_bytes in range(1, 8):
        model = AxisQuantizer(n_bytes).fit(rows)
        np.testing.assert_allclose(model.decode(model.encode(rows)), rows, atol=1e-5, err_msg=f"{n_bytes} bytes")


def test_levels_of_more_than_256_codes_are_damage(X: np.ndarray) -> None:
    model = AxisQuantizer(3).fit(X)
    model.levels_ = 300 * model.levels_
    with pytest.raises(ValueError, match="more than 256 codes"):
        model._check_loaded()
