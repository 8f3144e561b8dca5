"""Where a paper's text is wrong and no other test shows it: a counterexample, and the form that holds."""

import numpy as np
import pytest
import torch

from nearkin.linalg.givens import rotate_columns
from nearkin.metrics import triplet_error
from nearkin.orthogonal import GivensDescent, greedy_matching
from nearkin.solvers.finite_sum import sbb_step
from tests.covering import each
from tests.solvers.problems import least_squares


def along_a_givens_path(w: np.ndarray, x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """<w, R_01(t) x> at every angle t."""
    values = []
    for t in angles:
        R = torch.eye(len(w), dtype=torch.float64)
        rotate_columns(R, torch.tensor([[0, 1]]), torch.tensor([t], dtype=torch.float64))
        values.append(w @ R.numpy() @ x)
    return np.array(values)


def test_gcd_corollary_1_the_dot_product_is_not_geodesically_convex() -> None:
    """Along a Givens path it is a sinusoid: second differences of both signs, all of it below the start's level."""
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((2, 3))
    turn = np.linspace(0, 2 * np.pi, 1000)
    top = turn[along_a_givens_path(w, x, turn).argmax()]
    path = along_a_givens_path(w, x, top + np.linspace(0.1, np.pi, 200))
    assert (np.diff(path) < 0).all(), "a descent from near the top to the minimum, inside the level set"
    bends = np.diff(path, 2)
    assert bends.min() < -1e-5 < 1e-5 < bends.max(), (bends.min(), bends.max())


def test_gcd_corollary_1_asks_for_a_minimum_that_is_never_unique() -> None:
    """From n = 3 on: turns of the axes across x leave R x, and with it every function of R x, as it was."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(3)
    R = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    around_x = np.linalg.qr(np.column_stack([x, rng.standard_normal((3, 2))]))[0]
    turn = around_x @ np.array([[1, 0, 0], [0, 0.6, -0.8], [0, 0.8, 0.6]]) @ around_x.T
    assert np.abs(turn - np.eye(3)).max() > 0.1
    np.testing.assert_allclose(R @ turn @ x, R @ x)


def test_gcd_lemma_3_lacks_the_factor_of_the_appendix_lemma_1() -> None:
    """n = 2, L = eta theta^2, so that eq. 4 is an equality: one step of 1 / eta gains |grad|^2 / (2 eta), not / eta."""
    eta, theta = 3.0, 0.2
    X = torch.nn.Parameter(torch.eye(2, dtype=torch.float64))
    with torch.no_grad():
        rotate_columns(X.data, torch.tensor([[0, 1]]), torch.tensor([theta], dtype=torch.float64))

    def loss() -> torch.Tensor:
        return eta * torch.atan2(X[1, 0], X[0, 0]) ** 2

    before = loss()
    before.backward()
    squared_gradient = (2 * eta * theta) ** 2 / 2  # dL/dtheta over |e_i ^ e_j| = sqrt(2)
    optimizer = GivensDescent([X], lr=1 / (2 * eta), selection="greedy")  # theta / sqrt(2) moves by |grad| / eta
    optimizer.step()
    gained = float((before - loss()).detach())
    assert gained == pytest.approx(squared_gradient / (2 * eta), rel=1e-6)  # appendix, Lemma 1, n = 2
    assert gained < 0.6 * squared_gradient / eta  # section 2.5, Lemma 3


def test_gcd_eq_12_lacks_an_inverse() -> None:
    """The recurrence A_{k+1} = A_k - A_k^2 / (2 R^2 (n - 1) L) keeps k / (2 R^2 (n-1) L) + 1 / A_0, not the product."""
    constant, first = 20.0, 1.0  # 2 R^2 (n - 1) L, and A_0
    A = first
    for k in range(1, 50):
        A = A - A**2 / constant
        printed, right = 1 / (k * constant + 1 / first), 1 / (k / constant + 1 / first)
        assert printed < A <= right


def test_svrg_sbb_average_precision_is_no_sum_over_forty_ranks() -> None:
    """Section 5.4: with 60 relevant images a perfect ranking has the printed AP 40/60; Table II prints .8898."""
    hit = np.arange(600) < 60
    precision, gain = np.cumsum(hit) / np.arange(1, 601), hit / hit.sum()
    assert (precision * gain).sum() == pytest.approx(1.0)
    assert (precision * gain)[:40].sum() == pytest.approx(40 / 60)
    assert 40 / 60 < 0.8898


def test_svrg_sbb_lemma_2_bounds_the_direction_and_not_the_point() -> None:
    """At the snapshot's minimum the right side is 0, and so is u_t; |x_t|^2 is whatever the origin makes of it."""
    problem = least_squares(noise=0.0)
    x = problem.minimum
    bound = 2 * np.sum(problem.gradient(x) ** 2) + 2 * problem.lipschitz**2 * np.sum((x - x) ** 2)
    assert bound < 1e-20 < 0.1 < np.sum(x**2)


@each("epsilon", [0.05, 0.5])
def test_svrg_sbb_eq_34_lacks_epsilon(epsilon: float) -> None:
    """By eqs. 15 and 17 the step is at least 1 / (m (L + epsilon)); where the curvature is L it is just that."""
    m, L, dx = 7, 2.0, np.array([0.3, -0.1])
    step = sbb_step(dx, L * dx, epsilon) / m
    assert step == pytest.approx(1 / (m * (L + epsilon)))
    assert step < 1 / (m * L), "the printed lower bound"


def test_gcd_matchings_are_of_the_complete_graph_and_not_bipartite() -> None:
    """Between {0, 1} and {2, 3} the heaviest pairs 01 and 23 cannot be met; Algorithm 1 takes them."""
    W = np.array([[0.0, 9, 1, 1], [9, 0, 1, 1], [1, 1, 0, 8], [1, 1, 8, 0]])
    bipartite = max(W[0, 2] + W[1, 3], W[0, 3] + W[1, 2])
    pairs = np.asarray(greedy_matching(W))
    assert {frozenset(pair) for pair in pairs.tolist()} == {frozenset((0, 1)), frozenset((2, 3))}
    assert W[pairs[:, 0], pairs[:, 1]].sum() == 17 > bipartite


def test_scq_eqs_2_and_3_lack_a_transpose() -> None:
    """|B - U|^2 = |B|^2 + |U|^2 - 2 tr(B^T U); tr(B U) is another number where it exists at all."""
    B, U = np.sign(np.random.default_rng(0).standard_normal((2, 5, 5)))
    right = (np.square(B).sum() + np.square(U).sum() - np.square(B - U).sum()) / 2
    assert np.trace(B.T @ U) == pytest.approx(right)
    assert abs(np.trace(B @ U) - right) > 1
    with pytest.raises(ValueError, match="mismatch"):
        np.zeros((7, 5)) @ np.zeros((7, 5))


def test_svrg_sbb_algorithm_1_with_delta_x_twice_has_no_curvature_in_its_step() -> None:
    """|dx|^2 / |<dx, dx>| is 1 whatever the problem; with Delta y it is the inverse curvature."""
    dx = np.array([0.3, -0.1])
    assert sbb_step(dx, dx, 0.0) == pytest.approx(1.0)
    assert [sbb_step(dx, L * dx, 0.0) for L in (2.0, 50.0)] == pytest.approx([0.5, 0.02])


def test_svrg_sbb_algorithm_1_moves_against_u_t_and_not_x_t() -> None:
    """At the minimum the printed update leaves it, by a share of the point; that with u_t stays."""
    problem, eta = least_squares(noise=0.0), 0.1
    x = problem.minimum
    assert np.linalg.norm(x - eta * problem.gradient(x) - x) < 1e-9
    assert np.linalg.norm(x - eta * x - x) > 0.01


def test_svrg_sbb_the_printed_error_is_the_share_of_violated_answers() -> None:
    """Section 5.1 calls it the share of consistent answers; points on a line that obey every answer have error 0."""
    X = np.arange(4.0)[:, None]
    answers = np.array([[0, 1, 2], [0, 1, 3], [3, 2, 1]])
    assert triplet_error(X, answers) == 0.0
    assert triplet_error(X, answers[:, [0, 2, 1]]) == 1.0


def test_flows_and_gcd_turn_the_other_way() -> None:
    """G[i, j] = sin in the flows' section 2, -sin in GCD's section 2.1, which is ours: the two are inverses."""
    R = torch.eye(2, dtype=torch.float64)
    rotate_columns(R, torch.tensor([[0, 1]]), torch.tensor([0.3], dtype=torch.float64))
    assert float(R[0, 1]) == pytest.approx(-np.sin(0.3))
    flows = torch.tensor([[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]])
    torch.testing.assert_close(R @ flows, torch.eye(2, dtype=torch.float64))
