"""K-means hashing: codes are numbers of nearest centroids, both limits of the affinity, and descent."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import nearkin as nk
from nearkin.hashing.baselines import _Subspace


@pytest.fixture(scope="module")
def digits():
    return load_digits().data


def test_codes_are_the_numbers_of_nearest_centroids(digits):
    hasher = nk.KMeansHash(16, random_state=0).fit(digits)
    points = ((digits - hasher.mean_) @ hasher.axes_).reshape(len(digits), 4, -1)
    distances = np.square(points[:, :, None] - hasher.codebooks_).sum(axis=3)
    nearest = distances.argmin(axis=2)  # (n, 4), numbers of 4 bits
    codes = hasher.encode(digits)
    np.testing.assert_array_equal(codes[:, 0], nearest[:, 0] | nearest[:, 1] << 4)
    np.testing.assert_array_equal(codes[:, 1], nearest[:, 2] | nearest[:, 3] << 4)


def test_uneven_bits(digits):
    hasher = nk.KMeansHash(10, random_state=0).fit(digits)
    assert np.isfinite(hasher.codebooks_).all(axis=2).sum(axis=1).tolist() == [8, 16, 8]
    assert hasher.project(digits).shape == (len(digits), 10)


def subspace(rng, affinity, n_bits=3):
    return _Subspace(rng.standard_normal((800, 6)) * np.linspace(2, 0.5, 6), n_bits, affinity, rng)


@pytest.mark.parametrize("affinity", [0.0, 1.0, 10.0, 1000.0])
def test_both_steps_descend(rng, affinity):
    learner = subspace(rng, affinity)
    losses = [learner.step() for _ in range(40)]
    assert (np.diff(losses) <= 1e-10 * losses[0]).all()


def test_it_stops_when_a_round_gains_too_little(digits):
    hasher = nk.KMeansHash(8, tol=0.02, max_iter=50, random_state=0).fit(digits)
    gains = -np.diff(hasher.history_) / hasher.history_[1:]
    assert 3 < hasher.n_iter_ < 50
    assert gains[-1] <= 0.02 < gains[:-1].min(), gains


def test_no_affinity_is_k_means(rng):
    learner = subspace(rng, 0.0)
    for _ in range(300):
        learner.step()
    nearest = np.square(learner.points[:, None] - learner.centroids).sum(axis=2).argmin(axis=1)
    means = np.array([learner.points[nearest == i].mean(axis=0) for i in range(8)])
    np.testing.assert_allclose(learner.centroids, means, atol=1e-8)


def test_strong_affinity_gives_a_cube(rng):
    learner = subspace(rng, 1e5)
    for _ in range(800):
        learner.step()
    distances = np.linalg.norm(learner.centroids[:, None] - learner.centroids, axis=2)
    np.testing.assert_allclose(distances, learner.side * np.sqrt(learner.hamming), atol=0.02 * learner.side)


def test_affinity_step_minimises_its_bound(rng):
    """Moving one centroid any other way from where the step puts it is worse for the bound, and the bound is tight."""
    learner = subspace(rng, 10.0)
    learner.step()
    before = learner._affinity_error()
    learner._move(2, 0.0, np.zeros(6))  # no points: the affinity alone
    assert learner._affinity_error() <= before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bits_per_subspace": 9}, "bits_per_subspace is 9"),
        ({"affinity": -1.0}, "affinity is -1.0"),
        ({"n_components": 0}, "n_components is 0"),
    ],
)
def test_bad_parameters_are_named(digits, parameters, message):
    with pytest.raises(ValueError, match=message):
        nk.KMeansHash(8, **parameters).fit(digits)


@pytest.mark.parametrize("size", [1e-12, 1e9])
def test_units_of_the_data_do_not_matter(digits, size):
    """Roots of small integers in half precision once overflowed here."""
    codes = nk.KMeansHash(8, random_state=0).fit(digits).encode(digits)
    scaled = nk.KMeansHash(8, random_state=0).fit(digits * size).encode(digits * size)
    assert (scaled == codes).mean() > 0.99
