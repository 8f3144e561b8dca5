"""Conjugate gradients, damped Newton steps and Armijo's rule on problems whose answers are known."""

import numpy as np
import pytest
import torch

from nearkin.solvers.newton import armijo, conjugate_gradient, newton_step


@pytest.fixture
def system(rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    B = torch.tensor(rng.standard_normal((20, 12)))
    scale = torch.logspace(-2, 2, 12, dtype=torch.float64)
    return scale[:, None] * (B.T @ B + torch.eye(12)) * scale, torch.tensor(rng.standard_normal(12))


def test_it_solves_a_linear_system(system: tuple) -> None:
    A, b = system
    solved = conjugate_gradient(lambda x: A @ x, b, tolerance=1e-10, max_iter=200)
    torch.testing.assert_close(A @ solved.x, b, rtol=1e-6, atol=1e-8)
    assert solved.residual <= 1e-10
    assert conjugate_gradient(lambda x: A @ x, b, tolerance=0.0, max_iter=3).steps == 3


def test_no_curvature_still_gives_descent() -> None:
    b = torch.tensor([1.0, 0.0])
    assert float(conjugate_gradient(lambda x: 0 * x, b).x @ b) > 0
    assert conjugate_gradient(lambda x: x, torch.zeros(3)).steps == 0


def test_one_step_minimises_a_quadratic_and_less_damping_follows(system: tuple) -> None:
    A, b = system

    def value(x: torch.Tensor) -> float:
        return float(0.5 * x @ A @ x - b @ x)

    x = torch.zeros(12, dtype=torch.float64)
    small = {"damping": 1e-12, "tolerance": 1e-12, "max_iter": 300}
    step = newton_step(value, A @ x - b, lambda d: A @ d, x, start_value=0.0, **small)
    torch.testing.assert_close(A @ step.x, b, rtol=1e-4, atol=1e-5)
    assert step.damping < 1e-12
    assert step.value == pytest.approx(value(step.x))


def test_a_wrong_model_raises_the_damping() -> None:
    def value(x: torch.Tensor) -> float:
        return float((x**4).sum())

    x = torch.tensor([1.0])
    step = newton_step(value, 4 * x**3, lambda d: 0.1 * d, x, start_value=1.0, damping=0.1)
    assert step.value < 1.0
    assert step.damping > 0.1


def test_the_step_satisfies_the_rule() -> None:
    def f(t: float) -> float:
        return (t - 0.01) ** 2

    found = armijo(f, f(0), -0.02)
    assert found.value == f(found.step_size) <= f(0) - 1e-4 * found.step_size * 0.02
    assert f(2 * found.step_size) > f(0) - 1e-4 * 2 * found.step_size * 0.02, "twice the step would have broken it"


def test_steps_without_descent_too_long_or_of_too_small_a_fall_are_cut() -> None:
    assert armijo(lambda t: 1 + t, 1.0, -1.0).step_size == 0
    assert armijo(lambda t: np.inf if t > 0.1 else -t, 0.0, -1.0).step_size == 0.0625
    found = armijo(lambda t: -5e-5 if t == 1 else -0.4 * t, 0.0, -1.0)
    assert found.step_size == 0.5, "at 1 the value falls by less than 1e-4 of what the slope promises"
    with pytest.raises(ValueError, match=r"slope is 1.0; it must be at most 0, pass a descent direction"):
        armijo(lambda t: t, 0.0, 1.0)
