"""Binary autoencoder: each of its three steps alone, and that it rebuilds better than the codes it starts from."""

from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_digits

import nearkin as nk
from nearkin.hashing import unpack_signs
from nearkin.hashing.baselines import _decoder, _improve_signs, squared_hinge


@pytest.fixture(scope="module")
def digits():
    return load_digits().data


def rebuilt_error(X, hasher, codes):
    """Error of the best linear decoder for codes."""
    signs = np.c_[unpack_signs(codes, hasher.n_bits, np.float64), np.ones(len(X))]
    return np.square(X - signs @ np.linalg.lstsq(signs, X)[0]).sum() / np.square(X - X.mean(axis=0)).sum()


def test_rebuilds_better_than_itq(digits):
    itq, autoencoder = nk.ITQ(16, random_state=0).fit(digits), nk.BinaryAutoencoder(16, random_state=0).fit(digits)
    start, end = rebuilt_error(digits, itq, itq.encode(digits)), rebuilt_error(digits, itq, autoencoder.encode(digits))
    assert end < 0.99 * start, f"ITQ {start}, autoencoder {end}"
    assert autoencoder.history_[-1] == pytest.approx(end, rel=1e-2)


def test_decode(digits):
    hasher = nk.BinaryAutoencoder(16, random_state=0).fit(digits)
    codes = hasher.encode(digits)
    error = np.square(digits - hasher.decode(codes)).sum() / np.square(digits - digits.mean(axis=0)).sum()
    assert error == pytest.approx(rebuilt_error(digits, hasher, codes), rel=1e-2)
    with pytest.raises(TypeError, match="codes has dtype float64"):
        hasher.decode(np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"codes has shape \(1, 3\)"):
        hasher.decode(np.zeros((1, 3), np.uint8))


def test_hinge_gradient(rng):
    Z, B = rng.standard_normal((30, 4)), rng.choice([-1.0, 1.0], (30, 3))
    W, direction = rng.standard_normal((5, 3)), rng.standard_normal((5, 3))
    value, gradient = squared_hinge(W, Z, B, 0.1)
    slow = np.square(np.maximum(0, 1 - B * (Z @ W[:4] + W[4]))).sum() / 30 + 0.1 * np.square(W[:4]).sum()
    assert value == pytest.approx(slow)
    step = 1e-6
    ahead, behind = (squared_hinge(W + sign * step * direction, Z, B, 0.1)[0] for sign in (1, -1))
    assert (ahead - behind) / (2 * step) == pytest.approx((gradient * direction).sum(), rel=1e-6)


def test_decoder_is_least_squares(rng):
    B = rng.choice([-1.0, 1.0], (400, 5))
    Z = B @ rng.standard_normal((5, 8)) + 0.3 * rng.standard_normal((400, 8))
    Z -= Z.mean(axis=0)
    D, offset, error = _decoder(Z, B)
    expected = np.linalg.lstsq(np.c_[B, np.ones(400)], Z)[0]
    np.testing.assert_allclose(np.vstack([D, offset]), expected, atol=0.02)
    assert error == pytest.approx(np.square(Z - B @ D - offset).sum() / np.square(Z).sum(), rel=1e-6)


def test_signs_are_best_bit_by_bit(rng):
    D, Z, mu = rng.standard_normal((4, 6)), rng.standard_normal((50, 6)), 0.7
    H = rng.choice([-1.0, 1.0], (50, 4))
    B = H.copy()
    _improve_signs(Z @ D.T, D @ D.T, H, mu, B)

    def energy(row, signs):
        return np.square(Z[row] - signs @ D).sum() + mu * np.square(signs - H[row]).sum()

    optimal = 0
    for row in range(50):
        for bit in range(4):
            flipped = B[row] * np.where(np.arange(4) == bit, -1, 1)
            assert energy(row, B[row]) <= energy(row, flipped) + 1e-12
        assert energy(row, B[row]) <= energy(row, H[row]) + 1e-12
        best = min(energy(row, np.array(signs)) for signs in product([-1.0, 1.0], repeat=4))
        optimal += energy(row, B[row]) <= best + 1e-12
    assert optimal > 30, f"the best of all 16 codes in {optimal} of 50 rows"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mu": 0.0}, "mu is 0.0"),
        ({"margin_penalty": 0.0}, "margin_penalty is 0.0"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"n_bits": 65}, "at most 61, the rank"),
    ],
)
def test_bad_parameters_are_named(digits, parameters, message):
    with pytest.raises(ValueError, match=message):
        nk.BinaryAutoencoder(**{"n_bits": 8, **parameters}).fit(digits)
