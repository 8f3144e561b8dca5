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


@each("rule", ["GCD-G", "OPQ, identity start", "OPQ, random start"])
def test_the_curve_is_the_distortion(rows: np.ndarray, rule: str) -> None:
    found = gcd_figure_2.run(rows, gcd_figure_2.Size(rounds=3), rule, 1e-4, 0)
    assert len(found["curve"]) == 3
    assert 0 < found["curve"][-1] < found["curve"][0] < float((rows**2).sum(axis=1).mean())
