"""SGD, AdaGrad, gradient descent, L-BFGS and a sequence of solvers: what the contract test does not cover."""

import numpy as np
import pytest

from nearkin.contracts import Run
from nearkin.solvers import LBFGS, SGD, SVRG, AdaGrad, GradientDescent
from nearkin.solvers.finite_sum import Monitor
from tests.covering import each
from tests.solvers.problems import least_squares


def test_sgd_step_decays():
    solution = SGD(step=0.1, decay=0.5).minimize(least_squares(), np.zeros((4, 1)), Run(4, tol=0.0))
    assert solution.steps == pytest.approx([0.1, 0.1 / 1.5, 0.1 / 2, 0.1 / 2.5])


def test_a_step_too_long_is_reported_as_divergence():
    for solver in (GradientDescent(step=1e3), SVRG(step=1e3), SGD(step=1e4, decay=0.0)):
        solution = solver.minimize(least_squares(), np.ones((4, 1)), Run(200, tol=1e-4))
        assert solution.status == "diverged", solver


def test_sbb_descent_converges_long_before_a_safe_fixed_step():
    problem = least_squares(noise=0.5)
    start = np.full((4, 1), 3.0)
    fixed = GradientDescent(step=0.1 / problem.lipschitz).minimize(problem, start, Run(400, tol=1e-6))
    free = GradientDescent().minimize(problem, start, Run(400, tol=1e-6))
    assert free.n_epochs * 3 <= fixed.n_epochs, (free.n_epochs, fixed.n_epochs)
    assert free.value <= fixed.value * (1 + 1e-6)


def test_convergence_is_noticed_early():
    solution = LBFGS().minimize(least_squares(noise=0.5), np.ones((4, 1)), Run(500, tol=1e-6))
    assert solution.status == "converged"
    assert solution.n_epochs < 50


@each(
    ("solver", "name", "value"),
    [
        *((solver, "step", value) for solver in (GradientDescent, SGD, AdaGrad, SVRG) for value in (0.0, -1.0)),
        *((solver, "epsilon", -0.1) for solver in (GradientDescent, SGD, SVRG)),
        *((SGD, "decay", -0.1), (AdaGrad, "floor", 0.0)),
        *((SVRG, "batch_size", 0), (SVRG, "restart", 0), (SVRG, "draws", "random"), (SVRG, "random_state", -1)),
    ],
)
def test_errors(solver, name, value):
    with pytest.raises(ValueError, match=f"{name} is {value!r}"):
        solver(**{name: value})


def test_a_step_is_a_number_or_sbb():
    with pytest.raises(TypeError, match="step is 'bb'"):
        SVRG(step="bb")


@each("last", [20, 7])
def test_tolerance_is_per_epoch(last):
    """Evaluated every five epochs, and at the end: a fall of 1 % per epoch is below tol = 1.1 %, above tol = .9 %."""
    for tol, converges in ((0.011, True), (0.009, False)):
        monitor = Monitor(lambda x: float(x[0]), Run(last, tol=tol), np.array([0.9]))
        monitor.stop(5, np.array([0.5]))  # far from the start: goes on
        at = min(last, 10)
        monitor.stop(at, np.array([0.5 / (1 + 0.01 * (at - 5))]))
        assert (monitor.status == "converged") == converges, (last, tol, monitor.status)


def test_tolerance_is_relative_to_a_floor():
    ends = []
    for floor in (0.0, 1.0):
        monitor = Monitor(lambda x: float(x[0]), Run(20, tol=0.01, floor=floor), np.array([0.1]))
        monitor.stop(5, np.array([0.06]))  # 8 % of .1 an epoch, .8 % of the floor
        ends.append(monitor.status)
    assert ends == ["", "converged"]
