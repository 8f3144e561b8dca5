"""Spherical hashing: balanced balls, overlaps of a quarter, and its own distance."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import nearkin as nk


@pytest.fixture(scope="module")
def digits():
    return load_digits().data


@pytest.fixture(scope="module")
def fitted(digits):
    return nk.SphericalHashing(16, random_state=0).fit(digits)


def test_bits_say_inside_or_outside(fitted, digits):
    distances = np.linalg.norm(digits[:, None] - fitted.centres_, axis=2)
    inside = np.unpackbits(fitted.encode(digits), axis=1, bitorder="little")
    clear = np.abs(distances - fitted.radii_) > 1e-6
    np.testing.assert_array_equal(inside[clear], (distances < fitted.radii_)[clear])
    values = fitted.scale_ * (fitted.radii_**2 - distances**2)
    np.testing.assert_allclose(fitted.project(digits), values, atol=1e-9)


def test_each_ball_holds_half_and_each_pair_a_quarter(fitted, digits):
    inside = np.unpackbits(fitted.encode(digits), axis=1, bitorder="little").astype(float)
    np.testing.assert_allclose(inside.mean(axis=0), 0.5, atol=0.01)
    overlap = (inside.T @ inside / len(digits))[~np.eye(16, dtype=bool)]
    assert np.abs(overlap / 0.25 - 1).mean() <= 0.11
    assert (overlap / 0.25).std() <= 0.16
    first = fitted.history_[0]
    assert fitted.history_[-1] < first / 2, "pushing apart improved on random means"


def test_search_is_by_spherical_distance(fitted, digits):
    codes, queries = fitted.encode(digits[50:]), fitted.encode(digits[:50])
    distances, ids = fitted.search(digits[:50], codes, 30)
    both = np.bitwise_count(queries[:, None] & codes).sum(axis=2)
    xor = np.bitwise_count(queries[:, None] ^ codes).sum(axis=2)
    expected = np.divide(xor, both, out=np.full(xor.shape, np.inf), where=both > 0)
    np.testing.assert_allclose(distances, np.sort(expected, axis=1)[:, :30])
    np.testing.assert_allclose(np.take_along_axis(expected, ids, axis=1), distances)


def test_trains_on_a_sample(digits):
    small = nk.SphericalHashing(8, n_samples=500, random_state=0).fit(digits)
    share = np.unpackbits(small.encode(digits), axis=1, bitorder="little").mean(axis=0)
    np.testing.assert_allclose(share, 0.5, atol=0.1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_iter": 0}, "max_iter is 0"),
        ({"overlap_tol": -1}, "overlap_tol is -1"),
        ({"n_samples": 3}, "n_samples is 3"),
    ],
)
def test_bad_parameters_are_named(digits, parameters, message):
    with pytest.raises(ValueError, match=message):
        nk.SphericalHashing(8, **parameters).fit(digits)
