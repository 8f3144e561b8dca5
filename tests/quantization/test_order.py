"""Rotations learned for the order of near rows: gradients by central differences, and more neighbours than a start."""

import numpy as np
import pytest

from nearkin._faiss import nearest_rows
from nearkin.linalg.orthonormal import haar_rotation
from nearkin.quantization.order import SCORES, disagreement, turned_for_order


@pytest.mark.parametrize("codec", SCORES)
def test_slope_by_central_differences(rng, codec):
    """Along turns of R: what does not change under one is left out of the slope."""
    rows, R = rng.normal(size=(3, 7, 5)), haar_rotation(5, 0)
    slope = disagreement(rows, R, SCORES[codec], np.tanh)[1]
    found = R.T @ slope
    for i, j in zip(*np.triu_indices(5, 1), strict=True):
        turn = np.zeros((5, 5))
        turn[i, j], turn[j, i] = 1e-6, -1e-6
        ends = [disagreement(rows, R + sign * R @ turn, SCORES[codec], np.tanh)[0] for sign in (1, -1)]
        assert found[i, j] - found[j, i] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-7)


@pytest.mark.parametrize("codec", SCORES)
def test_scores_of_unseen_rows_agree_better(rng, codec):
    X = (rng.normal(size=(1500, 16)) * np.geomspace(3, 0.3, 16)).astype(np.float32)
    R = np.eye(16, dtype=np.float32)  # the principal axes, along which signs say least
    learned = turned_for_order(X[:1000], R, codec, np.random.default_rng(0))
    np.testing.assert_allclose(learned.T @ learned, np.eye(16), atol=1e-5)
    unseen = X[1000:][nearest_rows(X[1000:], X[1000:1050], 40)]
    before, after = (disagreement(unseen, turn, SCORES[codec])[0] for turn in (R, learned))
    assert after < before - 0.01


def test_the_same_generator_gives_the_same_turn(rng):
    X = rng.normal(size=(100, 6)).astype(np.float32)
    first, second = (turned_for_order(X, np.eye(6, dtype=np.float32), "sign", np.random.default_rng(3)) for _ in "ab")
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("rows", [np.zeros((5, 4)), np.ones((1, 4)), np.tile([1.0, -1.0, 2.0, 0.0], (3, 1))])
def test_equal_rows_turn_nothing(rows):
    R = turned_for_order(rows.astype(np.float32), np.eye(4, dtype=np.float32), "rabitq", np.random.default_rng(0))
    np.testing.assert_allclose(R, np.eye(4), atol=1e-6)
