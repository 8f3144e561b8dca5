import numpy as np
import pytest

from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.procrustes import WarmProcrustes, nearest_orthogonal, orthogonality_error


def decaying(d, rng, power=1.0):
    """A matrix (d, d) of singular values 1 / i^power, and one that changes it a little."""
    U, V = (haar_orthogonal(d, d, random_state=int(rng.integers(1000))).numpy() for _ in range(2))
    return (U * np.arange(1, d + 1.0) ** -power) @ V.T, rng.normal(size=(d, d)) / d**1.5


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_a_slowly_changing_matrix_takes_one_decomposition(power, rng):
    M, change = decaying(24, rng, power)
    warm = WarmProcrustes()
    for step in range(20):
        now = (M + 0.01 * step * change).astype(np.float32)
        R, exact = warm(now), nearest_orthogonal(now.astype(np.float64))
        assert orthogonality_error(R) < 2e-6
        value, best = np.sum(R * now), np.sum(exact * now)
        assert best - value < 1e-5 * best
    assert warm.decompositions == 1


def test_the_same_matrix_again_leads_to_its_polar_factor(rng):
    M, change = decaying(16, rng, 0.5)
    warm = WarmProcrustes()
    warm((M + 0.3 * change).astype(np.float32))
    for _ in range(6):
        R = warm(M.astype(np.float32))
    np.testing.assert_allclose(R, nearest_orthogonal(M), atol=1e-4)


def test_another_matrix_is_decomposed_anew(rng):
    warm = WarmProcrustes()
    for _ in range(3):
        M = rng.normal(size=(12, 12))
        np.testing.assert_allclose(warm(M), nearest_orthogonal(M), atol=1e-5)
    assert warm.decompositions == 3


@pytest.mark.parametrize("rank", [0, 1, 5])
def test_a_singular_matrix_gives_an_orthogonal_one(rank, rng):
    M = (rng.normal(size=(10, rank)) @ rng.normal(size=(rank, 10))).astype(np.float32)
    warm = WarmProcrustes()
    for factor in (1, 1.01, 1.02):
        R = warm(np.float32(factor) * M)
        assert orthogonality_error(R) < 2e-6
        np.testing.assert_allclose(np.sum(R * M), np.linalg.svd(M, compute_uv=False).sum(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("size", [0.1, 1.0, 3.0, 10.0])
def test_changes_of_any_size_give_orthogonal_matrices(size, rng):
    """Entries of the correction may each be small where the whole turns far, as in images of 784 columns."""
    M, _ = decaying(200, rng, 1.0)
    warm = WarmProcrustes()
    for _ in range(4):
        now = M + size * rng.normal(size=M.shape) / 200**1.5
        R = warm(now)
        assert orthogonality_error(R) < 2e-5
        best = np.linalg.svd(now, compute_uv=False).sum()
        assert np.sum(R * now) > 0.999 * best


def test_a_matrix_without_an_svd_by_divide_and_conquer(rng, monkeypatch):
    def fails(*args, **options):
        raise np.linalg.LinAlgError("SVD did not converge")

    M = rng.normal(size=(12, 12))
    expected = nearest_orthogonal(M)
    monkeypatch.setattr(np.linalg, "svd", fails)
    np.testing.assert_allclose(WarmProcrustes()(M), expected, atol=1e-5)
