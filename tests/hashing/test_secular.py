"""One column of OnE: optimality, the paper's slow alternation, and the case that eq. 13 excludes."""

import numpy as np
import pytest

from nearkin.hashing.columns import sphere_column
from tests.reference.one_alternation import columns_by_alternation


def problem(seed, m, k, tail=0.1):
    rng = np.random.default_rng(seed)
    c = np.geomspace(2, tail, m)
    return c, rng.standard_normal(m) * np.sqrt(c) * 0.3, np.linalg.qr(rng.standard_normal((m, k)))[0]


def objective(c, w, v):
    return v @ (c * v) - 2 * w @ v


def residual(c, w, Q, v, nu):
    """Eq. 12: (C + nu) v - w has to lie in the span of the earlier columns."""
    r = (c + nu) * v - w
    return np.linalg.norm(r - Q @ (Q.T @ r)) / np.linalg.norm(w)


@pytest.mark.parametrize("k", [0, 1, 5, 11])
@pytest.mark.parametrize("tail", [1.0, 1e-2, 1e-8])
@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
def test_kkt_conditions_hold(k, tail, factor):
    for seed in range(3):
        c, w, Q = problem(seed, 12, k, tail)
        v, nu = sphere_column(c, w * factor, Q)
        assert abs(v @ v - 1) < 1e-12
        assert np.abs(Q.T @ v).max(initial=0) < 1e-12
        assert residual(c, w * factor, Q, v, nu) < 1e-8
        basis = np.linalg.qr(Q, mode="complete")[0][:, k:] if k else np.eye(12)
        lowest = np.linalg.eigvalsh(basis.T @ (c[:, None] * basis))[0]
        assert nu >= -lowest - 1e-9 * c[0], "only there the stationary point is the global minimum"


def test_no_feasible_column_is_better(rng):
    c, w, Q = problem(1, 6, 2)
    v, _ = sphere_column(c, w, Q)
    others = rng.standard_normal((20_000, 6))
    others -= others @ Q @ Q.T
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    best = min(objective(c, w, u) for u in others)
    assert objective(c, w, v) <= best + 1e-12, f"{objective(c, w, v)} against {best} by random search"


def test_first_guess_does_not_change_the_answer():
    c, w, Q = problem(3, 10, 4)
    v, nu = sphere_column(c, w, Q)
    for guess in (-10.0, nu, nu + 1e-3, 50.0):
        np.testing.assert_allclose(sphere_column(c, w, Q, guess)[0], v, atol=1e-10)


def test_hard_case_fills_up_with_the_lowest_eigenvector():
    c, w = np.array([3.0, 2.0, 1.0]), np.array([0.1, 0.1, 0.0])
    v, nu = sphere_column(c, w, np.zeros((3, 0)))
    assert nu == pytest.approx(-1)
    np.testing.assert_allclose(v[:2], [0.05, 0.1], atol=1e-12)
    assert v @ v == pytest.approx(1)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("factor", [0.0, 1e-12, 0.1])
def test_hard_case_behind_other_columns(k, factor):
    """w has no part along the lowest eigenvector of the complement, or next to none."""
    c, w, Q = problem(2, 9, k)
    basis = np.linalg.qr(Q, mode="complete")[0][:, k:]
    values, vectors = np.linalg.eigh(basis.T @ (c[:, None] * basis))
    vectors = basis @ vectors
    w = factor * (w - (w @ vectors[:, 0]) * vectors[:, 0])
    v, nu = sphere_column(c, w, Q)
    assert nu == pytest.approx(-values[0])
    assert v @ v == pytest.approx(1)
    wanted = vectors[:, 1:] @ ((vectors[:, 1:].T @ w) / (values[1:] - values[0]))
    np.testing.assert_allclose(v - (v @ vectors[:, 0]) * vectors[:, 0], wanted, atol=1e-7)


def test_nothing_to_fit_gives_the_direction_of_least_variance():
    v, _ = sphere_column(np.array([3.0, 2.0, 1.0]), np.zeros(3), np.zeros((3, 0)))
    np.testing.assert_allclose(np.abs(v), [0, 0, 1], atol=1e-12)


def test_eq_13_excludes_the_solution():
    """With v_1 along the least variance, v_2 can only be the other axis; its nu lies below -lambda_d / n.

    The paper asks for nu_k > -lambda_d / n also for k > 1 and says a solution always exists: on that whole range the
    column is shorter than 1.
    """
    c, w, Q = np.array([4.0, 1.0]), np.array([0.5, 0.2]), np.array([[0.0], [1.0]])
    v, nu = sphere_column(c, w, Q)
    np.testing.assert_allclose(v, [1, 0], atol=1e-12)
    assert nu == pytest.approx(0.5 - 4)
    assert nu < -c.min()
    allowed = np.linspace(-c.min() + 1e-9, 10, 1000)
    assert (np.abs(w[0] / (c[0] + allowed)) < 1).all()


@pytest.mark.parametrize("seed", range(3))
def test_equals_the_papers_alternation(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 16)) * np.geomspace(2, 0.1, 16)
    X -= X.mean(axis=0)
    B = np.where(X @ np.linalg.qr(rng.standard_normal((16, 4)))[0] >= 0, 1.0, -1.0)
    slow, rounds = columns_by_alternation(X, B)
    values, axes = np.linalg.eigh(X.T @ X / 80)
    W, V = axes.T @ X.T @ B / 80, np.empty((16, 4))
    for k in range(4):
        V[:, k], _ = sphere_column(values, W[:, k], V[:, :k])
    np.testing.assert_allclose(axes @ V, slow, atol=1e-11)
    assert max(rounds) > 3, "the alternation had something to do"
