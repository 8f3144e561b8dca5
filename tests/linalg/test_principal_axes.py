import numpy as np
from scipy.optimize import brentq

from nearkin.linalg.orthonormal import principal_axes, reached


def test_axes_diagonalise_the_covariance(rng):
    X = rng.normal(size=(500, 6)) * np.arange(1, 7)
    X -= X.mean(axis=0)
    axes, variances = principal_axes(X)
    np.testing.assert_allclose(axes.T @ axes, np.eye(6), atol=1e-6)
    np.testing.assert_allclose((X @ axes).var(axis=0), variances, rtol=1e-5)
    assert (np.diff(variances) <= 0).all()


def test_reached_agrees_with_the_water_level_found_by_bisection(rng):
    for bits in (1, 8, 64, 300):
        variances = np.sort(rng.exponential(size=40) ** 3)[::-1]
        level = brentq(lambda log, b=bits, v=variances: np.maximum(np.log2(v) - log, 0).sum() / 2 - b, -60, 20)
        assert reached(variances, bits) == max(1, (np.log2(variances) >= level).sum())
        assert reached(variances, bits, 8) == max(1, (np.log2(variances) >= level - 3).sum())


def test_axes_without_variance_are_never_reached():
    assert reached(np.array([2.0, 1.0, 0.0, 0.0]), 50) == 2
    assert reached(np.zeros(3), 8) == 3  # nothing is known: nothing is left out
