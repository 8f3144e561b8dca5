import numpy as np
import pytest
import torch

from nearkin.linalg.givens import _rotate_torch, rotate_columns, rotate_rows
from nearkin.linalg.skew import right_skew
from nearkin.orthogonal import random_matching
from tests.covering import each
from tests.reference.givens import givens_matrix, product_of_givens


@each("dtype", [np.float32, np.float64])
@each("d", [2, 5, 8, 31])
def test_rotations_equal_the_product_of_matrices(d, dtype, rng):
    """A half turn has no pole; of columns, pairs that overlap are turned one after the other."""
    matching, X = random_matching(d, 1), rng.normal(size=(7, d)).astype(dtype)
    tolerance = {np.float32: 1e-5, np.float64: 5e-14}[dtype]
    for pairs in (matching, [[0, 1], [1, d - 1], [0, d - 1]] if d > 2 else matching):
        theta = np.array([*rng.uniform(-4, 4, len(pairs) - 1), np.pi])
        R = product_of_givens(d, pairs, theta)
        np.testing.assert_allclose(rotate_columns(X.copy(), pairs, theta), X @ R, atol=tolerance)
        if pairs is matching:
            np.testing.assert_allclose(rotate_rows(X.T.copy(), pairs, theta), R @ X.T, atol=tolerance)


@each("axis", [-1, -2])
@each("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_device_path_equals_kernel(axis, dtype, rng):
    pairs, theta = np.stack([random_matching(9, seed) for seed in (2, 3)]), rng.normal(size=(2, 4))
    X = torch.from_numpy(rng.normal(size=(2, 9, 9))).to(dtype)
    expected = X.double().numpy().copy()
    (rotate_columns if axis == -1 else rotate_rows)(expected, pairs, theta)
    got = _rotate_torch(X.clone(), torch.from_numpy(pairs), torch.from_numpy(theta), axis)
    tolerance = {torch.float64: 1e-14, torch.float32: 1e-6, torch.bfloat16: 0.03}[dtype]
    np.testing.assert_allclose(got.double().numpy(), expected, atol=tolerance)


def test_batch_equals_loop_and_tensor_shares_memory(rng):
    X = torch.from_numpy(rng.normal(size=(3, 2, 6, 6)))
    pairs, theta = random_matching(6, 3), rng.normal(size=(3, 2, 3))
    expected = X.clone()
    for a in range(3):
        for b in range(2):
            rotate_columns(expected[a, b], pairs, theta[a, b])
    assert rotate_columns(X, pairs, theta) is X
    torch.testing.assert_close(X, expected, rtol=0, atol=0)


def test_directional_derivatives_by_central_differences(rng):
    d = 5
    R, T = np.linalg.qr(rng.normal(size=(d, d)))[0], rng.normal(size=(d, d))

    def loss(Q: np.ndarray) -> float:
        return float(((Q - T) ** 2).sum() + np.sin(Q).sum())

    A = -right_skew(*map(torch.from_numpy, (R, 2 * (R - T) + np.cos(R)))).numpy()  # GCD, Proposition 1
    h = 1e-6
    for i in range(d):
        for j in range(i + 1, d):
            slope = loss(R @ givens_matrix(d, i, j, h)) - loss(R @ givens_matrix(d, i, j, -h))
            assert slope / (2 * h) == pytest.approx(A[i, j], rel=1e-6)
