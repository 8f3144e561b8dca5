"""Rows near each row, and rows drawn between them."""

import numpy as np

from nearkin.quantization.neighbourhoods import Neighbourhoods


def near(X: np.ndarray, rng: np.random.Generator) -> Neighbourhoods:
    return Neighbourhoods.of(X.astype(np.float32), X.shape[1], np.eye(X.shape[1], dtype=np.float32), rng)


def test_neighbours_are_the_nearest_other_rows(rng: np.random.Generator) -> None:
    X = rng.standard_normal((60, 3))
    distances = np.square(X[:, None] - X).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    found = near(X, rng).near
    for i in range(60):
        assert set(found[i]) == set(np.argsort(distances[i])[:8])


def test_drawn_rows_have_the_covariance_of_the_rows_about_them(rng: np.random.Generator) -> None:
    """Two far groups of 9 rows: each row's neighbours are its group."""
    groups = np.repeat([[0.0, 0.0], [1000.0, 0.0]], 9, axis=0)
    X = groups + rng.standard_normal((18, 2)) * [1.0, 5.0]
    hood = near(X, rng)
    drawn = np.concatenate([hood.drawn(rng) for _ in range(400)]).astype(float)
    for group in (X[:9], X[9:]):
        own = drawn[np.abs(drawn[:, 0] - group[0, 0]) < 500]
        np.testing.assert_allclose(own.mean(axis=0), group.mean(axis=0), atol=0.35)
        # x and x' are two different rows of nine: what they have in common takes 2 / pi / 8 of the covariance
        wanted = np.cov(group.T, bias=True) * (1 - 2 / np.pi / 8)
        np.testing.assert_allclose(np.cov(own.T), wanted, rtol=0.1, atol=0.1 * np.abs(wanted).max())


def test_differences_are_those_between_near_rows(rng: np.random.Generator) -> None:
    X = rng.standard_normal((20, 2)).astype(np.float32)
    hood = near(X, rng)
    wanted = np.mean([np.outer(X[i] - X[j], X[i] - X[j]) for i in range(20) for j in hood.near[i]], axis=0)
    np.testing.assert_allclose(hood.differences(), wanted, rtol=1e-4)


def test_one_row_has_no_neighbours(rng: np.random.Generator) -> None:
    hood = near(np.ones((1, 3)), rng)
    np.testing.assert_array_equal(hood.drawn(rng), hood.X)
    np.testing.assert_array_equal(hood.differences(), np.zeros((3, 3)))


def test_equal_rows_stay_as_they_are(rng: np.random.Generator) -> None:
    hood = near(np.ones((30, 3)), rng)
    np.testing.assert_allclose(hood.drawn(rng), hood.X, rtol=1e-5)
