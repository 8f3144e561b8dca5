"""Distortion by hand."""

import numpy as np
import pytest

from nearkin import metrics


def test_distortion_by_hand_summed_in_double(rng: np.random.Generator) -> None:
    X = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert metrics.distortion(X, X + np.array([3, 4])) == pytest.approx(25)
    X = rng.normal(size=(9000, 3)).astype(np.float32)
    Y = X + np.float32(1e-3)
    exact = np.square(X.astype(np.float64) - Y).sum(axis=1).mean()
    assert metrics.distortion(X, Y) == pytest.approx(exact, rel=1e-12)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"reconstructed has shape \(2, 2\); X has \(3, 2\)"):
        metrics.distortion(np.ones((3, 2)), np.ones((2, 2)))
