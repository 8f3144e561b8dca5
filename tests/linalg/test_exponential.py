"""exp(A) - I: against SciPy's exponential, at every norm, with relative accuracy near zero."""

import numpy as np
import pytest
import scipy.linalg
import torch

from nearkin.linalg.exponential import expm1
from nearkin.linalg.orthonormal import orthogonality_error
from tests.covering import each
from tests.reference.tangent import random_skew


@each("norm", [0.0, 1e-9, 3e-4, 0.03, 0.5, 3.0, 40.0])
@each("dtype", [torch.float32, torch.float64])
def test_agrees_with_scipy(norm: float, dtype: torch.dtype) -> None:
    A = random_skew(2, 7, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    A = (norm * A / torch.linalg.matrix_norm(A, 2)[:, None, None]).to(dtype)
    found = expm1(A).double().numpy()
    for matrix, result in zip(A.double().numpy(), found, strict=True):
        expected = scipy.linalg.expm(matrix) - np.eye(7)
        if norm < 1e-6:  # SciPy's difference has lost these digits; the series' next term is below them
            expected = matrix + matrix @ matrix / 2
        tolerance = 8 * torch.finfo(dtype).eps * max(1.0, norm)
        assert np.linalg.norm(result - expected) <= tolerance * np.linalg.norm(expected) + 1e-15 * (norm > 1e-6)


def test_a_million_small_turns_in_float32_do_not_drift() -> None:
    # 2^20 turns by D <- 2 D + D^2 would be the same turn: here by repeated application to a vector
    A = 1e-3 * random_skew(4, 4, generator=torch.Generator().manual_seed(1))
    D, x = expm1(A), torch.ones(4, 64)
    for _ in range(20000):
        x += D @ x
    assert float(x.norm()) == pytest.approx(16, rel=2e-5)


@each("norm", [10.0, 1e3, 1e8, 1e20, 1e30])
@each("dtype", [torch.float32, torch.float64])
def test_the_exponential_of_a_long_step_is_a_rotation(norm: float, dtype: torch.dtype) -> None:
    A = random_skew(3, 9, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    Q = torch.eye(9, dtype=dtype) + expm1((norm * A / torch.linalg.matrix_norm(A, 2).amax()).to(dtype))
    assert orthogonality_error(Q) < 20 * torch.finfo(dtype).eps
    assert bool((torch.linalg.det(Q) > 0.9).all())


def test_a_matrix_of_a_batch_is_scaled_as_alone() -> None:
    norms = torch.tensor([1e-6, 0.1, 1.0, 9.0, 1e4, 1e25])
    A = random_skew(6, 9, 9, generator=torch.Generator().manual_seed(0))
    A = A * (norms / torch.linalg.matrix_norm(A, 2))[:, None, None]
    for one, alone in zip(expm1(A), A, strict=True):
        torch.testing.assert_close(one, expm1(alone), rtol=1e-5, atol=1e-6 * float(expm1(alone).abs().max()))
    blocks = expm1(A.view(3, 2, 9, 9))
    torch.testing.assert_close(blocks[1], expm1(A[2:4]))


def test_no_exponential_of_nan() -> None:
    with pytest.raises(ValueError, match="A contains NaN"):
        expm1(torch.full((3, 3), torch.nan))
