"""OgE: the closed form at the fixed point, and what scale and ridge mean."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import nearkin as nk
from nearkin.metrics.hamming import hamming_histograms


@pytest.fixture(scope="module")
def digits():
    return load_digits().data


def test_kkt_at_the_fixed_point(rng):
    """Eq. 21 and 23 in the original coordinates, codes being those of the returned columns."""
    X = rng.standard_normal((400, 30)) * np.geomspace(3, 0.3, 30)
    oge = nk.OgE(8, mu=0.05, tol=0, max_iter=1000, random_state=0).fit(X)
    assert oge.n_iter_ < 1000, "codes stopped changing"
    centred, V, n = oge.scale_ * (X - X.mean(axis=0)), oge.projection_, len(X)
    B = np.where(centred @ V >= 0, 1.0, -1.0)
    Z = np.linalg.inv(centred.T @ centred + n * 0.05 * np.eye(30))
    for k in range(8):
        before, moment = V[:, :k], centred.T @ B[:, k]
        phi = np.linalg.solve(n / 2 * before.T @ Z @ before, before.T @ Z @ moment) if k else np.zeros(0)
        np.testing.assert_allclose(V[:, k], Z @ (moment - n / 2 * before @ phi), atol=1e-8)


def test_only_the_ratio_of_mu_and_squared_scale_matters(digits):
    base = nk.OgE(12, random_state=0).fit(digits)
    other = nk.OgE(12, scale=base.scale_ * 3, mu=0.02 * 9, random_state=0).fit(digits)
    np.testing.assert_array_equal(other.encode(digits), base.encode(digits))
    ridge = nk.OgE(12, ridge=0.02, scale=base.scale_ * 5, random_state=0).fit(digits)
    np.testing.assert_array_equal(ridge.encode(digits), base.encode(digits))


def test_a_larger_ridge_keeps_more_variance(digits):
    kept = [nk.OgE(12, mu=mu, random_state=0).fit(digits).retained_variance(digits) for mu in (0.002, 0.02, 0.2)]
    assert kept == sorted(kept), kept


def test_few_vectors_get_a_larger_ridge_than_many(digits):
    """300 vectors of 61 components: mAP .59 and .54 by mu alone; from 18 a component on mu is used."""
    y, found = load_digits().target, []
    for ridge in (0.02, None):
        few = [nk.OgE(16, ridge=ridge, random_state=seed).fit(digits[:300]) for seed in range(4)]
        codes = [(hasher.encode(digits[300:900]), hasher.encode(digits[:300])) for hasher in few]
        found.append(np.mean([hamming_histograms(*pair, y[300:900], y[:300]).average_precision() for pair in codes]))
    assert found[1] > found[0] + 0.01, found


def test_duplicated_rows_with_few_distinct_points(rng):
    """The sequential columns raise the loss often here; the loop has to carry on, not to give up."""
    centres = rng.standard_normal((10, 30)) * 3
    X = np.repeat(centres, 50, axis=0) + rng.standard_normal((500, 30))
    losses = []
    for seed in range(3):
        oge = nk.OgE(16, random_state=seed).fit(X)
        assert (np.diff(oge.history_) <= 0).all()
        losses.append(oge.history_[-1] / 16)
    assert np.mean(losses) < 0.195, f"stopping at the first rise gave 0.25, this gives {losses}"
