"""The column steps of OnE, OgE and the Stiefel solver in isolation."""

import numpy as np
import pytest

from nearkin.hashing.columns import (
    OrthogonalColumns,
    OrthonormalColumns,
    StiefelColumns,
    random_columns,
)


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


def test_one_solves_eq_8_and_13(data):
    Z, c, B, W, V = data
    step = OrthonormalColumns(c)
    V = step.solve(W, V)
    n = len(Z)
    np.testing.assert_allclose(V.T @ V, np.eye(5), atol=1e-12)
    for k in range(5):
        Zk = np.linalg.inv(Z.T @ Z + n * step.nu[k] * np.eye(12))
        before = V[:, :k]
        phi = np.linalg.solve(n / 2 * before.T @ Zk @ before, before.T @ Zk @ Z.T @ B[:, k]) if k else np.zeros(0)
        by_eq_12 = Zk @ (Z.T @ B[:, k] - n / 2 * before @ phi)
        np.testing.assert_allclose(V[:, k], by_eq_12, atol=1e-8)


def test_oge_solves_eq_21_and_23(data):
    Z, c, B, W, V = data
    mu, n = 0.02, len(Z)
    V = OrthogonalColumns(c, mu).solve(W, V)
    products = V.T @ V
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-12)
    inverse = np.linalg.inv(Z.T @ Z + n * mu * np.eye(12))
    np.testing.assert_allclose(V[:, 0], inverse @ Z.T @ B[:, 0], atol=1e-10)
    for k in range(1, 5):
        before = V[:, :k]
        phi = np.linalg.solve(n / 2 * before.T @ inverse @ before, before.T @ inverse @ Z.T @ B[:, k])
        np.testing.assert_allclose(V[:, k], inverse @ (Z.T @ B[:, k] - n / 2 * before @ phi), atol=1e-10)


def test_a_stiefel_step_never_raises_the_loss(data):
    _, c, _, W, V = data
    step = StiefelColumns(c, 1)
    for _ in range(5):
        following = step.solve(W, V)
        assert step.loss(W, following) <= step.loss(W, V) + 1e-12
        np.testing.assert_allclose(following.T @ following, np.eye(5), atol=1e-9)
        V = following


def test_a_column_is_best_given_those_before_it_only(data):
    """Why the loss may rise: from the solution of one order, another order's first column is better."""
    _, c, _, W, V = data
    forward = OrthogonalColumns(c, 0.02).solve(W, V)
    backward = OrthogonalColumns(c, 0.02).solve(W[:, ::-1], V)[:, ::-1]
    one_column = lambda V, k: OrthonormalColumns(c).loss(W[:, [k]], V[:, [k]])  # noqa: E731
    assert one_column(forward, 0) < one_column(backward, 0)
    assert one_column(backward, 4) < one_column(forward, 4)


def test_random_columns_are_orthonormal_and_uniform(rng):
    draws = np.array([random_columns(3, 2, rng) for _ in range(4000)])
    np.testing.assert_allclose(np.swapaxes(draws, 1, 2) @ draws, np.broadcast_to(np.eye(2), (4000, 2, 2)), atol=1e-12)
    assert np.abs(draws.mean(axis=0)).max() < 0.05, "QR without the sign correction is biased"
