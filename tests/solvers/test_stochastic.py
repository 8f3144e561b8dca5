"""SVRG-SBB's own properties: eq. 15's bounds, no explosion where SBB_0 explodes, eq. 26's linear phase, batches."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from nearkin.contracts import Run
from nearkin.solvers import SGD, SVRG, VarianceReduced
from nearkin.solvers.finite_sum import geometric_step, probe_step, sbb_step
from tests.covering import each
from tests.solvers.problems import LeastSquares, least_squares


@each("epsilon", [0.05, 0.5, 5.0])
def test_steps_stay_within_the_bounds_of_eq_15(epsilon):
    problem = least_squares(noise=0.5)
    solution = SVRG(epsilon=epsilon).minimize(problem, np.ones((4, 1)), Run(15, tol=0.0))
    low, high = 1 / (problem.lipschitz + epsilon), 1 / epsilon
    assert all(low * (1 - 1e-9) <= step <= high * (1 + 1e-9) for step in solution.steps), (low, solution.steps, high)


def test_step_on_the_papers_example_1():
    """f(x) = (x_1^2 - x_3^2) / 2: SBB is positive where BB is negative (x_3) or infinite (x_2)."""
    curvature = np.array([1.0, 0.0, -1.0])
    for axis, wanted in ((0, 1 / 1.1), (1, 10.0), (2, 1 / 1.1)):
        dx = np.eye(3)[axis]
        assert sbb_step(dx, curvature * dx, 0.1) == pytest.approx(wanted)
    assert sbb_step(np.eye(3)[1], np.zeros(3), 0.0) == np.inf
    assert sbb_step(np.zeros(3), np.zeros(3), 0.1) == 0.0


def test_the_geometric_step_is_the_mean_of_two():
    """Barzilai and Borwein's steps <dx, dx> / <dx, dy> = 4 / 2 and <dx, dy> / <dy, dy> = 2 / 10, epsilon 0 and .5."""
    dx, dy = np.array([2.0, 0.0]), np.array([1.0, 3.0])
    assert geometric_step(dx, dy, 0.0) == pytest.approx(np.sqrt(4 / 2 * 2 / 10))
    assert geometric_step(dx, dy, 0.5) == pytest.approx(2 / (np.sqrt(10) + 1))
    assert (geometric_step(dx, 0 * dy, 0.0), geometric_step(0 * dx, dy, 0.1)) == (np.inf, 0.0)


class Saddle(LeastSquares):
    """f(x) = (x_1^2 + 1e-9 x_2^2) / 2 - 1e-3 x_2: almost flat along x_2, so BB steps there are of the order of 1e9."""

    curvature = np.array([[1.0], [1e-9]])

    def value(self, x):
        return float(0.5 * (self.curvature * x**2).sum() - 1e-3 * x[1, 0] + 0.05 * np.cos(30 * x[0, 0]))

    def gradient(self, x):
        wave = np.array([[-1.5 * np.sin(30 * x[0, 0])], [0.0]])
        return self.curvature * x - np.array([[0.0], [1e-3]]) + wave

    def _term(self, x, q):
        return self.gradient(x)


def test_epsilon_prevents_the_explosion_of_sbb_0():
    problem = Saddle(np.zeros((20, 2)), np.zeros(20))
    start = np.array([[0.0], [1.0]])
    steady = SVRG(epsilon=0.1).minimize(problem, start, Run(20, tol=0.0))
    wild = SVRG(epsilon=0.0).minimize(problem, start, Run(20, tol=0.0))
    assert max(steady.steps) <= 10.0 * (1 + 1e-9)
    assert max(wild.steps) > 1e6, wild.steps
    assert np.abs(wild.x).max() > 1e3 * np.abs(steady.x).max(), (wild.x.ravel(), steady.x.ravel())


def test_linear_phase_under_the_pl_inequality():
    """Eq. 28 (with rho^k): the gap to the minimum falls by a factor each module of Algorithm 2."""
    problem = least_squares(noise=0.5)
    low = problem.value(problem.minimum)
    gaps = []
    run = Run(12, callback=lambda step, record: gaps.append(record["objective"] - low))
    SVRG(restart=3).minimize(problem, np.full((4, 1), 3.0), run)
    ratios = [after / before for before, after in pairwise(gaps[2::3]) if before > 1e-12]
    assert len(ratios) >= 2
    assert max(ratios) < 0.5, gaps


