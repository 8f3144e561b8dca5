"""Steps on O(d): the best rotation of a linear loss is found, whatever its size, and R stays orthogonal."""

import numpy as np
import pytest

from nearkin.linalg.orthonormal import haar_rotation
from nearkin.linalg.procrustes import nearest_orthogonal
from nearkin.quantization.descent import descend


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_a_linear_loss(size):
    target = haar_rotation(6, 0).astype(np.float32)
    start = nearest_orthogonal(target + 0.3 * haar_rotation(6, 1)).astype(np.float32)
    R = descend(start, lambda R: -np.float32(size) * target, 400, 0.2)
    np.testing.assert_allclose(R, target, atol=0.02)
    np.testing.assert_allclose(R.T @ R, np.eye(6), atol=1e-6)


def test_no_slope_no_turn():
    np.testing.assert_allclose(descend(np.eye(3, dtype=np.float32), np.zeros_like, 5, 0.5), np.eye(3), atol=1e-7)
