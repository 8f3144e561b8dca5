"""Diagnostics: what is orthogonal, and the records of a training."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nearkin.linalg.haar import haar_orthogonal
from nearkin.orthogonal import (
    GivensDescent,
    is_orthogonal,
    orthogonal_,
    orthogonal_optimizer,
    orthogonal_parametrization,
)
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


KERNELS = {
    "1d": nn.Conv1d(3, 8, 2),
    "2d": nn.Conv2d(8, 3, (2, 3)),
    "3d": nn.Conv3d(2, 4, 2),
    "transposed 1d": nn.ConvTranspose1d(3, 8, 2),
    "transposed 2d": nn.ConvTranspose2d(8, 3, (2, 3)),
    "transposed 3d": nn.ConvTranspose3d(2, 4, 2),
    "linear": nn.Linear(3, 5),
    "embedding": nn.Embedding(7, 4),
    "bilinear": nn.Bilinear(3, 4, 5),
}


@pytest.mark.filterwarnings("ignore:params")  # biases are not trained
@each("name", KERNELS)
def test_what_was_made_orthogonal_is_orthogonal(name: str) -> None:
    """Kernels were judged as batches of windows, and those of transposed convolutions made to be such batches."""
    module = copy.deepcopy(KERNELS[name])
    assert not is_orthogonal(module.weight)
    weight = orthogonal_(module, random_state=0)
    layout = "convolution" if name[-1] == "d" else "matrix"
    for value in (weight, module.state_dict()["weight"], weight.detach().numpy()):
        assert is_orthogonal(value)
        assert is_orthogonal(value, layout=layout)
    values = torch.linalg.svdvals(weight.detach().flatten(1) if layout == "convolution" else weight.detach())
    torch.testing.assert_close(values, torch.ones_like(values))
    p = nn.Parameter(weight.detach().clone())
    optimizer = orthogonal_optimizer([{"params": [p], "layout": layout}], lr=0.1)
    p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(0))
    optimizer.step()
    assert is_orthogonal(p, 1e-6)
    assert orthogonal_optimizer(module, lr=0.1).param_groups[0]["layout"] == layout
    held = orthogonal_parametrization(copy.deepcopy(KERNELS[name]))
    assert is_orthogonal(held.weight.detach(), 1e-6, layout)
    assert not is_orthogonal(2 * weight)


def test_where_two_readings_are_possible_it_asks() -> None:
    X = torch.eye(4)[None] / 2  # no rotation, but a kernel of norm 1
    with pytest.raises(ValueError, match=r"shape \(1, 4, 4\): .*one channel.*type layout='convolution'"):
        is_orthogonal(X)
    assert is_orthogonal(X, layout="convolution")
    assert not is_orthogonal(X, layout="matrix")
    assert is_orthogonal(2 * X)
    with pytest.raises(ValueError, match="layout is 'kernel'"):
        is_orthogonal(X, layout="kernel")
    for module in (nn.Conv2d(4, 4, 3, groups=2), nn.ConvTranspose1d(4, 4, 3, groups=4)):
        for make in (orthogonal_, orthogonal_parametrization):
            with pytest.raises(ValueError, match=r"has groups=\d: its kernel .* must have groups=1"):
                make(module)


@each("X", [np.eye(3) * 1j, torch.eye(3) * 1j, torch.eye(3).to_sparse(), torch.empty(3, 3, device="meta")])
def test_what_has_no_real_values_is_refused(X: Any) -> None:
    with pytest.raises(TypeError, match="must be real and dense"):
        is_orthogonal(X)


def test_the_callback_is_called_after_every_step() -> None:
    records: list[dict[str, Any]] = []
    X, G = nn.Parameter(torch.eye(4)), torch.arange(16.0).reshape(4, 4)
    optimizer = GivensDescent([X], 0.1, callback=lambda step, record: records.append({"step": step, **record}))
    X.grad = G
    for _ in range(5):
        optimizer.step(lambda: (X * G).sum())
    assert [record["step"] for record in records] == [1, 2, 3, 4, 5]
    assert records[-1]["objective"] < records[0]["objective"]
    assert max(record["orthogonality_error"] for record in records) < 1e-6
    assert min(record["gradient_norm"] for record in records) > 0
    optimizer.step()
    assert "objective" not in records[-1]