def test_a_module_begins_with_a_probed_step(monkeypatch):
    """Algorithm 2: of seven epochs with restart=3, the first, fourth and seventh forget the snapshots before."""
    monkeypatch.setattr("nearkin.solvers.finite_sum.probe_step", lambda *_: 1e-3)
    for restart, probed in ((3, [1, 4, 7]), (None, [1])):
        solver = SVRG(restart=restart, capped=False)
        steps = solver.minimize(least_squares(noise=0.5), np.ones((4, 1)), Run(7, tol=0.0)).steps
        assert [epoch for epoch, step in enumerate(steps, 1) if step == 1e-3] == probed, steps


class Narrow(LeastSquares):
    """A sum that says how long a step its single terms bear."""

    def largest_step(self, batch_size):
        return 1e-4 / batch_size


def test_only_a_capped_sbb_step_stays_below_what_single_terms_bear():
    whole = least_squares(noise=0.5)
    problem, start = Narrow(whole.A, whole.b), np.ones((4, 1))
    bound = problem.n_terms * 1e-4
    capped, free, fixed = (
        solver.minimize(problem, start, Run(4, tol=0.0)).steps
        for solver in (SVRG(), SVRG(capped=False), SVRG(step=5 * bound))
    )
    assert capped == pytest.approx([bound] * 4)
    assert min(free) > 2 * bound
    assert fixed == [5 * bound] * 4
    assert SVRG(batch_size=2).minimize(problem, start, Run(1, tol=0.0)).steps == pytest.approx([bound / 2])


def test_an_epoch_is_one_step_along_the_gradient_whatever_the_batch():
    """With equal terms the noise vanishes: each batch size moves like gradient descent, m steps of eta / m."""
    row = np.array([1.0, 2.0])
    moves = []
    for batch_size in (1, 3, 7, 12):
        problem = LeastSquares(np.tile(row, (12, 1)), np.ones(12))
        x = np.zeros((2, 1))
        problem.walk(x, VarianceReduced(1e-6, problem.snapshot(np.ones((2, 1))), batch_size, 12))
        moves.append(x)
    for move in moves[1:]:
        np.testing.assert_allclose(move, moves[0], rtol=1e-4)


@each("solver", [SVRG(step=0.5, n_inner=90), SGD(step=0.5)])
def test_uniform_draws_are_new_in_every_epoch_and_repeat_with_their_seed(solver):
    epochs: dict[int, list[np.ndarray]] = {}

    class Recorded(LeastSquares):
        def walk(self, x, rule):
            epochs[seed].append(rule.drawn)
            super().walk(x, rule)

    problem, points = least_squares(noise=0.5), {}
    for seed in (0, 1, 2):  # 1 twice
        epochs[seed], uniform = [], replace(solver, draws="uniform", random_state=max(seed, 1))
        points[seed] = uniform.minimize(Recorded(problem.A, problem.b), np.zeros((4, 1)), Run(40, tol=0.0)).x
    assert {len(drawn) for drawn in epochs[0]} == {90 if isinstance(solver, SVRG) else 60}
    assert not np.array_equal(epochs[0][0], epochs[0][1])
    np.testing.assert_array_equal(points[0], points[1])
    assert not np.array_equal(points[1], points[2])
    counts = np.bincount(np.concatenate(epochs[2]), minlength=60) / len(np.concatenate(epochs[2])) * 60
    assert len(counts) == 60
    assert abs(counts - 1).max() < 0.6  # 40 to 60 draws of a term: a deviation of .13 to .16
    assert np.linalg.norm(points[2] - problem.minimum) < 0.1 * np.linalg.norm(problem.minimum)


def test_first_step_is_the_inverse_curvature():
    problem = LeastSquares(np.sqrt(5.0) * np.eye(2), np.ones(2))  # f has the Hessian 2.5 I
    x = np.full((2, 1), 0.5)
    assert probe_step(problem, x, problem.gradient(x), 0.1) == pytest.approx(1 / (2.5 + 0.1))
    assert probe_step(problem, problem.minimum, np.zeros((2, 1)), 0.1) == 0.0


def test_returns_the_best_validated_point():
    problem, start = least_squares(noise=0.5), np.zeros((4, 1))
    goal = 0.3 * problem.minimum
    solution = SVRG(step=0.02).minimize(problem, start, Run(100, validate=lambda x: float(np.linalg.norm(x - goal))))
    last = SVRG(step=0.02).minimize(least_squares(noise=0.5), start, Run(100, tol=0.0))
    assert np.linalg.norm(solution.x - goal) < 0.5 * np.linalg.norm(last.x - goal)
    assert solution.value == pytest.approx(problem.value(solution.x))
