import numpy as np
import pytest
from scipy.optimize import brentq

from nearkin import ProductQuantizer
from nearkin.quantization.codebooks import assign, decode
from nearkin.quantization.learning import Step
from nearkin.quantization.principal import Space, principal_axes, reached


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


def test_a_space_learns_less_and_loses_nothing(rng):
    """Most of 96 columns are beyond the reach of 32 bits: the fit is full width again, and serves others better."""
    X = (rng.normal(size=(6000, 96)) * np.arange(1, 97) ** -0.8).astype(np.float32) @ haar(96, rng)
    X += 3
    learned, others = X[:1500], X[1500:]
    centred = learned - learned.mean(axis=0)
    space = Space.of(centred, 8, 16)
    assert space is not None
    assert space.width % 8 == 0
    model = ProductQuantizer(8, 16, init="pca", random_state=0).fit(learned)
    np.testing.assert_allclose(model.rotation_.T @ model.rotation_, np.eye(96), atol=1e-4)
    assert model.codebooks_.shape == (8, 16, 12)
    last = model.history_[-1]["distortion"]
    assert abs(model.distortion(learned) - last) < 0.05 * last  # the energy of axes left out is counted
    first = [entry["distortion"] for entry in model.history_]
    assert first[0] > first[-1]
    wide = ProductQuantizer(8, 16, init="pca", random_state=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Space, "of", classmethod(lambda *_: None))
        wide.fit(learned)
    assert model.distortion(others) < 1.002 * wide.distortion(others)


def test_widened_codes_stand_for_the_same_rows(rng):
    X = rng.normal(size=(400, 12)).astype(np.float32)
    space = Space(haar(12, rng), 6)
    step = Step(haar(6, rng), rng.normal(size=(3, 4, 2)).astype(np.float32))
    codes = assign(space.rows(X) @ step.rotation, step.codebooks)
    narrow = decode(codes, step.codebooks) @ step.rotation.T @ space.axes[:, :6].T
    wide = space.widened(step)
    np.testing.assert_array_equal(assign(X @ wide.rotation, wide.codebooks), codes)
    np.testing.assert_allclose(decode(codes, wide.codebooks) @ wide.rotation.T, narrow, atol=1e-5)


def test_short_or_isotropic_rows_have_no_space(rng):
    assert Space.of(rng.normal(size=(500, 32)), 4, 256) is None
    assert Space.of(rng.normal(size=(5000, 64)), 8, 256) is None


def haar(d: int, rng: np.random.Generator) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(d, d)))[0].astype(np.float32)
