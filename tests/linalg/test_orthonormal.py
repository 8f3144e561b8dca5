"""Orthonormal matrices: the nearest, the unique Q factor, drawn ones, principal axes and their groups."""

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.orthonormal import (
    deal_axes,
    nearest_orthogonal,
    newton_schulz,
    orthogonality_error,
    principal_axes,
    reached,
    unique_q,
    unit_rows,
)
from tests.covering import each


@each(("d", "k"), [(5, 5), (7, 3)])
@each("kind", ["numpy", "torch"])
def test_nearest_orthogonal_undoes_a_symmetric_stretch(d: int, k: int, kind: str, rng: np.random.Generator) -> None:
    Q = haar_orthogonal(d, k, random_state=0, dtype=torch.float64)
    A = torch.from_numpy(rng.normal(size=(k, k)))
    stretched = Q @ (A.T @ A + torch.eye(k))  # Q is its polar factor
    X = stretched.numpy() if kind == "numpy" else stretched
    found = nearest_orthogonal(X)
    assert type(found) is type(X)
    np.testing.assert_allclose(np.asarray(found), Q.numpy(), atol=1e-12)


@each("sign", [1, -1])
def test_special_gives_the_nearest_rotation(sign: int, rng: np.random.Generator) -> None:
    X = rng.normal(size=(3, 1, 4, 4))
    X[..., 0, :] *= sign
    R = nearest_orthogonal(X, special=True)
    np.testing.assert_allclose(np.linalg.det(R), 1)
    rotations = haar_orthogonal(300, 4, 4, special=True, random_state=1, dtype=torch.float64).numpy()
    for matrix, found in zip(X[:, 0], R[:, 0], strict=True):
        assert np.linalg.norm(found - matrix) < np.linalg.norm(rotations - matrix, axis=(1, 2)).min()


def test_newton_schulz_squares_the_distance() -> None:
    X = haar_orthogonal(8, 5, random_state=0, dtype=torch.float64)
    noise = torch.randn(8, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    before = orthogonality_error(X + 1e-3 * noise)
    after = orthogonality_error(newton_schulz(X + 1e-3 * noise))
    assert after < 3 * before**2, f"{before:.2e} to {after:.2e}"


def test_orthogonality_error_judges_the_short_side_and_the_worst_of_a_batch() -> None:
    X = haar_orthogonal(6, 2, random_state=0)
    assert orthogonality_error(X) < 1e-6
    assert orthogonality_error(X.mT) < 1e-6
    assert orthogonality_error(torch.stack([X, 2 * X])) == pytest.approx(3, rel=1e-5)  # ||4 I - I||_F / sqrt(2)
    assert orthogonality_error(X.bfloat16()) < 1e-2
    assert orthogonality_error(X.numpy()) < 1e-6


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="square"):
        nearest_orthogonal(np.ones((3, 2)), special=True)
    with pytest.raises(ValueError, match="matrix or a batch"):
        orthogonality_error(np.ones(3))


@each("rank", [4, 12])
def test_a_matrix_on_which_divide_and_conquer_fails(rank, rng, monkeypatch):
    """LAPACK's gesdd found no SVD of a matrix of low rank (a rotation of codes of sentences), and the fit broke off."""

    def fails(*args, **options):
        raise np.linalg.LinAlgError("SVD did not converge")

    X = rng.normal(size=(12, rank)) @ rng.normal(size=(rank, 12))
    expected = nearest_orthogonal(X)
    monkeypatch.setattr(np.linalg, "svd", fails)
    found = nearest_orthogonal(X)
    np.testing.assert_allclose(found.T @ found, np.eye(12), atol=1e-10)
    assert np.sum(found * X) == pytest.approx(np.sum(expected * X))
    assert rank < 12 or np.abs(found - expected).max() < 1e-12


@each("shape", [(5, 5), (6, 3), (2, 4, 3)])
def test_the_q_factor_is_unique_and_the_same_for_arrays_and_tensors(rng, shape):
    M = rng.standard_normal(shape)
    Q = unique_q(M)
    R = Q.swapaxes(-1, -2) @ M
    np.testing.assert_allclose(Q @ R, M, atol=1e-13)
    np.testing.assert_allclose(np.tril(R, -1), 0, atol=1e-13)
    assert (np.diagonal(R, axis1=-2, axis2=-1) > 0).all()
    np.testing.assert_allclose(unique_q(torch.from_numpy(M)).numpy(), Q, atol=1e-13)


@each("dtype", [np.float32, np.float64])
def test_unit_rows_leave_zeros_alone(rng, dtype):
    X = rng.standard_normal((2, 4, 3)).astype(dtype)
    X[0, 1] = 0
    U = unit_rows(X)
    assert U.dtype == dtype
    np.testing.assert_array_equal(U[0, 1], 0)
    np.testing.assert_allclose(np.linalg.norm(np.delete(U.reshape(-1, 3), 1, axis=0), axis=1), 1, rtol=1e-6)


def test_axes_diagonalise_the_covariance(rng):
    X = rng.normal(size=(500, 6)) * np.arange(1, 7)
    X -= X.mean(axis=0)
    axes, variances = principal_axes(X)
    np.testing.assert_allclose(axes.T @ axes, np.eye(6), atol=1e-6)
    np.testing.assert_allclose((X @ axes).var(axis=0), variances, rtol=1e-5)
    assert (np.diff(variances) <= 0).all()


def test_reached_agrees_with_the_water_level_found_by_bisection(rng):
    for bits in (1, 8, 64, 300):
        variances = np.sort(rng.exponential(size=40) ** 3)[::-1]
        level = brentq(lambda log, b=bits, v=variances: np.maximum(np.log2(v) - log, 0).sum() / 2 - b, -60, 20)
        assert reached(variances, bits) == max(1, (np.log2(variances) >= level).sum())
        assert reached(variances, bits, 8) == max(1, (np.log2(variances) >= level - 3).sum())


def test_axes_are_dealt_to_equal_products() -> None:
    logs = np.log(np.geomspace(100, 1, 12))
    groups = deal_axes(logs, 3)
    assert sorted(groups.ravel()) == list(range(12))
    assert np.ptp(logs[groups].sum(axis=1)) < 0.5
