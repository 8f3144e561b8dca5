"""Diagnostics: what is orthogonal, and the records of a training."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nearkin.linalg.haar import haar_orthogonal
from nearkin.orthogonal import GivensDescent, is_orthogonal
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
