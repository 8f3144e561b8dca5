import numpy as np
import pytest

from nearkin.quantization.codebooks import exact_update
from nearkin.quantization.training import ROTATIONS, make_update
from tests.reference.givens import greedy_matching_by_sorting, product_of_givens

LEARNED = ROTATIONS[1:]


def problem(d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A rotation to start from and an M whose best rotation is some way off."""
    rng = np.random.default_rng(seed)
    R, Q = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
    S = rng.normal(size=(d, 3 * d))
    return R.astype(np.float32), (R @ (0.5 * np.eye(d) + 0.5 * Q) @ (S @ S.T) / d).astype(np.float32)


def value(R, M) -> float:
    return float(np.einsum("ij,ij->", R.astype(np.float64), M))


@pytest.mark.parametrize("name", LEARNED)
def test_every_update_stays_orthogonal_and_gains(name):
    for d in (2, 7, 16):
        R, M = problem(d)
        update = make_update(name, d, "exact", None, np.random.default_rng(0))
        first = before = value(R, M)
        best = value(exact_update(R, M), M)
        for _ in range(3):
            R = update(R, M)
            assert np.abs(R.T @ R - np.eye(d)).max() < 5e-6
            after = value(R, M)
            assert after >= before - 1e-4 * abs(before), f"{d} columns: {before} -> {after}"
            before = after
        assert first + 0.01 * (best - first) < before <= best * (1 + 1e-5), d


def test_procrustes_is_the_nuclear_norm():
    R, M = problem(9)
    assert value(exact_update(R, M), M) == pytest.approx(np.linalg.svd(M, compute_uv=False).sum(), rel=1e-5)


def test_procrustes_of_a_singular_matrix_is_a_rotation():
    M = np.zeros((5, 5), np.float32)
    M[0, 1] = 2
    R = exact_update(np.eye(5, dtype=np.float32), M)
    np.testing.assert_allclose(R.T @ R, np.eye(5), atol=1e-6)
    assert value(R, M) == pytest.approx(2)


def test_numeric_step_is_the_papers_algorithm_2():
    """theta = -lambda g_ij with g_ij = A_ij / sqrt(2), A = G^T R - R^T G, G the gradient of the mean distortion."""
    R, M = problem(6)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 6))
    Y = X @ np.linalg.pinv(X) @ rng.normal(size=(50, 6))
    M = (X.T @ Y / 50).astype(np.float32)
    G = 2 / 50 * X.T @ (X @ R - Y)
    A = G.T @ R - R.T @ G
    pairs = greedy_matching_by_sorting(np.abs(A))
    theta = -0.01 * A[pairs[:, 0], pairs[:, 1]] / np.sqrt(2)
    expected = R @ product_of_givens(6, pairs, theta)
    got = make_update("givens-greedy", 6, 0.01, 1, None)(R, M)
    np.testing.assert_allclose(got, expected, atol=1e-6)
