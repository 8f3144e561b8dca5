"""Rotations that make ranges narrow: the slope by central differences, and the steps of codes become smaller."""

import numpy as np
import pytest

from nearkin.linalg.orthonormal import haar_rotation
from nearkin.quantization.ranges import narrowed, width


@pytest.mark.parametrize("axis", [0, 1, None])
def test_slope_by_central_differences(rng, axis):
    X, R = rng.normal(size=(9, 5)) + 1, haar_rotation(5, 0)
    slope, found = width(X, R, axis)[1], np.zeros((5, 5))
    for place in np.ndindex(5, 5):
        step = np.zeros((5, 5))
        step[place] = 1e-6
        found[place] = (width(X, R + step, axis)[0] - width(X, R - step, axis)[0]) / 2e-6
    np.testing.assert_allclose(slope, found, atol=1e-7)


@pytest.mark.parametrize("axis", [0, 1])
def test_ranges_of_unseen_rows_are_narrower(axis):
    """Uniform columns, turned, have the narrowest ranges along their own axes; rows, where no entry stands out."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 8)) if axis == 0 else rng.normal(size=(3000, 8)) * np.array([9, *[1] * 7])
    X = (X @ haar_rotation(8, 1) if axis == 0 else X).astype(np.float32)
    R = narrowed(X[:2000], np.eye(8, dtype=np.float32), axis, np.random.default_rng(0))
    np.testing.assert_allclose(R.T @ R, np.eye(8), atol=1e-5)
    before, after = (np.square(np.ptp(rows, axis=axis)).mean() for rows in (X[2000:], X[2000:] @ R))
    assert after < 0.8 * before


def test_constant_columns_and_rows(rng):
    X = rng.normal(size=(50, 4)).astype(np.float32)
    X[:, 2] = 1
    X[3] = 0
    for axis in (0, 1, None):
        assert np.isfinite(narrowed(X, np.eye(4, dtype=np.float32), axis, rng)).all()
        np.testing.assert_array_equal(width(np.zeros((3, 2)), np.eye(2), axis)[1], 0)
