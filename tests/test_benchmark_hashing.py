"""The rivals of the tables of SCQ: each method's own property, and its steps one by one."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import nearkin as nk
from benchmarks.hashing.rivals import BinaryAutoencoder, SphericalHashing, _Subspace, squared_hinge
from nearkin.hashing import unpack_signs
from tests.covering import each


@pytest.fixture(scope="module")
def digits():
    return load_digits().data


def test_spherical_bits_say_inside_or_outside_and_pairs_of_balls_share_a_quarter(digits):
    hasher = SphericalHashing(16, random_state=0).fit(digits)
    distances = np.linalg.norm((digits - hasher.mean_)[:, None] - hasher.centres_, axis=2)
    inside = np.unpackbits(hasher.encode(digits), axis=1, bitorder="little")
    clear = np.abs(distances - hasher.radii_) > 1e-6
    np.testing.assert_array_equal(inside[clear], (distances < hasher.radii_)[clear])
    np.testing.assert_allclose(inside.mean(axis=0), 0.5, atol=0.01)
    overlap = (inside.T.astype(float) @ inside / len(digits))[~np.eye(16, dtype=bool)]
    assert np.abs(overlap / 0.25 - 1).mean() <= 0.11
    assert hasher.history_[-1] < hasher.history_[0] / 2, "pushing apart improved on random means"


@each("affinity", [0.0, 1.0, 1000.0])
def test_both_steps_of_k_means_hashing_descend(rng, affinity):
    learner = _Subspace(rng.standard_normal((300, 6)) * np.linspace(2, 0.5, 6), 3, affinity, rng)
    losses = [learner.step() for _ in range(40)]
    assert (np.diff(losses) <= 1e-10 * losses[0]).all()


def test_an_autoencoder_rebuilds_better_than_itq(digits):
    def error(hasher):
        """Of the best linear decoder, as a share of the variance."""
        signs = np.c_[unpack_signs(hasher.encode(digits), 16, np.float64), np.ones(len(digits))]
        left = digits - signs @ np.linalg.lstsq(signs, digits)[0]
        return np.square(left).sum() / np.square(digits - digits.mean(axis=0)).sum()

    itq, autoencoder = (make(16, random_state=0).fit(digits) for make in (nk.ITQ, BinaryAutoencoder))
    assert error(autoencoder) < 0.99 * error(itq)
    assert autoencoder.history_[-1] == pytest.approx(error(autoencoder), rel=1e-2)


def test_hinge_gradient(rng):
    Z, B = rng.standard_normal((30, 4)), rng.choice([-1.0, 1.0], (30, 3))
    W, direction = rng.standard_normal((5, 3)), rng.standard_normal((5, 3))
    value, gradient = squared_hinge(W, Z, B, 0.1)
    slow = np.square(np.maximum(0, 1 - B * (Z @ W[:4] + W[4]))).sum() / 30 + 0.1 * np.square(W[:4]).sum()
    assert value == pytest.approx(slow)
    ahead, behind = (squared_hinge(W + sign * 1e-6 * direction, Z, B, 0.1)[0] for sign in (1, -1))
    assert (ahead - behind) / 2e-6 == pytest.approx((gradient * direction).sum(), rel=1e-6)
