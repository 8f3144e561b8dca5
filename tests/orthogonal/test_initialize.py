"""Putting a module's parameter on the manifold."""

import pytest
import torch
from torch import nn

from nearkin.linalg.procrustes import nearest_orthogonal
from nearkin.orthogonal import is_orthogonal, orthogonal_


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


def test_sixteen_bit_storage() -> None:
    layer = nn.Linear(6, 6).to(torch.bfloat16)
    assert orthogonal_(layer).dtype == torch.bfloat16
    assert is_orthogonal(layer.weight)


def test_bad_input() -> None:
    layer = nn.Linear(4, 3)
    with pytest.raises(ValueError, match=r"name is 'kernel'.*which has: weight, bias"):
        orthogonal_(layer, "kernel")
    with pytest.raises(ValueError, match="init is 'random'"):
        orthogonal_(layer, init="random")
    with pytest.raises(ValueError, match="batch of matrices"):
        orthogonal_(layer, "bias")
