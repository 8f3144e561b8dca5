"""Diagnostics: what is orthogonal, which gradients are right, and the records of a training."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nearkin.linalg.haar import haar_orthogonal
from nearkin.orthogonal import GivensDescent, check_gradient, is_orthogonal
from tests.covering import each


@each("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_rounded_matrices_are_orthogonal_and_scaled_ones_are_not(dtype: torch.dtype) -> None:
    X = haar_orthogonal(40, 40, random_state=0, dtype=torch.float64).to(dtype)
    assert is_orthogonal(X)
    assert is_orthogonal(X[:, :7])
    assert is_orthogonal(X[:7])
    assert not is_orthogonal(1.1 * X)
    assert not is_orthogonal(X, 0.0)
    assert is_orthogonal(X.double().numpy(), 0.05)
    assert not is_orthogonal(np.ones((3, 3)))


@each("shape", [(5, 5), (6, 3), (2, 4, 4)])
def test_check_gradient_tells_right_from_wrong(shape: tuple[int, ...]) -> None:
    X = haar_orthogonal(*shape, random_state=0, dtype=torch.float64)
    C = torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def f(X: Tensor) -> Tensor:
        return (C * X).sum() ** 2 + (X**4).sum()

    def gradient(X: Tensor) -> Tensor:
        return 2 * (C * X).sum() * C + 4 * X**3

    assert check_gradient(f, X)[0]
    ok, slope = check_gradient(f, X, gradient=gradient)
    assert ok
    assert slope == pytest.approx(2, abs=0.1)
    ok, slope = check_gradient(f, X, gradient=lambda X: 1.1 * gradient(X))
    assert not ok
    assert slope == pytest.approx(1, abs=0.1)


def test_check_gradient_of_a_constant_and_off_the_manifold() -> None:
    X = haar_orthogonal(4, 4, random_state=0)
    assert check_gradient(lambda X: (X**2).sum(), X) == (True, float("inf"))
    with pytest.raises(ValueError, match="not orthonormal"):
        check_gradient(lambda X: X.sum(), 2 * X)


@each("X", [np.eye(3) * 1j, torch.eye(3) * 1j, torch.eye(3).to_sparse(), torch.empty(3, 3, device="meta")])
def test_what_has_no_real_values_is_refused(X: Any) -> None:
    with pytest.raises(TypeError, match="must be real and dense"):
        is_orthogonal(X)


def test_the_callback_is_called_after_every_step() -> None:
    records: list[dict[str, Any]] = []
    X = nn.Parameter(torch.eye(4))
    optimizer = GivensDescent([X], 0.1, callback=lambda step, record: records.append({"step": step, **record}))

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = (X * torch.arange(16.0).reshape(4, 4)).sum()
        loss.backward()
        return loss

    for _ in range(5):
        optimizer.step(closure)
    assert [record["step"] for record in records] == [1, 2, 3, 4, 5]
    assert records[-1]["objective"] < records[0]["objective"]
    assert max(record["orthogonality_error"] for record in records) < 1e-6
    assert min(record["gradient_norm"] for record in records) > 0
    X.grad = torch.ones(4, 4)
    optimizer.step()
    assert "objective" not in records[-1]
