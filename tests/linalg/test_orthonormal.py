"""The unique Q factor and rows of unit length, for arrays and tensors alike."""

import numpy as np
import pytest
import torch

from nearkin.linalg.orthonormal import haar_rotation, has_length, row_length, unique_q, unit_rows


@pytest.mark.parametrize("shape", [(5, 5), (6, 3), (2, 4, 3)], ids=str)
def test_the_q_factor_is_unique_and_the_same_for_arrays_and_tensors(rng, shape):
    M = rng.standard_normal(shape)
    Q = unique_q(M)
    R = Q.swapaxes(-1, -2) @ M
    np.testing.assert_allclose(Q @ R, M, atol=1e-13)
    np.testing.assert_allclose(np.tril(R, -1), 0, atol=1e-13)
    assert (np.diagonal(R, axis1=-2, axis2=-1) > 0).all()
    np.testing.assert_allclose(unique_q(torch.from_numpy(M)).numpy(), Q, atol=1e-13)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 16, 96])
def test_a_random_rotation_is_orthogonal_and_of_its_seed(d):
    drawn = haar_rotation(d, 7)
    assert (drawn.dtype, drawn.shape) == (np.float32, (d, d))
    np.testing.assert_allclose(drawn @ drawn.T, np.eye(d), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(drawn, haar_rotation(d, 7))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unit_rows_leave_zeros_alone(rng, dtype):
    X = rng.standard_normal((2, 4, 3)).astype(dtype)
    X[0, 1] = 0
    U = unit_rows(X)
    assert U.dtype == dtype
    np.testing.assert_array_equal(U[0, 1], 0)
    np.testing.assert_allclose(np.linalg.norm(np.delete(U.reshape(-1, 3), 1, axis=0), axis=1), 1, rtol=1e-6)


def test_zeros_have_no_length_in_common() -> None:
    """Nothing can be divided by it."""
    assert row_length(np.zeros((3, 2))) is None
    assert not has_length(np.zeros((3, 2)), 0.0)
