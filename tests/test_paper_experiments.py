"""The papers' own protocols in small: what the experiments of GCD's Figure 2 compute."""

import numpy as np
import pytest

from benchmarks.papers import gcd_figure_2
from tests.covering import each


@pytest.fixture
def rows(rng: np.random.Generator) -> np.ndarray:
    return (rng.standard_normal((900, 16)) @ rng.standard_normal((16, 16))).astype(np.float32)


@each("rule", gcd_figure_2.RULES)
def test_a_short_step_of_algorithm_2_descends_and_stays_a_rotation(rows: np.ndarray, rule: str) -> None:
    rng, R = np.random.default_rng(0), np.eye(16)
    T = rows.astype(float) @ np.linalg.qr(rng.standard_normal((16, 16)))[0]
    moment = rows.T @ T / len(rows)
    moved = gcd_figure_2.descend(R, moment, rule, 1e-4, rng)
    errors = [((rows @ Q - T) ** 2).sum() for Q in (R, moved)]
    assert errors[1] < errors[0]
    np.testing.assert_allclose(moved.T @ moved, np.eye(16), atol=1e-12)


def test_g_is_the_directional_derivative_over_root_two(rows: np.ndarray) -> None:
    """d = 2: one step of Algorithm 2 turns by lambda times the derivative of half the mean squared error."""
    X = rows[:, :2].astype(float)
    T = X @ np.array([[0.8, -0.6], [0.6, 0.8]])

    def error(t: float) -> float:
        return float(((X @ np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]) - T) ** 2).sum()) / 2 / len(X)

    slope = (error(1e-5) - error(-1e-5)) / 2e-5
    moved = gcd_figure_2.descend(np.eye(2), X.T @ T / len(X), "GCD-G", 1e-6, np.random.default_rng(0))
    assert np.arctan2(moved[1, 0], moved[0, 0]) == pytest.approx(-5e-6 * slope / np.sqrt(2), rel=1e-3)


@each("rule", ["GCD-G", "OPQ, identity start", "OPQ, random start"])
def test_the_curve_is_the_distortion(rows: np.ndarray, rule: str) -> None:
    found = gcd_figure_2.run(rows, gcd_figure_2.Size(rounds=3), rule, 1e-4, 0)
    assert len(found["curve"]) == 3
    assert 0 < found["curve"][-1] < found["curve"][0] < float((rows**2).sum(axis=1).mean())
