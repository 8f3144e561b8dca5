"""The column steps of OnE, OgE and the Stiefel solver; one column of OnE: optimality, the paper's slow alternation, and
the case that eq. 13 excludes."""

import numpy as np
import pytest

from nearkin.hashing.columns import OrthogonalColumns, OrthonormalColumns, StiefelColumns, random_columns, sphere_column
from tests.covering import each
from tests.reference.one_alternation import columns_by_alternation


@pytest.fixture
def data(rng):
    X = rng.standard_normal((400, 12)) @ np.diag(np.geomspace(2, 0.2, 12))
    X -= X.mean(axis=0)
    values, axes = np.linalg.eigh(X.T @ X / 400)
    Z = X @ axes
    V = random_columns(12, 5, rng)
    B = np.where(Z @ V >= 0, 1.0, -1.0)
    return Z, values, B, Z.T @ B / 400, V


def test_oges_objective_has_its_penalty(data):
    """Eq. 19: |B - X V|^2 / n + mu |V|^2, and only OgE's."""
    Z, c, B, W, V = data
    V = V * np.arange(1, 6)
    error = ((B - Z @ V) ** 2).sum() / len(Z)
    assert OrthogonalColumns(c, 0.3).loss(W, V) == pytest.approx(error + 0.3 * (V**2).sum())
    assert OrthonormalColumns(c).loss(W, V) == pytest.approx(error)
    assert StiefelColumns(c, 1).loss(W, V) == pytest.approx(error)


def test_random_columns_are_orthonormal_and_uniform(rng):
    draws = np.array([random_columns(3, 2, rng) for _ in range(4000)])
    np.testing.assert_allclose(np.swapaxes(draws, 1, 2) @ draws, np.broadcast_to(np.eye(2), (4000, 2, 2)), atol=1e-12)
    assert np.abs(draws.mean(axis=0)).max() < 0.05, "QR without the sign correction is biased"


def problem(seed, m, k, tail=0.1):
    rng = np.random.default_rng(seed)
    c = np.geomspace(2, tail, m)
    return c, rng.standard_normal(m) * np.sqrt(c) * 0.3, np.linalg.qr(rng.standard_normal((m, k)))[0]


def residual(c, w, Q, v, nu):
    """Eq. 12: (C + nu) v - w has to lie in the span of the earlier columns."""
    r = (c + nu) * v - w
    return np.linalg.norm(r - Q @ (Q.T @ r)) / np.linalg.norm(w)


@each("k", [0, 1, 5, 11])
@each("tail", [1.0, 1e-2, 1e-8])
@each("factor", [1e-3, 1.0, 1e3])
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


@each("k", [1, 4])
@each("factor", [0.0, 1e-12, 0.1])
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


@each("seed", range(2))
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
