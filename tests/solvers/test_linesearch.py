"""Armijo's rule: it keeps its promise, stops where nothing falls, and refuses ascent."""

import numpy as np
import pytest

from nearkin.solvers.newton import armijo


def test_the_step_satisfies_the_rule() -> None:
    def f(t: float) -> float:
        return (t - 0.01) ** 2

    found = armijo(f, f(0), -0.02)
    assert found.value == f(found.step_size) <= f(0) - 1e-4 * found.step_size * 0.02
    assert f(2 * found.step_size) > f(0) - 1e-4 * 2 * found.step_size * 0.02, "twice the step would have broken it"


def test_no_descent_gives_step_zero_and_overflow_is_too_large() -> None:
    assert armijo(lambda t: 1 + t, 1.0, -1.0).step_size == 0
    assert armijo(lambda t: np.inf if t > 0.1 else -t, 0.0, -1.0).step_size == 0.0625


def test_ascent_is_refused() -> None:
    with pytest.raises(ValueError, match=r"slope is 1.0; it must be at most 0, pass a descent direction"):
        armijo(lambda t: t, 0.0, 1.0)


def test_a_fall_that_is_too_small_for_its_step_is_not_enough() -> None:
    found = armijo(lambda t: -5e-5 if t == 1 else -0.4 * t, 0.0, -1.0)
    assert found.step_size == 0.5, "at 1 the value falls by less than 1e-4 of what the slope promises"
