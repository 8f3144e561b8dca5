"""A row alone gives what it gives in a batch, to the last bit."""

import numpy as np

from nearkin.linalg.batch_free import nearest, rounded_product
from tests.covering import each


def test_a_product_is_that_of_the_row_alone(rng: np.random.Generator) -> None:
    X, R = rng.normal(size=(700, 96)) + 50, np.linalg.qr(rng.normal(size=(96, 96)))[0]
    whole = rounded_product(X, R)
    np.testing.assert_array_equal(whole, np.concatenate([rounded_product(X[i : i + 1], R) for i in range(700)]))
    np.testing.assert_array_equal(whole, np.concatenate([rounded_product(X[i : i + 7], R) for i in range(0, 700, 7)]))
    np.testing.assert_allclose(whole, X @ R, rtol=1e-6, atol=1e-5)


def test_values_on_the_edge_of_rounding_are_formed_again() -> None:
    """1 + 2^-24 lies in the middle of two float32 numbers: any error of the product would decide."""
    X = np.array([[1.0, 2.0**-24, 2.0**-60, -(2.0**-60)]])
    assert rounded_product(np.repeat(X, 9, axis=0), np.ones((4, 1))).ravel().tolist() == [1.0] * 9
    assert rounded_product(X[:, [0, 1, 2]], np.ones((3, 1))) in (np.float32(1), np.float32(1 + 2.0**-23))


@each("offset", [0.0, 30.0, 1e4])
def test_nearest_is_the_nearest_in_float64(rng: np.random.Generator, offset: float) -> None:
    X, points = (offset + rng.normal(size=(n, 32)).astype(np.float32) for n in (400, 64))
    X[7] = (points[3] + points[5]) / 2  # ties
    points[9] = points[8]
    X[8] = points[8]
    truth = ((X[:, None].astype(np.float64) - points.astype(np.float64)) ** 2).sum(-1).argmin(1)
    np.testing.assert_array_equal(nearest(X, points), truth)
    assert nearest(X, points)[8] == 8
    np.testing.assert_array_equal(nearest(X, points), [nearest(x[None], points)[0] for x in X])
    np.testing.assert_array_equal(nearest(X, X[:1]), 0)  # nothing behind one point is looked at


def test_ties_of_distant_points_are_decided_in_float64() -> None:
    """A row in the middle of far points: all scores are negative, and differ by less than float32 shows."""
    points = np.vstack([np.eye(6), -np.eye(6)]).astype(np.float32)
    points *= 1 + 1.2e-7 * np.arange(12, 0, -1, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(nearest(np.zeros((1, 6), np.float32), points), 11)
