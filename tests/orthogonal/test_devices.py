"""Every optimizer, the mix and the parametrization on every device that is there."""

from typing import Any

import pytest
import torch
from torch import nn

from nearkin.orthogonal import (
    Adam,
    GivensDescent,
    Importance,
    RiemannianDescent,
    StochasticFlow,
    is_orthogonal,
    orthogonal_,
    orthogonal_optimizer,
    orthogonal_parametrization,
)

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is there")),
]
OPTIMIZERS = {
    "newton-schulz": lambda p, m: RiemannianDescent(p, 0.05, "newton-schulz", momentum=m),
    "taylor": lambda p, m: RiemannianDescent(p, 0.05, "taylor", momentum=m),
    "givens random": lambda p, m: GivensDescent(p, 0.05, "random", momentum=m),
    "givens greedy": lambda p, m: GivensDescent(p, 0.05, "greedy", momentum=m),
    "flow pairs": lambda p, m: StochasticFlow(p, 0.01, 2, scale="none", momentum=m),
    "flow blocks": lambda p, m: StochasticFlow(p, 0.01, 3, "abs", scale="none", momentum=m),
    "flow importance": lambda p, m: StochasticFlow(p, 0.01, 2, Importance("greedy"), scale="none", momentum=m),
}
each_device = pytest.mark.parametrize("device", DEVICES)


def descend(net: nn.Module, optimizer: Any, device: str) -> list[float]:
    X = torch.randn(12, 6, generator=torch.Generator().manual_seed(0)).to(device)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(X), X.roll(1, 1))
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@each_device
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("momentum", [0.0, Adam()], ids=["plain", "adam"])
def test_every_optimizer_descends_on_the_manifold(device: str, name: str, momentum: Any) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False)).to(device)
    weights = [orthogonal_(layer, "weight", random_state=n) for n, layer in enumerate(net)]
    losses = descend(net, OPTIMIZERS[name](weights, momentum), device)
    assert losses[-1] < losses[0]
    assert all(is_orthogonal(weight, 1e-4) for weight in weights)
    assert all(weight.device.type == device for weight in weights)


@each_device
def test_the_mix_and_the_parametrization(device: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6)).to(device)
    orthogonal_(net[0], "weight")
    orthogonal_parametrization(net[2])
    optimizer = orthogonal_optimizer(net, 0.05, others=lambda rest: torch.optim.AdamW(rest, lr=1e-2))
    losses = descend(net, optimizer, device)
    assert losses[-1] < losses[0]
    assert is_orthogonal(net[0].weight, 1e-4)
    assert is_orthogonal(net[2].weight, 1e-5)
