"""The sign of a row's value is the same alone, in any batch, at any place in it, and with any number of threads."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from nearkin.linalg.signs import affine_values
from tests.covering import each


@each("dtype", [np.float32, np.float64])
@each("shape", [(3, 1), (64, 12), (200, 32)])
def test_signs_do_not_see_other_rows(rng, dtype, shape):
    """Half of the rows are made to give values near zero, where a plain product's sign depends on the batch."""
    d, n_bits = shape
    X, P, mean = rng.standard_normal((2100, d)), rng.standard_normal((d, n_bits)), rng.standard_normal(d)
    basis = np.linalg.qr(P)[0]
    X[::2] -= (X[::2] - mean) @ basis @ basis.T
    X, P, mean = X.astype(dtype), P.astype(dtype), mean.astype(dtype)
    batch = affine_values(X, mean, P, 0.5, np.zeros(n_bits))
    np.testing.assert_allclose(
        batch, 0.5 * (X - mean).astype(np.float64) @ P, atol=1e-4 if dtype == np.float32 else 1e-11
    )
    for i in (*range(20), 2047, 2048, 2099):
        np.testing.assert_array_equal(affine_values(X[i : i + 1], mean, P, 0.5)[0] >= 0, batch[i] >= 0)
    with threadpool_limits(2):
        np.testing.assert_array_equal(affine_values(X[7:], mean, P, 0.5) >= 0, batch[7:] >= 0)


def test_intercept_is_added_to_the_scaled_product_and_moves_the_place_of_care(rng):
    X, mean, P = rng.normal(size=(40, 5)), rng.normal(size=5), rng.normal(size=(5, 3))
    found = affine_values(X, mean, P, 2.0, np.array([3.0, -1.0, 0.0]))
    np.testing.assert_allclose(found, 2 * (X - mean) @ P + [3, -1, 0], atol=1e-12)
    X, P, mean = rng.standard_normal((300, 50)).astype(np.float32), np.ones((50, 1), np.float32), np.zeros(50, "f4")
    X[:, 0] = -3 - X[:, 1:].sum(axis=1)  # value 3 cancels the intercept
    batch = affine_values(X, mean, P, 1.0, np.array([3.0]))
    for i in range(100):
        alone = affine_values(X[i : i + 1], mean, P, 1.0, np.array([3.0]))
        np.testing.assert_array_equal(alone[0] >= 0, batch[i] >= 0)


def test_shapes_that_do_not_fit_never_read_outside(rng):
    X, mean, P = rng.normal(size=(4, 6)), np.zeros(6), rng.normal(size=(6, 3))
    for bad in (mean[:5], np.zeros(1)):
        with pytest.raises(ValueError, match=r"mean has shape"):
            affine_values(X, bad, P)
    with pytest.raises(ValueError, match=r"intercept \(1,\)"):
        affine_values(X, mean, P, 1.0, np.zeros(1))
    with pytest.raises(ValueError, match="shapes"):
        affine_values(X[:, :5], mean, P)
