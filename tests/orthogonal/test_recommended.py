"""The recommended optimizer: by shape, from parameters, groups or a module."""

import pytest
import torch
from torch import nn

from nearkin.orthogonal import (
    GivensDescent,
    RiemannianDescent,
    StochasticFlow,
    is_orthogonal,
    orthogonal_,
    orthogonal_optimizer,
)


def test_choice() -> None:
    small = nn.Parameter(torch.eye(4))
    assert isinstance(orthogonal_optimizer([small], 0.1), RiemannianDescent)
    assert isinstance(orthogonal_optimizer([small], 0.1, method="givens", momentum=0.9), GivensDescent)
    flow = orthogonal_optimizer([small], 0.1, method="flow", component_size=3)
    assert isinstance(flow, StochasticFlow)
    assert flow.param_groups[0]["component_size"] == 3
    with pytest.raises(ValueError, match="method is 'adam'"):
        orthogonal_optimizer([small], 0.1, method="adam")


def test_groups_keep_their_options() -> None:
    groups = [{"params": [nn.Parameter(torch.eye(3))], "lr": 0.5}, {"params": [nn.Parameter(torch.eye(4))]}]
    assert [group["lr"] for group in orthogonal_optimizer(groups, 0.1).param_groups] == [0.5, 0.1]


def test_a_module_trains_and_stays_orthogonal() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 6, 3), nn.Tanh(), nn.Flatten(), nn.Linear(6 * 4, 5))
    for layer in (net[0], net[3]):
        orthogonal_(layer, "weight", random_state=0)
    optimizer = orthogonal_optimizer(net, 0.1)
    X, y = torch.randn(20, 2, 4, 4), torch.randint(5, (20,))
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(X), y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    assert is_orthogonal(net[0].weight.flatten(1), 1e-4)
    assert is_orthogonal(net[3].weight, 1e-4)
    with pytest.raises(ValueError, match="Tanh without matrices"):
        orthogonal_optimizer(nn.Tanh(), 0.1)
