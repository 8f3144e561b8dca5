"""Principal axes against a plain SVD, the rank, and eq. 25's scale."""

import numpy as np
import pytest

from nearkin.hashing.spectrum import principal_axes, scale_of
from tests.covering import each


@each("shape", [(200, 12), (12, 200), (13, 13)])
@each("dtype", [np.float32, np.float64])
def test_axes_are_those_of_the_svd(rng, shape, dtype):
    X = (rng.standard_normal(shape) * np.linspace(3, 1, shape[1]) + 5).astype(dtype)
    spectrum = principal_axes(X)
    centred = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    singular = np.linalg.svd(centred, compute_uv=False)
    rank = min(shape[0] - 1, shape[1])
    assert spectrum.rank == rank
    np.testing.assert_allclose(spectrum.variances, singular[:rank] ** 2 / len(X), rtol=1e-7)
    covariance = spectrum.axes.T @ (centred.T @ centred / len(X)) @ spectrum.axes
    np.testing.assert_allclose(covariance, np.diag(spectrum.variances), atol=1e-9)
    np.testing.assert_allclose(spectrum.axes.T @ spectrum.axes, np.eye(rank), atol=1e-12)


def test_the_rank_counts_what_is_more_than_rounding(rng):
    """Around a mean of 1e6 rounding leaves (|mean| 8 eps)^2 = 3e-18; a variance of 1e-12 is data."""
    thin = rng.standard_normal((300, 7)) @ rng.standard_normal((7, 40))
    small = (rng.standard_normal((500, 6)) * [1e3, 1e3, 1, 1, 0.1, 0.1]).astype(np.float32)
    constant = [(np.full((20, 4), value, np.float32), 0) for value in (0.0, 0.1, 1e6)]
    far = 1e6 + 1e-6 * rng.standard_normal((500, 3))
    for X, rank in ((thin, 7), (thin.astype(np.float32), 7), (small, 6), (far, 3), *constant):
        assert principal_axes(X).rank == rank, X


def test_scale_uses_the_covariance_not_the_sum_of_squares(rng):
    """SCQ eq. 25 names the eigenvalues of X^T X; with those the scale would depend on the number of rows."""
    X = rng.standard_normal((100, 10)) * np.linspace(4, 1, 10)
    once, twice = (principal_axes(Y) for Y in (X, np.tile(X, (2, 1))))
    s = scale_of("eq25", once.variances, 4)
    assert s == pytest.approx(scale_of("eq25", twice.variances, 4))
    centred = X - X.mean(axis=0)
    top = np.linalg.eigvalsh(centred.T @ centred / 100)[::-1][:4]
    assert s == pytest.approx(np.sqrt(4 / top.sum()))
    scaled = s * centred @ once.axes[:, :4]
    assert (scaled**2).sum() / 100 == pytest.approx(4), "input and output of the binarization have equal energy"
    # sum(S(1:L)) of the authors' OgE demo indexes a diagonal matrix: its first column, so lambda_1 alone
    assert scale_of("top-eigenvalue", np.array([9.0, 4.0, 1.0]), 2) == pytest.approx(np.sqrt(2 / 9))
