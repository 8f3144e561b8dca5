"""Putting a module's parameter on the manifold."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nearkin.linalg.orthonormal import nearest_orthogonal
from nearkin.orthogonal import (
    RiemannianDescent,
    is_orthogonal,
    orthogonal_,
    orthogonal_optimizer,
    orthogonal_parametrization,
)


@pytest.mark.parametrize("init", ["haar", "nearest"])
def test_linear_rnn_and_convolution(init: str) -> None:
    torch.manual_seed(0)
    wide, tall, rnn, conv = nn.Linear(7, 3), nn.Linear(3, 7), nn.RNN(4, 6), nn.Conv2d(3, 8, 3)
    for module, name in ((wide, "weight"), (tall, "weight"), (rnn, "weight_hh_l0"), (conv, "weight")):
        assert orthogonal_(module, name, init=init) is getattr(module, name)
    assert is_orthogonal(wide.weight, 1e-6)
    assert is_orthogonal(tall.weight, 1e-6)
    assert is_orthogonal(rnn.weight_hh_l0, 1e-6)
    assert is_orthogonal(conv.weight.flatten(1), 1e-6)


def test_nearest_is_the_projection_and_haar_depends_on_the_seed() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(5, 5)
    expected = nearest_orthogonal(layer.weight.detach().double()).float()
    torch.testing.assert_close(orthogonal_(layer, init="nearest").detach(), expected)
    first = orthogonal_(layer, random_state=1).detach().clone()
    assert torch.equal(first, orthogonal_(layer, random_state=1))
    assert not torch.equal(first, orthogonal_(layer, random_state=2))
    other = nn.Linear(5, 5)
    assert not torch.equal(orthogonal_(layer), orthogonal_(other.weight))  # before, both were the matrix of seed 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("init", ["haar", "nearest"])
def test_a_matrix_may_be_given_itself(dtype: torch.dtype, init: str) -> None:
    layer = nn.Linear(4, 6, dtype=dtype)
    for matrix in (layer.weight, torch.randn(4, 6).to(dtype), torch.eye(5, dtype=dtype).mul(3).requires_grad_()):
        assert orthogonal_(matrix, init=init) is matrix
        assert is_orthogonal(matrix)
    same = orthogonal_(nn.Linear(4, 6, dtype=dtype), random_state=torch.Generator().manual_seed(3))
    assert torch.equal(orthogonal_(layer.weight, random_state=torch.Generator().manual_seed(3)), same)


@pytest.mark.parametrize("function", [orthogonal_, orthogonal_parametrization])
def test_what_is_no_matrix_is_refused_by_name(function: Callable[[Any], object]) -> None:
    values = [np.eye(3), [nn.Parameter(torch.eye(3))], nn.Linear(3, 3).parameters(), {}, None, "weight"]
    tensors = [torch.eye(3, dtype=dtype) for dtype in (torch.long, torch.complex64)] + [torch.eye(3).to_sparse()]
    for wrong in (*values, *tensors):
        with pytest.raises(TypeError, match=r"^(module is a|the tensor (has dtype|is sparse))"):
            function(wrong)
    if function is orthogonal_:
        for shape, message in {(3,): "must be a matrix", (2, 3, 3): "a batch of matrices or a convolution"}.items():
            with pytest.raises(ValueError, match=message):
                function(torch.zeros(shape))
        with pytest.raises(TypeError, match="a tensor, which has no names"):
            orthogonal_(torch.eye(3), "bias")
        for options, message in (
            ({"name": "kernel"}, r"name is 'kernel'.*which has: weight, bias"),
            ({"name": "bias"}, "batch of matrices"),
            ({"init": "random"}, "init is 'random'"),
        ):
            with pytest.raises(ValueError, match=message):
                orthogonal_(nn.Linear(4, 3), **options)
        with pytest.raises(ValueError, match="NaN or infinity"):
            orthogonal_(torch.full((3, 3), torch.nan), init="nearest")


def test_parts_of_fully_sharded_parameters_are_refused_by_name() -> None:
    flat = pytest.importorskip("torch.distributed.fsdp._flat_param").FlatParameter(torch.zeros(9))
    with pytest.raises(TypeError, match=r"parameter 0 of group 0 is a FlatParameter .*ignored_modules="):
        RiemannianDescent([flat], 0.1)
    net = nn.Module()
    net.register_parameter("flat", flat)
    with pytest.raises(TypeError, match="flat is a FlatParameter"):
        orthogonal_optimizer(net, 0.1)
